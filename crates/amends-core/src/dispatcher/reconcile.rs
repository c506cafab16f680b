//! Finding out what happened: by the status, by the key, or not at all.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::compensation::Ladder;
use crate::contract::EffectKind;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::may_send;
use crate::dispatcher::state::{AttemptEnd, AttemptState, CallState};
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::interaction::Subject;
use crate::limits::{STATUS_READS_MAX, WAIT_MS_MAX};
use crate::outcome::Outcome;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// The waits between reads of a status that does not tell yet.
const STATUS_LADDER_MS: [u64; 6] = [300, 700, 1500, 3000, 6000, 12_000];

impl Dispatcher {
    /// Finds out what happened to a call that is in doubt, or that the upstream says it knows already.
    pub(super) fn reconcile(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let Some((_, end)) = call.last_act() else {
            // Only the baseline was read: there is nothing to find out.
            return self.end_failed(now, id, Outcome::Deprecated);
        };
        let code = end.report.failure.as_ref().map(|failure| failure.code);
        let processed = call.certainty() == Certainty::Processed;
        if code == Some(Code::KeyReused) && !call.in_doubt() {
            return self.end_failed(now, id, Outcome::Exhausted);
        }
        if !processed && !call.in_doubt() {
            return self.end_failed(now, id, Outcome::Deprecated);
        }
        if can_read_status(call) {
            if code == Some(Code::KeyInFlight) {
                return self.wait(now, id, self.status_wait(id), Purpose::Status);
            }
            return self.start(now, gates, id, Purpose::Status, None);
        }
        if processed {
            return self.end_failed(now, id, Outcome::Deprecated);
        }
        let doubted =
            |attempt: &&AttemptState| attempt.end.as_ref().and_then(|end| end.verdict) == Some(Verdict::InDoubt);
        let first = end.verdict == Some(Verdict::InDoubt) && call.acts().filter(doubted).count() == 1;
        if first && may_send(call, Purpose::Act, gates, now) {
            let chance = self.chance(&AttemptId { call: id.clone(), n: 0 });
            let wait = Ladder::of(&[500]).step(0, chance);
            return self.wait(now, id, wait.unwrap_or(500), Purpose::Act);
        }
        self.end_in_doubt(now, id);
    }

    /// A status read ended. A yes settles the doubt; a no settles it only once nothing sent can still arrive.
    pub(super) fn status_read(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId) {
        let id = &attempt.call;
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let Some(read) = self.state.attempt(id, attempt.n) else {
            return;
        };
        let Some((act, end)) = call.last_act() else {
            return;
        };
        let act = AttemptId { call: id.clone(), n: act.n };
        let code = end.report.failure.as_ref().map(|failure| failure.code);
        // It was asked of the agent what the call needs, and nobody gave it.
        let is_round = end.report.inquiry.is_some();
        let processed = call.certainty() == Certainty::Processed;
        let fits = read.end.as_ref().is_some_and(|end| end.report.fits);
        let quiet_at = call.quiet_at();
        let quiet = quiet_at.is_some_and(|at| read.started >= at);
        let effect = call.effect();
        match happened(call, attempt.n) {
            Some(true) => {
                let certainty = Certainty::Processed;
                self.emit(now, Fact::DoubtSettled { call: id.clone(), certainty, by: attempt.clone() });
                if fits {
                    return self.end_with_result(now, gates, attempt, Outcome::SucceededAfterCompensation);
                }
                self.end_failed(now, id, Outcome::Deprecated);
            }
            // The upstream said that it was done, and its status does not show it: that is not for us to repeat.
            Some(false) if processed => self.end_failed(now, id, Outcome::Deprecated),
            Some(false) if quiet => {
                let certainty = Certainty::NotProcessed;
                self.emit(now, Fact::DoubtSettled { call: id.clone(), certainty, by: attempt.clone() });
                if is_round {
                    return self.end_cancelled(now, id);
                }
                self.compensate(now, gates, &act);
            }
            Some(false) if code == Some(Code::KeyInFlight) => self.read_again(now, id, quiet_at),
            Some(false) => match (effect, quiet_at) {
                (EffectKind::Write, Some(at)) => self.read_again(now, id, Some(at)),
                (EffectKind::Write, None) | (EffectKind::Keyed | EffectKind::Idempotent | EffectKind::Read, _) => {
                    self.end_in_doubt(now, id)
                }
            },
            // Reading again would fail in the same way: the reader is not there, or is given what it does not take.
            None if is_hopeless(read) => self.end_in_doubt(now, id),
            None => self.read_again(now, id, None),
        }
    }

    /// The call whose answer this one waits for has ended, or cannot be found.
    pub(super) fn joined(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId) {
        if self.state.calls.get(&attempt.call).is_some_and(|call| call.succeeds) {
            return self.succeed_joined(now, gates, &attempt.call);
        }
        let recorded = self
            .state
            .attempt(&attempt.call, attempt.n)
            .and_then(|join| join.end.as_ref())
            .and_then(|end| end.report.recorded);
        let asks = self.state.attempt(&attempt.call, attempt.n).and_then(|join| join.end.as_ref());
        if asks.is_some_and(|end| end.report.inquiry.is_some()) {
            return self.asked_again(now, attempt);
        }
        match recorded {
            Some(recorded) => self.end_replayed(now, attempt, recorded),
            None => self.refuse(now, attempt.call.clone(), still_in_flight()),
        }
    }

    fn read_again(&mut self, now: Timestamp, id: &CallId, at: Option<Timestamp>) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if !can_read_status(call) {
            return self.end_in_doubt(now, id);
        }
        let ladder = self.status_wait(id);
        let in_flight =
            call.last_act().and_then(|(_, end)| end.report.failure.as_ref()).map(|f| f.code) == Some(Code::KeyInFlight);
        let wait = match at {
            Some(at) if in_flight => at.since_ms(now).min(ladder),
            Some(at) => at.since_ms(now),
            None => ladder,
        };
        let asked_ms = asked_by_reader(call);
        if asked_ms > WAIT_MS_MAX {
            return self.end_in_doubt(now, id);
        }
        self.wait(now, id, wait.max(asked_ms).max(1), Purpose::Status);
    }

    fn status_wait(&self, id: &CallId) -> u64 {
        let reads = self.state.calls.get(id).map_or(0, status_reads);
        let ladder = Ladder::of(&STATUS_LADDER_MS);
        let step = (reads as usize).min(STATUS_LADDER_MS.len() - 1);
        ladder.step(step, self.chance(&AttemptId { call: id.clone(), n: reads })).unwrap_or(1000)
    }

    /// Nothing more can be found out. A plain write is unresolved; what can be sent again safely is merely exhausted.
    pub(super) fn end_in_doubt(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.certainty() == Certainty::Processed {
            // The upstream said that it was done; only its answer was not to be had.
            return self.end_failed(now, id, Outcome::Deprecated);
        }
        let conflict = call.last_act().and_then(|(_, end)| end.verdict) == Some(Verdict::IdempotencyConflict);
        let asks = call.needs_person();
        let outcome = match call.effect() {
            EffectKind::Write => Outcome::Unresolved,
            _ if asks => Outcome::Unresolved,
            EffectKind::Keyed | EffectKind::Idempotent | EffectKind::Read if conflict => Outcome::Unresolved,
            EffectKind::Keyed | EffectKind::Idempotent | EffectKind::Read => Outcome::Exhausted,
        };
        // What may be sent again may not be before the upstream said.
        let asked = |end: &AttemptEnd| Some(end.at + end.report.failure.as_ref()?.retry_after_ms?);
        let queue = call.contract().queue().to_owned();
        let not_before = call.last_act().and_then(|(_, end)| asked(end)).filter(|at| *at > now);
        match not_before {
            Some(at) if outcome == Outcome::Exhausted && !asks => self.end_later(now, id, at.since_ms(now)),
            _ => {
                if asks {
                    self.ask(now, id, Subject::Doubt, &queue);
                }
                self.end_failed(now, id, outcome);
            }
        }
    }
}

/// The refusal of a repeat whose call has not ended yet.
pub(super) fn still_in_flight() -> Refusal {
    let message = "an equal call is still being settled; its answer will be given to the next equal call after that";
    Refusal { retry_after_ms: Some(5_000), ..Refusal::of(RefusalKind::InFlight, message) }
}

/// The refusal of a repeat whose call waits for the agent, which is asked the same once more.
pub(super) fn asked_elsewhere() -> Refusal {
    let message =
        "an equal call waits for what its upstream asks; the same is asked again, and the answer goes to that call";
    Refusal::of(RefusalKind::InFlight, message)
}

fn status_reads(call: &CallState) -> u32 {
    call.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Status).count() as u32
}

/// How long the upstream asked to wait when the status was last read.
fn asked_by_reader(call: &CallState) -> u64 {
    let read = call.attempts.iter().rfind(|attempt| attempt.purpose == Purpose::Status);
    let failure = read.and_then(|read| read.end.as_ref()).and_then(|end| end.report.failure.as_ref());
    failure.and_then(|failure| failure.retry_after_ms).unwrap_or_default()
}

/// Whether a status read failed in a way that only another configuration, or another upstream, changes.
fn is_hopeless(read: &AttemptState) -> bool {
    let failure = read.end.as_ref().and_then(|end| end.report.failure.as_ref());
    failure.is_some_and(|failure| failure.code.verdict() == Verdict::CapabilityMissing)
}

pub(super) fn can_read_status(call: &CallState) -> bool {
    call.contract().status.is_some() && status_reads(call) < STATUS_READS_MAX
}

/// Whether a status read shows that *this* effect happened: by its key, or by a difference from the baseline.
fn happened(call: &CallState, n: u32) -> Option<bool> {
    let report_of = |attempt: &super::state::AttemptState| attempt.end.as_ref().map(|end| end.report.clone());
    let read = call.attempts.get((n as usize).checked_sub(1)?).and_then(report_of)?;
    if read.failure.is_some() {
        return None;
    }
    let says = read.happened?;
    if call.contract().status.as_ref()?.by_key {
        return Some(says);
    }
    // The baseline was read after the call whose key this one goes on with: it cannot tell of that.
    if call.inherits_doubt() {
        return None;
    }
    if !says {
        return Some(false);
    }
    let baseline = call.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Baseline);
    let baseline = baseline.filter_map(report_of).rfind(|report| report.failure.is_none())?;
    match baseline.happened? {
        false => Some(true),
        true => Some(baseline.payload.map(|p| p.digest) != read.payload.map(|p| p.digest)),
    }
}
