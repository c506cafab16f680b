//! Scenarios: a walk through a machine that is written down, with what its tools answer and what is expected after each step.
//!
//! The real dispatcher makes the moves, in virtual time; only the tools are faked. Nothing is recorded, and nothing outside is
//! touched.

mod answer;
mod effects;
mod expect;
mod faked;
mod gates;
mod mistakes;
mod recorded;
mod report;
mod spec;
mod standing;
mod telling;
mod undo;

use thiserror::Error;

pub use answer::AnswerSpec;
pub use expect::{ExpectSpec, NoSpec};
pub use mistakes::Mistake;
pub use recorded::{Recording, Sent};
pub use report::{Mismatch, Report, StepReport};
pub use spec::{Scenario, StepSpec, ToolSpec};
pub(crate) use telling::BEGIN;
pub use telling::{Cast, tell};
pub(crate) use telling::{Happened, retell};

/// Why a scenario cannot be told.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScenarioError {
    /// It is not what it should be, for all of these.
    #[error("{}", .0.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))]
    Malformed(Vec<Mistake>),
    /// Something in it makes no sense.
    #[error("step {step}: {reason}")]
    Senseless {
        /// The step, from 1.
        step: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It says what a tool takes that no machine calls.
    #[error("no machine calls `{tool}`, of which `[tools.{tool}]` says what it takes{hint}")]
    Uncalled {
        /// The tool.
        tool: String,
        /// What may have been meant.
        hint: String,
    },
    /// It is about a machine that is not declared.
    #[error("there is no machine `{machine}`{hint}")]
    Unknown {
        /// The machine.
        machine: String,
        /// What may have been meant.
        hint: String,
    },
}

#[cfg(test)]
mod tests;
