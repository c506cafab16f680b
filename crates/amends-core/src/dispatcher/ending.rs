//! The ways a call ends: once, with its claims settled and its answer given, in one step.

use crate::attempt::{Purpose, Recorded};
use crate::certainty::Certainty;
use crate::claim::{Claim, ClaimChange, ClaimKind, ClaimState};
use crate::compensation::Compensation;
use crate::contract::EffectKind;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approve;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::shaping;
use crate::dispatcher::state::CallState;
use crate::dispatcher::wording;
use crate::effect::{Answer, Effect, Reply};
use crate::envelope::{Body, Envelope, ReversalNote, Trouble};
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::outcome::Outcome;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use crate::walk::Part;

/// How long a call is found by the agent's own key after it ended.
pub(super) const KEY_KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// How long what a move is about is found when the move is wished for again: it may have been done without the move being made,
/// since what it gave says nothing, or another call beside it waits for a person, or for a time that is far off.
pub(super) const ACT_KEPT_MS: u64 = 30 * KEY_KEPT_MS;

impl Dispatcher {
    pub(super) fn refuse(&mut self, now: Timestamp, id: CallId, refusal: Refusal) {
        let Some(call) = self.state.calls.get(&id) else {
            return;
        };
        let error = Box::new(Trouble::refused(call.received.tool.as_str(), &refusal));
        if refusal.kind == RefusalKind::ReversalRefused {
            self.emit(now, Fact::ReversalRefused { call: id.clone(), reason: refusal.message.clone() });
        }
        self.emit(now, Fact::CallRefused { call: id.clone(), refusal: Box::new(refusal) });
        self.reply(id, Answer::Envelope(Envelope::of(Body::Refused { error })), true);
    }

    /// The call did what it should; the answer is what that attempt gave back.
    pub(super) fn end_with_result(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId, outcome: Outcome) {
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        let unwinds = call.rules().playbook.rule(Verdict::Cancelled, Code::ToolCancelled).compensation
            == Compensation::IssueReversal;
        if call.cancel.is_some_and(CancelReason::is_wish) && unwinds && call.certainty() == Certainty::Processed {
            // It was done although somebody had stopped it.
            return self.reverse(now, gates, &attempt.call);
        }
        let acted = self.state.attempt(&attempt.call, attempt.n).is_some_and(|a| a.purpose == Purpose::Act);
        let envelope = shaping::done(call, attempt, outcome);
        let answer =
            if acted { Answer::Forward { attempt: attempt.clone(), envelope } } else { Answer::Envelope(envelope) };
        self.end(now, &attempt.call, outcome, Certainty::Processed, Some(attempt.clone()), answer);
    }

    /// The call failed, or is in doubt, and nothing more is done about it.
    pub(super) fn end_failed(&mut self, now: Timestamp, id: &CallId, outcome: Outcome) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let envelope = wording::failed(call, Some(outcome));
        let certainty = call.certainty();
        self.end(now, id, outcome, certainty, None, Answer::Envelope(envelope));
    }

    /// The call could go on later than its deadline; the agent is told when.
    pub(super) fn end_later(&mut self, now: Timestamp, id: &CallId, wait_ms: u64) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.needs_person() {
            return self.end_in_doubt(now, id);
        }
        let mut envelope = wording::failed(call, Some(Outcome::Exhausted));
        if let Body::Error { error, .. } = &mut envelope.body {
            wording::retry_later(error, now, wait_ms);
        }
        let certainty = call.certainty();
        self.end(now, id, Outcome::Exhausted, certainty, None, Answer::Envelope(envelope));
    }

    /// The call was stopped, and nothing happened that is not known.
    pub(super) fn end_cancelled(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.in_doubt() {
            return self.end_in_doubt(now, id);
        }
        let envelope = wording::cancelled(call, Some(Outcome::Cancelled));
        let certainty = call.certainty();
        self.end(now, id, Outcome::Cancelled, certainty, None, Answer::Envelope(envelope));
    }

    /// The call gets the recorded answer of the one it repeats.
    pub(super) fn end_replayed(&mut self, now: Timestamp, attempt: &AttemptId, recorded: Recorded) {
        let fact = Fact::CallEnded {
            call: attempt.call.clone(),
            outcome: recorded.outcome,
            certainty: recorded.certainty,
            attempt: Some(attempt.clone()),
            replayed: true,
            granted: false,
            lasts: false,
        };
        self.emit(now, fact);
        self.reply(attempt.call.clone(), Answer::Recorded { attempt: attempt.clone() }, true);
    }

    /// The agent is told where things stand; the call goes on until what may have happened is settled.
    pub(super) fn answer_interim(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let envelope = match call.phase {
            _ if call.waits_for_a_yes() => approve::awaiting(call, now),
            _ if call.signing_in => approve::awaiting(call, now),
            _ if call.cancel.is_some() => wording::cancelled(call, None),
            _ => wording::failed(call, None),
        };
        let of_a_move = call.holds_its_move_up();
        self.emit(now, Fact::InterimAnswered { call: id.clone() });
        self.reply(id.clone(), Answer::Envelope(envelope), false);
        if of_a_move {
            self.answer_asking(now);
        }
    }

    fn end(
        &mut self,
        now: Timestamp,
        id: &CallId,
        outcome: Outcome,
        certainty: Certainty,
        attempt: Option<AttemptId>,
        mut answer: Answer,
    ) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if let Answer::Forward { envelope, .. } | Answer::Envelope(envelope) = &mut answer {
            envelope.reversal = reversal_note(call, now);
        }
        let lasts = call.lasts(certainty);
        let changes = claim_changes(call, now);
        self.step.claims.extend(changes);
        self.withdraw(now, id);
        self.withdraw_inquiries(now, id);
        self.settle_tokens(now, id);
        self.emit(
            now,
            Fact::CallEnded { call: id.clone(), outcome, certainty, attempt, replayed: false, granted: false, lasts },
        );
        self.reply(id.clone(), answer, true);
    }

    pub(super) fn reply(&mut self, call: CallId, answer: Answer, last: bool) {
        self.step.effects.push(Effect::Reply(Box::new(Reply { call, answer, last })));
    }
}

/// How a call that was done can be undone. The driver, which alone knows the token, fills it in.
fn reversal_note(call: &CallState, now: Timestamp) -> Option<ReversalNote> {
    let reverse = call.contract().reverse.as_ref()?;
    let armed = call.received.reversal.is_some() && call.certainty() == Certainty::Processed && !call.undone;
    let undoing = call.attempts.iter().rfind(|attempt| attempt.purpose == Purpose::Reverse);
    let spent =
        undoing.is_some_and(|undoing| !undoing.end.as_ref().is_some_and(|end| end.certainty.nothing_happened()));
    (armed && !spent).then(|| ReversalNote {
        token: String::new(),
        tool: reverse.tool.clone(),
        until: now + reverse.within_ms,
    })
}

/// What becomes of a call's claims at its end; nothing where they are given up.
pub(super) fn claims_end(call: &CallState) -> Option<ClaimState> {
    match (call.certainty(), call.effect()) {
        _ if call.undone => None,
        (Certainty::Processed, EffectKind::Idempotent | EffectKind::Keyed | EffectKind::Write) => {
            Some(ClaimState::Complete)
        }
        // An undoing that may be sent again is found by the next one, which goes on with its token.
        (Certainty::InDoubt, EffectKind::Idempotent) if call.received.redeems.is_some() => Some(ClaimState::Resumable),
        // Where sending again is harmless there is nothing to hold on to.
        (_, EffectKind::Read) | (Certainty::InDoubt, EffectKind::Idempotent) => None,
        // Either the agent goes on with it or a person says what became of it, never both.
        (Certainty::InDoubt, EffectKind::Keyed) if call.safe_to_repeat() => Some(ClaimState::Resumable),
        (Certainty::InDoubt, EffectKind::Keyed) => Some(ClaimState::InDoubt),
        // Nobody is there to say what became of it, and the upstream itself ended it with an error: once the agent has read
        // that, another call is its own decision.
        (Certainty::InDoubt, EffectKind::Write) if call.agent_decides() && !is_act(call) => Some(ClaimState::Complete),
        (Certainty::InDoubt, EffectKind::Write) => Some(ClaimState::InDoubt),
        (Certainty::NotSent | Certainty::NotProcessed, _) => None,
    }
}

/// Whether a call is what a move is about.
fn is_act(call: &CallState) -> bool {
    call.received.leg.as_ref().is_some_and(|leg| leg.part == Part::Act)
}

fn claim_changes(call: &CallState, now: Timestamp) -> Vec<ClaimChange> {
    if call.is_repeat() {
        return Vec::new();
    }
    let contract = call.contract();
    let end = claims_end(call);
    let id = &call.received.call;
    let until = |kind: ClaimKind| match end {
        // A move in doubt stays so until it is settled, or its walk begins again: whoever takes it again goes on with that.
        Some(ClaimState::InDoubt | ClaimState::Resumable) if kind == ClaimKind::Key && is_act(call) => None,
        // Nobody is there to settle it, so it cannot be held for good.
        Some(ClaimState::InDoubt | ClaimState::Resumable) if !contract.declared => {
            Some(now + contract.repeat_window_ms)
        }
        Some(ClaimState::InDoubt | ClaimState::Resumable) => None,
        _ if kind == ClaimKind::Key && is_act(call) => Some(now + ACT_KEPT_MS),
        _ if kind == ClaimKind::Key => Some(now + KEY_KEPT_MS),
        _ => Some(now + contract.repeat_window_ms),
    };
    let quiet = now + contract.request_life_ms();
    let lingers = match end {
        Some(_) => call.lingers(),
        None => call.in_doubt() || call.lingers(),
    };
    let change = |claim: &Claim| match end {
        // What was sent may still arrive, and undo what another write does in between.
        None | Some(ClaimState::Complete) if claim.kind == ClaimKind::Object && lingers => ClaimChange::Settle {
            name: claim.name.clone(),
            call: id.clone(),
            state: ClaimState::InDoubt,
            until: Some(quiet),
        },
        Some(ClaimState::Complete) if claim.kind == ClaimKind::Object => {
            ClaimChange::Release { name: claim.name.clone(), call: id.clone() }
        }
        Some(state) => {
            ClaimChange::Settle { name: claim.name.clone(), call: id.clone(), state, until: until(claim.kind) }
        }
        None => ClaimChange::Release { name: claim.name.clone(), call: id.clone() },
    };
    call.received.claims.iter().map(change).collect()
}
