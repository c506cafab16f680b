//! What the watch knows of a call, folded from durable events by its own hand.

use std::collections::BTreeMap;

use amends_core::call::Received;
use amends_core::{
    CallId, Certainty, Code, EffectKind, Event, Fact, Failure, Outcome, Purpose, Report, SessionId, Timestamp, Way,
};

use crate::catalog::Tool;

/// A call, as its durable events tell.
#[derive(Debug)]
pub(crate) struct CallView {
    pub(crate) session: SessionId,
    pub(crate) received: Received,
    pub(crate) tool: &'static Tool,
    pub(crate) at: Timestamp,
    /// When the agent's patience is over: waiting for a person does not count.
    pub(crate) deadline: Timestamp,
    pub(crate) attempts: Vec<AttemptView>,
    pub(crate) ended: Option<EndView>,
    /// What its agent was told, before a person said more.
    pub(crate) told_first: Option<(Outcome, Certainty)>,
    pub(crate) refused: bool,
    pub(crate) interim: bool,
    pub(crate) asked_to_stop: bool,
    pub(crate) delivered: bool,
    /// A result that came after its end says that it was done.
    pub(crate) done_late: bool,
    /// It was said that undoing it, or what it should undo, did not work.
    pub(crate) not_undone: bool,
    /// Another call went on with its key.
    pub(crate) superseded: bool,
    /// It goes on with the key of a call that ended in doubt.
    pub(crate) inherited: bool,
    /// The same, and that doubt is not settled yet.
    pub(crate) inherits_doubt: bool,
    /// What its upstream asked of the agent.
    pub(crate) inquiries: BTreeMap<u32, InquiryView>,
    /// Since when the work clock stands.
    pub(crate) paused: Option<Timestamp>,
}

/// What an upstream asked of the agent.
#[derive(Debug)]
pub(crate) struct InquiryView {
    /// The attempt whose upstream waits, where it does.
    pub(crate) held_by: Option<u32>,
    pub(crate) due: Timestamp,
    /// Whether the agent comes back with the answer.
    pub(crate) returns: bool,
    pub(crate) open: bool,
}

/// One attempt of a call.
#[derive(Debug)]
pub(crate) struct AttemptView {
    pub(crate) purpose: Purpose,
    /// Which piece of evidence it reads.
    pub(crate) item: Option<u32>,
    pub(crate) started: Timestamp,
    pub(crate) send_by: Timestamp,
    pub(crate) run: Option<u64>,
    /// The epoch under which its intent became durable.
    pub(crate) epoch: u64,
    pub(crate) end: Option<AttemptEndView>,
    pub(crate) judged: u32,
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) struct AttemptEndView {
    pub(crate) at: Timestamp,
    pub(crate) report: Report,
    pub(crate) certainty: Certainty,
    /// Whether whoever sent it said so: from then on it sends no more of it.
    pub(crate) reported: bool,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct EndView {
    pub(crate) outcome: Outcome,
    pub(crate) certainty: Certainty,
}

impl CallView {
    pub(crate) fn effect(&self) -> EffectKind {
        self.tool.effect()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ended.is_none() && !self.refused
    }

    pub(crate) fn is_join(&self) -> bool {
        !self.attempts.is_empty() && self.attempts.iter().all(|attempt| attempt.purpose == Purpose::Join)
    }

    pub(crate) fn acts(&self) -> impl Iterator<Item = &AttemptView> {
        self.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Act)
    }

    /// The attempts to undo what it did.
    pub(crate) fn undoings(&self) -> impl Iterator<Item = &AttemptView> {
        self.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Reverse)
    }

    /// Whether it is known to have been done.
    pub(crate) fn was_done(&self) -> bool {
        let done =
            |attempt: &AttemptView| attempt.end.as_ref().is_some_and(|end| end.certainty == Certainty::Processed);
        self.acts().any(done) || (self.inherited && !self.inherits_doubt) || self.done_late
    }

    /// The attempts to act of which it is not known what they did.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &AttemptView> {
        self.acts().filter(|attempt| attempt.end.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt))
    }
}

/// Applies one durable event.
pub(crate) fn apply(
    calls: &mut BTreeMap<CallId, CallView>,
    session: &SessionId,
    epoch: u64,
    event: &Event,
    tools: &'static [Tool],
) {
    let at = event.at;
    if let Fact::CallReceived { received, .. } = &event.fact {
        let Some(tool) = tools.iter().find(|tool| tool.hash == received.rules) else {
            return;
        };
        let held = received.repeat_of.as_ref();
        let inherits = held.is_some_and(|held| held.effect_key == received.effect_key);
        let view = CallView {
            session: session.clone(),
            received: (**received).clone(),
            tool,
            at,
            deadline: received.deadline,
            attempts: Vec::new(),
            ended: None,
            told_first: None,
            refused: false,
            interim: false,
            asked_to_stop: false,
            delivered: false,
            done_late: false,
            not_undone: false,
            superseded: false,
            inherited: inherits,
            inherits_doubt: inherits,
            inquiries: BTreeMap::new(),
            paused: None,
        };
        calls.insert(received.call.clone(), view);
        return;
    }
    supersede(calls, event);
    let Some(view) = event.fact.call().and_then(|call| calls.get_mut(call)) else {
        return;
    };
    match &event.fact {
        Fact::AttemptStarted { purpose, item, send_by, run, .. } => view.attempts.push(AttemptView {
            purpose: *purpose,
            item: *item,
            started: at,
            send_by: *send_by,
            run: *run,
            epoch,
            end: None,
            judged: 0,
        }),
        Fact::AttemptEnded { attempt, report, .. } => {
            if report.granted.is_some() {
                // A person took that long, and not the tool.
                let began = view.attempts.get(attempt.n as usize - 1).map_or(at, |join| join.started);
                view.deadline = view.deadline + at.since_ms(began);
            }
            end(view, attempt.n, at, (**report).clone());
            if let Some(end) = view.attempts.get_mut(attempt.n as usize - 1).and_then(|attempt| attempt.end.as_mut()) {
                end.reported = true;
            }
        }
        Fact::AttemptTimedOut { attempt, certainty } => {
            let report = Report::silent(Failure::of(Code::NetworkTimeout), *certainty);
            end(view, attempt.n, at, report);
        }
        Fact::AttemptOrphaned { attempt, certainty } => {
            let report = Report::silent(Failure::of(Code::ConnectionLost), *certainty);
            end(view, attempt.n, at, report);
        }
        Fact::FailureJudged { attempt, .. } => {
            if let Some(attempt) = view.attempts.get_mut(attempt.n as usize - 1) {
                attempt.judged += 1;
            }
        }
        Fact::DoubtSettled { certainty, .. } => {
            view.inherits_doubt = false;
            for attempt in &mut view.attempts {
                if let Some(end) = &mut attempt.end
                    && attempt.purpose == Purpose::Act
                    && end.certainty == Certainty::InDoubt
                {
                    end.certainty = *certainty;
                }
            }
        }
        Fact::InquiryOpened { attempt, inquiry, held, due, way } => {
            let (held_by, returns) = (held.then_some(attempt.n), *way == Way::Return);
            view.inquiries.insert(*inquiry, InquiryView { held_by, due: *due, returns, open: true });
            view.paused.get_or_insert(at);
        }
        Fact::InputsGiven { inquiry, .. }
        | Fact::InquiryWithdrawn { inquiry, .. }
        | Fact::InquiryClosed { inquiry, .. } => close(view, *inquiry, at),
        Fact::InterimAnswered { .. } => view.interim = true,
        Fact::CallEnded { outcome, certainty, .. } => {
            view.ended = Some(EndView { outcome: *outcome, certainty: *certainty });
            view.told_first = Some((*outcome, *certainty));
        }
        Fact::CallRefused { .. } => {
            view.refused = true;
            view.told_first = Some((Outcome::Refused, Certainty::NotSent));
        }
        Fact::CancelRequested { reason, .. } => {
            view.asked_to_stop |= reason.is_wish();
        }
        Fact::AnswerDelivered { .. } => view.delivered = true,
        Fact::LateResult { report, .. } => {
            view.done_late |= report.failure.is_none() && report.certainty == Certainty::Processed;
        }
        Fact::ReversalRefused { .. } => view.not_undone = true,
        Fact::DoubtResolved { certainty, .. } => {
            let happened = *certainty == Certainty::Processed;
            view.delivered &= !happened;
            if let Some(end) = &mut view.ended {
                end.certainty = *certainty;
                if happened {
                    end.outcome = Outcome::SucceededAfterCompensation;
                }
            }
        }
        _ => {}
    }
}

/// An inquiry is over; with the last one, the clock goes on.
fn close(view: &mut CallView, n: u32, at: Timestamp) {
    match view.inquiries.get_mut(&n) {
        Some(inquiry) => inquiry.open = false,
        None => {
            // The agent never heard of it.
            let refused = InquiryView { held_by: None, due: at, returns: false, open: false };
            view.inquiries.insert(n, refused);
        }
    }
    if view.inquiries.values().any(|inquiry| inquiry.open) {
        return;
    }
    let stood_ms = view.paused.take().map_or(0, |since| at.since_ms(since));
    view.deadline = view.deadline + stood_ms;
    for attempt in view.attempts.iter_mut().filter(|attempt| attempt.end.is_none()) {
        attempt.send_by = attempt.send_by + stood_ms;
    }
}

/// A call that goes on with another's key has taken its place once it sends.
fn supersede(calls: &mut BTreeMap<CallId, CallView>, event: &Event) {
    let Fact::AttemptStarted { attempt, .. } = &event.fact else {
        return;
    };
    let heir = calls.get(&attempt.call).filter(|view| view.inherits_doubt);
    let held = heir.and_then(|view| view.received.repeat_of.as_ref());
    let holder = held.map(|held| held.call.clone());
    if let Some(holder) = holder.and_then(|holder| calls.get_mut(&holder)) {
        holder.superseded = true;
    }
}

fn end(view: &mut CallView, n: u32, at: Timestamp, report: Report) {
    if let Some(attempt) = view.attempts.get_mut(n as usize - 1) {
        let certainty = report.certainty;
        attempt.end = Some(AttemptEndView { at, report, certainty, reported: false });
    }
}
