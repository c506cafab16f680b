//! Pages of a merged list, and the cursors between them.

use amends_ledger::keyed_digest;
use amends_wire::mcp::lists::{self, Kind};

/// How many entries a page has at most, and about how many bytes.
const ENTRIES_MAX: usize = 1000;
const BYTES_MAX: usize = 2 << 20;
const PROOF_LENGTH: usize = 16;

/// An entry on a page: what it is known by, and all of it.
pub type Listed<'a> = (&'a str, std::borrow::Cow<'a, str>);

/// A cursor that is not one of ours, or whose place in the list is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct BadCursor;

/// One page of a list: the entries after the cursor, as many as a page takes.
///
/// A cursor names the entry it stands behind, so that a list that changes in between loses and repeats nothing, and carries the
/// proof that we gave it.
pub fn page<'a>(
    kind: Kind,
    entries: impl IntoIterator<Item = Listed<'a>>,
    cursor: Option<&str>,
    secret: &[u8],
) -> Result<String, BadCursor> {
    let mut entries = entries.into_iter();
    if let Some(cursor) = cursor {
        let behind = read(kind, cursor, secret).ok_or(BadCursor)?;
        entries.by_ref().find(|(key, _)| *key == behind).ok_or(BadCursor)?;
    }
    let (mut shown, mut bytes, mut last) = (Vec::new(), 0, "");
    let mut more = false;
    for (key, entry) in entries {
        if shown.len() >= ENTRIES_MAX || (bytes > 0 && bytes + entry.len() > BYTES_MAX) {
            more = true;
            break;
        }
        bytes += entry.len();
        last = key;
        shown.push(entry);
    }
    let next = more.then(|| write(kind, last, secret));
    Ok(lists::list(kind, shown.iter().map(|entry| entry.as_ref()), next.as_deref()))
}

fn write(kind: Kind, key: &str, secret: &[u8]) -> String {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{hex}", proof(kind, key, secret))
}

fn read(kind: Kind, cursor: &str, secret: &[u8]) -> Option<String> {
    let (given, hex) = cursor.split_at_checked(PROOF_LENGTH)?;
    if !hex.is_ascii() || hex.len() % 2 != 0 {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    let key = String::from_utf8(bytes?).ok()?;
    (proof(kind, &key, secret) == given).then_some(key)
}

fn proof(kind: Kind, key: &str, secret: &[u8]) -> String {
    let parts = [b"cursor" as &[u8], kind.method().as_bytes(), key.as_bytes()];
    keyed_digest(secret, &parts).as_str()[..PROOF_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_wire::mcp::lists::Page;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("n{n:05}")).collect()
    }

    fn shown(names: &[String], cursor: Option<&str>) -> Result<Page, BadCursor> {
        let entries = names.iter().map(|name| (name.as_str(), format!(r#"{{"name":"{name}"}}"#).into()));
        page(Kind::Prompts, entries, cursor, b"secret").map(|text| Page::parse(Kind::Prompts, &text).unwrap())
    }

    #[test]
    fn the_pages_hold_every_entry_once_and_in_order_even_when_the_list_changes() {
        let mut names = names(2 * ENTRIES_MAX + 7);
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = shown(&names, cursor.as_deref()).unwrap();
            seen.extend(page.entries.into_iter().map(|entry| entry.key));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            names.remove(0);
        }
        assert_eq!(seen.len(), 2 * ENTRIES_MAX + 7);
        assert!(seen.is_sorted());
    }

    #[test]
    fn a_cursor_that_is_not_ours_or_whose_place_is_gone_is_refused() {
        let names = names(ENTRIES_MAX + 1);
        let cursor = shown(&names, None).unwrap().next_cursor.unwrap();
        assert_eq!(shown(&names, Some(&cursor)).unwrap().entries.len(), 1);
        let other = page(Kind::Tools, names.iter().map(|name| (name.as_str(), "{}".into())), Some(&cursor), b"secret");
        assert_eq!(other, Err(BadCursor), "of another list");
        assert_eq!(shown(&[], Some(&cursor)).unwrap_err(), BadCursor, "its place is gone");
        for at in 0..cursor.len() {
            let mut forged = cursor.clone().into_bytes();
            forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
            assert!(shown(&names, Some(&String::from_utf8(forged).unwrap())).is_err(), "{at}");
        }
        for odd in ["", "x", "ä", "0123456789abcdef0", "0123456789abcdefzz", &"0".repeat(100_000)] {
            assert!(shown(&names, Some(odd)).is_err(), "{odd:.20}");
        }
    }

    #[test]
    fn one_entry_larger_than_a_page_still_comes() {
        let big = format!(r#"{{"name":"a","x":"{}"}}"#, "y".repeat(BYTES_MAX));
        let entries = [("a", big.as_str().into()), ("b", r#"{"name":"b"}"#.into())];
        let text = page(Kind::Tools, entries, None, b"s").unwrap();
        let page = Page::parse(Kind::Tools, &text).unwrap();
        assert_eq!((page.entries.len(), page.next_cursor.is_some()), (1, true));
    }
}
