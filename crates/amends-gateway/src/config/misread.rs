//! What is said of a text that cannot be read as what it should be.

use amends_core::nearest::unknown_key;
use toml::de::{DeTable, DeValue};

/// The line of a mistake, and what is wrong there: which key, and what to write.
pub(super) fn misread(text: &str, error: &toml::de::Error) -> (usize, String) {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count() + 1;
    let key = || path(DeTable::parse(text).ok()?.get_ref(), start);
    let reason = match error.message().strip_prefix("invalid type: ").and_then(|it| it.split_once(", expected ")) {
        Some((is, expected)) => match key() {
            Some(key) => mistyped(&key, is, expected.trim()),
            None => unknown_key(error.message()),
        },
        None => unknown_key(error.message()),
    };
    (line, reason)
}

/// The key whose value is written there.
fn path(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().as_ref();
        let within = within(value.get_ref(), at).map(|rest| format!("{name}.{rest}"));
        within.or_else(|| value.span().contains(&at).then(|| name.to_owned()))
    })
}

fn within(value: &DeValue<'_>, at: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => path(table, at),
        DeValue::Array(items) => items.iter().find_map(|item| within(item.get_ref(), at)),
        _ => None,
    }
}

fn mistyped(key: &str, is: &str, expected: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let text = is.strip_prefix("string ");
    let is = match is.split(' ').next() {
        Some("string") => "a text",
        Some("integer") => "a whole number",
        Some("floating") => "a number",
        Some("boolean") => "true or false",
        Some("sequence") => "a list",
        Some("map") => "a table",
        _ => is,
    };
    let whole =
        ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "nonzero"].iter().any(|kind| expected.contains(kind));
    let (wanted, written) = match expected {
        "a string" => ("a text", format!("{name} = \"…\"")),
        "a sequence" => ("a list", format!("{name} = [{}]", text.unwrap_or("…"))),
        "a boolean" => ("true or false", format!("{name} = true")),
        "a map" => ("a table", format!("{name} = {{ … }}")),
        expected if expected.starts_with("struct ") => ("a table", format!("{name} = {{ … }}")),
        _ if whole => ("a whole number", format!("{name} = 3")),
        // Some say themselves what to write.
        expected => return format!("`{key}` is {is}, and has to be {expected}"),
    };
    format!("`{key}` is {is}, and has to be {wanted}; write `{written}`")
}

#[cfg(test)]
mod tests {
    use crate::config::Source;

    #[test]
    fn what_is_of_the_wrong_type_is_named_with_what_to_write() {
        let head = "[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\n";
        let go = "[machines.m.actions.go]\n";
        for (text, said) in [
            (
                "[machines.m]\ninitial = 5\n".to_owned(),
                "test:2: `machines.m.initial` is a whole number, and has to be a text; write `initial = \"…\"`",
            ),
            (
                format!("{head}{go}from = \"a\"\n"),
                "test:5: `machines.m.actions.go.from` is a text, and has to be a list; write `from = [\"a\"]`",
            ),
            (
                format!("{head}{go}times = \"three\"\n"),
                "test:5: `machines.m.actions.go.times` is a text, and has to be a whole number; write `times = 3`",
            ),
            (
                format!("{head}limits = {{ loops = true }}\n"),
                "test:4: `machines.m.limits.loops` is true or false, and has to be a whole number; write `loops = 3`",
            ),
            (
                format!("{head}{go}writes = {{ n = 1 }}\n"),
                "test:5: `machines.m.actions.go.writes.n` is a whole number, and has to be a text; write `n = \"…\"`",
            ),
            (
                format!("{head}{go}setup = [{{ tool = 3 }}]\n"),
                "test:5: `machines.m.actions.go.setup.tool` is a whole number, and has to be a text; write `tool = \"…\"`",
            ),
            (
                format!("{head}limits = 3\n"),
                "test:4: `machines.m.limits` is a whole number, and has to be a table; write `limits = { … }`",
            ),
        ] {
            assert_eq!(Source::of(text, "test").settle().unwrap_err().to_string(), said);
        }
        let target = Source::of(format!("{head}{go}to = 3\n"), "test").settle().unwrap_err().to_string();
        assert!(
            target.starts_with("test:5: ") && target.contains("the name of a state, or a list such as"),
            "{target}"
        );
    }
}
