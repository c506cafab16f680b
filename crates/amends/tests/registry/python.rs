//! The types for Python, and a check that the goldens are of them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use amends_core::envelope::CHARTER_VERSION;
use serde_json::{Value, json};

use crate::goldens::{self, root};
use crate::shapes::{Body, Field, Kind, Shape, shapes};

const HEAD: &str = r#""""The envelope that Amends answers a tool call with.

Generated from the registry; do not edit. Further fields may be added in a minor version of the charter.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, Union
"#;

/// The words of the language that are also names of fields.
const KEYWORDS: [&str; 2] = ["class", "is"];

/// Reads lines of `[type, value]` and says of each whether the value is of the type.
const CHECK: &str = r"
import json, sys, typing, typing_extensions
typing.TypedDict = typing_extensions.TypedDict  # pydantic asks for this one before Python 3.12
import amends_envelope
from pydantic import TypeAdapter, ValidationError
for line in sys.stdin:
    name, value = json.loads(line)
    try:
        TypeAdapter(getattr(amends_envelope, name)).validate_python(value, strict=True)
        print('fits')
    except ValidationError as error:
        print(str(error).replace('\n', ' '))
";

/// The whole module.
pub(crate) fn module() -> String {
    let mut out = format!("{HEAD}\nCHARTER_VERSION: Final = {CHARTER_VERSION:?}\n");
    for Shape { name, body } in shapes() {
        match body {
            Body::Words { about, words } => {
                let words: String = words.iter().map(|word| format!("    {word:?},\n")).collect();
                let _ = write!(out, "\n# {about}\n{name}: TypeAlias = Literal[\n{words}]\n");
            }
            Body::Object { extends, fields } => object(&mut out, &name, extends.as_deref(), &fields),
            Body::OneOf(names) => {
                let names: String = names.iter().map(|name| format!("    {name},\n")).collect();
                let _ = write!(out, "\n\n{name}: TypeAlias = Union[\n{names}]\n");
            }
        }
    }
    out
}

fn object(out: &mut String, name: &str, extends: Option<&str>, fields: &[Field]) {
    let there: Vec<&Field> = fields.iter().filter(|field| !matches!(field.kind, Kind::Nothing)).collect();
    // A field that is a word of the language cannot be written as an attribute.
    if there.iter().any(|field| KEYWORDS.contains(&field.name.as_str())) {
        assert_eq!(extends, None, "{name} cannot be written as a class");
        let lines: String =
            there.iter().map(|field| format!("        {:?}: {},\n", field.name, spelled(field))).collect();
        let _ = write!(out, "\n\n{name} = TypedDict(\n    {name:?},\n    {{\n{lines}    }},\n)\n");
        return;
    }
    let _ = write!(out, "\n\nclass {name}({}):\n", extends.unwrap_or("TypedDict"));
    for field in there {
        if let Some(about) = &field.about {
            let _ = writeln!(out, "    # {about}");
        }
        let _ = writeln!(out, "    {}: {}", field.name, spelled(field));
    }
}

fn spelled(field: &Field) -> String {
    let kind = kind(&field.kind);
    if field.required { kind } else { format!("NotRequired[{kind}]") }
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Anything => "Any".to_owned(),
        Kind::Nothing => unreachable!("a field that must not be there is left out"),
        Kind::Text => "str".to_owned(),
        Kind::Integer => "int".to_owned(),
        Kind::Number => "float".to_owned(),
        Kind::IntegerOrText => "Union[int, str]".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::Object => "dict[str, Any]".to_owned(),
        Kind::Exactly(Value::Bool(true)) => "Literal[True]".to_owned(),
        Kind::Exactly(Value::Bool(false)) => "Literal[False]".to_owned(),
        Kind::Exactly(value) => format!("Literal[{value}]"),
        Kind::Words(words) => {
            format!("Literal[{}]", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", "))
        }
        Kind::List(item) => format!("list[{}]", self::kind(item)),
        Kind::Named(name) => name.clone(),
    }
}

/// At run time, by pydantic, which the client drivers bring along.
#[test]
fn every_golden_envelope_is_of_the_python_types() {
    let found = goldens::envelopes();
    let lines: Vec<Value> = found
        .iter()
        .map(|found| json!([if found.beside { "EnvelopeBeside" } else { "Envelope" }, found.envelope]))
        .collect();
    for (found, said) in found.iter().zip(check(&lines)) {
        assert_eq!(said, "fits", "{}", found.at);
    }
}

#[test]
fn the_python_types_tell_a_wrong_envelope() {
    let success = json!({"status": "success", "outcome": "succeeded", "data": 1, "charter_version": "1.0"});
    let spoilt = |field: &str, value: Value| {
        let mut envelope = success.clone();
        envelope[field] = value;
        json!(["Envelope", envelope])
    };
    let mut without_data = json!(["Envelope", success.clone()]);
    without_data[1].as_object_mut().expect("it is an object").remove("data");
    let lines = [
        json!(["Envelope", success]),
        spoilt("status", json!("fine")),
        spoilt("outcome", json!("exhausted")),
        spoilt("attempts", json!([{"n": 1, "ms": 5, "code": "Oops"}])),
        spoilt("follow_up_hints", json!("one")),
        without_data,
    ];
    let said = check(&lines);
    assert_eq!(said[0], "fits");
    for (line, said) in lines.iter().zip(&said).skip(1) {
        assert_ne!(said, "fits", "{line}");
    }
}

fn check(lines: &[Value]) -> Vec<String> {
    let mut child = Command::new(root().join("target/clients/venv/bin/python"))
        .args(["-c", CHECK])
        .env("PYTHONPATH", root().join("types/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts; tests/clients/setup.sh installs it");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut input = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends").expect("Python reads all of it");
    assert!(output.status.success());
    let said: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(said.len(), lines.len());
    said
}
