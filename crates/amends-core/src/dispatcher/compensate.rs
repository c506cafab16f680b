//! A failed attempt is judged, and gets the one compensation that fits it.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::compensation::{Compensation, Ladder};
use crate::contract::EffectKind;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::admit::key_holds;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::reconcile::can_read_status;
use crate::dispatcher::state::CallState;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::interaction::Subject;
use crate::limits::{ATTEMPT_MS_MIN, ATTEMPTS_MAX};
use crate::outcome::Outcome;
use crate::playbook::Rule;
use crate::time::Timestamp;
use crate::verdict::Verdict;

impl Dispatcher {
    /// Judges a failed attempt anew, whatever the attempts before it were, and does what the playbook says.
    pub(super) fn compensate(&mut self, now: Timestamp, gates: &Gates, id: &AttemptId) {
        let Some(call) = self.state.calls.get(&id.call) else {
            return;
        };
        let Some(attempt) = self.state.attempt(&id.call, id.n) else {
            return;
        };
        let Some(end) = &attempt.end else { return };
        let Some(failure) = &end.report.failure else {
            return;
        };
        // A baseline is a read, whatever it is read for.
        let effect = if attempt.purpose == Purpose::Act { call.effect() } else { EffectKind::Read };
        let verdict = Verdict::judge(failure.code, end.certainty, effect);
        let Rule { compensation, origin } = call.rules().playbook.rule(verdict, failure.code);
        let (compensation, origin) = (reachable(compensation, call), *origin);
        let retry_after_ms = failure.retry_after_ms;
        let earlier = earlier_judgements(call, attempt.purpose, verdict, id.n);
        let purpose = attempt.purpose;

        let planned = match &compensation {
            Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder)
                if allowed(call, purpose, gates, now) && ladder.allows(call.sends(purpose)) =>
            {
                next_wait(ladder, earlier, retry_after_ms, self.chance(id))
            }
            _ => None,
        };
        let held_back = planned.and_then(|_| gates.held_back(&call.received.upstream, &call.received.tool));
        let wait = planned.filter(|_| held_back.is_none());
        // What may have happened is read while it can be, rather than left until the agent comes back.
        let too_late = wait.is_some_and(|wait| now + wait + ATTEMPT_MS_MIN > call.deadline);
        let wait = wait.filter(|_| !(too_late && call.in_doubt() && can_read_status(call)));
        let doubtful = call.certainty() == Certainty::InDoubt;
        let retry = wait.filter(|_| !too_late).map(|_| earlier as u32 + 1);
        let last_ms = match &compensation {
            Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => retry_after_ms.or(ladder.last_ms),
            _ => retry_after_ms,
        };
        let last_ms = last_ms.max(held_back.and(planned));
        self.emit(
            now,
            Fact::FailureJudged {
                attempt: id.clone(),
                verdict,
                compensation: compensation.as_str().to_owned(),
                rule: origin,
                retry,
                held_back,
            },
        );
        match (compensation, wait) {
            (_, Some(wait)) => self.wait(now, &id.call, wait, purpose),
            (Compensation::RetryWithBackoff(_) | Compensation::Wait(_), None) => {
                self.give_up(now, gates, &id.call, last_ms);
            }
            (Compensation::Reconcile, None) => self.reconcile(now, gates, &id.call),
            // Whoever reviews denials learns of this one, whatever becomes of the doubt.
            (Compensation::EscalateToHuman { queue }, None) if doubtful && verdict == Verdict::PolicyDenied => {
                self.ask(now, &id.call, Subject::Notice, &queue);
                self.reconcile(now, gates, &id.call);
            }
            // The playbook gives up on this attempt; an earlier one is still in doubt.
            (_, None) if doubtful && verdict != Verdict::InDoubt => self.reconcile(now, gates, &id.call),
            (_, None) if doubtful => self.end_in_doubt(now, &id.call),
            (_, None) if verdict == Verdict::Cancelled => self.end_cancelled(now, &id.call),
            (Compensation::DeprecateToolCall, None) => self.end_failed(now, &id.call, Outcome::Deprecated),
            (Compensation::RefreshEvidence, None) => self.refresh_evidence(now, gates, &id.call),
            (Compensation::IssueReversal, None) => self.reverse(now, gates, &id.call),
            (Compensation::EscalateToHuman { queue }, None) => self.escalate(now, gates, &id.call, verdict, &queue),
            (Compensation::Surface | Compensation::FailFast, None) => {
                self.end_failed(now, &id.call, Outcome::Exhausted);
            }
        }
    }

    /// Waits before the next attempt, or ends the call where its deadline does not allow that.
    pub(super) fn wait(&mut self, now: Timestamp, id: &CallId, wait_ms: u64, next: Purpose) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let until = now + wait_ms;
        if until + ATTEMPT_MS_MIN > call.deadline && !matches!(next, Purpose::Status | Purpose::Reverse) {
            return self.end_later(now, id, wait_ms);
        }
        self.emit(now, Fact::WaitBegan { call: id.clone(), until, next });
    }

    /// A person is asked. A denial is final, and what was done is done: of those a person only takes notice.
    fn escalate(&mut self, now: Timestamp, gates: &Gates, id: &CallId, verdict: Verdict, queue: &str) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let purpose = self.next_purpose(id);
        let open = verdict != Verdict::PolicyDenied && allowed(call, purpose, gates, now) && self.can_ask();
        if open {
            return self.ask(now, id, Subject::Resend, queue);
        }
        self.ask(now, id, Subject::Notice, queue);
        self.end_failed(now, id, Outcome::Escalated);
    }

    /// No further send is allowed. What is in doubt is read once more; the rest is over.
    pub(super) fn give_up(&mut self, now: Timestamp, gates: &Gates, id: &CallId, last_ms: Option<u64>) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.in_doubt() {
            return self.reconcile(now, gates, id);
        }
        if call.cancel.is_some() {
            return self.end_cancelled(now, id);
        }
        let breaker = gates.breaker_until(&call.received.upstream, &call.received.tool);
        match last_ms.max(breaker.map(|until| until.since_ms(now))) {
            Some(wait_ms) => self.end_later(now, id, wait_ms),
            None => self.end_failed(now, id, Outcome::Exhausted),
        }
    }

    /// A number that is the same for the same attempt of the same session, and looks like any other.
    pub(super) fn chance(&self, attempt: &AttemptId) -> u64 {
        let mut hash = self.state.seed ^ 0xcbf2_9ce4_8422_2325;
        for byte in attempt.call.as_str().bytes().chain(attempt.n.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash ^= hash >> 30;
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 31)
    }
}

/// Whether another attempt may go out: the contract allows it, and neither the upstream's budget nor a breaker holds it back.
pub(super) fn may_send(call: &CallState, purpose: Purpose, gates: &Gates, now: Timestamp) -> bool {
    allowed(call, purpose, gates, now) && gates.held_back(&call.received.upstream, &call.received.tool).is_none()
}

/// Whether another attempt may go out at all, by the contract, whatever the playbook says.
pub(super) fn allowed(call: &CallState, purpose: Purpose, gates: &Gates, now: Timestamp) -> bool {
    if call.attempts.len() as u32 >= ATTEMPTS_MAX || call.answered || call.cancel.is_some_and(CancelReason::is_wish) {
        return false;
    }
    if now + ATTEMPT_MS_MIN > call.deadline {
        return false;
    }
    if call.cancel.is_some() && !call.in_doubt() {
        return false;
    }
    if purpose != Purpose::Act || !call.in_doubt() {
        return call.effect().is_read() || call.certainty() != Certainty::Processed;
    }
    match call.effect() {
        EffectKind::Read | EffectKind::Idempotent => true,
        EffectKind::Keyed if call.key_age_lost() => false,
        EffectKind::Keyed => {
            let inherited = call.inherits_doubt().then_some(None);
            let mut sent_to = call.doubts().map(|doubt| doubt.run).chain(inherited);
            let run = gates.run(&call.received.upstream);
            sent_to.all(|sent_to| key_holds(call.contract(), call.since(), sent_to, run, now))
        }
        EffectKind::Write => false,
    }
}

/// How often this call was judged so before, for that purpose.
pub(super) fn earlier_judgements(call: &CallState, purpose: Purpose, verdict: Verdict, n: u32) -> usize {
    let same = |end: &super::state::AttemptEnd| end.verdict == Some(verdict);
    call.attempts
        .iter()
        .filter(|attempt| attempt.n != n && attempt.purpose == purpose && attempt.end.as_ref().is_some_and(same))
        .count()
}

/// The wait before the next send: never earlier than the upstream asked, and a little after it.
pub(super) fn next_wait(ladder: &Ladder, earlier: usize, retry_after_ms: Option<u64>, chance: u64) -> Option<u64> {
    let step = ladder.step(earlier, chance)?;
    Some(match retry_after_ms {
        Some(asked) => asked.saturating_add(chance % (asked / 20 + 50)),
        None => step,
    })
}

/// What the playbook says, as far as there is somebody to do it: where nobody declared the tool, nobody looks at a queue.
fn reachable(compensation: &Compensation, call: &CallState) -> Compensation {
    match compensation {
        Compensation::EscalateToHuman { .. } if !call.contract().declared => Compensation::Surface,
        Compensation::EscalateToHuman { .. }
        | Compensation::RefreshEvidence
        | Compensation::IssueReversal
        | Compensation::RetryWithBackoff(_)
        | Compensation::Wait(_)
        | Compensation::Reconcile
        | Compensation::DeprecateToolCall
        | Compensation::Surface
        | Compensation::FailFast => compensation.clone(),
    }
}
