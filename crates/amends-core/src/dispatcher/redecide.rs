//! Deciding a trace again: by the rules it was decided under, or by others.

mod path;
mod record;
mod rerun;

use std::sync::Arc;

use crate::call::{Call, Received, Rules};
use crate::dispatcher::{Dispatcher, Input, TraceError};
use crate::effect::Effect;
use crate::event::{Decider, Event, Fact};
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
    /// Who decided there.
    pub decider: Decider,
}

impl Difference {
    /// Whether an older program decided there: that this one decides otherwise says nothing against the record.
    pub fn is_older(&self) -> bool {
        self.decider < Decider::THIS
    }
}

/// Feeds the inputs of a trace to a new dispatcher and compares what it decides with what was recorded. Where an older program
/// decided otherwise, it goes on with what the next program took up; a difference in what this program decided comes first.
pub fn redecide(
    events: &[Event],
    rules: impl Fn(&Digest) -> Option<Arc<Rules>>,
) -> Result<Option<Difference>, TraceError> {
    retell(events, rules, |_| {})
}

/// The same, and hands out what was to be done with each step that was decided again as it is recorded: what the agent was
/// answered, for one. Payloads pass by the core, so they are not among it.
pub fn retell(
    events: &[Event],
    rules: impl Fn(&Digest) -> Option<Arc<Rules>>,
    mut told: impl FnMut(Effect),
) -> Result<Option<Difference>, TraceError> {
    let (session, seed, principal, door) = match events.first().map(|event| &event.fact) {
        Some(Fact::SessionOpened { session, seed, principal, door, .. }) => (session, seed, principal, door),
        Some(Fact::SessionRetired { .. }) => return Err(TraceError::Retired),
        _ => return Err(TraceError::NoBeginning),
    };
    let mut dispatcher = Dispatcher::open(session.clone(), *seed, principal.clone(), door);
    let mut older = None;
    let mut at = 0;
    loop {
        let Some(difference) = follow(&mut dispatcher, events, at, &rules, &mut told)? else {
            return Ok(older);
        };
        if !difference.is_older() {
            return Ok(Some(difference));
        }
        let from = difference.seq;
        older.get_or_insert(difference);
        let taken_up = |event: &Event| event.seq > from && matches!(event.fact, Fact::Resumed { .. });
        let next = events.iter().position(taken_up);
        // Whoever decided it, what is recorded must follow from what is recorded before it.
        dispatcher = Dispatcher::restore(&events[..next.unwrap_or(events.len())], &rules)?;
        match next {
            Some(next) => at = next,
            None => return Ok(older),
        }
    }
}

/// Feeds in the inputs from that place on, until a step differs.
fn follow(
    dispatcher: &mut Dispatcher,
    events: &[Event],
    mut at: usize,
    rules: &impl Fn(&Digest) -> Option<Arc<Rules>>,
    told: &mut impl FnMut(Effect),
) -> Result<Option<Difference>, TraceError> {
    while at < events.len() {
        let skipped = usize::from(at == 0);
        for event in &events[at..events.len().min(at + skipped + 1)] {
            decide_as(dispatcher, event)?;
        }
        let Some(event) = events.get(at + skipped) else {
            break;
        };
        let (input, gates) = match input_of(&event.fact, rules)? {
            Some(found) => found,
            // What was ignored left no input behind to decide again.
            None if event.fact.is_remark() => {
                let expected = dispatcher.state.seq + 1 + skipped as u64;
                if event.seq != expected {
                    return Err(TraceError::Gap { expected, found: event.seq });
                }
                dispatcher.state.apply(event, None);
                at += 1 + skipped;
                continue;
            }
            None if dispatcher.decider < Decider::THIS => {
                let recorded = Some(event.clone());
                return Ok(Some(Difference { seq: event.seq, recorded, decided: None, decider: dispatcher.decider }));
            }
            None => {
                return Err(TraceError::Illegal { seq: event.seq, name: event.fact.name() });
            }
        };
        let decider = dispatcher.decider;
        let step = dispatcher.handle(event.at, &gates, input);
        for (n, decided) in step.events.iter().enumerate() {
            let recorded = events.get(at + n);
            if recorded != Some(decided) {
                let (recorded, decided) = (recorded.cloned(), Some(decided.clone()));
                let seq = decided.as_ref().map_or(event.seq, |decided| decided.seq);
                return Ok(Some(Difference { seq, recorded, decided, decider }));
            }
        }
        if step.events.is_empty() {
            return Ok(Some(Difference { seq: event.seq, recorded: Some(event.clone()), decided: None, decider }));
        }
        at += step.events.len();
        step.effects.into_iter().for_each(&mut *told);
    }
    Ok(None)
}

/// Lets a dispatcher decide under the name of whoever decided from that event on.
fn decide_as(dispatcher: &mut Dispatcher, event: &Event) -> Result<(), TraceError> {
    if let Fact::SessionOpened { decider, .. } | Fact::Resumed { decider, .. } = &event.fact {
        if *decider > Decider::THIS {
            return Err(TraceError::NewerDecider { seq: event.seq });
        }
        dispatcher.decider = *decider;
    }
    Ok(())
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
        Fact::InquiryWithdrawn { call, inquiry } => {
            (Input::Withdrawal { call: call.clone(), inquiry: *inquiry }, open())
        }
        Fact::WorkNamed { attempt, name } => (Input::Name { attempt: attempt.clone(), name: name.clone() }, open()),
        Fact::CancelRequested { call, reason } => (Input::Cancel { call: call.clone(), reason: *reason }, open()),
        Fact::AnswerDelivered { call } => (Input::Delivery { call: call.clone() }, open()),
        Fact::Ticked { gates } => (Input::Tick, gates.clone()),
        Fact::Resumed { gates, .. } => (Input::Resume, gates.clone()),
        Fact::SchemaDrifted { drift } => (Input::Drift(Box::new(drift.clone())), open()),
        Fact::SchemaApproved { drift, by } => {
            (Input::Approval { drift: Box::new(drift.clone()), by: by.clone() }, open())
        }
        Fact::WalkBegan { beginning } => (Input::Begin(beginning.clone()), open()),
        Fact::WalkMigrated { definition, hash } => {
            (Input::Migrate { definition: definition.clone(), hash: hash.clone() }, open())
        }
        Fact::MoveReceived { taking, gates } => (Input::Move(taking.clone()), gates.clone()),
        Fact::MoveWeighed { of, weighed } => (Input::Weighed { of: of.clone(), weighed: weighed.clone() }, open()),
        Fact::WalkUnwound { of, undone, failed, doubtful, .. } => {
            let (of, failed, doubtful) = (of.clone(), failed.clone(), doubtful.clone());
            (Input::Unwound { of, undone: *undone, failed, doubtful }, open())
        }
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
        | Fact::CallApproved { .. }
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
        | Fact::MoveRefused { .. }
        | Fact::MoveJoined { .. }
        | Fact::MoveWaits { .. }
        | Fact::MoveMade { .. }
        | Fact::MoveEnded { .. }
        | Fact::WalkReset { .. }
        | Fact::WalkAborted { .. }
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
        leg: received.leg.clone(),
    }
}

#[cfg(test)]
mod tests;
