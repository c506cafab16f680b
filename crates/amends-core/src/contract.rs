//! What the operator declares of a tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::gates::Approval;
use crate::limits::{ANSWER_WITHIN_MS, INPUT_WITHIN_MS, REQUEST_LIFE_MS};

/// What a tool does to the world, which decides whether an attempt in doubt may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// It changes nothing.
    Read,
    /// The same arguments lead to the same end state.
    Idempotent,
    /// The upstream honours an idempotency key.
    Keyed,
    /// Anything else, and whatever nobody declared.
    #[default]
    Write,
}

impl EffectKind {
    /// Whether it changes nothing.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read)
    }

    /// The word for it in the config and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Keyed => "keyed",
            Self::Write => "write",
        }
    }
}

/// What the operator declares of a tool, settled: every field has its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// What it does to the world.
    pub effect: EffectKind,
    /// Whether anybody declared it. Where nobody did, doubt goes to the agent, not to a person who is not there.
    pub declared: bool,
    /// Where the idempotency key goes, for a keyed tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyPlace>,
    /// The read that tells whether the effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusReader>,
    /// How long a request that was sent can still take effect. Without it a negative status never counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles_within_ms: Option<u64>,
    /// What is written: one write in doubt at a time on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Expression>,
    /// How long one attempt may take.
    pub timeout_ms: u64,
    /// How long the agent waits at most, over all attempts.
    pub deadline_ms: u64,
    /// For how long an answer that may not have arrived is given again.
    pub repeat_window_ms: u64,
    /// The statuses whose word is taken that nothing was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects_before_effect: Vec<u16>,
    /// The reads this call depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Reading>,
    /// Whether it goes with the tag of the first of those reads, so that its upstream refuses it where that has changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_match: bool,
    /// How a finished write is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Reverse>,
    /// What its answers look like, so that an empty or cut one is told from a whole one.
    #[serde(default, skip_serializing_if = "AnswerShape::is_plain")]
    pub answer: AnswerShape,
    /// Where questions about it go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Who must say yes before it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// How long a person has for an answer.
    #[serde(default = "answer_within_ms", skip_serializing_if = "is_answer_within_ms")]
    pub answer_within_ms: u64,
    /// How long an agent has for what the upstream asks of it.
    #[serde(default = "input_within_ms", skip_serializing_if = "is_input_within_ms")]
    pub input_within_ms: u64,
}

/// A read that a call depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The read tool, by its served name.
    pub tool: String,
    /// Its arguments, from `args`.
    pub args: BTreeMap<String, Expression>,
}

/// The tool that undoes a finished write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reverse {
    /// The tool, by its served name.
    pub tool: String,
    /// Its arguments, from `args` and `result`.
    pub args: BTreeMap<String, Expression>,
    /// For how long after its result the write can be undone.
    pub within_ms: u64,
}

/// What a tool's answers look like: expressions over `result` and `args`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerShape {
    /// The list of rows; none of them makes the answer empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Expression>,
    /// Whether the answer was cut; that makes it partial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Expression>,
    /// The list of items that failed, each with `item`, `code`, `status` and `message` as far as it has them; any makes the
    /// answer partial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Expression>,
    /// Whether the answer is older than it should be; that makes it degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<Expression>,
    /// How sure the tool is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Expression>,
    /// Where the answer comes from: a list of names, or of objects with a `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Expression>,
    /// One to three tools worth calling next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_up: Vec<String>,
}

impl AnswerShape {
    /// Whether nothing is said of it.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

const fn answer_within_ms() -> u64 {
    ANSWER_WITHIN_MS
}

const fn is_answer_within_ms(ms: &u64) -> bool {
    *ms == ANSWER_WITHIN_MS
}

const fn input_within_ms() -> u64 {
    INPUT_WITHIN_MS
}

const fn is_input_within_ms(ms: &u64) -> bool {
    *ms == INPUT_WITHIN_MS
}

/// Where an idempotency key goes, and for how long the upstream remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPlace {
    /// The place.
    #[serde(flatten)]
    pub place: Place,
    /// For how long the upstream remembers it.
    pub window_ms: u64,
    /// Whether the upstream remembers it across its own restart.
    #[serde(default)]
    pub durable: bool,
}

/// The three places an idempotency key can go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// An HTTP header.
    Header(String),
    /// An argument of the tool.
    Argument(String),
    /// A field of the request's `_meta`.
    Meta(String),
}

/// The read that tells whether *this* effect happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReader {
    /// The read tool, by its served name.
    pub tool: String,
    /// Its arguments, from `args` and `key`.
    pub args: BTreeMap<String, Expression>,
    /// Whether its answer says that the effect happened.
    pub happened: Expression,
    /// Whether the arguments name the key. Otherwise a baseline is read before the intent, so that an earlier equal effect
    /// does not pass for this one.
    pub by_key: bool,
}

impl Contract {
    /// The contract of a tool nobody declared: a write that is never sent again.
    pub const fn undeclared(timeout_ms: u64, deadline_ms: u64, repeat_window_ms: u64) -> Self {
        Self {
            effect: EffectKind::Write,
            declared: false,
            key: None,
            status: None,
            settles_within_ms: None,
            object: None,
            timeout_ms,
            deadline_ms,
            repeat_window_ms,
            rejects_before_effect: Vec::new(),
            evidence: Vec::new(),
            if_match: false,
            reverse: None,
            answer: AnswerShape {
                rows: None,
                truncated: None,
                errors: None,
                stale: None,
                confidence: None,
                provenance: None,
                follow_up: Vec::new(),
            },
            queue: None,
            approval: None,
            answer_within_ms: ANSWER_WITHIN_MS,
            input_within_ms: INPUT_WITHIN_MS,
        }
    }

    /// The queue its questions go to.
    pub fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or("default")
    }

    /// Whether a baseline must be read before the intent.
    pub fn needs_baseline(&self) -> bool {
        !self.effect.is_read() && self.status.as_ref().is_some_and(|status| !status.by_key)
    }

    /// How long a request that was sent can live.
    pub fn request_life_ms(&self) -> u64 {
        self.settles_within_ms.unwrap_or(REQUEST_LIFE_MS)
    }
}
