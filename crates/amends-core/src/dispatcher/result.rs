//! An attempt's result arrives.

use crate::attempt::{Purpose, Report, Suppressed};
use crate::certainty::Certainty;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::answer::Late;
use crate::dispatcher::state::{Phase, Question};
use crate::dispatcher::wording;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::AttemptId;
use crate::interaction::{Interaction, Subject};
use crate::outcome::Outcome;
use crate::reversal::ReversalChange;
use crate::time::Timestamp;

impl Dispatcher {
    pub(super) fn result(&mut self, now: Timestamp, gates: &Gates, attempt: AttemptId, report: Box<Report>) {
        let Some(state) = self.state.attempt(&attempt.call, attempt.n) else {
            return self.late_after_end(now, attempt, report);
        };
        if state.end.is_some() {
            return self.late(now, gates, attempt, report);
        }
        let (purpose, failed) = (state.purpose, report.failure.is_some());
        let (suppressed, inquiry) = (report.suppressed.clone(), report.inquiry.clone());
        self.emit(now, Fact::AttemptEnded { attempt: attempt.clone(), report, gates: gates.clone() });
        for Suppressed { doing, reason } in suppressed {
            self.emit(now, Fact::SuppressedError { doing, reason });
        }
        self.withdraw_inquiries(now, &attempt.call);
        if let Some(inquiry) = inquiry {
            // Whoever must sign in for the call must do so for what is read for it.
            let prepares = matches!(purpose, Purpose::Baseline | Purpose::Evidence) && inquiry.sign_in.is_some();
            if purpose == Purpose::Act || prepares {
                return self.round(now, &attempt, &inquiry);
            }
        }
        match (purpose, failed) {
            (Purpose::Act, false) => self.succeed(now, gates, &attempt),
            (Purpose::Act, true) => self.compensate(now, gates, &attempt),
            (Purpose::Baseline, false) => self.begin_after_baseline(now, gates, &attempt),
            (Purpose::Evidence, false) => self.evidence_was_read(now, gates, &attempt),
            (Purpose::Baseline | Purpose::Evidence, true) => self.compensate(now, gates, &attempt),
            (Purpose::Reverse, false) => self.reversed(now, &attempt.call),
            (Purpose::Reverse, true) => self.reverse_failed(now, &attempt),
            (Purpose::Status, _) => self.status_read(now, gates, &attempt),
            (Purpose::Join, _) => self.joined(now, gates, &attempt),
        }
    }

    /// A result that comes after its call was over. Where that ended in doubt it may tell what became of it: nobody needs to be
    /// asked any more, and whoever repeats the call finds what it gave. Nothing else is done about it.
    fn late_after_end(&mut self, now: Timestamp, attempt: AttemptId, report: Box<Report>) {
        let done = report.failure.is_none() && report.certainty == Certainty::Processed;
        // Only its upstream knows what became of what may have been sent.
        let not_done = report.answered && report.certainty.nothing_happened();
        let certainty = report.certainty;
        let undo = report.undo.clone();
        self.emit(now, Fact::LateResult { attempt: attempt.clone(), report });
        let asks = |question: &&Question| {
            // What one attempt did not do, another one may have done.
            let settles = done || (not_done && question.doubts == [attempt.n]);
            let doubted = question.doubts.contains(&attempt.n);
            question.interaction.subject == Subject::Doubt
                && question.interaction.call == attempt.call
                && settles
                && doubted
        };
        if let Some(question) = self.state.questions.values().find(asks).cloned() {
            let interaction = question.interaction.id.clone();
            self.emit(now, Fact::InteractionWithdrawn { interaction: interaction.clone() });
            self.step.effects.push(Effect::Withdraw(interaction));
            return self.resolve(now, &question, certainty, Some(Late { attempt: &attempt, undo }));
        }
        // Whoever said that it did not happen spoke of what was so by then.
        let said = |said: &&Question| said.interaction.call == attempt.call && said.doubts.contains(&attempt.n);
        if let Some(said) = self.state.refuted.iter().find(said).filter(|_| done).cloned() {
            self.tell_refuted(now, &said);
            return self.resolve(now, &said, certainty, Some(Late { attempt: &attempt, undo }));
        }
        // Nor was anybody about an undoing that may be sent again: what it did is undone all the same.
        let redeeming = self.state.redeeming.get(&attempt.call);
        if let Some(redeems) =
            redeeming.filter(|it| done && it.doubts.contains(&attempt.n)).map(|it| it.redeems.clone())
        {
            let (call, token) = (attempt.call.clone(), redeems.token);
            self.emit(now, Fact::ReversalRedeemed { call: call.clone(), token: token.clone(), of: redeems.call });
            return self.step.reversals.push(ReversalChange::Spend { token, by: call });
        }
        // Nobody was asked about a call that may be made again; its move waits for it all the same.
        if done && self.state.walk.as_ref().is_some_and(|walk| walk.doubts(&attempt)) {
            let (call, by) = (attempt.call.clone(), Some(attempt.clone()));
            let (of, interaction, arrives_by) = (call.clone(), None, None);
            self.emit(now, Fact::DoubtResolved { call: of, certainty, interaction, by, arrives_by });
            self.reply(call, wording::came_late(&attempt, None), true);
        }
    }

    /// Tells a person that what somebody said did not happen did. What was done in its place since was done beside it.
    fn tell_refuted(&mut self, now: Timestamp, said: &Question) {
        let Interaction { call, tool, queue, principal, view, .. } = said.interaction.clone();
        let question =
            format!("take notice: `{tool}` happened after all ({call}), though somebody had said that it did not");
        let notice = self.notice(now, &call, "_after_all", tool, question);
        if self.can_ask() && !self.state.questions.contains_key(&notice.id) {
            self.put_to_people(now, Interaction { queue, principal, view, ..notice });
        }
    }

    /// A result that comes after its attempt was over. While the call is open, a success still proves what happened.
    fn late(&mut self, now: Timestamp, gates: &Gates, attempt: AttemptId, report: Box<Report>) {
        let proves = report.failure.is_none() && report.certainty == Certainty::Processed;
        self.emit(now, Fact::LateResult { attempt: attempt.clone(), report });
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        let doubted = call.doubts().any(|doubt| doubt.n == attempt.n);
        // What is being undone is known to have been done; once more is not another reason to undo it, or to call it done.
        let undoing = call.attempts.iter().any(|attempt| attempt.purpose == Purpose::Reverse);
        if !proves || !doubted || undoing {
            return;
        }
        if let Phase::Attempting(n) = call.phase {
            self.step.effects.push(Effect::Abort(AttemptId { call: attempt.call.clone(), n }));
        }
        let settled =
            Fact::DoubtSettled { call: attempt.call.clone(), certainty: Certainty::Processed, by: attempt.clone() };
        self.emit(now, settled);
        self.end_with_result(now, gates, &attempt, Outcome::SucceededAfterCompensation);
    }

    fn succeed(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId) {
        let first = self.state.calls.get(&attempt.call).is_some_and(|call| call.sends(Purpose::Act) == 1);
        let outcome = if first { Outcome::Succeeded } else { Outcome::SucceededAfterCompensation };
        self.end_with_result(now, gates, attempt, outcome);
    }

    fn begin_after_baseline(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId) {
        let Some(call) = self.state.calls.get(&attempt.call) else {
            return;
        };
        if call.cancel.is_some() {
            return self.end_cancelled(now, &attempt.call);
        }
        if now >= call.deadline {
            return self.end_failed(now, &attempt.call, Outcome::Exhausted);
        }
        self.start(now, gates, &attempt.call, Purpose::Act, None);
    }
}
