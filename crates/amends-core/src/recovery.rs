//! The part of an envelope that says the next move.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The next move an agent can make. Nothing in it invites a repeat of what is in doubt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// A complete and safe call, checked against the tool's own schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<NextCall>,
    /// A call that the agent must still complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// The nearest known names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fuzzy_matches: Vec<String>,
    /// Not before this time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<u64>,
    /// How to mean a second one, where a recorded answer was given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_mean_another: Option<String>,
}

/// A call an agent can make as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextCall {
    /// The tool's served name.
    pub tool: String,
    /// Its arguments, complete.
    pub args: Map<String, Value>,
}

/// A call of which the agent must still fill in a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// The tool's served name.
    pub tool: String,
    /// The arguments that are known.
    pub args: Map<String, Value>,
    /// The paths that must still be filled in.
    pub missing: Vec<String>,
}

/// What would be let through instead of what was refused. It is made from a refusal, so that nothing else carries one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_rewrite: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    widening_hint: Option<String>,
}

impl Advice {
    /// The advice of a refusal; nothing where it gives none.
    pub fn of(refusal: &Refusal) -> Option<Self> {
        let Refusal { suggested_rewrite, widening_hint, .. } = refusal;
        (suggested_rewrite.is_some() || widening_hint.is_some())
            .then(|| Self { suggested_rewrite: suggested_rewrite.clone(), widening_hint: widening_hint.clone() })
    }

    /// A safe version of what was asked.
    pub fn suggested_rewrite(&self) -> Option<&str> {
        self.suggested_rewrite.as_deref()
    }

    /// The scope that would unblock the call.
    pub fn widening_hint(&self) -> Option<&str> {
        self.widening_hint.as_deref()
    }
}

impl Recovery {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
