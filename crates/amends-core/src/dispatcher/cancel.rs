//! Somebody wants a call stopped.

use serde::{Deserialize, Serialize};

use crate::attempt::Purpose;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::state::Phase;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::inquiry::Way;
use crate::registry::Code;
use crate::time::Timestamp;

/// Why a call should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The agent said so.
    Asked,
    /// The agent's turn was stopped, and with it everything that it was doing: a move of a machine with all its calls, or a run of
    /// many calls.
    TurnEnded,
    /// The agent ended its session, and with it everything that runs in it.
    SessionEnded,
    /// The agent's connection is gone. What was sent goes on, so that the repeat finds its answer.
    Disconnected,
}

impl CancelReason {
    /// Whether the agent wants it stopped, rather than being gone.
    pub const fn is_wish(self) -> bool {
        matches!(self, Self::Asked | Self::TurnEnded | Self::SessionEnded)
    }

    /// What it is called in an envelope.
    pub(super) const fn code(self) -> Code {
        match self {
            Self::Asked | Self::Disconnected => Code::ToolCancelled,
            Self::TurnEnded => Code::TurnCancelled,
            Self::SessionEnded => Code::SessionCancelled,
        }
    }
}

impl Dispatcher {
    /// Stops what can be stopped. What was sent and may have an effect is settled, even when nobody waits for it.
    pub(super) fn cancel(&mut self, now: Timestamp, id: CallId, reason: CancelReason) {
        if self.state.open_move().is_some_and(|open| open.taking.id == id) {
            return self.cancel_move(now, id, reason);
        }
        if !self.state.calls.contains_key(&id) {
            return self.ignore(now, format!("the call `{id}` that should stop is not open"));
        }
        self.emit(now, Fact::CancelRequested { call: id.clone(), reason });
        self.cancel_call(now, id, reason);
    }

    /// Stops what can be stopped of an open call.
    pub(super) fn cancel_call(&mut self, now: Timestamp, id: CallId, reason: CancelReason) {
        let Some(call) = self.state.calls.get(&id) else {
            return;
        };
        let phase = call.phase;
        let answered = call.answered;
        if reason == CancelReason::Disconnected {
            // A person is asked all the same: their yes is for the next equal call.
            if self.awaits_return(&id) || phase == Phase::Approving {
                return;
            }
            // Nobody is left on the line to give an answer.
            self.lapse_inquiries(now, &id, |_, way| way == Way::Line);
        } else {
            self.withdraw_inquiries(now, &id);
        }
        let Some(call) = self.state.calls.get(&id) else {
            return;
        };
        if !call.may_have_acted() {
            if let Phase::Attempting(n) = phase {
                self.step.effects.push(Effect::Abort(AttemptId { call: id.clone(), n }));
            }
            return self.end_cancelled(now, &id);
        }
        if reason == CancelReason::Disconnected {
            return self.lapsed(now, &Gates::default(), &id);
        }
        if !answered {
            self.answer_interim(now, &id);
        }
        match phase {
            Phase::Attempting(n) if self.state.attempt(&id, n).is_some_and(|a| a.purpose == Purpose::Act) => {
                self.step.effects.push(Effect::Abort(AttemptId { call: id.clone(), n }));
            }
            // A resend that was planned will not happen; only the status can still tell.
            Phase::Waiting { next: Purpose::Act, .. } => self.reconcile(now, &Gates::default(), &id),
            // Nothing more is sent, so only the status can still tell of an earlier attempt.
            Phase::Inquiring => self.reconcile(now, &Gates::default(), &id),
            Phase::Attempting(_) | Phase::Waiting { .. } | Phase::Received | Phase::Asking | Phase::Approving => {}
        }
    }
}
