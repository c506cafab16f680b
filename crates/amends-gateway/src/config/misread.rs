//! What is said of a text that cannot be read as what it should be.

use std::fmt;
use std::ops::Range;

use amends_core::nearest::{nearest, unknown_key};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::WrongMachines;
use super::unmeant::{sample, unmeant};

/// How many mistakes of a text are told.
const TOLD_MAX: usize = 20;

/// What of a text cannot be read: all of it, each with its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Misread {
    origin: String,
    mistakes: Vec<Mistake>,
    /// What is wrong with the machines beside that.
    machines: Option<WrongMachines>,
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line.
    pub line: usize,
    /// The key that it is about, where that is known.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it; nothing where that is said with what is wrong.
    pub fix: String,
}

impl Misread {
    pub(super) fn of(origin: &str, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.line);
        Self { origin: origin.to_owned(), mistakes, machines: None }
    }

    /// The same with what is wrong with the machines beside that.
    pub(super) fn beside(self, machines: Option<WrongMachines>) -> Self {
        Self { machines, ..self }
    }

    /// Each of them, in the order of the lines.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// What is wrong with the machines beside that, as far as it does not follow from it.
    pub fn machines(&self) -> Option<&WrongMachines> {
        self.machines.as_ref()
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Mistake { line, message, fix, .. }) in self.mistakes.iter().enumerate() {
            let (end, fix) =
                (if n > 0 { "\n" } else { "" }, if fix.is_empty() { String::new() } else { format!("; {fix}") });
            write!(f, "{end}{}:{line}: {message}{fix}", self.origin)?;
        }
        if let Some(machines) = &self.machines {
            write!(f, "\n{machines}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Misread {}

/// Why a text cannot be read as that: every key that is not known or of the wrong type, with its line. Also what can be read of it
/// without them.
pub(super) fn misread<T: DeserializeOwned>(text: &str, first: toml::de::Error) -> (Vec<Mistake>, Option<T>) {
    let mut mistakes = unmeant(text);
    let mut tell = |text: &str, error: &toml::de::Error| {
        let mistake = told(text, error);
        // What was not meant may not be readable either.
        if !mistakes.iter().any(|known: &Mistake| known.line == mistake.line) {
            mistakes.push(mistake);
        }
    };
    tell(text, &first);
    let mut left = text.to_owned();
    let mut error = first;
    let mut read = None;
    for _ in 1..TOLD_MAX {
        // What is wrong is left out, so that what comes after it is read.
        let Some(without) = without(&left, &error) else { break };
        left = without;
        error = match toml::from_str::<T>(&left) {
            Ok(rest) => {
                read = Some(rest);
                break;
            }
            Err(next) => next,
        };
        tell(&left, &error);
    }
    (mistakes, read)
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

/// A mistake: where it is, what is wrong there, and what to write.
fn told(text: &str, error: &toml::de::Error) -> Mistake {
    let start = error.span().map_or(0, |span| span.start);
    let line = line_of(text, start);
    let document = DeTable::parse(text).ok();
    let key = document.as_ref().and_then(|document| path(document.get_ref(), start));
    let message = error.message().trim();
    let typed = message.strip_prefix("invalid type: ").and_then(|it| it.split_once(", expected "));
    let valued = message.strip_prefix("invalid value: ").and_then(|it| it.split_once(", expected "));
    let variant = message.strip_prefix("unknown variant `").and_then(|it| it.split_once("`, expected "));
    // An enumeration that is given something else than a name says no more than this.
    let nameless =
        message.starts_with("wanted ").then(|| document.as_ref().and_then(|it| kind(it.get_ref(), start))).flatten();
    let (message, fix) = match (&key, typed, valued, variant, nameless) {
        (Some(key), Some((is, expected)), ..) => mistyped(key, is, expected.trim()),
        (Some(key), _, Some((is, expected)), ..) if WHOLE.contains(&expected.trim()) => (
            format!("`{key}` is {}, and cannot be", is.trim_start_matches("integer ").replace('`', "")),
            write_whole(key),
        ),
        (Some(key), _, _, Some((is, expected)), _) => {
            let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            let fix = match nearest(is, known.iter().copied()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: `{}`", known.join("`, `")),
            };
            (format!("`{key}` cannot be `{is}`"), fix)
        }
        (Some(key), .., Some(is)) => mistyped(key, is, "a string"),
        _ => {
            let said = unknown_key(message);
            let (message, fix) = said.split_once("; ").unwrap_or((&said, ""));
            (message.to_owned(), fix.to_owned())
        }
    };
    Mistake { line, key, message, fix }
}

/// The line of a place in a text.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Of what kind the value is that is written there, in the words of whoever reads it.
fn kind(table: &DeTable<'_>, at: usize) -> Option<&'static str> {
    table.iter().find_map(|(_, value)| {
        let within = match value.get_ref() {
            DeValue::Table(inner) => kind(inner, at),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => kind(inner, at),
                _ => None,
            }),
            _ => None,
        };
        let here = || match value.get_ref() {
            DeValue::String(_) => "string",
            DeValue::Integer(_) => "integer",
            DeValue::Float(_) => "floating",
            DeValue::Boolean(_) => "boolean",
            DeValue::Array(_) => "sequence",
            DeValue::Table(_) => "map",
            DeValue::Datetime(_) => "a date",
        };
        within.or_else(|| value.span().contains(&at).then(here))
    })
}

/// The key that is written there, or whose value is.
fn path(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().as_ref();
        let within = within(value.get_ref(), at).map(|rest| format!("{name}.{rest}"));
        let here = value.span().contains(&at) || key.span().contains(&at);
        within.or_else(|| here.then(|| name.to_owned()))
    })
}

fn within(value: &DeValue<'_>, at: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => path(table, at),
        DeValue::Array(items) => items.iter().find_map(|item| within(item.get_ref(), at)),
        _ => None,
    }
}

/// The kinds of whole numbers that are read.
const WHOLE: [&str; 8] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "nonzero"];

fn mistyped(key: &str, is: &str, expected: &str) -> (String, String) {
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
    let whole = WHOLE.iter().any(|kind| expected.contains(kind));
    let (wanted, written) = match expected {
        "a string" => ("a text", format!("{name} = \"…\"")),
        "a sequence" => ("a list", format!("{name} = [{}]", sample(name).or(text).unwrap_or("…"))),
        "a boolean" => ("true or false", format!("{name} = true")),
        "a map" => ("a table", format!("{name} = {{ … }}")),
        expected if expected.starts_with("struct ") => ("a table", format!("{name} = {{ … }}")),
        _ if whole && is == "a whole number" => return (format!("`{key}` is too large"), write_whole(key)),
        _ if whole => ("a whole number", format!("{name} = 3")),
        // Some say themselves what to write.
        expected => return (format!("`{key}` is {is}, and has to be {expected}"), String::new()),
    };
    (format!("`{key}` is {is}, and has to be {wanted}"), format!("write `{written}`"))
}

fn write_whole(key: &str) -> String {
    format!("write a whole number that is not negative, as in `{} = 3`", key.rsplit('.').next().unwrap_or(key))
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
    fn a_key_that_cannot_be_read_hides_no_mistake_of_a_machine() {
        let machine = |name: &str, action: &str| {
            format!(
                "[machines.{name}]\ninitial = \"a\"\nterminal = [\"z\"]\n\
                 [machines.{name}.actions.go]\nfrom = [\"a\"]\nto = \"z\"\n{action}"
            )
        };
        let end = "[machines.m.actions.end]\nfrom = [\"a\"]\nto = \"z\"\n";
        let told = |text: String| {
            let told = Source::of(text, "test").settle().unwrap_err().to_string();
            told.lines().map(|line| line.split("; ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        // A key elsewhere takes nothing from what is known of a machine.
        let elsewhere = format!("[tools.t]\nefect = \"read\"\n{}", machine("m", "guard = \"state.x == 1\"\n"));
        assert_eq!(
            told(elsewhere),
            [
                "test:2: unknown key `efect`",
                "test:9: `machines.m.actions.go.guard`: `state.x == 1` reads `state.x`, which nothing writes"
            ]
        );
        // One of another action takes what only the whole machine shows, and so does one of another machine what joins the two.
        let beside = format!(
            "{}{end}wrtes = {{ x = \"1\" }}\n{}",
            machine("m", "guard = \"state.x == 1 &&\"\ntool = \"t\"\nargs = { n = \"state.y\" }\n"),
            machine("other", "guard = \"state.x == 1\"\nmachine = \"lost\"\n")
        );
        let found = told(beside);
        let said =
            ["test:13: unknown key `wrtes`", "test:7: `machines.m.actions.go.guard`: `state.x == 1 &&` is not a CEL"];
        for said in
            said.into_iter().chain(["test:20: `machines.other.actions.go.guard`: `state.x == 1` reads `state.x`"])
        {
            assert!(found.iter().any(|found| found.starts_with(said)), "{said}: {found:#?}");
        }
        assert!(!found.iter().any(|found| found.contains("state.y") || found.contains("lost")), "{found:#?}");
        // What follows from a key of the same action or of the whole machine is not told.
        let same = format!("{}form = [\"a\"]\n", machine("m", "").replace("from = [\"a\"]\n", ""));
        assert_eq!(told(same), ["test:6: unknown key `form`"]);
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
                format!("{head}limits = {{ steps = -1 }}\n"),
                "test:4: `machines.m.limits.steps` is -1, and cannot be; write a whole number that is not negative, as in `steps = 3`",
            ),
            (
                format!("{head}limits = {{ steps = 99999999999999999999 }}\n"),
                "test:4: `machines.m.limits.steps` is too large; write a whole number that is not negative, as in `steps = 3`",
            ),
            (format!("{head}mode = \"tool\"\n"), "test:4: `machines.m.mode` cannot be `tool`; did you mean `tools`?"),
            (
                format!("{head}drift = \"wait\"\n"),
                "test:4: `machines.m.drift` cannot be `wait`; known: `keep`, `migrate`, `refuse`",
            ),
            (
                format!("{head}mode = 3\n"),
                "test:4: `machines.m.mode` is a whole number, and has to be a text; write `mode = \"…\"`",
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
