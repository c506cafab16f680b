//! Which of one call's fields would be the arguments of another.

use super::toml_text::{key, quoted};
use super::tool::{Tool, is_key};

/// The arguments of a tool that is called because of another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// All that it needs is known: the inside of an inline table.
    Whole(String),
    /// It needs this, and nobody says where it comes from.
    Missing(String),
    /// It takes nothing that would tell one effect from another.
    Nothing,
}

/// Words of CEL that cannot stand after a dot.
const RESERVED: [&str; 22] = [
    "in",
    "true",
    "false",
    "null",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "has",
];

/// Whether a name can stand after a dot in an expression.
pub(super) fn is_plain(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.contains(&name)
}

/// A field as an expression.
pub(super) fn reach(of: &str, field: &str) -> String {
    format!("{of}.{field}")
}

/// The arguments of the read that tells whether a call took effect. Only what is known before an answer counts.
pub(super) fn for_status(tool: &Tool, reader: &Tool) -> Mapping {
    let keyed = tool.key_argument().is_some();
    let from_call = |field: &str| match is_key(field) || field == "key" {
        true if keyed => Some("key".to_owned()),
        _ => same(tool, reader, field),
    };
    map(reader, from_call)
}

/// The arguments of the read that a call is based on.
pub(super) fn for_evidence(tool: &Tool, reader: &Tool) -> Mapping {
    map(reader, |field| same(tool, reader, field))
}

/// The arguments of the tool that undoes a call: what its answer tells, else what it was called with.
pub(super) fn for_reverse(tool: &Tool, undo: &Tool) -> Mapping {
    let noun = &tool.words.noun;
    let id = |field: &str| field == "id" || field == format!("{noun}_id") || field == format!("{noun}Id");
    map(undo, |field| {
        let known = |name: &str| (is_plain(name) && tool.output.has(name)).then(|| reach("result", name));
        let by_id = || id(field).then(|| ["id".to_owned(), format!("{noun}_id"), format!("{noun}Id")]);
        let from_answer = known(field).or_else(|| by_id()?.iter().find_map(|name| known(name)));
        // A server that does not say what it answers most likely answers with an id.
        let guessed = || (tool.output.is_empty() && id(field)).then(|| reach("result", "id"));
        from_answer.or_else(|| same(tool, undo, field)).or_else(guessed)
    })
}

/// The call's argument that is the other tool's field: of the same name, or the id of the same thing.
fn same(tool: &Tool, other: &Tool, field: &str) -> Option<String> {
    let noun = &other.words.noun.strip_suffix("_status").unwrap_or(&other.words.noun).to_owned();
    let ids = [field.to_owned(), "id".to_owned(), format!("{noun}_id"), format!("{noun}Id"), noun.clone()];
    let alike = if ids[1..].iter().any(|id| id == field) { &ids[..] } else { &ids[..1] };
    alike.iter().find(|name| is_plain(name) && tool.input.has(name)).map(|name| reach("args", name))
}

fn map(to: &Tool, from: impl Fn(&str) -> Option<String>) -> Mapping {
    let mut args = Vec::new();
    for (field, _) in to.input.required().filter(|(field, _)| !is_key(field) || from(field).is_some()) {
        match from(field) {
            Some(expression) => args.push((field, expression)),
            None => return Mapping::Missing(field.to_owned()),
        }
    }
    if args.is_empty() {
        let telling = |(field, _): &(&str, _)| {
            *field == "id" || field.ends_with("_id") || field.ends_with("Id") || is_key(field) || *field == "key"
        };
        let found = to.input.all().filter(telling).find_map(|(field, _)| Some((field, from(field)?)));
        args.extend(found);
    }
    if args.is_empty() {
        return Mapping::Nothing;
    }
    let args: Vec<String> = args.iter().map(|(field, from)| format!("{} = {}", key(field), quoted(from))).collect();
    Mapping::Whole(args.join(", "))
}
