//! What an action does besides acting, as it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::playbook::{Backoff, Jitter, RetryPolicy};
use crate::span::Span;

/// `setup = [{ tool = …, args = …, as = … }]`, and the same for `exit`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LegSpec {
    /// The tool, by its served name.
    pub tool: String,
    /// Its arguments: CEL expressions over `state`, `inputs` and `setup`; at the exit over `result` too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// The name by which expressions find its result: `setup.NAME`. The default is the tool's name.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `retry = { max_attempts = 3, backoff = "exponential", initial = "1s", max = "30s" }`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TryAgainSpec {
    /// How often it is tried in all, the first time included. The default is 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How the waits grow: `fixed`, `linear` or `exponential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The first wait. The default is `200ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The longest wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// What each wait of an exponential backoff is multiplied by. The default is 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// How far a wait may differ: 20 is a fifth, and so is 0.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// `resolution = "skip"`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionSpec {
    /// The machine goes on as if it had been done, with nothing to show.
    Skip,
    /// The action can be taken again, not before `later`.
    RetryLater,
    /// What was done is undone, newest first, and the machine is over.
    AbortWorkflow,
}

impl TryAgainSpec {
    /// What it means, as a policy.
    pub(in crate::machine) fn policy(&self) -> RetryPolicy {
        let ms = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        RetryPolicy {
            retryable: true,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            initial_ms: self.initial.map(ms),
            max_ms: self.max.map(ms),
            factor: self.factor,
            jitter_percent: self.jitter.map(|jitter| jitter.0),
            codes: Vec::new(),
        }
    }
}
