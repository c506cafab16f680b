//! What an agent is told of a call that did not simply succeed.

use crate::attempt::Purpose;
use crate::call::Received;
use crate::certainty::Certainty;
use crate::contract::EffectKind;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::{AttemptState, CallState, Phase};
use crate::effect::Answer;
use crate::envelope::{AttemptLine, Body, Data, DegradationReason, Envelope, ReversalNote, Trouble};
use crate::failure::Failure;
use crate::id::AttemptId;
use crate::interaction::Subject;
use crate::outcome::Outcome;
use crate::recovery::Recovery;
use crate::refusal::RefusalKind;
use crate::registry::{Class, Code, WhoMustAct};
use crate::time::Timestamp;

/// The envelope of a call that failed or is in doubt. Without an outcome it is still being settled.
pub(super) fn failed(call: &CallState, outcome: Option<Outcome>) -> Envelope {
    let failure = last_failure(call);
    let mut error = trouble(call, &failure, outcome);
    if outcome.is_none() && call.phase == Phase::Asking {
        awaiting(&mut error);
    }
    Envelope { attempts: history(call), ..Envelope::of(Body::Error { outcome, error: Box::new(error) }) }
}

/// The envelope of a call that was stopped.
pub(super) fn cancelled(call: &CallState, outcome: Option<Outcome>) -> Envelope {
    let failure = Failure::of(call.cancel.map_or(Code::ToolCancelled, CancelReason::code));
    let mut error = trouble(call, &failure, outcome);
    error.verdict = Some(crate::verdict::Verdict::Cancelled);
    Envelope { attempts: history(call), ..Envelope::of(Body::Error { outcome, error: Box::new(error) }) }
}

/// The envelope of a call of which a person said that it happened.
pub(super) fn settled_by_person() -> Envelope {
    Envelope::of(Body::Degraded {
        outcome: Outcome::SucceededAfterCompensation,
        data: None,
        reason: DegradationReason::SettledByPerson,
    })
}

/// What a call gave, once it is known after its end.
pub(super) fn came_late(attempt: &AttemptId, reversal: Option<ReversalNote>) -> Answer {
    let (outcome, data) = (Outcome::SucceededAfterCompensation, Data::Of(attempt.clone()));
    let envelope = Envelope { reversal, ..Envelope::of(Body::Success { outcome, data }) };
    Answer::Forward { attempt: attempt.clone(), envelope }
}

/// A question about a call, in a sentence.
pub(super) fn question(call: &CallState, subject: Subject) -> String {
    if subject == Subject::Notice && call.attempts.is_empty() {
        return denial(call);
    }
    let what = message(call, &last_failure(call), Some(Outcome::Unresolved));
    let tool = &call.received.tool;
    match subject {
        Subject::Doubt => format!("did `{tool}` happen? {what}"),
        Subject::Resend => format!("send `{tool}` again? {what}"),
        Subject::Notice => format!("take notice of `{tool}`: {what}"),
        Subject::Move | Subject::Call | Subject::SignIn => format!("may `{tool}` be done? {what}"),
    }
}

/// What a person reads of a call that was not even begun: a policy denies it.
fn denial(call: &CallState) -> String {
    let Received { tool, principal, .. } = &call.received;
    let (policies, reasons) = call.ruling.as_ref().map(|it| (&*it.policies, &*it.reasons)).unwrap_or_default();
    let by = match policies {
        [] => "no policy permits it".to_owned(),
        policies => format!("denied by `{}`", policies.join("`, `")),
    };
    let why = reasons.first().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!(
        "take notice of `{tool}` for `{principal}`: {by}{why}; it was not sent, and only another policy changes that"
    )
}

/// Turns an error into one that says that a person is asked, and that calling again does not help.
fn awaiting(error: &mut Trouble) {
    error.kind = RefusalKind::AwaitingPerson.as_str();
    error.who_must_act = WhoMustAct::Person;
    error.retryable = false;
    error.message = format!("{}; a person is asked: tell the user, and do not call again in this turn", error.message);
}

/// Turns an error into one that says when to come back.
pub(super) fn retry_later(error: &mut Trouble, now: Timestamp, wait_ms: u64) {
    error.kind = RefusalKind::RetryLater.as_str();
    error.retry_after_ms = Some(wait_ms);
    error.retryable = error.safe_to_repeat;
    error.message = format!("{}; not before {} from now", error.message, seconds(wait_ms));
    error.recovery.get_or_insert_default().not_before = Some((now + wait_ms).ms());
}

/// The attempts that ended, for the envelope's history.
pub(super) fn history(call: &CallState) -> Vec<AttemptLine> {
    let line = |attempt: &super::state::AttemptState| {
        let end = attempt.end.as_ref()?;
        Some(AttemptLine {
            n: attempt.n,
            purpose: (attempt.purpose != Purpose::Act).then(|| attempt.purpose.as_str()),
            code: end.report.failure.as_ref().map(|failure| failure.code),
            certainty: (attempt.purpose == Purpose::Act).then(|| seen(call, end.certainty)),
            happened: end.report.happened,
            ms: end.at.since_ms(attempt.started),
        })
    };
    call.attempts.iter().filter_map(line).collect()
}

/// A read changes nothing, so there is nothing to doubt about it.
fn seen(call: &CallState, certainty: Certainty) -> Certainty {
    let read = call.effect().is_read();
    if read && certainty == Certainty::InDoubt { Certainty::NotProcessed } else { certainty }
}

fn last_failure(call: &CallState) -> Failure {
    if !call.changed.is_empty() {
        return Failure::of(Code::EvidenceStale);
    }
    if call.last_act().is_some_and(|(_, end)| end.report.inquiry.is_some()) {
        return Failure::of(Code::MissingCapability).saying("it asked for more than the agent can be asked");
    }
    let acted = call.last_act().and_then(|(_, end)| end.report.failure.clone());
    let other = || call.attempts.iter().rev().find_map(|a| a.end.as_ref()?.report.failure.clone());
    let unsent = if unsent_repeat(call) { Code::ConnectionLost } else { Code::NetworkTimeout };
    acted.or_else(other).unwrap_or(Failure::of(unsent))
}

/// Whether it repeats a call in doubt, and nothing could be done about that but to ask.
fn unsent_repeat(call: &CallState) -> bool {
    call.inherits_doubt() && call.attempts.is_empty()
}

fn trouble(call: &CallState, failure: &Failure, outcome: Option<Outcome>) -> Trouble {
    let certainty = call.certainty();
    let contract = call.contract();
    let safe = call.safe_to_repeat();
    let stale = (!call.changed.is_empty()).then_some(crate::verdict::Verdict::EvidenceStale);
    let malformed = failure.code == Code::OutputMalformed;
    let kept = call.last_act().filter(|(_, end)| malformed && end.report.payload.is_some());
    let status = call.attempts.iter().rev().find(|attempt| attempt.purpose == Purpose::Status);
    let shown = status.filter(|attempt| attempt.end.as_ref().is_some_and(|end| end.report.happened == Some(true)));
    let id = |n| AttemptId { call: call.received.call.clone(), n };
    Trouble {
        kind: failure.code.kind(),
        code: failure.code,
        verdict: stale
            .or(unsent_repeat(call).then_some(crate::verdict::Verdict::InDoubt))
            .or_else(|| call.last_act().and_then(|(_, end)| end.verdict))
            .or_else(|| call.attempts.iter().rev().find_map(|attempt| attempt.end.as_ref()?.verdict)),
        requested: call.received.tool.to_string(),
        message: message(call, failure, outcome),
        certainty,
        retryable: failure.code.retryable() && safe,
        safe_to_repeat: safe,
        who_must_act: match (certainty, contract.declared) {
            _ if outcome.is_none() => WhoMustAct::Nobody,
            (Certainty::InDoubt, true) if !safe => WhoMustAct::Person,
            (Certainty::InDoubt, false) if !safe => WhoMustAct::Agent,
            _ if failure.code.retryable() => WhoMustAct::Agent,
            _ => failure.code.who_must_act(),
        },
        retry_after_ms: failure.retry_after_ms,
        details: Vec::new(),
        recovery: Some(Recovery::default()),
        upstream: Trouble::quote(failure),
        upstream_result: kept.map(|(attempt, _)| id(attempt.n)).or_else(|| shown.map(|attempt| id(attempt.n))),
        item: None,
        changed: call.changed.clone(),
        interaction: call.asked.clone(),
        timeout_ms: None,
        advice: None,
    }
}

fn message(call: &CallState, failure: &Failure, outcome: Option<Outcome>) -> String {
    let tool = &call.received.tool;
    let upstream = &call.received.upstream;
    let contract = call.contract();
    if unsent_repeat(call) {
        return format!(
            "an earlier call equal to this one may have happened, and `{upstream}` no longer knows its key; nothing was sent"
        );
    }
    let what = match failure.code {
        Code::NetworkTimeout => format!("no answer from `{upstream}` in {}", seconds(waited_ms(call))),
        Code::ConnectionLost => format!("the connection to `{upstream}` broke before its answer"),
        Code::ConnectRefused => format!("`{upstream}` could not be reached"),
        Code::Provider5xx => format!("`{upstream}` reported a failure of its own"),
        Code::RateLimited => format!("`{upstream}` asks for fewer calls"),
        Code::ResourceBusy => format!("what `{tool}` needs is in use"),
        Code::ExecutionTimeout => format!("`{tool}` gave up on time"),
        Code::InputInvalid => format!("`{tool}` does not take these arguments"),
        Code::NotFound => format!("`{tool}` found no such thing"),
        Code::Forbidden => {
            format!("`{tool}` is not permitted; that is final, and rephrasing will not change it")
        }
        Code::OutputMalformed => format!("the answer of `{tool}` does not fit what it declares"),
        Code::ActionError => format!("`{tool}` reported an error"),
        Code::KeyInFlight => {
            format!("`{upstream}` is still working on an earlier request with this key")
        }
        Code::KeyReused => format!("`{upstream}` says that the key was used with other arguments"),
        Code::AlreadyProcessed => format!("`{upstream}` says that this was done already"),
        Code::EvidenceStale => "what the call was based on has changed; read it again and plan anew".to_owned(),
        Code::ToolCancelled if call.unanswered && call.cancel.is_none_or(|reason| !reason.is_wish()) => {
            format!("nobody gave what `{upstream}` asked for")
        }
        Code::ToolCancelled => format!("`{tool}` was stopped"),
        Code::TurnCancelled => format!("`{tool}` was stopped with the agent's turn"),
        Code::SessionCancelled => format!("`{tool}` was stopped with its session"),
        Code::LifecycleFailure => format!("`{upstream}` does not start"),
        code => lower_first(code.means()),
    };
    // What failed was our reading, not what the agent asked for.
    let preparing = |a: &&AttemptState| matches!(a.purpose, Purpose::Baseline | Purpose::Evidence) && !a.succeeded();
    let before = call.attempts.iter().rfind(preparing).filter(|_| call.acts().next().is_none());
    let reader = before.and_then(|attempt| match attempt.item {
        Some(item) => Some(call.received.evidence.get(item as usize)?.tool.as_str()),
        None => Some(contract.status.as_ref()?.tool.as_str()),
    });
    let what = match reader {
        Some(reader) if call.changed.is_empty() && failure.code.class() != Class::Cancellation => {
            let why = lower_first(failure.code.means_upstream());
            format!("`{reader}` could not be read before `{tool}` was sent ({why})")
        }
        _ => what,
    };
    if call.is_repeat() {
        return format!("{what}; that was a repeat: the call it repeats goes on, and may have happened");
    }
    let consequence = match (call.certainty(), contract.effect) {
        _ if call.undone => "; it was done and then undone",
        (_, EffectKind::Read) => "; nothing was changed",
        (Certainty::NotSent, _) => "; nothing was sent",
        (Certainty::NotProcessed, _) => "; nothing was done",
        (Certainty::Processed, _) if call.attempts.iter().any(|a| a.purpose == Purpose::Reverse) => {
            "; it was done, and undoing it did not work: do not repeat it"
        }
        (Certainty::Processed, _) => "; it was done, do not repeat it",
        (Certainty::InDoubt, _) if outcome.is_none() => "; it may have happened, and is still being settled",
        (Certainty::InDoubt, _) => "; it may have happened",
    };
    format!("{what}{consequence}")
}

/// How long the last attempt that ended was waited for, which the agent's deadline may have cut short.
fn waited_ms(call: &CallState) -> u64 {
    let last = call.acts().rev().chain(call.attempts.iter().rev()).find_map(|a| a.end.as_ref().map(|end| (a, end)));
    last.map_or(call.contract().timeout_ms, |(attempt, end)| end.at.min(attempt.deadline).since_ms(attempt.started))
}

/// A time in words a person would use.
fn seconds(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms} ms");
    }
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{:.1} s", ms as f64 / 1000.0) }
}

fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
