//! The types for TypeScript, and a check that the goldens are of them.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use amends_core::envelope::CHARTER_VERSION;
use serde_json::Value;

use crate::goldens::{self, root};
use crate::shapes::{Body, Kind, Shape, shapes};

const HEAD: &str = "\
// The envelope that Amends answers a tool call with.
// Generated from the registry; do not edit. Further fields may be added in a minor version of the charter.
";

/// The whole module.
pub(crate) fn module() -> String {
    let mut out = format!("{HEAD}\n/** The version of the charter these types are of. */\n");
    let _ = writeln!(out, "export type CharterVersion = {CHARTER_VERSION:?};");
    for Shape { name, body } in shapes() {
        match body {
            Body::Words { about, words } => {
                let words: String = words.iter().map(|word| format!("\n  | {word:?}")).collect();
                let _ = write!(out, "\n/** {about} */\nexport type {name} ={words};\n");
            }
            Body::Object { extends, fields } => {
                let extends = extends.map(|base| format!(" extends {base}")).unwrap_or_default();
                let _ = writeln!(out, "\nexport interface {name}{extends} {{");
                for field in fields {
                    if let Some(about) = &field.about {
                        let _ = writeln!(out, "  /** {about} */");
                    }
                    let optional = if field.required { "" } else { "?" };
                    let _ = writeln!(out, "  {}{optional}: {};", field.name, kind(&field.kind));
                }
                out.push_str("}\n");
            }
            Body::OneOf(names) => {
                let names: String = names.iter().map(|name| format!("\n  | {name}")).collect();
                let _ = write!(out, "\nexport type {name} ={names};\n");
            }
        }
    }
    out
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Anything => "unknown".to_owned(),
        Kind::Nothing => "never".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::Integer | Kind::Number => "number".to_owned(),
        Kind::IntegerOrText => "number | string".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Object => "Record<string, unknown>".to_owned(),
        Kind::Exactly(value) => value.to_string(),
        Kind::Words(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" | "),
        Kind::List(item) => match **item {
            Kind::Words(_) | Kind::IntegerOrText => format!("({})[]", self::kind(item)),
            _ => format!("{}[]", self::kind(item)),
        },
        Kind::Named(name) => name.clone(),
    }
}

/// By the compiler: what is wrong is marked as such, so that it complains where nothing is wrong with it.
#[test]
fn every_golden_envelope_is_of_the_typescript_types_and_a_wrong_one_is_not() {
    let mut source = String::from("import type { Envelope, EnvelopeBeside } from \"./envelope\";\n");
    for found in goldens::envelopes() {
        let name = if found.beside { "EnvelopeBeside" } else { "Envelope" };
        let _ = write!(source, "// {}\nexpect<{name}>({});\n", found.at, found.envelope);
    }
    for wrong in WRONG {
        let _: Value = serde_json::from_str(wrong).expect("it is JSON");
        let _ = write!(source, "// @ts-expect-error\nexpect<Envelope>({wrong});\n");
    }
    source.push_str("declare function expect<T>(value: T): void;\n");
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("goldens.ts"), source).expect("it can be written");
    fs::copy(root().join("types/typescript/envelope.d.ts"), folder.path().join("envelope.d.ts")).expect("it is there");
    let compiler = root().join("tests/clients/types/node_modules/typescript/bin/tsc");
    let output = Command::new("node")
        .arg(compiler.canonicalize().expect("the compiler is there; tests/clients/setup.sh installs it"))
        .args(["--noEmit", "--strict", "--target", "es2022", "--moduleResolution", "bundler"])
        .args(["--module", "esnext", "goldens.ts"])
        .current_dir(folder.path())
        .output()
        .expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

const WRONG: [&str; 6] = [
    r#"{"status":"fine","outcome":"succeeded","data":1,"charter_version":"1.0"}"#,
    r#"{"status":"success","outcome":"succeeded","charter_version":"1.0"}"#,
    r#"{"status":"success","outcome":"exhausted","data":1,"charter_version":"1.0"}"#,
    r#"{"status":"success","outcome":"succeeded","data":1,"errors":[],"charter_version":"1.0"}"#,
    r#"{"status":"degraded","charter_version":"1.0"}"#,
    r#"{"status":"error","outcome":"unresolved","charter_version":"1.0"}"#,
];
