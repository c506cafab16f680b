//! What is found in the machines of a configuration, for programs.

use amends_core::machine::{Finding, Weight};
use amends_gateway::config::{ConfigError, Mistake, WrongMachines};
use serde_json::{Value, json};

/// Everything that a file is refused for, where that is of its machines or of keys that cannot be read.
pub(super) fn of_error(error: &ConfigError) -> Option<Vec<Value>> {
    match error {
        ConfigError::Machines(wrong) => Some(wrong.findings().map(|(line, finding)| to_json(line, finding)).collect()),
        ConfigError::Misread(misread) => {
            let mistake = |Mistake { line, key, message, fix }: &Mistake| {
                // What is within a machine is told by its place there, as every other finding.
                let at: Vec<String> = key.iter().flat_map(|key| key.split('.')).map(str::to_owned).collect();
                let at = match at.as_slice() {
                    [section, within @ ..] if section == "machines" => within.to_vec(),
                    _ => Vec::new(),
                };
                let at: Vec<&str> = at.iter().map(String::as_str).collect();
                let finding = Finding::error(&at, message, fix);
                to_json(Some(*line), &Finding { code: error.code(), ..finding })
            };
            let machines = misread.machines().into_iter().flat_map(WrongMachines::findings);
            let machines = machines.map(|(line, finding)| to_json(line, finding));
            Some(misread.mistakes().iter().map(mistake).chain(machines).collect())
        }
        _ => None,
    }
}

/// One finding, whose place begins with the machine's name.
pub(super) fn to_json(line: Option<usize>, finding: &Finding) -> Value {
    let Finding { weight, code, at, message, fix, .. } = finding;
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
