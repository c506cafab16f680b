//! A declared order of work: the states a machine can be in, and the actions that lead from one to another.
//!
//! [`MachineSpec`] is what was written, in the configuration or by a Rust program; [`Machine`] is what it means. A machine
//! whose parts do not fit together is not made: [`Machine::read`] gives back what is wrong, where, and what to do about it.
//! [`Machine::look`] finds what is legal and may still surprise.

mod arguments;
mod begun;
mod build;
mod check;
mod course;
mod expressions;
mod finding;
mod flow;
pub mod graph;
mod held;
mod inputs;
mod items;
mod look;
mod machines;
mod objection;
mod pivots;
mod position;
mod possible;
mod read;
mod results;
mod satisfiable;
mod scope;
mod spec;
mod stage;
mod stages;
mod states;
mod steps;
mod strict;
mod typed;
mod unanswered;
mod unmet;
mod ways_out;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::expression::Expression;
use crate::id::{ActionName, MachineName, StateName, ToolName};

pub use course::{Course, Known, Lost, Written};
pub use finding::{Finding, Weight};
pub use look::ToolFacts;
pub use machines::Machines;
pub use objection::{Guarded, unfit};
pub use position::{Move, No, Position};
pub use scope::{Said, Scope};
pub use spec::{
    ActionSpec, BoundSpec, BranchSpec, Drift, LegSpec, MachineSpec, Mode, ResolutionSpec, SiblingSpec, TargetSpec,
    TryAgainSpec,
};
pub use stage::{Allowed, Resolution, Stage};
pub use unmet::Unmet;

/// A declared order of work whose names are all known and whose expressions can all be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    name: MachineName,
    description: Option<String>,
    initial: StateName,
    terminal: BTreeSet<StateName>,
    mode: Mode,
    drift: Drift,
    schema: Option<Value>,
    fields: Map<String, Value>,
    bounds: Bounds,
    actions: BTreeMap<ActionName, Action>,
}

/// How far a machine may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How many actions it may take.
    pub steps_max: Option<u32>,
    /// How long it may take, without the time that people take.
    pub time_ms_max: Option<u64>,
    /// How often it may take the same action.
    pub loops_max: Option<u32>,
}

/// A move of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What it is for.
    pub description: Option<String>,
    /// The states it leads away from.
    pub from: BTreeSet<StateName>,
    /// Where it leads.
    pub to: Target,
    /// What it does on the way.
    pub does: Does,
    /// What the function is given, or the fields that the other machine begins with, over `state`, `inputs` and `setup`. A
    /// tool's arguments are with the tool.
    pub args: BTreeMap<String, Expression>,
    /// The JSON Schema of its inputs.
    pub input: Option<Value>,
    /// Whether it may be taken, over `state` and `inputs`.
    pub guard: Option<Expression>,
    /// The parts of a guard over the inputs, joined with `&&`, that speak of the fields alone.
    pub guard_over_fields: Vec<Expression>,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// What it writes into the fields, over `state`, `inputs` and `result`.
    pub writes: BTreeMap<String, Expression>,
    /// Whether all that the agent gave is written into the fields as it is.
    pub keeps_inputs: bool,
    /// Whether what it does can be undone, where that was said.
    pub reversible: Option<bool>,
    /// The queue of those who must approve it.
    pub queue: Option<String>,
    /// How often it may be taken.
    pub times_max: Option<u32>,
    /// What it does besides.
    pub stage: Stage,
}

/// Where an action leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Always to the same state.
    One(StateName),
    /// To the first whose condition holds.
    Choice(Vec<Branch>),
}

/// One of several targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Over `state`, `inputs` and `result`; without one, it holds.
    pub when: Option<Expression>,
    /// The state.
    pub state: StateName,
}

/// What an action does on the way.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// Nothing but to move.
    Nothing,
    /// It calls a tool.
    Tool(ToolUse),
    /// It runs a Rust function.
    Function(String),
    /// It runs another machine to its end.
    Machine(MachineName),
    /// It calls several tools at the same time, over the same fields.
    Parallel(BTreeMap<String, ToolUse>),
    /// The agent itself calls tools, until it says that it is done.
    Allowed(Allowed),
}

/// A tool and what it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The tool, by its served name.
    pub tool: ToolName,
    /// Its arguments, over `state` and `inputs`.
    pub args: BTreeMap<String, Expression>,
    /// Whether the inputs are its arguments, as they are.
    pub whole: bool,
}

impl Machine {
    /// Its name.
    pub fn name(&self) -> &MachineName {
        &self.name
    }

    /// What it is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// How it is served.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What becomes of its sessions when it is declared anew.
    pub fn drift(&self) -> Drift {
        self.drift
    }

    /// How far it may go.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The JSON Schema of its fields, where they are typed.
    pub fn schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }

    /// Where it begins.
    pub fn initial(&self) -> &StateName {
        &self.initial
    }

    /// Whether it is over in that state.
    pub fn is_terminal(&self, state: &StateName) -> bool {
        self.terminal.contains(state)
    }

    /// Its moves, by name.
    pub fn actions(&self) -> impl Iterator<Item = (&ActionName, &Action)> {
        self.actions.iter()
    }

    /// The move of that name.
    pub fn action(&self, name: &str) -> Option<(&ActionName, &Action)> {
        self.actions.get_key_value(&ActionName::new(name))
    }

    /// Every state it can be in, in the order of the names.
    pub fn states(&self) -> BTreeSet<&StateName> {
        let of_actions = self.actions.values().flat_map(|action| action.from.iter().chain(action.to.states()));
        [&self.initial].into_iter().chain(&self.terminal).chain(of_actions).collect()
    }
}

impl Target {
    /// The states it may lead to.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        let (one, choice) = match self {
            Self::One(state) => (Some(state), [].as_slice()),
            Self::Choice(branches) => (None, branches.as_slice()),
        };
        one.into_iter().chain(choice.iter().map(|branch| &branch.state))
    }
}

impl Action {
    /// Every tool it may call, the agent's own calls included.
    pub fn tools(&self) -> impl Iterator<Item = &ToolName> {
        self.tools_by_part().map(|(_, tool)| tool)
    }

    /// The same, with the part of its declaration that names each.
    fn tools_by_part(&self) -> impl Iterator<Item = (&'static str, &ToolName)> {
        let (part, allowed) = match &self.does {
            Does::Allowed(allowed) => ("allowed", Some(&allowed.tools)),
            Does::Parallel(_) => ("parallel", None),
            Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Machine(_) => ("tool", None),
        };
        let acts = self.does.tools().map(move |used| (part, &used.tool));
        let setup = self.stage.setup.iter().map(|(_, used)| ("setup", &used.tool));
        let exit = self.stage.exit.iter().map(|(_, used)| ("exit", &used.tool));
        acts.chain(setup).chain(exit).chain(allowed.into_iter().flatten().map(move |tool| (part, tool)))
    }
}

impl Does {
    /// The tools it calls.
    pub fn tools(&self) -> impl Iterator<Item = &ToolUse> {
        let (one, several) = match self {
            Self::Tool(tool) => (Some(tool), None),
            Self::Parallel(siblings) => (None, Some(siblings)),
            Self::Nothing | Self::Function(_) | Self::Machine(_) | Self::Allowed(_) => (None, None),
        };
        one.into_iter().chain(several.into_iter().flat_map(BTreeMap::values))
    }
}

#[cfg(test)]
mod tests;
