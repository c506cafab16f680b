//! Why a playbook was not taken.

use thiserror::Error;

/// Why a playbook was not taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlaybookError {
    /// There is no such verdict.
    #[error("`{name}` is not a verdict{}", hint(.nearest))]
    UnknownVerdict {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// There is no such compensation.
    #[error("`{name}` is not a compensation{}", hint(.nearest))]
    UnknownCompensation {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// There is no such class.
    #[error("`{name}` is not a class of failures{}", hint(.nearest))]
    UnknownClass {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// There is no such failure code.
    #[error("`{name}` is not a failure code{}", hint(.nearest))]
    UnknownCode {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// The code belongs to another section.
    #[error("`{code}` is no failure of this section: its class is `{class}` and its verdict `{verdict}`")]
    Elsewhere {
        /// The code.
        code: &'static str,
        /// Its class.
        class: &'static str,
        /// Its verdict.
        verdict: &'static str,
    },
    /// The pair would break a promise.
    #[error("`{compensation}` on `{verdict}` is forbidden: {reason}")]
    Forbidden {
        /// The verdict.
        verdict: &'static str,
        /// The compensation.
        compensation: &'static str,
        /// What it would break.
        reason: &'static str,
    },
    /// The rule has no end, or none that is near enough.
    #[error("the ladder of `{verdict}` {reason}")]
    Endless {
        /// The verdict.
        verdict: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A field of a retry policy has a value that makes no sense, or leads to no end.
    #[error("`{field}` {reason}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// A section of the configuration that was not taken, and why.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{section}`: {reason}")]
pub struct RefusedSection {
    /// The section, as a dotted path.
    pub section: String,
    /// Why.
    pub reason: PlaybookError,
}

impl RefusedSection {
    /// The key it is about: the section, or the field of it.
    pub fn key(&self) -> String {
        match &self.reason {
            PlaybookError::Field { field, .. } => format!("{}.{field}", self.section),
            PlaybookError::UnknownCode { .. } | PlaybookError::Elsewhere { .. } => format!("{}.codes", self.section),
            PlaybookError::UnknownVerdict { .. }
            | PlaybookError::UnknownCompensation { .. }
            | PlaybookError::UnknownClass { .. }
            | PlaybookError::Forbidden { .. }
            | PlaybookError::Endless { .. } => self.section.clone(),
        }
    }
}

fn hint(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
