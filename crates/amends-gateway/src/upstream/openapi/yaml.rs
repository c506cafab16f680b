//! YAML into JSON values, within bounds, and where in the text each value stands.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};

use super::limits::{DEPTH_MAX, NODES_MAX};

/// Why a text is not taken: the line, and what is wrong there.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// A list or a mapping that is not closed yet.
enum Open {
    List { anchor: usize, items: Vec<Value> },
    Mapping { anchor: usize, members: Map<String, Value>, key: Option<String>, merged: bool },
}

/// What an alias stands for.
struct Anchored {
    value: Value,
    nodes: usize,
    depth: usize,
}

/// Reads the first document of a text, by the rules of YAML 1.2. An alias stands for a copy, so a small text may mean a
/// large document: the copies count.
pub(super) fn read(text: &str) -> Result<Value, Wrong> {
    let mut parser = Parser::<StrInput<'_>>::new_from_str(text);
    let mut anchors: HashMap<usize, Anchored> = HashMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut nodes = 0_usize;
    // Ends: each turn takes an event, and a text has finitely many.
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| Wrong {
            line: error.marker().line(),
            reason: format!("it is not YAML: {}", error.info()),
        })?;
        let wrong = |reason: &str| Wrong { line: span.start.line(), reason: reason.to_owned() };
        let (mut value, anchor) = match event {
            Event::MappingStart(anchor, _) => {
                open.push(Open::Mapping { anchor, members: Map::new(), key: None, merged: false });
                if open.len() > DEPTH_MAX {
                    return Err(wrong("it nests too deep"));
                }
                continue;
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open::List { anchor, items: Vec::new() });
                if open.len() > DEPTH_MAX {
                    return Err(wrong("it nests too deep"));
                }
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(Open::Mapping { anchor, members, .. }) => (Value::Object(members), anchor),
                Some(Open::List { anchor, items }) => (Value::Array(items), anchor),
                None => return Err(wrong("it ends before it begins")),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_key = matches!(open.last(), Some(Open::Mapping { key: None, .. }));
                (if is_key { Value::String(text.into_owned()) } else { scalar(&text, style, tag.as_deref()) }, anchor)
            }
            Event::Alias(anchor) => match anchors.get(&anchor) {
                Some(anchored) if open.len() + anchored.depth > DEPTH_MAX => return Err(wrong("it nests too deep")),
                Some(anchored) => {
                    nodes = nodes.saturating_add(anchored.nodes);
                    if nodes > NODES_MAX {
                        return Err(wrong("it is larger than we take"));
                    }
                    (anchored.value.clone(), 0)
                }
                None => return Err(wrong("the alias stands for nothing before it")),
            },
            Event::StreamEnd | Event::DocumentEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        nodes = nodes.saturating_add(1);
        if nodes > NODES_MAX {
            return Err(wrong("it is larger than we take"));
        }
        if anchor != 0 {
            let (size, depth) = measure(&value);
            nodes = nodes.saturating_add(size);
            anchors.insert(anchor, Anchored { value: value.clone(), nodes: size, depth });
        }
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Mapping { members, key, merged, .. }) => match key.take() {
                None => match value {
                    Value::String(name) => *key = Some(name),
                    _ => return Err(wrong("a key is neither a list nor a mapping")),
                },
                Some(name) if name == "<<" && value.is_object() => {
                    *merged = true;
                    for (name, value) in value.as_object_mut().map(std::mem::take).into_iter().flatten() {
                        members.entry(name).or_insert(value);
                    }
                }
                Some(name) => {
                    if members.contains_key(&name) && !*merged {
                        return Err(wrong(&format!("the key `{name}` is there twice")));
                    }
                    members.insert(name, value);
                }
            },
        }
    }
    Err(Wrong { line: 1, reason: "it is empty".into() })
}

/// The line of the value that a JSON pointer leads to, or of the nearest one around it. Aliases are not followed.
pub(super) fn line(text: &str, pointer: &str) -> Option<usize> {
    struct Level {
        next: usize,
        key: Option<String>,
        is_list: bool,
    }
    let wanted: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
    let mut parser = Parser::<StrInput<'_>>::new_from_str(text);
    let mut levels: Vec<Level> = Vec::new();
    let mut best: Option<(usize, usize)> = None;
    while let Some(Ok((event, span))) = parser.next_event() {
        let (opens, is_list) = match &event {
            Event::MappingStart(..) => (true, false),
            Event::SequenceStart(..) => (true, true),
            Event::MappingEnd | Event::SequenceEnd => {
                levels.pop();
                continue;
            }
            Event::Scalar(..) | Event::Alias(_) => (false, false),
            Event::StreamEnd | Event::DocumentEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        let depth = levels.len();
        if let Some(level) = levels.last_mut() {
            if level.is_list {
                level.key = Some(level.next.to_string());
                level.next += 1;
            } else if let Event::Scalar(text, ..) = &event
                && level.next % 2 == 0
            {
                level.next += 1;
                level.key = Some(text.to_string());
                if depth <= wanted.len()
                    && levels.iter().zip(&wanted).all(|(level, part)| level.key.as_ref() == Some(part))
                {
                    best = best.max(Some((depth, span.start.line())));
                }
                continue;
            } else {
                level.next += 1;
            }
        }
        let on_path = levels.iter().zip(&wanted).all(|(level, part)| level.key.as_ref() == Some(part));
        if on_path && depth <= wanted.len() && best.is_none_or(|(found, _)| found < depth) {
            best = Some((depth, span.start.line()));
        }
        if opens {
            levels.push(Level { next: 0, key: None, is_list });
        }
    }
    best.map(|(_, line)| line)
}

/// One part of a JSON pointer as it is meant.
pub(super) fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// How many values a value holds, itself included, and how deep they nest.
fn measure(value: &Value) -> (usize, usize) {
    let together = |(nodes, depth): (usize, usize), inner: &Value| {
        let (more, deeper) = measure(inner);
        (nodes + more, depth.max(deeper + 1))
    };
    match value {
        Value::Array(items) => items.iter().fold((1, 1), together),
        Value::Object(members) => members.values().fold((1, 1), together),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
    }
}

/// A scalar by the core schema of YAML 1.2: only a plain one is anything but a string.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let said_to_be_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if style != ScalarStyle::Plain || said_to_be_text {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let based = |prefix: &str, base: u32| u64::from_str_radix(text.strip_prefix(prefix)?, base).ok();
    if let Some(number) = based("0o", 8).or_else(|| based("0x", 16)) {
        return Some(number.into());
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
    {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = plain.parse::<i64>().map(Number::from).or_else(|_| plain.parse::<u64>().map(Number::from));
        if let Ok(whole) = whole {
            return Some(whole);
        }
    }
    plain.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_what_yaml_1_2_says_they_are() {
        let text = "a: 1\nb: [yes, true, ~, 1.5, -0x1, 0x10, 2024-01-01, '3', \"4\", !!str 5]\nc: {200: ok}\nd: |\n  two\n  lines\n";
        let read = read(text).unwrap();
        let b = json!(["yes", true, null, 1.5, "-0x1", 16, "2024-01-01", "3", "4", "5"]);
        assert_eq!(read, json!({"a": 1, "b": b, "c": {"200": "ok"}, "d": "two\nlines\n"}));
    }

    #[test]
    fn an_alias_is_a_copy_and_a_merge_gives_way() {
        let read = read("base: &b {x: 1, y: 2}\none: *b\ntwo:\n  <<: *b\n  y: 3\n").unwrap();
        assert_eq!(read["one"], json!({"x": 1, "y": 2}));
        assert_eq!(read["two"], json!({"x": 1, "y": 3}));
    }

    #[test]
    fn what_multiplies_itself_or_nests_without_end_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let copies = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{copies}]\n"));
        }
        assert_eq!(read(&bomb).unwrap_err().reason, "it is larger than we take");
        let mut ladder = "a0: &a0 x\n".to_owned();
        for n in 1..100 {
            ladder.push_str(&format!("a{n}: &a{n} {}*a{}{}\n", "[".repeat(100), n - 1, "]".repeat(100)));
        }
        assert_eq!(read(&ladder).unwrap_err().reason, "it nests too deep");
        assert_eq!(read(&"[".repeat(200)).unwrap_err().reason, "it nests too deep");
        assert!(read(&"[".repeat(100_000)).is_err());
        assert_eq!(read("").unwrap_err().reason, "it is empty");
        assert_eq!(read("a: 1\nb: 2\na: 3\n").unwrap_err().line, 3);
        assert_eq!(read("a: *b").unwrap_err().line, 1);
    }

    #[test]
    fn a_pointer_leads_to_its_line() {
        let text = "openapi: 3.0.0\npaths:\n  /orders/{id}:\n    get:\n      tags:\n        - one\n        - two\n";
        assert_eq!(line(text, "/paths/~1orders~1{id}/get"), Some(4));
        assert_eq!(line(text, "/paths/~1orders~1{id}/get/tags/1"), Some(7));
        assert_eq!(line(text, "/paths/~1orders~1{id}/get/nothing/here"), Some(4));
        assert_eq!(line("{\n \"a\": {\n  \"b\": [1,\n 2]}}", "/a/b/1"), Some(4));
    }
}
