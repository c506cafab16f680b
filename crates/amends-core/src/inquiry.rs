//! Inquiries: what an upstream asks of the agent while a call runs.

use serde::{Deserialize, Serialize};

use crate::attempt::Payload;
use crate::id::AttemptId;
use crate::time::Timestamp;

/// What an upstream asks of the agent, all at once. The questions themselves pass by the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// The questions, in order. With none, the upstream only wants the call to come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Ask>,
    /// How the agent can be asked, as it was when the upstream asked.
    pub way: Way,
}

/// One question of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// What is asked for.
    pub kind: AskKind,
    /// The digest and size of the question.
    pub payload: Payload,
}

/// What an upstream can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Values that the user fills into a form.
    Form,
    /// That the user goes to an address.
    Url,
    /// A message of the agent's model.
    Sampling,
    /// The places the agent works in.
    Roots,
    /// Something nobody knows.
    Other,
}

impl AskKind {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Other => "other",
        }
    }
}

/// How an agent can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Over the line its call came by.
    Line,
    /// It is answered, and comes back with what was asked for.
    Return,
    /// Not at all: it did not declare that it takes such questions.
    Undeclared,
    /// Not at all: there is no line to it.
    Closed,
}

impl Way {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Return => "return",
            Self::Undeclared => "undeclared",
            Self::Closed => "closed",
        }
    }

    /// Whether the agent can be asked at all.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Line | Self::Return)
    }
}

/// How an inquiry ended without an answer of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unanswered {
    /// The agent cannot be asked, or was asked too often.
    Refused,
    /// Nobody answered in time, or nobody is there any more: it counts as cancelled.
    Lapsed,
    /// It is pointless by now.
    Withdrawn,
}

impl Unanswered {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lapsed => "lapsed",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// An inquiry to be brought before the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The attempt whose upstream asks.
    pub attempt: AttemptId,
    /// Its number in the call, from 1.
    pub inquiry: u32,
    /// When an answer no longer counts.
    pub due: Timestamp,
    /// How the agent is asked.
    pub way: Way,
}

/// What an attempt's upstream, which waits, is told about its inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// The attempt whose upstream asked.
    pub attempt: AttemptId,
    /// The inquiry's number in the call.
    pub inquiry: u32,
    /// Why there is no answer; nothing where the agent gave one.
    pub unanswered: Option<Unanswered>,
    /// When the first byte must have left, or nothing is sent.
    pub send_by: Timestamp,
}
