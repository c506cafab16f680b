//! Texts of others inside a file of ours: every name, value and comment that comes from outside passes through here.

/// The longest comment that is made of a text from outside.
const COMMENT_CHARS_MAX: usize = 160;

/// A text as TOML, always on one line, whatever is in it. It also is a key.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || is_invisible(c) => out.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key of TOML, in quotes where it needs them.
pub(super) fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// A list of texts.
pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text from outside as a comment can hold it: one line, nothing that moves or hides what is beside it, and not too long.
pub(super) fn comment(text: &str) -> String {
    let seen = text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c });
    let words: String = seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= COMMENT_CHARS_MAX {
        return words;
    }
    words.chars().take(COMMENT_CHARS_MAX - 1).chain(['…']).collect()
}

/// What changes how a line reads without being seen: other ends of lines, directions, joiners, tags.
fn is_invisible(c: char) -> bool {
    matches!(u32::from(c), 0x00AD | 0x061C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFEFF
        | 0xFFF9..=0xFFFB | 0xE0000..=0xE007F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_back_and_stays_on_its_line() {
        for text in [
            "",
            "plain",
            "a\"b\\c",
            "a\nb\r\nc\u{0}\u{7f}\u{85}",
            "\"\"\"\n[x]",
            "'",
            "é\u{202e}z",
            "\u{2028}\u{1f600}",
        ] {
            let line = quoted(text);
            assert!(!line.contains(['\n', '\r', '\u{2028}', '\u{202e}']), "{line}");
            let table: toml::Table =
                toml::from_str(&format!("{line} = {line}\n[t]\n{} = {}", key(text), list(&[text.into()])))
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(table[text].as_str(), Some(text));
            assert_eq!(table["t"][text][0].as_str(), Some(text));
            assert!(toml::from_str::<toml::Table>(&format!("# {}\n", comment(text))).is_ok());
        }
        assert_eq!(comment("a\n[b]\r\u{202e} c"), "a [b] c");
        assert_eq!(comment(&"x".repeat(1000)).chars().count(), COMMENT_CHARS_MAX);
    }
}
