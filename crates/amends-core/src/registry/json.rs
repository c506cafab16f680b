//! The registry as data, for tools that are not written in Rust.

use serde_json::{Value, json};

use super::{Class, Code, Field};
use crate::envelope::CHARTER_VERSION;
use crate::refusal::RefusalKind;

/// The whole registry as JSON: classes, codes and refusals with all their columns.
pub fn json() -> Value {
    let classes = Class::ALL.map(|class| json!({"class": class.as_str(), "means": class.means()}));
    json!({
        "charter_version": CHARTER_VERSION,
        "classes": classes,
        "codes": Code::ALL.map(code).to_vec(),
        "refusals": RefusalKind::ALL.map(refusal).to_vec(),
    })
}

fn code(code: Code) -> Value {
    let mut row = json!({
        "code": code.as_str(),
        "kind": code.kind(),
        "class": code.class().as_str(),
        "verdict": code.verdict().as_str(),
        "who_must_act": code.who_must_act().as_str(),
        "retryable": code.retryable(),
        "meaning": code.meaning().as_str(),
        "shows": code.shows().iter().map(|field| Field::as_str(*field)).collect::<Vec<_>>(),
        "http": code.http_status(),
        "mcp": code.mcp().words(),
        "a2a": code.a2a().words(),
        "ag_ui": code.ag_ui().words(),
        "since": code.since(),
        "means": code.means(),
        "then": code.then(),
    });
    if let Some(certainty) = code.implies() {
        row["implies"] = certainty.as_str().into();
    }
    row
}

fn refusal(kind: RefusalKind) -> Value {
    json!({
        "kind": kind.as_str(),
        "code": kind.code().as_str(),
        "who_must_act": kind.who_must_act().as_str(),
        "meaning": kind.meaning().as_str(),
        "http": kind.http_status(),
        "mcp": kind.mcp().words(),
        "a2a": kind.a2a().words(),
        "ag_ui": kind.ag_ui().words(),
        "means": kind.means(),
        "then": kind.then(),
    })
}
