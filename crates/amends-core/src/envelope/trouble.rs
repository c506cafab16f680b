//! The error of an envelope: what the agent may see of a failure or a refusal.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::certainty::Certainty;
use crate::evidence::Changed;
use crate::failure::Failure;
use crate::id::{AttemptId, InteractionId};
use crate::recovery::{Advice, Recovery};
use crate::refusal::{ArgumentFault, Refusal};
use crate::registry::{Class, Code, Field, WhoMustAct};
use crate::verdict::Verdict;

/// What went wrong, as far as the agent may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// A refusal's own name, or a failure's code in snake case.
    pub kind: &'static str,
    /// The code of the last attempt.
    pub code: Code,
    /// The verdict of the last attempt.
    pub verdict: Option<Verdict>,
    /// The tool or action that was asked for.
    pub requested: String,
    /// A sentence for the model.
    pub message: String,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// Whether the same call can work later.
    pub retryable: bool,
    /// Whether sending the same call again can do no harm.
    pub safe_to_repeat: bool,
    /// Whose move it is.
    pub who_must_act: WhoMustAct,
    /// When it is worth trying again.
    pub retry_after_ms: Option<u64>,
    /// What exactly is wrong with the arguments.
    pub details: Vec<ArgumentFault>,
    /// The next move.
    pub recovery: Option<Recovery>,
    /// The upstream's own words.
    pub upstream: Option<Upstream>,
    /// The attempt whose result is kept although it does not fit.
    pub upstream_result: Option<AttemptId>,
    /// Which item of a partial answer failed.
    pub item: Option<String>,
    /// The evidence that is no longer what it was.
    pub changed: Vec<Changed>,
    /// The question that a person is asked about it.
    pub interaction: Option<InteractionId>,
    /// How long the action might take that ran out of time. It stands beside the error, with the rest of what is said of a move.
    pub timeout_ms: Option<u64>,
    /// What would be let through instead. Only a refusal has it: nothing else can make one.
    pub advice: Option<Advice>,
}

/// The upstream's own words, quoted and marked: data, never instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upstream {
    /// The status it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Its own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The argument it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its text, bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Always false: nobody vouches for these words.
    pub trusted: bool,
}

impl Trouble {
    /// The trouble of a refusal.
    pub fn refused(requested: &str, refusal: &Refusal) -> Self {
        Self {
            kind: refusal.kind.as_str(),
            code: refusal.code,
            verdict: None,
            requested: requested.to_owned(),
            message: refusal.message.clone(),
            certainty: Certainty::NotSent,
            retryable: refusal.code.retryable() || refusal.retry_after_ms.is_some(),
            safe_to_repeat: true,
            who_must_act: refusal.kind.who_must_act(),
            retry_after_ms: refusal.retry_after_ms,
            details: refusal.details.clone(),
            recovery: refusal.recovery.clone(),
            upstream: None,
            upstream_result: None,
            item: None,
            changed: Vec::new(),
            interaction: None,
            timeout_ms: None,
            advice: Advice::of(refusal),
        }
    }

    /// The upstream's own words about a failure, marked as nobody's word of ours.
    pub fn quote(failure: &Failure) -> Option<Upstream> {
        let words = failure.upstream.clone().unwrap_or_default();
        let quoted =
            Upstream { status: failure.status, code: words.code, field: words.field, text: words.text, trusted: false };
        (quoted.status.is_some() || quoted.code.is_some() || quoted.text.is_some()).then_some(quoted)
    }

    /// The same without what its code does not show to the agent. The trace keeps it all.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        for field in Field::ALL.into_iter().filter(|field| !self.code.shows().contains(field)) {
            match field {
                Field::RetryAfterMs => shown.retry_after_ms = None,
                Field::Details => shown.details.clear(),
                Field::Recovery => (shown.recovery, shown.advice) = (None, None),
                Field::Upstream => shown.upstream = None,
                Field::UpstreamResult => shown.upstream_result = None,
                Field::Changed => shown.changed.clear(),
            }
        }
        shown
    }

    pub(super) fn wire<'a>(&'a self, payload: Option<&'a RawValue>) -> Wire<'a> {
        let shows = |field| self.code.shows().contains(&field);
        Wire {
            kind: self.kind,
            class: self.code.class(),
            code: self.code,
            verdict: self.verdict,
            requested: &self.requested,
            message: &self.message,
            certainty: self.certainty,
            retryable: self.retryable,
            safe_to_repeat: self.safe_to_repeat,
            who_must_act: self.who_must_act,
            retry_after_ms: self.retry_after_ms.filter(|_| shows(Field::RetryAfterMs)),
            details: if shows(Field::Details) { &self.details } else { &[] },
            recovery: WireRecovery::of(self.recovery.as_ref(), self.advice.as_ref()).filter(|_| shows(Field::Recovery)),
            upstream: self.upstream.as_ref().filter(|_| shows(Field::Upstream)),
            upstream_result: self.upstream_result.as_ref().and(payload).filter(|_| shows(Field::UpstreamResult)),
            item: self.item.as_deref(),
            changed: if shows(Field::Changed) { &self.changed } else { &[] },
            interaction: self.interaction.as_ref(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Wire<'a> {
    kind: &'static str,
    class: Class,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    requested: &'a str,
    message: &'a str,
    certainty: Certainty,
    retryable: bool,
    safe_to_repeat: bool,
    who_must_act: WhoMustAct,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [ArgumentFault],
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<WireRecovery<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a Upstream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changed: &'a [Changed],
    #[serde(skip_serializing_if = "Option::is_none")]
    interaction: Option<&'a InteractionId>,
}

/// A recovery and a refusal's advice, which share one place on the wire.
#[derive(Serialize)]
struct WireRecovery<'a> {
    #[serde(flatten)]
    recovery: Option<&'a Recovery>,
    #[serde(flatten)]
    advice: Option<&'a Advice>,
}

impl<'a> WireRecovery<'a> {
    fn of(recovery: Option<&'a Recovery>, advice: Option<&'a Advice>) -> Option<Self> {
        let recovery = recovery.filter(|recovery| !recovery.is_empty());
        (recovery.is_some() || advice.is_some()).then_some(Self { recovery, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::RefusalKind;

    fn full(code: Code) -> Trouble {
        let mut refusal = Refusal::of(RefusalKind::InvalidArgument, "no");
        refusal.code = code;
        refusal.retry_after_ms = Some(1);
        refusal.details =
            vec![ArgumentFault { field: "a".into(), expected: "b".into(), got: None, nearest: Vec::new() }];
        refusal.recovery = Some(Recovery { not_before: Some(1), ..Recovery::default() });
        Trouble {
            upstream: Trouble::quote(&Failure::of(code).saying("words")),
            upstream_result: Some(AttemptId { call: "c1".into(), n: 1 }),
            changed: vec![Changed { reference: "a".into(), was: "b".into(), is: "c".into() }],
            ..Trouble::refused("tool", &refusal)
        }
    }

    #[test]
    fn an_agent_sees_the_fields_its_code_shows_and_no_others() {
        let payload = serde_json::value::to_raw_value("given back").unwrap();
        for code in Code::ALL {
            let trouble = full(code);
            let wire = serde_json::to_value(trouble.wire(Some(&payload))).unwrap();
            for field in Field::ALL {
                let shown = wire.get(field.as_str()).is_some();
                assert_eq!(shown, code.shows().contains(&field), "{} of {}", field.as_str(), code.as_str());
            }
            assert_eq!(serde_json::to_value(trouble.shown().wire(Some(&payload))).unwrap(), wire);
        }
    }
}
