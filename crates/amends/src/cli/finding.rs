//! What is found in the machines of a configuration, for programs.

use amends_core::machine::{Finding, Weight};
use serde_json::{Value, json};

/// One finding, whose place begins with the machine's name.
pub(super) fn to_json(line: Option<usize>, finding: &Finding) -> Value {
    let Finding { weight, code, at, message, fix } = finding;
    let level = match weight {
        Weight::Error => "error",
        Weight::Warning => "warning",
    };
    json!({
        "machine": at.first(),
        "action": finding.action(),
        "at": at.join("."),
        "line": line,
        "level": level,
        "error": *weight == Weight::Error,
        "code": code,
        "message": message,
        "fix": fix,
    })
}
