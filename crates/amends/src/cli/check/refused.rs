//! A configuration that is refused: what is wrong with it, and what is worth a second look beside that.

use amends_core::machine::{Finding, Weight};
use amends_gateway::config::{ConfigError, Source};
use serde_json::{Value, json};

use super::{Explained, finding};

/// A configuration that is refused.
pub(super) struct Refused<'a> {
    file: &'a str,
    error: &'a ConfigError,
    /// What is worth a second look in its machines, with its line.
    surprises: Vec<(Option<usize>, &'a Finding)>,
    /// The same beside its machines.
    warnings: Vec<String>,
}

impl<'a> Refused<'a> {
    pub(super) fn of(file: &'a str, source: &Source, error: &'a ConfigError) -> Self {
        let ConfigError::Machines(wrong) = error else {
            // Where anything else is wrong there is nothing settled that could be looked at.
            return Self { file, error, surprises: Vec::new(), warnings: Vec::new() };
        };
        let surprises = wrong.findings().filter(|(_, finding)| finding.weight == Weight::Warning).collect();
        let beside = source.settle_beside_machines().and_then(|config| Explained::of(config, source));
        let warnings = beside.map(|explained| explained.warnings()).unwrap_or_default();
        Self { file, error, surprises, warnings }
    }

    pub(super) fn to_json(&self) -> Value {
        let (line, code, error) = (self.error.line(), self.error.code(), self.error.to_string());
        let mut said = json!({ "file": self.file, "valid": false, "line": line, "code": code, "error": error });
        if let Some(findings) = finding::of_error(self.error) {
            said["findings"] = Value::Array(findings);
        }
        if !self.warnings.is_empty() {
            said["warnings"] = json!(self.warnings);
        }
        said
    }

    pub(super) fn as_text(&self) -> String {
        let surprises = self.surprises.iter().map(|(line, finding)| {
            let line = line.map(|line| format!("{}:{line}: ", self.file)).unwrap_or_default();
            format!("{line}`machines.{}`: {}; {}", finding.at.join("."), finding.message, finding.fix)
        });
        let warnings = surprises.chain(self.warnings.iter().cloned());
        let warnings: String = warnings.map(|warning| format!("\namends: warning: {warning}")).collect();
        format!("amends: {}{warnings}", self.error)
    }
}
