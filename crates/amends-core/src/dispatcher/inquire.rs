//! An upstream asks something of the agent: while it works on an attempt, or in the place of an answer.

use crate::attempt::Purpose;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::state::CallState;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::inquiry::{Asking, Inquiry, Telling, Unanswered, Way};
use crate::limits::{ASKS_MAX, INQUIRIES_MAX, WORK_NAME_BYTES_MAX};
use crate::outcome::Outcome;
use crate::time::Timestamp;

impl Dispatcher {
    /// The upstream asks while it works: the attempt goes on, and its clock stands until the inquiry is over.
    pub(super) fn inquiry(&mut self, now: Timestamp, gates: &Gates, attempt: AttemptId, inquiry: Box<Inquiry>) {
        let running = self.state.attempt(&attempt.call, attempt.n).filter(|state| state.end.is_none());
        let Some(running) = running else {
            return self.ignore(now, format!("`{attempt}`, whose upstream asks something, is over"));
        };
        let acts = running.purpose == Purpose::Act;
        let (way, sign_in) = (inquiry.way, inquiry.sign_in.clone());
        let fits = inquiry.asks.len() <= ASKS_MAX;
        self.emit(now, Fact::InquiryMade { attempt: attempt.clone(), inquiry, gates: gates.clone() });
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        let n = call.next_inquiry();
        // Whoever was told where things stand, or wants it stopped, is not asked any more.
        let open = way.is_open() && acts && fits && call.may_ask() && !call.answered;
        if open && call.inquiries.len() < INQUIRIES_MAX {
            self.open_inquiry(now, &attempt, true, way);
            if let Some(sign_in) = sign_in.filter(|_| way == Way::Person) {
                self.ask_to_sign_in(now, &attempt, &sign_in);
            }
            return;
        }
        let why = Unanswered::Refused;
        if call.inquiries.len() < INQUIRIES_MAX {
            self.emit(now, Fact::InquiryClosed { call: attempt.call.clone(), inquiry: n, why });
        }
        self.tell(&attempt, n, Some(why));
    }

    /// The upstream gave its work a name. It changes nothing; whoever finds out what became of the work asks by it.
    pub(super) fn named(&mut self, now: Timestamp, attempt: AttemptId, name: String) {
        if self.state.attempt(&attempt.call, attempt.n).is_none_or(|running| running.end.is_some()) {
            return self.ignore(now, format!("`{attempt}`, whose work has a name, is over"));
        }
        if name.len() > WORK_NAME_BYTES_MAX {
            return self.ignore(now, format!("the name of the work of `{attempt}` is too long to be kept"));
        }
        self.emit(now, Fact::WorkNamed { attempt, name });
    }

    /// The upstream answered an attempt with an inquiry: nothing is done until the call comes back with the inputs.
    pub(super) fn round(&mut self, now: Timestamp, attempt: &AttemptId, inquiry: &Inquiry) {
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        // A person is asked for the sake of whoever looks for the answer later, too.
        let left = call.answered && !(inquiry.way == Way::Person && call.patience.goes_on);
        if !call.may_ask() || left {
            return self.end_cancelled(now, &attempt.call);
        }
        if !inquiry.way.is_open() || call.inquiries.len() >= INQUIRIES_MAX || inquiry.asks.len() > ASKS_MAX {
            return self.end_failed(now, &attempt.call, Outcome::Exhausted);
        }
        match &inquiry.sign_in {
            Some(sign_in) if inquiry.way == Way::Person => self.ask_to_sign_in(now, attempt, sign_in),
            _ => self.open_inquiry(now, attempt, false, inquiry.way),
        }
    }

    fn open_inquiry(&mut self, now: Timestamp, attempt: &AttemptId, held: bool, way: Way) {
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        let within_ms = match way {
            Way::Person => call.answer_within_ms(),
            _ => call.contract().input_within_ms,
        };
        let (inquiry, due) = (call.next_inquiry(), now + within_ms.max(1));
        self.emit(now, Fact::InquiryOpened { attempt: attempt.clone(), inquiry, held, due, way });
        let asking = Asking { attempt: attempt.clone(), inquiry, due, way };
        self.step.effects.push(Effect::Inquire(Box::new(asking)));
    }

    /// Nobody answered in time, or nobody is there: that counts as cancelled.
    pub(super) fn lapse_inquiries(&mut self, now: Timestamp, id: &CallId, is_over: impl Fn(Timestamp, Way) -> bool) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let over: Vec<(u32, u32, bool)> = call
            .open_inquiries()
            .filter(|open| is_over(open.due, open.way))
            .map(|open| (open.n, open.attempt, open.held))
            .collect();
        for (inquiry, n, held) in over {
            let why = Unanswered::Lapsed;
            self.emit(now, Fact::InquiryClosed { call: id.clone(), inquiry, why });
            self.step.effects.push(Effect::Retract { call: id.clone(), inquiry });
            if held {
                self.tell(&AttemptId { call: id.clone(), n }, inquiry, Some(why));
            }
        }
    }

    /// Takes back what the agent is asked: what it says to it no longer matters.
    pub(super) fn withdraw_inquiries(&mut self, now: Timestamp, id: &CallId) {
        let open: Vec<u32> =
            self.state.calls.get(id).map(|call| call.open_inquiries().map(|open| open.n).collect()).unwrap_or_default();
        for inquiry in open {
            self.emit(now, Fact::InquiryClosed { call: id.clone(), inquiry, why: Unanswered::Withdrawn });
            self.step.effects.push(Effect::Retract { call: id.clone(), inquiry });
        }
        self.withdraw_sign_in(now, id);
    }

    /// The upstream takes back what it asked: the agent need not answer any more, and the attempt goes on.
    pub(super) fn withdrawal(&mut self, now: Timestamp, id: CallId, inquiry: u32) {
        let waits = |call: &CallState| call.open_inquiries().any(|open| open.n == inquiry && open.held);
        if !self.state.calls.get(&id).is_some_and(waits) {
            return self.ignore(now, format!("inquiry {inquiry} of the call `{id}`, which is taken back, is not open"));
        }
        self.emit(now, Fact::InquiryWithdrawn { call: id.clone(), inquiry });
        self.step.effects.push(Effect::Retract { call: id.clone(), inquiry });
        self.withdraw_sign_in(now, &id);
    }

    /// Tells the upstream of an attempt what became of its inquiry.
    pub(super) fn tell(&mut self, attempt: &AttemptId, inquiry: u32, unanswered: Option<Unanswered>) {
        let Some(state) = self.state.attempt(&attempt.call, attempt.n).filter(|state| state.end.is_none()) else {
            return;
        };
        let send_by = state.send_by;
        let telling = Telling { attempt: attempt.clone(), inquiry, unanswered, send_by };
        self.step.effects.push(Effect::Tell(Box::new(telling)));
    }

    /// Whether a call waits for an agent that has to come back.
    pub(super) fn awaits_return(&self, id: &CallId) -> bool {
        let Some(call) = self.state.calls.get(id) else {
            return false;
        };
        call.open_inquiries().any(|open| open.way == Way::Return)
    }
}
