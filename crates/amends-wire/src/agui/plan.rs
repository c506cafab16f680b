//! What a run does, step by step, and how far it is: the client carries it from one run to the next, in the thread's state.
//!
//! A client may change what it carries: it is its own plan. What was done does not depend on it, since the ledger knows that.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Change;

/// The member of a thread's state that is ours.
pub const MEMBER: &str = "amends";
/// How many steps a run may have.
pub const STEPS_MAX: usize = 256;
/// How many characters the id of a thread, of a run or of a step may have.
pub const ID_CHARS_MAX: usize = 256;

/// What a run does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The machine whose actions the steps are; nothing where they are calls of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Where the walk through the machine is. It is told, and not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<Value>,
}

/// One call, or one move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its id, by which events name it.
    pub id: String,
    /// The tool, or the action.
    pub name: String,
    /// What it is given: JSON in a text, so that it comes back as it was written.
    pub args: String,
    /// Whether the client chose the id, so that the same id is the same wish.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keyed: bool,
    /// How many moves the client thinks were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_seq: Option<u64>,
    /// How far it is.
    pub status: Status,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has not begun.
    Pending,
    /// Somebody must answer first.
    Waiting,
    /// It was done.
    Done,
    /// It was refused, it failed, or it is in doubt.
    Failed,
    /// It was stopped.
    Cancelled,
}

/// What a run waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// What is asked, one for each interrupt.
    pub asked: Vec<Asked>,
    /// What an upstream's questions are answered with, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The interrupt.
    pub interrupt: String,
    /// The name that the upstream gave its question; nothing where a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What an answer to the upstream looks like, so that one that does not fit is not handed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Plan {
    /// The step that is next: the one that waits, or the first that has not begun.
    pub fn next(&self) -> Option<usize> {
        self.steps.iter().position(|step| matches!(step.status, Status::Waiting | Status::Pending))
    }

    /// Whether somebody must answer before it goes on.
    pub fn waits(&self) -> bool {
        self.waiting.is_some() && self.steps.iter().any(|step| step.status == Status::Waiting)
    }

    /// What became of each step, for whoever reads how a run ended.
    pub fn told(&self) -> Value {
        let steps = self
            .steps
            .iter()
            .map(|step| serde_json::json!({ "id": step.id, "name": step.name, "status": step.status }));
        serde_json::json!({ "steps": steps.collect::<Vec<_>>() })
    }

    /// The change that says how far a step is.
    pub fn mark(&mut self, n: usize, status: Status) -> Change {
        self.steps[n].status = status;
        Change::Add { path: format!("/{MEMBER}/steps/{n}/status"), value: serde_json::json!(status) }
    }

    /// The change that says what is waited for, where that changes.
    pub fn wait(&mut self, waiting: Option<Waiting>) -> Option<Change> {
        let path = format!("/{MEMBER}/waiting");
        let change = match (&self.waiting, &waiting) {
            (None, None) => None,
            (Some(_), None) => Some(Change::Remove { path }),
            (_, Some(waiting)) => Some(Change::Add { path, value: serde_json::json!(waiting) }),
        };
        self.waiting = waiting;
        change
    }

    /// The change that says where the walk is.
    pub fn walk(&mut self, walk: Value) -> Change {
        let change = Change::Add { path: format!("/{MEMBER}/walk"), value: walk.clone() };
        self.walk = Some(walk);
        change
    }
}

const fn is_false(value: &bool) -> bool {
    !*value
}
