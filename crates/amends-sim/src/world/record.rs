//! What is recorded of a step beside its events.

use amends_core::{Answer, CallId, Certainty, Effect, Fact, Outcome, RefusalKind, Step, Timestamp};
use amends_ledger::{Append, Form, StoredAnswer, StoredFields};
use bytes::Bytes;
use futures_util::FutureExt as _;

use crate::catalog::Tool;
use crate::driver::{Driver, Waiting};
use crate::flaw::Flaw;

/// How long an answer is kept: longer than any world.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// The result of a future that is ready at once, as everything in a memory ledger is.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    future.now_or_never()
}

/// One step as it goes to the ledger.
pub(crate) fn append(driver: &Driver, waiting: &Waiting, tools: &[Tool], at: Timestamp, flaw: Option<Flaw>) -> Append {
    let step = &waiting.step;
    let first = step.events.first().map_or(1, |event| event.seq);
    let rules = step.events.iter().filter_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } => tools.iter().find(|t| t.hash == received.rules),
        _ => None,
    });
    Append {
        claims: step.claims.clone(),
        answers: answers(step, at),
        rules: rules.map(|t| (t.hash.clone(), t.rules.clone())).collect(),
        fields: step.events.iter().filter_map(|event| fields(&event.fact, flaw)).collect(),
        machine: step.events.iter().find_map(|event| match &event.fact {
            Fact::WalkBegan { beginning } => Some(beginning.machine.to_string()),
            _ => None,
        }),
        open: waiting.open,
        ..Append::of(driver.session.clone(), driver.epoch, first - 1, step.events.clone())
    }
}

/// What is kept of a walk's fields: here, who wrote them.
fn fields(fact: &Fact, flaw: Option<Flaw>) -> Option<StoredFields> {
    let kept = |seq: u64, by: &str| Some(StoredFields { seq, body: Bytes::copy_from_slice(by.as_bytes()) });
    match fact {
        Fact::WalkBegan { .. } => kept(0, "began"),
        Fact::MoveMade { of, moves, .. } => kept(*moves, of.as_str()),
        Fact::MoveRefused { of, .. } if flaw == Some(Flaw::RefusalWrites) => kept(u64::from(u32::MAX), of.as_str()),
        _ => None,
    }
}

fn answers(step: &Step, at: Timestamp) -> Vec<StoredAnswer> {
    let replies = step.effects.iter().filter_map(|effect| match effect {
        Effect::Reply(reply) if reply.last => Some(reply),
        Effect::Reply(_)
        | Effect::Send(_)
        | Effect::Abort(_)
        | Effect::Ask(_)
        | Effect::Withdraw(_)
        | Effect::Inquire(_)
        | Effect::Tell(_)
        | Effect::Begin(_)
        | Effect::Weigh { .. }
        | Effect::Join { .. }
        | Effect::Unwind { .. }
        | Effect::Retract { .. } => None,
    });
    replies
        .filter_map(|reply| {
            let (outcome, certainty) = ending(step, &reply.call)?;
            let form = match reply.answer {
                Answer::Forward { .. } => Form::Forward,
                Answer::Envelope(_) => Form::Envelope,
                Answer::Recorded { .. } | Answer::Asked { .. } => return None,
            };
            Some(StoredAnswer {
                call: reply.call.clone(),
                outcome,
                certainty,
                form,
                body: Bytes::from_static(b"{}"),
                until: at + KEPT_MS,
            })
        })
        .collect()
}

/// How a step ends a call.
pub(crate) fn ending(step: &Step, call: &CallId) -> Option<(Outcome, Certainty)> {
    step.events.iter().find_map(|event| match &event.fact {
        Fact::CallEnded { call: ended, outcome, certainty, granted: false, .. } if ended == call => {
            Some((*outcome, *certainty))
        }
        Fact::CallRefused { call: refused, refusal } if refused == call => {
            let by_person = matches!(refusal.kind, RefusalKind::ApprovalDenied | RefusalKind::ApprovalExpired);
            by_person.then_some((Outcome::Refused, Certainty::NotSent))
        }
        Fact::DoubtResolved { call: resolved, certainty: Certainty::Processed, .. } if resolved == call => {
            Some((Outcome::SucceededAfterCompensation, Certainty::Processed))
        }
        _ => None,
    })
}
