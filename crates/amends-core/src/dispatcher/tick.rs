//! A deadline passed.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::may_send;
use crate::dispatcher::state::{CallState, Phase, Question, WalkState};
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::outcome::Outcome;
use crate::time::Timestamp;

impl Dispatcher {
    /// Does what is due. A tick before the deadline changes nothing; a tick at it moves it.
    pub(super) fn tick(&mut self, now: Timestamp, gates: &Gates) {
        let calls = self.state.calls.iter();
        let due: Vec<CallId> = calls
            .filter(|(_, call)| call.deadline().is_some_and(|deadline| deadline.at <= now))
            .map(|(id, _)| id.clone())
            .collect();
        let due_at = |question: &Question| question.deadline().is_some_and(|deadline| deadline.at <= now);
        let lapsed: Vec<InteractionId> =
            self.state.questions.iter().filter(|(_, question)| due_at(question)).map(|(id, _)| id.clone()).collect();
        let walk = self.state.walk.as_ref().and_then(WalkState::deadline).is_some_and(|deadline| deadline.at <= now);
        if due.is_empty() && lapsed.is_empty() && !walk {
            return;
        }
        self.emit(now, Fact::Ticked { gates: gates.clone() });
        for id in lapsed {
            self.lapse(now, &id);
        }
        for id in due {
            self.tick_call(now, gates, &id);
            self.agent_deadline(now, &id);
        }
    }

    fn tick_call(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.paused.is_some() {
            if call.signing_in && call.told_at().is_some_and(|at| at <= now) && !call.is_left() {
                self.answer_interim(now, id);
            }
            self.lapse_inquiries(now, id, |due, _| due <= now);
            self.lapsed(now, gates, id);
        }
        // With the last inquiry the clock goes on, and may be past another deadline by now.
        let Some(call) = self.state.calls.get(id).filter(|call| call.paused.is_none()) else {
            return;
        };
        match call.phase {
            Phase::Attempting(n) => {
                let attempt = AttemptId { call: id.clone(), n };
                let Some(state) = self.state.attempt(id, n) else {
                    return;
                };
                if state.deadline > now {
                    return;
                }
                let purpose = state.purpose;
                self.step.effects.push(Effect::Abort(attempt.clone()));
                if purpose == Purpose::Join {
                    return self.leave_join(now, id);
                }
                let timed_out = Fact::AttemptTimedOut { attempt: attempt.clone(), certainty: Certainty::InDoubt };
                self.emit(now, timed_out);
                match purpose {
                    Purpose::Act | Purpose::Baseline | Purpose::Evidence => self.compensate(now, gates, &attempt),
                    Purpose::Reverse => self.reverse_failed(now, &attempt),
                    Purpose::Status | Purpose::Join => self.status_read(now, gates, &attempt),
                }
            }
            Phase::Waiting { until, next } if until <= now => {
                let settles = matches!(next, Purpose::Status | Purpose::Reverse);
                if !settles && !may_send(call, next, gates, now) {
                    // It was planned and is no longer allowed: a restart, a window that is over, a breaker that opened.
                    return self.give_up(now, gates, id, None);
                }
                self.start(now, gates, id, next, None);
            }
            Phase::Approving | Phase::Asking => {
                if call.told_at().is_some_and(|at| at <= now) && !call.is_left() {
                    self.answer_interim(now, id);
                }
            }
            Phase::Waiting { .. } | Phase::Received | Phase::Inquiring => {}
        }
    }

    /// Nobody gave what the call needs to be sent again: it is over.
    pub(super) fn lapsed(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let over = |call: &&CallState| call.phase == Phase::Inquiring && call.open_inquiries().next().is_none();
        match self.state.calls.get(id).filter(over).map(CallState::in_doubt) {
            Some(true) => self.reconcile(now, gates, id),
            Some(false) => self.end_cancelled(now, id),
            None => {}
        }
    }

    /// The agent waits no longer. What may have happened is settled on; the rest ends.
    fn agent_deadline(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.answered || call.paused.is_some() || call.deadline > now || call.waits_for_a_yes() {
            return;
        }
        if call.may_have_acted() || call.phase == Phase::Asking {
            return self.answer_interim(now, id);
        }
        if let Phase::Attempting(n) = call.phase {
            self.step.effects.push(Effect::Abort(AttemptId { call: id.clone(), n }));
        }
        self.end_failed(now, id, Outcome::Exhausted);
    }
}
