//! What came of a scenario.

use std::fmt::Write;

use serde::Serialize;

/// What came of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// What it shows.
    pub story: String,
    /// Its steps, up to the first that cannot be told.
    pub steps: Vec<StepReport>,
}

/// What came of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepReport {
    /// The action, or `reset`.
    pub action: String,
    /// Where the machine is after it.
    pub state: String,
    /// What is not as expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
}

/// Something that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// What it is about, such as `state` or `fields.amount`.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was there.
    pub got: String,
}

impl Report {
    /// Whether everything is as expected.
    pub fn passed(&self) -> bool {
        self.steps.iter().all(|step| step.mismatches.is_empty())
    }

    /// What differs, for a reader; nothing where everything is as expected.
    pub fn differences(&self) -> String {
        let mut text = String::new();
        for (n, step) in self.steps.iter().enumerate().filter(|(_, step)| !step.mismatches.is_empty()) {
            // Writing into a text cannot fail.
            let _ = writeln!(text, "  step {}, `{}`, which leads to `{}`:", n + 1, step.action, step.state);
            for Mismatch { what, expected, got } in &step.mismatches {
                let _ = writeln!(text, "    {what}\n    - {expected}\n    + {got}");
            }
        }
        text
    }
}
