//! Inquiries: what an upstream asks of the agent while a call runs.

use serde::{Deserialize, Serialize};

use crate::attempt::Payload;
use crate::gates::Patience;
use crate::id::{AttemptId, UpstreamName};
use crate::time::Timestamp;

/// What an upstream asks of the agent, all at once. The questions themselves pass by the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// The questions, in order. With none, the upstream only wants the call to come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Ask>,
    /// How the agent can be asked, as it was when the upstream asked.
    pub way: Way,
    /// What a person is asked to do in the agent's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<Box<SignIn>>,
}

impl Inquiry {
    /// These questions, for an agent that can be asked so.
    pub fn of(asks: Vec<Ask>, way: Way) -> Self {
        Self { asks, way, sign_in: None }
    }
}

/// That somebody signs in before a call can go on. Where passes by the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// The upstream that it is for.
    pub upstream: UpstreamName,
    /// The queue the question is put on.
    pub queue: String,
    /// Whether a code is entered at the address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_code: bool,
    /// When the address, or the code, is worth nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether whoever called may say that it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_may: bool,
    /// How the wait for that is spent.
    pub patience: Patience,
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
    /// It is not: a person is asked in its place.
    Person,
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
            Self::Person => "person",
            Self::Undeclared => "undeclared",
            Self::Closed => "closed",
        }
    }

    /// Whether anybody can be asked at all.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Line | Self::Return | Self::Person)
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
    /// A person did in the agent's place what was asked for.
    Done,
    /// A person was asked in the agent's place, and does not want to.
    Declined,
}

impl Unanswered {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lapsed => "lapsed",
            Self::Withdrawn => "withdrawn",
            Self::Done => "done",
            Self::Declined => "declined",
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
