//! One sending of a call, and what came of it.

use serde::{Deserialize, Serialize};

use crate::certainty::Certainty;
use crate::claim::Held;
use crate::failure::Failure;
use crate::id::{AttemptId, Digest, InteractionId, ToolName, UpstreamName};
use crate::inquiry::Inquiry;
use crate::outcome::Outcome;
use crate::privacy::Category;
use crate::refusal::RefusalKind;
use crate::registry::Code;
use crate::time::Timestamp;

/// What an attempt is for. Whatever touches the world is an attempt, so that it can time out, be in doubt, be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To do what the agent asked for.
    Act,
    /// To read the status before anything is sent, so that a later read can differ from it.
    Baseline,
    /// To read whether an attempt in doubt happened.
    Status,
    /// To wait for the answer of the call that this one repeats.
    Join,
    /// To read what the call is based on.
    Evidence,
    /// To undo what the call did.
    Reverse,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Act, Self::Baseline, Self::Status, Self::Join, Self::Evidence, Self::Reverse];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Baseline => "baseline",
            Self::Status => "status",
            Self::Join => "join",
            Self::Evidence => "evidence",
            Self::Reverse => "reverse",
        }
    }
}

/// An attempt to be sent: what the driver needs beside the payload, which passes by the core.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Which one.
    pub id: AttemptId,
    /// What for.
    pub purpose: Purpose,
    /// The tool to call: the agent's, or the one that reads its status.
    pub tool: ToolName,
    /// Where that tool lives, for an attempt that acts.
    pub upstream: UpstreamName,
    /// The key minted for this effect, where the contract has a place for one or the status is read by it.
    pub effect_key: Option<String>,
    /// When an answer is no longer waited for.
    pub deadline: Timestamp,
    /// When the first byte must have left, or nothing is sent.
    pub send_by: Timestamp,
    /// Which run of the upstream it was decided for. It goes to no other, where one is named.
    pub run: Option<u64>,
    /// The call whose answer is waited for, for an attempt that joins.
    pub holder: Option<Held>,
    /// Which piece of evidence is read, from 0, for an attempt that reads evidence.
    pub item: Option<u32>,
    /// The question whose answer is what this call gives, where a person was asked for more than a yes.
    pub said: Option<InteractionId>,
}

/// What came of an attempt: what the signal proves, and what it said. Payloads are seen by digest and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What the signal proves of the effect.
    pub certainty: Certainty,
    /// Whether the upstream itself ended the attempt, rather than silence or a broken line.
    pub answered: bool,
    /// What went wrong; nothing for a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What it gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// For a status read: what `happened` said; absent where it gave no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened: Option<bool>,
    /// For a status read: whether its result fits what the tool it stands in for declares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fits: bool,
    /// For a join: how the call ended whose answer this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// For a join: what the yes is based on that a person gave to the call it joins, when nobody waited for that any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<String>,
    /// What the answer looks like, where the contract says what to look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Box<Shape>>,
    /// What the upstream must know of the agent before it goes on with the call. Nothing is done until it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Box<Inquiry>>,
    /// The errors that were ignored on purpose while it was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppressed>,
    /// For a result that came after its call was over: how what it did is undone, where that can be told from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<Undo>>,
}

/// How what a write did is undone, as its contract says and its result allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The tool that undoes it, by its served name.
    pub tool: String,
    /// For how long.
    pub within_ms: u64,
}

/// An error that is ignored on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    /// What was being done.
    pub doing: String,
    /// What went wrong, and so why it does not matter.
    pub reason: String,
}

/// What an answer looks like: what the contract's expressions found in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// How many rows it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Whether it was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Whether it is older than it should be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// The items that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ItemFailure>,
    /// How many further items failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors_left_out: u64,
    /// How sure the tool is, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_permille: Option<u16>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provenance: Vec<Provenance>,
    /// What was masked in it before an agent got it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<Category>,
    /// The parts of the contract's `answer` whose expression gave no answer, and why.
    #[serde(skip)]
    pub unread: Vec<Suppressed>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One item of a partial answer that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemFailure {
    /// Which item: its place or its name, bounded.
    pub item: String,
    /// What went wrong with it.
    pub failure: Failure,
}

/// Where a part of an answer comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The source's name, bounded.
    pub source: String,
    /// The hash of what was read, by which evidence names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// When it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// The digest and size of bytes that pass by the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Their digest.
    pub digest: Digest,
    /// How many there are.
    pub size: u64,
}

/// How the call ended whose recorded answer is given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// How it ended.
    pub outcome: Outcome,
    /// What is known of its effect.
    pub certainty: Certainty,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Why it was refused, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusalKind>,
}

impl Report {
    /// The report of an attempt that did what it should.
    pub const fn success(payload: Option<Payload>) -> Self {
        Self {
            certainty: Certainty::Processed,
            answered: true,
            failure: None,
            payload,
            happened: None,
            fits: false,
            recorded: None,
            granted: None,
            shape: None,
            inquiry: None,
            suppressed: Vec::new(),
            undo: None,
        }
    }

    /// The report of an attempt whose upstream asks something before it goes on.
    pub fn asking(inquiry: Box<Inquiry>) -> Self {
        Self { certainty: Certainty::NotProcessed, inquiry: Some(inquiry), ..Self::success(None) }
    }

    /// The report of an attempt that the upstream answered with a failure.
    pub const fn answered(failure: Failure, certainty: Certainty, payload: Option<Payload>) -> Self {
        Self {
            certainty,
            answered: true,
            failure: Some(failure),
            payload,
            happened: None,
            fits: false,
            recorded: None,
            granted: None,
            shape: None,
            inquiry: None,
            suppressed: Vec::new(),
            undo: None,
        }
    }

    /// The report of an attempt that nobody answered.
    pub const fn silent(failure: Failure, certainty: Certainty) -> Self {
        Self {
            certainty,
            answered: false,
            failure: Some(failure),
            payload: None,
            happened: None,
            fits: false,
            recorded: None,
            granted: None,
            shape: None,
            inquiry: None,
            suppressed: Vec::new(),
            undo: None,
        }
    }
}
