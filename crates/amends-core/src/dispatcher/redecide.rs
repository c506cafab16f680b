//! Deciding a trace again: by the rules it was decided under, or by others.

mod path;
mod record;
mod rerun;

use std::sync::Arc;

use crate::call::{Call, Received, Rules};
use crate::dispatcher::{Dispatcher, Input, TraceError};
use crate::event::{Event, Fact};
use crate::gates::Gates;
use crate::id::Digest;
use crate::time::Timestamp;

pub use path::{CallEnd, CallPath, paths};
pub use record::{NotComparable, whole};
pub use rerun::{Beyond, Rerun, begins_a_step, rerun};

/// The first place at which a trace, decided again, differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The sequence at which it differs.
    pub seq: u64,
    /// What was recorded there.
    pub recorded: Option<Event>,
    /// What would be recorded today.
    pub decided: Option<Event>,
}

/// Feeds the inputs of a trace to a new dispatcher and compares what it decides with what was recorded.
pub fn redecide(
    events: &[Event],
    rules: impl Fn(&Digest) -> Option<Arc<Rules>>,
) -> Result<Option<Difference>, TraceError> {
    let (session, seed, principal, door) = match events.first().map(|event| &event.fact) {
        Some(Fact::SessionOpened { session, seed, principal, door }) => (session, seed, principal, door),
        Some(Fact::SessionRetired { .. }) => return Err(TraceError::Retired),
        _ => return Err(TraceError::NoBeginning),
    };
    let mut dispatcher = Dispatcher::open(session.clone(), *seed, principal.clone(), door);
    let mut at = 0;
    while at < events.len() {
        let skipped = usize::from(at == 0);
        let Some(event) = events.get(at + skipped) else {
            break;
        };
        let (input, gates) = match input_of(&event.fact, &rules)? {
            Some(found) => found,
            // What was ignored left no input behind to decide again.
            None if matches!(event.fact, Fact::Ignored { .. } | Fact::SuppressedError { .. }) => {
                let expected = dispatcher.state.seq + 1 + skipped as u64;
                if event.seq != expected {
                    return Err(TraceError::Gap { expected, found: event.seq });
                }
                dispatcher.state.apply(event, None);
                at += 1 + skipped;
                continue;
            }
            None => {
                return Err(TraceError::Illegal { seq: event.seq, name: event.fact.name() });
            }
        };
        let step = dispatcher.handle(event.at, &gates, input);
        for (n, decided) in step.events.iter().enumerate() {
            let recorded = events.get(at + n);
            if recorded != Some(decided) {
                let difference =
                    Difference { seq: decided.seq, recorded: recorded.cloned(), decided: Some(decided.clone()) };
                return Ok(Some(difference));
            }
        }
        if step.events.is_empty() {
            return Ok(Some(Difference { seq: event.seq, recorded: Some(event.clone()), decided: None }));
        }
        at += step.events.len();
    }
    Ok(None)
}

fn input_of(fact: &Fact, rules: &impl Fn(&Digest) -> Option<Arc<Rules>>) -> Result<Option<(Input, Gates)>, TraceError> {
    let open = Gates::default;
    Ok(Some(match fact {
        Fact::CallReceived { received, gates } => {
            let found = rules(&received.rules).ok_or_else(|| TraceError::RulesMissing {
                call: received.call.clone(),
                hash: received.rules.clone(),
            })?;
            (Input::Call(Box::new(call_of(received, found))), gates.clone())
        }
        Fact::AttemptEnded { attempt, report, gates } => {
            (Input::Result { attempt: attempt.clone(), report: report.clone() }, gates.clone())
        }
        Fact::LateResult { attempt, report } => {
            (Input::Result { attempt: attempt.clone(), report: report.clone() }, open())
        }
        Fact::InteractionAnswered { interaction, answer, gates } => {
            (Input::Answer { interaction: interaction.clone(), answer: answer.clone() }, gates.clone())
        }
        Fact::InquiryMade { attempt, inquiry, gates } => {
            (Input::Inquiry { attempt: attempt.clone(), inquiry: inquiry.clone() }, gates.clone())
        }
        Fact::InputsGiven { call, inquiry, inputs, gates } => {
            let input = Input::Inputs { call: call.clone(), inquiry: *inquiry, inputs: inputs.clone() };
            (input, gates.clone())
        }
        Fact::CancelRequested { call, reason } => (Input::Cancel { call: call.clone(), reason: *reason }, open()),
        Fact::AnswerDelivered { call } => (Input::Delivery { call: call.clone() }, open()),
        Fact::Ticked { gates } => (Input::Tick, gates.clone()),
        Fact::Resumed { gates } => (Input::Resume, gates.clone()),
        Fact::SessionRetired { reason, .. } => (Input::Retire { reason: *reason }, open()),
        Fact::SessionOpened { .. }
        | Fact::CallRefused { .. }
        | Fact::AttemptStarted { .. }
        | Fact::AttemptTimedOut { .. }
        | Fact::AttemptOrphaned { .. }
        | Fact::FailureJudged { .. }
        | Fact::WaitBegan { .. }
        | Fact::DoubtSettled { .. }
        | Fact::InterimAnswered { .. }
        | Fact::CallEnded { .. }
        | Fact::EvidenceCompared { .. }
        | Fact::InteractionOpened { .. }
        | Fact::InteractionLapsed { .. }
        | Fact::InteractionWithdrawn { .. }
        | Fact::InquiryOpened { .. }
        | Fact::InquiryClosed { .. }
        | Fact::DoubtResolved { .. }
        | Fact::ReversalMinted { .. }
        | Fact::ReversalArmed { .. }
        | Fact::ReversalVoided { .. }
        | Fact::ReversalRefused { .. }
        | Fact::ReversalRedeemed { .. }
        | Fact::Ignored { .. }
        | Fact::SuppressedError { .. } => return Ok(None),
    }))
}

/// A recorded call that came in at that time, under other rules than it had. Its deadline moves along where its contract gave
/// it; what an agent or the ledger gave it stays as it is.
pub fn call_under(received: &Received, at: Timestamp, had: &Rules, rules: Arc<Rules>) -> Call {
    let given = received.deadline.since_ms(at) == had.contract.deadline_ms;
    let deadline = if given { at + rules.contract.deadline_ms } else { received.deadline };
    Call { deadline, ..call_of(received, rules) }
}

/// A recorded call as it came in, under those rules.
pub fn call_of(received: &Received, rules: Arc<Rules>) -> Call {
    Call {
        id: received.call.clone(),
        tool: received.tool.clone(),
        upstream: received.upstream.clone(),
        rules,
        rules_hash: received.rules.clone(),
        arguments: received.arguments.clone(),
        principal: received.principal.clone(),
        deadline: received.deadline,
        key: received.key.clone(),
        claims: received.claims.clone(),
        effect_key: received.effect_key.clone(),
        repeat_of: received.repeat_of.clone(),
        evidence: received.evidence.clone(),
        reversal: received.reversal.clone(),
        redeems: received.redeems.clone(),
        view: received.view.clone(),
    }
}

#[cfg(test)]
mod tests;
