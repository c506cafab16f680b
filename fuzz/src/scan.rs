//! The scanner: it says the same however the bytes are cut, and what the parser says where that can read them.

use amends_wire::scan::{ID_BYTES_MAX, METHOD_BYTES_MAX};
use amends_wire::{Message, Object, Scanned, Scanner};
use serde_json::value::RawValue;

const DEPTH_MAX: usize = 8;

/// Scans the bytes in pieces and as a whole.
pub fn target(data: &[u8]) {
    let (whole, deep) = scanned(data, data.len());
    assert_eq!(deep, whole.depth > DEPTH_MAX);
    for cut in [1, 2, 3, 7, 31] {
        let (pieces, deep_too) = scanned(data, cut);
        assert_eq!((said(&pieces), deep_too), (said(&whole), deep), "in pieces of {cut}");
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        assert_eq!(whole.depth, depth(text));
        assert_eq!(whole.whole, raw.get().starts_with(['{', '[', '"']));
    }
    if let Some(object) = Object::parse(text) {
        let id = object.get("id").filter(|id| is_id(id)).map(RawValue::get);
        assert_eq!(whole.id.as_deref().map(RawValue::get), id);
        let method = object.get("method").filter(|method| method.get().len() <= METHOD_BYTES_MAX);
        let method = method.and_then(amends_wire::object::string);
        assert_eq!(whole.method.as_deref(), method.as_deref());
    }
    if let Ok(Message::Request { id, .. } | Message::Success { id, .. }) = Message::parse(text) {
        assert_eq!(whole.id.as_deref().map(RawValue::get), Some(id.get()));
    }
}

fn scanned(data: &[u8], cut: usize) -> (Scanned, bool) {
    let mut scanner = Scanner::new(DEPTH_MAX);
    let mut deep = false;
    for piece in data.chunks(cut.max(1)) {
        let objects = scanner.feed(piece).is_err();
        assert!(objects || !deep, "what was too deep stays too deep");
        deep = objects;
    }
    (scanner.finish(), deep)
}

fn said(scanned: &Scanned) -> (usize, Option<&str>, Option<&str>, bool) {
    (scanned.depth, scanned.id.as_deref().map(RawValue::get), scanned.method.as_deref(), scanned.whole)
}

/// How deep a text nests that is known to be JSON.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest, mut string, mut escaped) = (0_usize, 0, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => string = !string,
            '{' | '[' if !string => open += 1,
            '}' | ']' if !string => open -= 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() <= ID_BYTES_MAX && text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}
