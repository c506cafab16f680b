//! A walk: one session's way through a machine, as its trace tells it.
//!
//! What the agent gives and what tools give back are payloads, which pass by the core: guards, gates and targets are evaluated
//! beside it, and it sees what they said. What it can see for itself (the states, the bounds, what is open) it decides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attempt::Payload;
use crate::call::CallKey;
use crate::id::{ActionName, CallId, Digest, MachineName, Principal, SessionId, StateName, ToolName};
use crate::machine::MachineSpec;
use crate::time::Timestamp;

/// How a walk begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// The machine.
    pub machine: MachineName,
    /// The machine as it was declared, and every other that it uses.
    pub definition: BTreeMap<MachineName, MachineSpec>,
    /// The digest of all of that.
    pub hash: Digest,
    /// Where it begins, if not at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Fork>,
    /// The digest and size of its fields.
    pub fields: Payload,
}

/// A machine as it is declared now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// The machine, and every other that it uses.
    pub definition: BTreeMap<MachineName, MachineSpec>,
    /// The digest of all of that.
    pub hash: Digest,
}

/// The past of another walk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The other walk.
    pub session: SessionId,
    /// After how many of its moves.
    pub seq: u64,
    /// Where it was then.
    pub frames: Vec<Frame>,
    /// How much time had been spent in each of them, without people's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent_ms: Vec<u64>,
    /// What failed in it for now, until it is forked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Later>,
}

/// An action that failed for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Later {
    /// The machine whose action it is.
    pub machine: MachineName,
    /// The action.
    pub action: ActionName,
    /// When it can be taken again.
    pub until: Timestamp,
}

/// Where a walk is in one machine. A machine that runs another to its end waits in the frame below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The machine. That of a stage in which the agent calls tools is named `MACHINE.ACTION`.
    pub machine: MachineName,
    /// Its state.
    pub state: StateName,
    /// How many moves were made in it, and in the machines that it ran to their end.
    pub moves: u64,
    /// How often each action was taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taken: BTreeMap<ActionName, u32>,
    /// The action of the frame below that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<ActionName>,
}

/// An agent's wish to take an action. The inputs pass by; their digest is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taking {
    /// The move's id, minted by the driver.
    #[serde(rename = "move")]
    pub id: CallId,
    /// The action, as the agent named it.
    pub action: ActionName,
    /// After how many moves the agent thinks that the walk is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_seq: Option<u64>,
    /// The digest and size of its inputs.
    pub inputs: Payload,
    /// What makes two wishes equal: a keyed digest of the action and its inputs.
    pub fingerprint: Digest,
    /// Who wishes it.
    pub principal: Principal,
    /// The agent's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<CallKey>,
    /// How long the agent waits.
    pub deadline: Timestamp,
    /// What the inputs say, as far as it may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Whether no action is taken, and the walk goes back to its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

/// Which call of which move a call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegOf {
    /// The move.
    #[serde(rename = "move")]
    pub of: CallId,
    /// What it is for.
    pub part: Part,
    /// Its name in that part.
    pub name: String,
    /// Which try of the move it belongs to, from 1.
    #[serde(rename = "try")]
    pub attempt: u32,
}

impl LegOf {
    /// Whether others are made at the same time for the same move, so that it may be done while another of them is not.
    pub fn is_sibling(&self) -> bool {
        is_sibling(self.part, &self.name)
    }
}

/// The same of a call for that part, by its name.
pub(crate) fn is_sibling(part: Part, name: &str) -> bool {
    part == Part::Act && name != "act"
}

/// A part of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What is called first.
    Setup,
    /// What it is about.
    Act,
    /// What is called last.
    Exit,
}

impl Part {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Act => "act",
            Self::Exit => "exit",
        }
    }
}

/// A call that a move wants made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegWish {
    /// Which one.
    pub leg: LegOf,
    /// The machine whose action it belongs to.
    pub machine: MachineName,
    /// The action.
    pub action: ActionName,
    /// What makes it the same intention, however often the move is wished for: the agent's own key would do as much.
    pub key: String,
    /// When the move no longer waits for it.
    pub deadline: Timestamp,
}

/// What is to be evaluated beside the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    /// Whether to act.
    Gate,
    /// Whether it was well done, and where it leads.
    Act,
    /// The fields with which the machine begins that it runs.
    Enter,
    /// Where it leads if it is passed over, with nothing to show.
    Skip,
}

/// What that said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Weighed {
    /// Act.
    Proceed,
    /// Try again.
    Retry,
    /// Pass it over.
    Skip,
    /// It was well done, or is passed over, and leads there.
    Arrives {
        /// Where it leads.
        #[serde(flatten)]
        arrival: Arrival,
    },
    /// It was not well done.
    Fail,
    /// There is no answer: an expression cannot be evaluated.
    Unclear {
        /// Why.
        why: String,
    },
}

/// Where a move leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The state it leads to; where that ends a machine that another waits for, the state that leads to in turn, and so on.
    /// Nothing where it enters another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<StateName>,
    /// The digest and size of what it writes into the fields.
    pub fields: Payload,
}

/// A call whose effect stays when its walk is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
}

/// A walk that was given up: what became of what was done in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// How much can be undone.
    pub undoing: u32,
    /// How much was undone; nothing while that goes on.
    pub undone: Option<u32>,
    /// The tools of what was to be undone, and of which nobody knows whether it was.
    pub doubtful: Vec<ToolName>,
    /// The tools of what stays, the newest first.
    pub left: Vec<ToolName>,
    /// How much else stays.
    pub more: u32,
}

/// How many tools are named of what stays.
const NAMED_MAX: usize = 8;

impl GivenUp {
    /// How much stays.
    pub fn stays(&self) -> usize {
        self.left.len() + self.more as usize
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let mut words = match self.undone {
            Some(undone) => format!("{undone} undone"),
            None => format!("{} being undone", self.undoing),
        };
        if !self.doubtful.is_empty() {
            let named = named(&self.doubtful);
            words.push_str(&format!(", {} in doubt, about which a person is asked ({named})", self.doubtful.len()));
        }
        if self.stays() > 0 {
            words.push_str(&format!(", {} cannot be undone ({})", self.stays(), named(&self.left)));
        }
        words
    }
}

/// Some tools, each once.
fn named(tools: &[ToolName]) -> String {
    let mut named: Vec<String> = Vec::new();
    for name in tools.iter().map(|tool| format!("`{tool}`")) {
        if !named.contains(&name) && named.len() < NAMED_MAX {
            named.push(name);
        }
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_counted_and_its_tools_are_named_once() {
        let given_up = |undone, left: &[&str], more| GivenUp {
            undoing: 2,
            undone,
            doubtful: Vec::new(),
            left: left.iter().map(|tool| ToolName::new(*tool)).collect(),
            more,
        };
        assert_eq!(given_up(None, &[], 0).words(), "2 being undone");
        assert_eq!(given_up(Some(2), &[], 0).words(), "2 undone");
        let some = given_up(Some(1), &["pay", "send", "pay"], 0);
        assert_eq!(some.words(), "1 undone, 3 cannot be undone (`pay`, `send`)");
        assert_eq!(given_up(None, &["pay"], 4).words(), "2 being undone, 5 cannot be undone (`pay`)");
        let doubtful = GivenUp { doubtful: vec!["lend".into()], ..some };
        let words = "1 undone, 1 in doubt, about which a person is asked (`lend`), 3 cannot be undone (`pay`, `send`)";
        assert_eq!(doubtful.words(), words);
    }
}
