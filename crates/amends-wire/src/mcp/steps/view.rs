//! Where a walk is, and what may be done there.

use amends_core::SessionId;
use amends_core::dispatcher::walk::Half;
use amends_core::id::{MachineName, StateName};
use amends_core::walk::{Frame, GivenUp};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::names::Names;

/// Where a walk is, and what may be done there.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The walk's own session, which is the handle that agents give.
    pub session: SessionId,
    /// The machine it walks.
    pub root: MachineName,
    /// The machine it is in: the walked one, or one that runs within it. Nothing while it is not said with which to begin.
    pub machine: MachineName,
    /// The state of that.
    pub state: StateName,
    /// How many moves were made.
    pub seq: u64,
    /// The fields.
    pub fields: Map<String, Value>,
    /// Whether the walk is over.
    pub over: bool,
    /// What may be done now.
    pub next: Vec<Next>,
    /// Why nothing, or only one thing, may be done.
    pub waits: Option<Waits>,
    /// The machines it is in, the walked one first.
    pub frames: Vec<Frame>,
    /// What was done of moves that were not made, or are in doubt.
    pub halves: Vec<Half>,
}

/// An action that may be taken now.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// Its name.
    pub action: String,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON Schema of its inputs.
    pub schema: Option<Value>,
}

/// Why nothing, or only one thing, may be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waits {
    /// A move is being made.
    Open {
        /// Its action.
        action: String,
        /// Whether a person is asked first, and nothing is done until then.
        asked: bool,
    },
    /// A move was made of which nobody was told how it ended.
    Unsettled {
        /// Its action.
        action: String,
        /// Whether it is known that it was done; else that is being found out.
        done: bool,
        /// Whether it is a person who finds that out.
        asked: bool,
    },
    /// A move may have been made, and nobody finds out any more.
    Unknown {
        /// Its action.
        action: String,
    },
    /// A move was made, and its machine cannot tell what follows from it.
    Unclear {
        /// Its action.
        action: String,
    },
    /// An action can be taken again, not before that time.
    Later {
        /// The action.
        action: String,
        /// Not before this time, in milliseconds since 1970.
        not_before_ms: u64,
    },
    /// The walk was given up. It may begin again once what was done in it is undone, as far as that can be.
    GivenUp(GivenUp),
    /// Something that was done in the walk was undone since, by whoever held its token. What may be done is as before.
    Undone {
        /// How much of it.
        undone: u32,
    },
    /// The walk does not go on: its machine is declared otherwise by now.
    Drifted {
        /// Why it does not.
        why: String,
        /// Whether it may begin again, as the machine is declared now.
        resets: bool,
    },
}

/// What came of a move, beside its envelope.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The action, as the agent named it.
    pub action: String,
    /// What it gave, where it gave anything.
    pub result: Option<Box<RawValue>>,
    /// Where the walk is now.
    pub view: View,
    /// What the agent gave, for a move that was not made.
    pub given: Option<Given>,
}

/// What an agent gave an action, as far as it may be said again to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// What may be said again.
    pub inputs: Map<String, Value>,
    /// The names of what may not.
    pub withheld: Vec<String>,
}

impl Moved {
    /// A move that gave nothing, in a walk that is there.
    pub fn at(action: impl Into<String>, view: View) -> Self {
        Self { action: action.into(), result: None, view, given: None }
    }
}

/// The input schemas of what may be called now, by name.
#[derive(Clone, Copy, Debug)]
pub struct Schemas<'a> {
    view: &'a View,
    names: &'a Names,
}

impl Schemas<'_> {
    /// Whether none of them says anything.
    pub(super) fn say_nothing(&self) -> bool {
        let says = |schema: &Value| schema.as_object().is_some_and(|schema| !schema.is_empty());
        !self.view.next.iter().any(|next| next.schema.as_ref().is_some_and(says))
    }
}

impl Serialize for Schemas<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let none = Value::Object(Map::new());
        let called = |next| self.names.called(&self.view.machine, next);
        let schemas = self.view.next.iter().map(|next| (called(&next.action), next.schema.as_ref().unwrap_or(&none)));
        serializer.collect_map(schemas)
    }
}

impl View {
    /// The actions that may be taken now.
    pub fn legal(&self) -> Vec<String> {
        self.next.iter().map(|next| next.action.clone()).collect()
    }

    /// What may be called now: each of those actions under the name by which an agent takes it.
    pub fn offered(&self, names: &Names) -> Vec<String> {
        self.next.iter().map(|next| names.called(&self.machine, &next.action).to_owned()).collect()
    }

    /// The input schema of each of them; an action without one takes nothing that is checked.
    pub const fn schemas<'a>(&'a self, names: &'a Names) -> Schemas<'a> {
        Schemas { view: self, names }
    }

    /// Why nothing, or only one thing, may be done, with the action under the name by which an agent takes it.
    pub(super) fn waits(&self, names: &Names) -> Option<Waits> {
        let mut waits = self.waits.clone()?;
        match &mut waits {
            Waits::Open { action, .. }
            | Waits::Unsettled { action, .. }
            | Waits::Unknown { action }
            | Waits::Unclear { action }
            | Waits::Later { action, .. } => *action = names.called(&self.machine, action).to_owned(),
            Waits::GivenUp(_) | Waits::Undone { .. } | Waits::Drifted { .. } => {}
        }
        Some(waits)
    }

    /// Says how much of what was done was undone since, where nothing else is to be said first.
    pub fn tells_undone(&mut self, undone: usize) {
        if undone > 0 && self.waits.is_none() {
            self.waits = Some(Waits::Undone { undone: u32::try_from(undone).unwrap_or(u32::MAX) });
        }
    }

    /// Whether it is over and can begin again, whatever its machine is by now: nothing of it is still being undone.
    pub(super) fn begins_again(&self) -> bool {
        let undoing = matches!(&self.waits, Some(Waits::GivenUp(given_up)) if given_up.undone.is_none());
        self.over && !undoing
    }

    /// Whether it is in no machine: there are several that it could begin with, and none was named.
    pub fn is_nowhere(&self) -> bool {
        self.machine.as_str().is_empty()
    }
}
