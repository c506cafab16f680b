//! A machine as it is written.

mod stage;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::span::Span;

pub use stage::{LegSpec, ResolutionSpec, TryAgainSpec};

/// `[machines.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineSpec {
    /// What it is for, in a sentence that agents read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it begins.
    pub initial: String,
    /// Where it is over.
    pub terminal: Vec<String>,
    /// How it is served: `step` (the default), one tool for all actions, or `tools`, one for each.
    pub mode: Mode,
    /// The JSON Schema of its fields, where they are typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// Its fields at the beginning.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// How far it may go.
    pub limits: BoundSpec,
    /// What becomes of its sessions when its declaration changes: `keep` (the default), `migrate` or `refuse`.
    pub drift: Drift,
    /// Its moves.
    pub actions: BTreeMap<String, ActionSpec>,
    /// The moves that a program declared more than once. A file cannot.
    #[serde(skip)]
    pub twice: Vec<String>,
}

/// How a machine is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By one tool that takes the action's name.
    #[default]
    Step,
    /// By one tool for each action.
    Tools,
}

/// What becomes of a session whose machine is declared anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drift {
    /// It goes on under the declaration it began with.
    #[default]
    Keep,
    /// It goes on under the new one, where its state and its fields still fit.
    Migrate,
    /// It does not go on.
    Refuse,
}

/// `limits = { steps = …, time = …, loops = … }`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoundSpec {
    /// How many actions it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// How long it may take, without the time that people take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// How often it may take the same action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<u32>,
}

/// `[machines.NAME.actions.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionSpec {
    /// What it is for, in a sentence that agents read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The states it leads away from.
    pub from: Vec<String>,
    /// The state it leads to, or a choice of them.
    pub to: TargetSpec,
    /// The tool it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's or function's arguments, or the fields that the other machine begins with: CEL expressions over `state`,
    /// `inputs` and `setup`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// The Rust function it runs, by the name it was registered under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The machine it runs to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Calls that are made at the same time, over the same fields; it is done when all of them are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<BTreeMap<String, SiblingSpec>>,
    /// The tools that the agent itself calls, each as an action, until it takes the action `complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// The JSON Schema of what the agent says when it takes `complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Value>,
    /// How many calls the agent may make before it takes `complete`. The default is 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// What is called first, one after the other. It changes nothing; expressions find its results under `setup`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<LegSpec>,
    /// A CEL expression over `state`, `inputs` and `setup` that says whether to act: `'proceed'`, `'retry'` or `'skip'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// A CEL expression over `state`, `inputs`, `setup` and `result` that says whether it was well done: `'ok'`, `'retry'`,
    /// `'skip'` or `'fail'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assert: Option<String>,
    /// What is called last, one after the other, however it went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exit: Vec<LegSpec>,
    /// How often it is tried again, and after which waits. The default is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<TryAgainSpec>,
    /// What becomes of a failure that is not tried again: `skip`, `retry_later` or `abort_workflow`. The default is that the
    /// agent is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionSpec>,
    /// For `retry_later`: when it can be taken again. The default is `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Span>,
    /// The JSON Schema of its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// A CEL expression over `state` and `inputs` that says whether it may be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What it writes into the fields: CEL expressions over `state`, `inputs`, `setup` and `result`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub writes: BTreeMap<String, String>,
    /// Whether what it does can be undone. The default is what its tool's contract says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversible: Option<bool>,
    /// The queue of those who must approve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How often it may be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// `to = "paid"`, or `to = [{ when = "result.ok", state = "paid" }, { state = "failed" }]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a state, or a list such as `[{ when = \"result.ok\", state = \"paid\" }, { state = \"failed\" }]`"
)]
pub enum TargetSpec {
    /// Always the same.
    One(String),
    /// The first whose condition holds.
    Choice(Vec<BranchSpec>),
}

impl Default for TargetSpec {
    fn default() -> Self {
        Self::One(String::new())
    }
}

/// One of several targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BranchSpec {
    /// A CEL expression over `state`, `inputs`, `setup` and `result`; without one, it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The state.
    pub state: String,
}

/// One of several calls that are made at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiblingSpec {
    /// The tool it calls.
    pub tool: String,
    /// The tool's arguments: CEL expressions over `state`, `inputs` and `setup`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
}
