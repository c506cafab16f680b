//! Where a walk is, and what may be done there.

use amends_core::SessionId;
use amends_core::id::{MachineName, StateName};
use amends_core::walk::Frame;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Where a walk is, and what may be done there.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The walk's own session, which is the handle that agents give.
    pub session: SessionId,
    /// The machine it walks.
    pub root: MachineName,
    /// The machine it is in: the walked one, or one that runs within it.
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
    },
    /// A move was made of which nobody was told how it ended.
    Unsettled {
        /// Its action.
        action: String,
        /// Whether it is known that it was done; else that is being found out.
        done: bool,
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
}

impl View {
    /// The names of what may be done now.
    pub fn legal(&self) -> Vec<String> {
        self.next.iter().map(|next| next.action.clone()).collect()
    }

    /// The input schema of each of them; an action without one takes nothing that is checked.
    pub fn schemas(&self) -> Map<String, Value> {
        let schema = |next: &Next| next.schema.clone().unwrap_or_else(|| Value::Object(Map::new()));
        self.next.iter().map(|next| (next.action.clone(), schema(next))).collect()
    }
}
