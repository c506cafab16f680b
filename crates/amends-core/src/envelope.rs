//! What the agent gets: one shape for success and failure, on every door, for every tool.

mod interruption;
mod partial;
mod reversal_note;
pub mod schema;
mod shaped;
mod trouble;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use interruption::Interruption;
pub use partial::Partial;
pub use reversal_note::ReversalNote;
pub use trouble::{Trouble, Upstream};

use crate::attempt::Provenance;
pub use crate::evidence::Changed;

use crate::certainty::Certainty;
use crate::id::AttemptId;
use crate::outcome::Outcome;
use crate::registry::Code;

/// The version of the envelope's shape on the wire.
pub const CHARTER_VERSION: &str = "1.0";

/// What the agent gets. The wrong combinations of its fields cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// What it says.
    pub body: Body,
    /// The history, empty when nothing was sent.
    pub attempts: Vec<AttemptLine>,
    /// Whether a recorded answer is given again.
    pub replayed: bool,
    /// The moves that are legal now, in a machine.
    pub valid_next_actions: Option<Vec<String>>,
    /// One to three tools worth calling next.
    pub follow_up_hints: Vec<String>,
    /// How sure the tool is, in thousandths.
    pub confidence_permille: Option<u16>,
    /// Where the answer comes from.
    pub provenance: Vec<Provenance>,
    /// How what was done can be undone.
    pub reversal: Option<ReversalNote>,
}

/// The six things an envelope can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// It was done.
    Success {
        /// How it came to that.
        outcome: Outcome,
        /// What it gave.
        data: Data,
    },
    /// It was done, and there is nothing to show.
    Empty {
        /// How it came to that.
        outcome: Outcome,
        /// What it gave, if anything.
        data: Option<Data>,
    },
    /// A part of it was done.
    Partial(Box<Partial>),
    /// It was done, with a caveat.
    Degraded {
        /// How it came to that.
        outcome: Outcome,
        /// What it gave, if anything.
        data: Option<Data>,
        /// The caveat.
        reason: DegradationReason,
    },
    /// It was tried, and failed or is in doubt.
    Error {
        /// How it ended; nothing while it is still being settled.
        outcome: Option<Outcome>,
        /// What went wrong.
        error: Box<Trouble>,
    },
    /// We said no before anything was sent.
    Refused {
        /// Why.
        error: Box<Trouble>,
    },
}

/// What an envelope carries: bytes that pass by the core, or a value of our own.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// What that attempt gave back.
    Of(AttemptId),
    /// A value of our own.
    Value(Value),
    /// A value of our own that somebody only looked at.
    Shown {
        /// The sentence that a text of it opens with.
        lead: String,
        /// The value.
        value: Value,
    },
}

/// The closed set of caveats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradationReason {
    /// The recorded answer is gone; only that it was done is known.
    AnswerNotKept,
    /// The tool says that its answer is older than it should be.
    StaleAnswer,
    /// A person says that it was done; what it gave is not known.
    SettledByPerson,
    /// Something in it must not reach an agent, and is masked.
    Masked,
}

/// One attempt in an envelope's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptLine {
    /// Its number.
    pub n: u32,
    /// What it was for, where it was not to act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<&'static str>,
    /// What went wrong; nothing for one that did what it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What is known of its effect, for one that was to act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// What it found, for one that was to find out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<bool>,
    /// How long it took.
    pub ms: u64,
}

/// The six statuses of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was done.
    Success,
    /// It was done, and there is nothing to show.
    Empty,
    /// A part of it was done.
    Partial,
    /// It was done, with a caveat.
    Degraded,
    /// It was tried, and failed or is in doubt.
    Error,
    /// We said no before anything was sent.
    Refused,
}

impl DegradationReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::AnswerNotKept, Self::StaleAnswer, Self::SettledByPerson, Self::Masked];
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Success, Self::Empty, Self::Partial, Self::Degraded, Self::Error, Self::Refused];
}

impl Envelope {
    /// An envelope with that body and nothing else.
    pub const fn of(body: Body) -> Self {
        Self {
            body,
            attempts: Vec::new(),
            replayed: false,
            valid_next_actions: None,
            follow_up_hints: Vec::new(),
            confidence_permille: None,
            provenance: Vec::new(),
            reversal: None,
        }
    }

    /// Its status.
    pub const fn status(&self) -> Status {
        match self.body {
            Body::Success { .. } => Status::Success,
            Body::Empty { .. } => Status::Empty,
            Body::Partial(_) => Status::Partial,
            Body::Degraded { .. } => Status::Degraded,
            Body::Error { .. } => Status::Error,
            Body::Refused { .. } => Status::Refused,
        }
    }

    /// The error it carries, for an error or a refusal.
    pub fn error(&self) -> Option<&Trouble> {
        match &self.body {
            Body::Error { error, .. } | Body::Refused { error } => Some(error),
            Body::Success { .. } | Body::Empty { .. } | Body::Partial(_) | Body::Degraded { .. } => None,
        }
    }

    /// What it gave, for one that is not an error.
    pub fn data(&self) -> Option<&Data> {
        match &self.body {
            Body::Success { data, .. } => Some(data),
            Body::Partial(partial) => Some(partial.data()),
            Body::Empty { data, .. } | Body::Degraded { data, .. } => data.as_ref(),
            Body::Error { .. } | Body::Refused { .. } => None,
        }
    }

    /// How the call ended; nothing for a refusal, and while it is still being settled.
    pub fn outcome(&self) -> Option<Outcome> {
        match &self.body {
            Body::Success { outcome, .. } | Body::Empty { outcome, .. } | Body::Degraded { outcome, .. } => {
                Some(*outcome)
            }
            Body::Partial(partial) => Some(partial.outcome()),
            Body::Error { outcome, .. } => *outcome,
            Body::Refused { .. } => None,
        }
    }

    /// The attempt whose payload it carries: its data, or what a malformed write gave back.
    pub fn payload_of(&self) -> Option<&AttemptId> {
        match (self.data(), self.error()) {
            (Some(Data::Of(id)), _) => Some(id),
            (_, Some(error)) => error.upstream_result.as_ref(),
            (Some(Data::Value(_) | Data::Shown { .. }) | None, None) => None,
        }
    }

    /// The envelope as JSON, with the payload it names filled in. A payload the protocol carries elsewhere is left out.
    pub fn to_json(&self, payload: Option<&RawValue>) -> Box<RawValue> {
        let partial = match &self.body {
            Body::Partial(partial) => Some(partial),
            _ => None,
        };
        let wire = Wire {
            status: self.status(),
            outcome: self.outcome(),
            data: match self.data() {
                Some(Data::Of(_)) => payload.map(WireData::Raw),
                Some(Data::Value(value) | Data::Shown { value, .. }) => Some(WireData::Value(value)),
                None => None,
            },
            error: self.error().map(|error| error.wire(payload)),
            errors: partial.map(|partial| partial.errors().iter().map(|error| error.wire(None)).collect()),
            errors_left_out: partial.map(|partial| partial.left_out()).filter(|left_out| *left_out > 0),
            truncated: partial.is_some_and(|partial| partial.truncated()),
            attempts: &self.attempts,
            valid_next_actions: self.valid_next_actions.as_deref(),
            follow_up_hints: &self.follow_up_hints,
            confidence: self.confidence_permille.map(|permille| f64::from(permille) / 1000.0),
            provenance: &self.provenance,
            degradation_reason: match self.body {
                Body::Degraded { reason, .. } => Some(reason),
                _ => None,
            },
            reversal: self.reversal.as_ref(),
            replayed: self.replayed,
            charter_version: CHARTER_VERSION,
        };
        serde_json::value::to_raw_value(&wire).expect("an envelope has only string keys")
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<WireData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<trouble::Wire<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<trouble::Wire<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors_left_out: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attempts: &'a [AttemptLine],
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_next_actions: Option<&'a [String]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    follow_up_hints: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    provenance: &'a [Provenance],
    #[serde(skip_serializing_if = "Option::is_none")]
    degradation_reason: Option<DegradationReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reversal: Option<&'a ReversalNote>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    charter_version: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireData<'a> {
    Raw(&'a RawValue),
    Value(&'a Value),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{Refusal, RefusalKind};

    #[test]
    fn a_refusal_has_an_error_and_no_data_and_no_nulls() {
        let refusal = Refusal::of(RefusalKind::UnknownName, "no tool `x`");
        let envelope = Envelope::of(Body::Refused { error: Box::new(Trouble::refused("x", &refusal)) });
        let json: Value = serde_json::from_str(envelope.to_json(None).get()).unwrap();
        assert_eq!(json["status"], "refused");
        assert_eq!(json["error"]["kind"], "unknown_name");
        assert_eq!(json["error"]["certainty"], "not_sent");
        assert!(json.get("data").is_none() && json.get("attempts").is_none());
        assert!(!envelope.to_json(None).get().contains("null"));
    }

    #[test]
    fn a_refusals_advice_stands_in_its_recovery() {
        let mut refusal = Refusal::of(RefusalKind::AllowlistViolation, "`users` is not allowed");
        refusal.widening_hint = Some("read:users".into());
        let envelope = Envelope::of(Body::Refused { error: Box::new(Trouble::refused("query", &refusal)) });
        let json: Value = serde_json::from_str(envelope.to_json(None).get()).unwrap();
        assert_eq!(json["error"]["recovery"], serde_json::json!({"widening_hint": "read:users"}));
    }
}
