//! Undoing what a call did, with its token.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::compensation::Compensation;
use crate::contract::EffectKind;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::{earlier_judgements, next_wait};
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::interaction::Subject;
use crate::limits::ATTEMPTS_MAX;
use crate::outcome::Outcome;
use crate::reversal::ReversalChange;
use crate::time::Timestamp;
use crate::verdict::Verdict;

impl Dispatcher {
    /// Undoes a call that was done. Without a token, or where nothing was done, that is refused and said.
    pub(super) fn reverse(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let token = call.received.reversal.clone().filter(|_| call.contract().reverse.is_some());
        let done = call.certainty() == Certainty::Processed;
        let (Some(token), true, Some(reverse)) = (token, done, call.contract().reverse.as_ref()) else {
            let reason = if done { "there is no token for it" } else { "nothing was done that could be undone" };
            let outcome = if done { Outcome::Deprecated } else { Outcome::Exhausted };
            self.emit(now, Fact::ReversalRefused { call: id.clone(), reason: reason.to_owned() });
            return self.end_failed(now, id, outcome);
        };
        let until = now + reverse.within_ms;
        self.emit(now, Fact::ReversalArmed { call: id.clone(), token: token.clone(), until });
        self.step.reversals.push(ReversalChange::Arm { token: token.clone(), until });
        self.step.reversals.push(ReversalChange::Redeem { token, by: id.clone(), over: None });
        self.start(now, gates, id, Purpose::Reverse, None);
    }

    /// The undoing worked.
    pub(super) fn reversed(&mut self, now: Timestamp, id: &CallId) {
        let Some(token) = self.state.calls.get(id).and_then(|call| call.received.reversal.clone()) else {
            return;
        };
        self.emit(now, Fact::ReversalRedeemed { call: id.clone(), token: token.clone(), of: id.clone() });
        self.step.reversals.push(ReversalChange::Spend { token, by: id.clone() });
        self.end_failed(now, id, Outcome::Reversed);
    }

    /// The undoing failed. It is tried again only where it surely did nothing; what may have undone it is for a person.
    pub(super) fn reverse_failed(&mut self, now: Timestamp, id: &AttemptId) {
        let Some(call) = self.state.calls.get(&id.call) else {
            return;
        };
        let Some((end, failure)) = self
            .state
            .attempt(&id.call, id.n)
            .and_then(|attempt| attempt.end.as_ref())
            .and_then(|end| Some((end, end.report.failure.as_ref()?)))
        else {
            return;
        };
        let nothing = end.certainty.nothing_happened();
        let verdict = Verdict::judge(failure.code, end.certainty, EffectKind::Write);
        let rule = call.rules().playbook.rule(verdict, failure.code);
        let earlier = earlier_judgements(call, Purpose::Reverse, verdict, id.n);
        let wait = match &rule.compensation {
            Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder)
                if nothing && (call.attempts.len() as u32) < ATTEMPTS_MAX =>
            {
                next_wait(ladder, earlier, failure.retry_after_ms, self.chance(id))
            }
            _ => None,
        };
        let reason = format!("undoing it failed ({})", failure.code.kind());
        let judged = Fact::FailureJudged {
            attempt: id.clone(),
            verdict,
            compensation: if wait.is_some() { rule.compensation.as_str() } else { "surface" }.to_owned(),
            rule: rule.origin,
            retry: wait.map(|_| earlier as u32 + 1),
            held_back: None,
        };
        let token = call.received.reversal.clone();
        let queue = call.contract().queue().to_owned();
        let declared = call.contract().declared;
        self.emit(now, judged);
        if let Some(wait) = wait {
            return self.wait(now, &id.call, wait, Purpose::Reverse);
        }
        self.emit(now, Fact::ReversalRefused { call: id.call.clone(), reason });
        match token {
            Some(token) if nothing => {
                self.step.reversals.push(ReversalChange::Rearm { token, by: id.call.clone() });
            }
            _ if declared => self.ask(now, &id.call, Subject::Notice, &queue),
            _ => {}
        }
        self.end_failed(now, &id.call, Outcome::Deprecated);
    }

    /// What becomes of a call's token, and of the one it redeems, when the call ends.
    pub(super) fn settle_tokens(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let certainty = call.certainty();
        let sent = call.acts().next().is_some();
        let undoing = call.attempts.iter().any(|attempt| attempt.purpose == Purpose::Reverse);
        let own = call.received.reversal.clone().filter(|_| sent && !undoing);
        let within_ms = call.contract().reverse.as_ref().map(|reverse| reverse.within_ms);
        let redeems = call.received.redeems.clone();
        if let (Some(token), Some(within_ms)) = (own, within_ms) {
            match certainty {
                Certainty::Processed => {
                    let until = now + within_ms;
                    self.emit(now, Fact::ReversalArmed { call: id.clone(), token: token.clone(), until });
                    self.step.reversals.push(ReversalChange::Arm { token, until });
                }
                Certainty::NotSent | Certainty::NotProcessed => {
                    self.emit(now, Fact::ReversalVoided { call: id.clone(), token: token.clone() });
                    self.step.reversals.push(ReversalChange::Void { token });
                }
                // Never while it is in doubt.
                Certainty::InDoubt => {}
            }
        }
        if let Some(redeems) = redeems {
            let (token, by) = (redeems.token, id.clone());
            match certainty {
                Certainty::Processed => {
                    let fact = Fact::ReversalRedeemed { call: id.clone(), token: token.clone(), of: redeems.call };
                    self.emit(now, fact);
                    self.step.reversals.push(ReversalChange::Spend { token, by });
                }
                Certainty::NotSent | Certainty::NotProcessed => {
                    self.step.reversals.push(ReversalChange::Rearm { token, by });
                }
                Certainty::InDoubt => {}
            }
        }
    }
}
