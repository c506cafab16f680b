//! What the operator declares of a tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::limits::REQUEST_LIFE_MS;

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
        }
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
