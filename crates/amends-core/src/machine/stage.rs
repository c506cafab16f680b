//! What an action does besides acting: before it, after it, and when it fails.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ToolUse;
use crate::compensation::Ladder;
use crate::expression::Expression;
use crate::id::ToolName;

/// What an action does besides acting. An action without one does nothing of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// What is called first, one after the other, each under a name by which expressions find its result: `setup.NAME`.
    pub setup: Vec<(String, ToolUse)>,
    /// Whether to act, over `state`, `inputs` and `setup`: `'proceed'`, `'retry'` or `'skip'`.
    pub gate: Option<Expression>,
    /// Whether it was well done, over `state`, `inputs`, `setup` and `result`: `'ok'`, `'retry'`, `'skip'` or `'fail'`.
    pub assert: Option<Expression>,
    /// What is called last, one after the other, however it went.
    pub exit: Vec<(String, ToolUse)>,
    /// How often it is tried again, and after which waits.
    pub retry: Option<Ladder>,
    /// What becomes of a failure that is not tried again; without one, the agent is told.
    pub resolution: Option<Resolution>,
}

/// What becomes of a stage that failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The machine goes on as if it had been done, with nothing to show.
    Skip,
    /// The action can be taken again, not before that time.
    RetryLater {
        /// How long it takes.
        after_ms: u64,
    },
    /// What was done is undone, newest first, and the machine is over.
    AbortWorkflow,
}

/// Tools that the agent itself may call while it acts, until it says that it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowed {
    /// The tools.
    pub tools: BTreeSet<ToolName>,
    /// The JSON Schema of what it must say when it is done.
    pub completion: Option<Value>,
    /// How many calls it may make.
    pub turns_max: Option<u32>,
}
