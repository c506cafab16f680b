//! Retry policies as they are written.

use std::collections::BTreeMap;

use amends_core::playbook::{Backoff, Jitter, RetryLayer, RetryPolicy};
use serde::Deserialize;

use super::Span;

/// `[retry]`: for every tool that says nothing nearer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SharedRetrySpec {
    /// By the failure's class, such as `ProviderTransient`.
    pub class: BTreeMap<String, RetrySpec>,
    /// By the verdict, such as `server_error_5xx`.
    pub verdict: BTreeMap<String, RetrySpec>,
}

/// `[retry.class.NAME]` and the like: what is left out is as in the table we ship.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySpec {
    /// Whether it is sent again at all. The default is true.
    pub retryable: Option<bool>,
    /// How many sends there are in all, the first included.
    pub max_attempts: Option<u32>,
    /// How the waits grow: `fixed`, `linear` or `exponential`.
    pub backoff: Option<Backoff>,
    /// The first wait.
    pub initial: Option<Span>,
    /// The longest wait.
    pub max: Option<Span>,
    /// What each wait of an exponential backoff is multiplied by. The default is 2.
    pub factor: Option<f64>,
    /// How far a wait may differ: 20 is a fifth, and so is 0.2.
    pub jitter: Option<Jitter>,
    /// The only codes it is for.
    pub codes: Vec<String>,
}

/// `[tools.NAME.retry]`: for all of the tool's failures, with parts for some of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolRetrySpec {
    /// Whether it is sent again at all. The default is true.
    pub retryable: Option<bool>,
    /// How many sends there are in all, the first included.
    pub max_attempts: Option<u32>,
    /// How the waits grow: `fixed`, `linear` or `exponential`.
    pub backoff: Option<Backoff>,
    /// The first wait.
    pub initial: Option<Span>,
    /// The longest wait.
    pub max: Option<Span>,
    /// What each wait of an exponential backoff is multiplied by. The default is 2.
    pub factor: Option<f64>,
    /// How far a wait may differ: 20 is a fifth, and so is 0.2.
    pub jitter: Option<Jitter>,
    /// The only codes it is for.
    pub codes: Vec<String>,
    /// By the failure's class.
    pub class: BTreeMap<String, RetrySpec>,
    /// By the verdict.
    pub verdict: BTreeMap<String, RetrySpec>,
}

impl SharedRetrySpec {
    pub(super) fn layer(&self) -> RetryLayer {
        RetryLayer { whole: None, class: policies(&self.class), verdict: policies(&self.verdict) }
    }
}

impl ToolRetrySpec {
    /// Lays another over it: the same section is replaced.
    pub(super) fn lay(&mut self, over: Self) {
        let (mut class, mut verdict) = (std::mem::take(&mut self.class), std::mem::take(&mut self.verdict));
        class.extend(over.class.clone());
        verdict.extend(over.verdict.clone());
        if over.whole() != RetrySpec::default() {
            *self = over;
        }
        (self.class, self.verdict) = (class, verdict);
    }

    fn whole(&self) -> RetrySpec {
        RetrySpec {
            retryable: self.retryable,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            initial: self.initial,
            max: self.max,
            factor: self.factor,
            jitter: self.jitter,
            codes: self.codes.clone(),
        }
    }

    pub(super) fn layer(&self) -> RetryLayer {
        let whole = self.whole();
        let said = whole != RetrySpec::default();
        RetryLayer {
            whole: said.then(|| whole.policy()),
            class: policies(&self.class),
            verdict: policies(&self.verdict),
        }
    }
}

impl RetrySpec {
    fn policy(&self) -> RetryPolicy {
        let ms = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        RetryPolicy {
            retryable: self.retryable.unwrap_or(true),
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            initial_ms: self.initial.map(ms),
            max_ms: self.max.map(ms),
            factor: self.factor,
            jitter_percent: self.jitter.map(|jitter| jitter.0),
            codes: self.codes.clone(),
        }
    }
}

fn policies(specs: &BTreeMap<String, RetrySpec>) -> BTreeMap<String, RetryPolicy> {
    specs.iter().map(|(name, spec)| (name.clone(), spec.policy())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_fields_of_its_own_has_no_policy_for_everything() {
        let spec: ToolRetrySpec = toml::from_str("[class.ToolTransient]\nmax_attempts = 3").unwrap();
        assert!(spec.layer().whole.is_none() && spec.layer().class.len() == 1);
        let spec: ToolRetrySpec = toml::from_str("max_attempts = 3").unwrap();
        assert!(spec.layer().whole.is_some());
    }
}
