//! A person answered.

use crate::attempt::Undo;
use crate::certainty::Certainty;
use crate::claim::{ClaimChange, ClaimKind, ClaimState};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::allowed;
use crate::dispatcher::ending::{ACT_KEPT_MS, KEY_KEPT_MS};
use crate::dispatcher::state::Question;
use crate::dispatcher::wording;
use crate::effect::{Answer, Effect, Reply};
use crate::envelope::ReversalNote;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::interaction::{PersonAnswer, Subject, choice};
use crate::outcome::Outcome;
use crate::refusal::RefusalKind;
use crate::reversal::ReversalChange;
use crate::time::Timestamp;

/// A result that came after its call was over, and shows what became of it.
pub(super) struct Late<'a> {
    pub(super) attempt: &'a AttemptId,
    /// How what it did is undone.
    pub(super) undo: Option<Box<Undo>>,
}

impl Dispatcher {
    pub(super) fn answer(&mut self, now: Timestamp, gates: &Gates, id: InteractionId, mut answer: Box<PersonAnswer>) {
        let Some(question) = self.state.questions.get(&id).cloned() else {
            return self.ignore(now, format!("the question `{id}` is not open"));
        };
        if !question.interaction.options.contains(&answer.choice) {
            return self.ignore(now, format!("`{}` is not an answer to `{id}`", answer.choice));
        }
        if question.interaction.subject == Subject::Notice && answer.at < question.interaction.opened {
            // Equal notices have equal ids.
            return self.ignore(now, format!("the answer to `{id}` was given to an earlier notice like it"));
        }
        if !question.interaction.admits(&answer.by, &answer.choice) {
            return self.ignore(now, format!("the yes of `{}` to `{id}` does not count", answer.by));
        }
        let picked = answer.choice.clone();
        // What was asked for passes by the core: the driver takes it from where the question is.
        answer.content = None;
        self.emit(now, Fact::InteractionAnswered { interaction: id.clone(), answer, gates: gates.clone() });
        let call = question.interaction.call.clone();
        match (question.interaction.subject, picked.as_str()) {
            (Subject::Doubt, choice::HAPPENED) => self.resolve(now, &question, Certainty::Processed, None),
            (Subject::Doubt, _) => self.resolve(now, &question, Certainty::NotProcessed, None),
            (Subject::Resend, choice::APPROVE) => self.resend_approved(now, gates, &call),
            (Subject::Resend, _) => self.end_failed(now, &call, Outcome::Escalated),
            // `walk_on` goes on with it.
            (Subject::Move, choice::APPROVE) | (Subject::Notice, _) => {}
            (Subject::Move, _) => self.deny_move(now, &call, RefusalKind::ApprovalDenied),
            (Subject::SignIn, choice::DONE) => self.signed_in(now, gates, &call),
            (Subject::SignIn, _) => self.not_signed_in(now, &call, RefusalKind::ApprovalDenied),
            (Subject::Call, picked) if question.interaction.is_yes(picked) => self.said_yes(now, gates, &call, id),
            (Subject::Call, _) => self.say_no(now, &call, RefusalKind::ApprovalDenied),
        }
    }

    /// A person says what became of a call that ended in doubt, or a late result of that attempt shows it: its claims go where
    /// they would have gone.
    pub(super) fn resolve(&mut self, now: Timestamp, question: &Question, certainty: Certainty, by: Option<Late<'_>>) {
        let (call, interaction) = (question.interaction.call.clone(), Some(question.interaction.id.clone()));
        let happened = certainty == Certainty::Processed;
        // It has not happened so far. While what was sent can still arrive, it may. Its own answer says that it did.
        let arrives_by = question.interaction.arrives_by.filter(|at| !happened && now < *at && by.is_none());
        let kept_ms = match &self.state.walk {
            Some(walk) if walk.is_act(&call) => ACT_KEPT_MS,
            _ => KEY_KEPT_MS,
        };
        let (by_late, of) = (by.as_ref().map(|late| late.attempt.clone()), call.clone());
        self.emit(now, Fact::DoubtResolved { call: of, certainty, interaction, by: by_late, arrives_by });
        for claim in &question.claims {
            let (name, call) = (claim.name.clone(), call.clone());
            let change = if happened && claim.kind != ClaimKind::Object {
                // A call outside of moves may be equal to one of theirs, and is not meant for as long.
                let kept_ms = if claim.kind == ClaimKind::Key { kept_ms } else { KEY_KEPT_MS };
                ClaimChange::Settle { name, call, state: ClaimState::Complete, until: Some(now + kept_ms) }
            } else if let Some(until) = arrives_by {
                ClaimChange::Settle { name, call, state: ClaimState::InDoubt, until: Some(until) }
            } else {
                ClaimChange::Release { name, call }
            };
            self.step.claims.push(change);
        }
        let mut note = None;
        if let Some(token) = question.reversal.clone() {
            let undo = by.as_ref().and_then(|late| late.undo.as_deref()).filter(|_| happened);
            if let Some(Undo { tool, within_ms }) = undo {
                let until = now + *within_ms;
                note = Some(ReversalNote { token: String::new(), tool: tool.clone(), until });
                self.emit(now, Fact::ReversalArmed { call: call.clone(), token: token.clone(), until });
                self.step.reversals.push(ReversalChange::Arm { token, until });
            } else {
                // What a person saw happen left no result from which it could be undone.
                self.emit(now, Fact::ReversalVoided { call: call.clone(), token: token.clone() });
                self.step.reversals.push(ReversalChange::Void { token });
            }
        }
        if let Some(redeems) = &question.redeems {
            let token = redeems.token.clone();
            if happened {
                let of = redeems.call.clone();
                self.emit(now, Fact::ReversalRedeemed { call: call.clone(), token: token.clone(), of });
                self.step.reversals.push(ReversalChange::Spend { token, by: call.clone() });
            } else {
                self.step.reversals.push(ReversalChange::Rearm { token, by: call.clone() });
            }
        }
        if happened {
            let answer = match by {
                Some(late) => wording::came_late(late.attempt, note),
                None => Answer::Envelope(wording::settled_by_person()),
            };
            self.step.effects.push(Effect::Reply(Box::new(Reply { call, answer, last: true })));
        }
    }

    /// A person wants the call sent again. Nobody waits for it any more once the agent has its answer.
    fn resend_approved(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let next = self.next_purpose(id);
        // What a person asks for is no retry of ours: neither the budget nor a breaker holds it back.
        if call.cancel.is_some() || !allowed(call, next, gates, now) {
            return self.end_failed(now, id, Outcome::Escalated);
        }
        let last = call.attempts.last().and_then(|attempt| attempt.end.as_ref());
        let asked = last.and_then(|end| Some(end.at + end.report.failure.as_ref()?.retry_after_ms?));
        if let Some(at) = asked.filter(|at| *at > now) {
            // A person does not speak for the upstream, which asked for time.
            return self.wait(now, id, at.since_ms(now), next);
        }
        self.start(now, gates, id, next, None);
    }
}
