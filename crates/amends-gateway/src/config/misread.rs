//! What is said of a text that cannot be read as what it should be.

use std::ops::Range;

use amends_core::nearest::unknown_key;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// How many mistakes of a text are told.
const TOLD_MAX: usize = 20;

/// Why a text cannot be read as that: every key that is not known or of the wrong type, with its line.
pub(super) fn misread<T: DeserializeOwned>(text: &str, origin: &str, first: toml::de::Error) -> ConfigError {
    let mut mistakes = vec![told(text, &first)];
    let mut left = text.to_owned();
    let mut error = first;
    for _ in 1..TOLD_MAX {
        // What is wrong is left out, so that what comes after it is read.
        let Some(without) = without(&left, &error) else { break };
        left = without;
        let Err(next) = toml::from_str::<T>(&left) else { break };
        mistakes.push(told(&left, &next));
        error = next;
    }
    mistakes.sort_by_key(|(line, _)| *line);
    let (line, reason) = mistakes.remove(0);
    let more: String = mistakes.into_iter().map(|(line, reason)| format!("\n{origin}:{line}: {reason}")).collect();
    ConfigError::Malformed { origin: origin.to_owned(), line, reason: reason + &more }
}

/// The same text without the lines that say what is wrong; nothing where that is not a key with its value.
fn without(text: &str, error: &toml::de::Error) -> Option<String> {
    let said = statement(DeTable::parse(text).ok()?.get_ref(), error.span()?.start)?;
    let begin = text[..said.start].rfind('\n').map_or(0, |end| end + 1);
    let blank: String = text[begin..said.end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    Some(format!("{}{blank}{}", &text[..begin], &text[said.end..]))
}

/// Where the key and the value are that are written around that place.
fn statement(table: &DeTable<'_>, at: usize) -> Option<Range<usize>> {
    table.iter().find_map(|(key, value)| {
        let (key, span) = (key.span(), value.span());
        if span.start >= key.end && (key.start..span.end).contains(&at) {
            return Some(key.start..span.end);
        }
        // A section has its name before its keys, and they have their own places.
        match value.get_ref() {
            DeValue::Table(inner) if !span.contains(&at) => statement(inner, at),
            _ => None,
        }
    })
}

/// The line of a mistake, and what is wrong there: which key, and what to write.
fn told(text: &str, error: &toml::de::Error) -> (usize, String) {
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
    fn every_key_that_cannot_be_read_is_told_at_once() {
        let text = "[machines.m]\ninitial = 5\nterminal = [\"z\"]\n\n[machines.m.actions.go]\nfrom = \"a\"\nto = \"z\"\ntims = 3\n\
                    setup = [\n  { tool = 3 },\n]\n\n[machines.n]\nlimits = { steps = \"x\", loops = 2 }\ndrift = \"keep\" # as it is\n";
        let told = Source::of(text.to_owned(), "test").settle().unwrap_err().to_string();
        let lines: Vec<&str> = told.lines().map(|line| line.split(':').nth(1).unwrap_or_default()).collect();
        assert_eq!(lines, ["2", "6", "8", "10", "14"], "{told}");
        assert!(told.contains("test:8: unknown key `tims`; did you mean `times`?"), "{told}");
        let torn = Source::of("[machines.m\ninitial = 5".to_owned(), "test").settle().unwrap_err().to_string();
        assert_eq!(torn.lines().filter(|line| line.starts_with("test:")).count(), 1, "{torn}");
    }

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
