//! A session is taken up after a crash, or by another node.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::Phase;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::time::Timestamp;

impl Dispatcher {
    /// Judges what the crash left behind. The agents of these calls are gone with the connection they came by; what may
    /// have happened is settled all the same, so that their repeats find an answer.
    pub(super) fn resume(&mut self, now: Timestamp, gates: &Gates) {
        self.emit(now, Fact::Resumed { gates: gates.clone() });
        let open: Vec<CallId> = self.state.calls.keys().cloned().collect();
        for id in open {
            self.emit(now, Fact::CancelRequested { call: id.clone(), reason: CancelReason::Disconnected });
            self.resume_call(now, gates, &id);
        }
    }

    fn resume_call(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.phase == Phase::Inquiring && self.awaits_return(id) {
            // It waits for an agent that comes back, by whichever node.
            return;
        }
        // Whoever was asked over a line is gone with it, and the upstream that waits has lost us.
        self.withdraw_inquiries(now, id);
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let attempting = match call.phase {
            Phase::Attempting(n) => self.state.attempt(id, n).filter(|attempt| attempt.end.is_none()),
            Phase::Received | Phase::Waiting { .. } | Phase::Asking | Phase::Inquiring => None,
        };
        let Some((n, purpose)) = attempting.map(|attempt| (attempt.n, attempt.purpose)) else {
            if !call.may_have_acted() || call.phase == Phase::Inquiring {
                self.end_cancelled(now, id);
            }
            return;
        };
        let attempt = AttemptId { call: id.clone(), n };
        let certainty = Certainty::InDoubt;
        self.emit(now, Fact::AttemptOrphaned { attempt: attempt.clone(), certainty });
        let reads = self.state.calls.get(id).is_some_and(|call| call.effect().is_read());
        match purpose {
            Purpose::Act if !reads => self.compensate(now, gates, &attempt),
            Purpose::Status => self.status_read(now, gates, &attempt),
            Purpose::Reverse => self.reverse_failed(now, &attempt),
            Purpose::Act | Purpose::Baseline | Purpose::Join | Purpose::Evidence => self.end_cancelled(now, id),
        }
    }
}
