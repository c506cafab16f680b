//! The ways a move ends, and what its agent is told.

use serde_json::{Value, json};

use super::next::End;
use super::refuse::not_allowed;
use super::wording::{Known, trouble};
use crate::certainty::Certainty;
use crate::dispatcher::approve::COME_BACK_MS;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::{Budget, CallState, LegState, MoveState, Question, Told, Unwound, WalkState};
use crate::dispatcher::{Dispatcher, Input};
use crate::effect::{Answer, Effect, Reply};
use crate::envelope::{Body, Data, Envelope, Trouble};
use crate::event::Fact;
use crate::failure::bounded;
use crate::id::{CallId, InteractionId, ToolName};
use crate::interaction::{Interaction, InteractionKind, Subject, choice};
use crate::limits::ANSWER_WITHIN_MS;
use crate::machine::Resolution;
use crate::outcome::Outcome;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::{Class, Code};
use crate::time::Timestamp;
use crate::walk::{Left, Part, Weighed};

/// How many calls a person is told of that could not be undone.
const TOLD_MAX: usize = 32;

impl Dispatcher {
    pub(super) fn refuse_move(&mut self, now: Timestamp, of: &CallId, refusal: Refusal) {
        let requested = self.requested(of);
        let error = Box::new(Trouble::refused(&requested, &refusal));
        self.emit(now, Fact::MoveRefused { of: of.clone(), refusal: Box::new(refusal) });
        self.reply_move(of.clone(), Envelope::of(Body::Refused { error }), true);
    }

    /// The move was weighed, and leads somewhere.
    pub(super) fn make_move(&mut self, now: Timestamp) {
        let Some(walk) = &self.state.walk else { return };
        let Some((open, _)) = walk.action() else { return };
        let Some(Weighed::Arrives { arrival }) = open.weighed.clone() else { return };
        let (of, action) = (open.taking.id.clone(), open.taking.action.clone());
        let from = walk.top().1.state.clone();
        let certainty = Certainty::Processed;
        let tried = open.attempt > 1
            || open
                .legs
                .iter()
                .any(|leg| leg.end.as_ref().is_some_and(|end| end.outcome == Outcome::SucceededAfterCompensation));
        let outcome = if tried { Outcome::SucceededAfterCompensation } else { Outcome::Succeeded };
        let legs: Vec<CallId> = open.legs.iter().map(|leg| leg.call.clone()).collect();
        let data = open.passed_over().map_or(Value::Null, |skipped| json!({ "skipped": skipped }));
        let enters = walk.enters();
        let moves = walk.moves.saturating_add(1);
        let made =
            Fact::MoveMade { of: of.clone(), action, moves, from, to: arrival.to, enters, fields: arrival.fields };
        self.emit(now, made);
        // What its calls gave has arrived where it was wanted.
        for leg in legs {
            if self.state.ended.contains_key(&leg) {
                self.delivery(now, leg);
            }
        }
        self.emit(now, Fact::MoveEnded { of: of.clone(), outcome, certainty, not_before: None, granted: false });
        let data = Data::Value(data);
        self.reply_move(of, Envelope::of(Body::Success { outcome, data }), true);
    }

    /// Something that is no move was done.
    pub(super) fn reply_done(&mut self, of: CallId) {
        let (outcome, data) = (Outcome::Succeeded, Data::Value(Value::Null));
        self.reply_move(of, Envelope::of(Body::Success { outcome, data }), true);
    }

    pub(super) fn end_move(&mut self, now: Timestamp, end: End) {
        let Some(walk) = &self.state.walk else { return };
        let Some((open, action)) = walk.action() else { return };
        let of = open.taking.id.clone();
        let certainty = open.certainty();
        if end == End::Granted {
            let granted =
                Fact::MoveEnded { of, outcome: Outcome::Escalated, certainty, not_before: None, granted: true };
            return self.emit(now, granted);
        }
        let end = if open.is_stopped(&end, now) { End::Cancelled } else { end };
        let told = open.answered;
        let settled = certainty != Certainty::InDoubt;
        let resolution = walk.resolution(open, action, &end, now);
        let aborts = resolution == Some(Resolution::AbortWorkflow);
        // What was done and cannot be judged is not forgotten, unless all of it is undone. What only read is just over.
        let late = matches!(end, End::TimedOut { .. } | End::Cancelled) && open.was_done_late();
        let untold = (late || (matches!(end, End::Unclear { .. }) && open.wrote())) && !aborts;
        let known = walk.unsettled.as_ref().is_some_and(|past| past.unclear.is_some());
        let outcome = match &end {
            End::Cancelled if settled && !untold => Outcome::Cancelled,
            End::Failed { .. } | End::NotWell | End::TimedOut { .. } if settled && !untold => Outcome::Exhausted,
            End::Unclear { .. } if settled && !untold => Outcome::Exhausted,
            End::Cancelled
            | End::Failed { .. }
            | End::NotWell
            | End::TimedOut { .. }
            | End::Unclear { .. }
            | End::Granted => Outcome::Unresolved,
        };
        let not_before = match resolution {
            // Later it would be no clearer.
            Some(Resolution::RetryLater { after_ms }) if !untold => Some(now + after_ms),
            Some(Resolution::RetryLater { .. } | Resolution::Skip | Resolution::AbortWorkflow) | None => None,
        };
        // What a person says was not done may still arrive.
        let not_before = not_before.max(walk.postponed_until(open, now));
        let question = open.question.clone().filter(|id| self.state.questions.contains_key(id));
        let quoted = self.quoted(open, &end);
        let given_up = aborts.then(|| walk.deeds.undoing());
        let since = walk.since();
        let settles = self.settles(open.legs.iter());
        let trouble = trouble(open, &end, Known { outcome, not_before, quoted, given_up, settles }, now);
        if let Some(interaction) = question {
            self.emit(now, Fact::InteractionWithdrawn { interaction: interaction.clone() });
            self.step.effects.push(Effect::Withdraw(interaction));
        }
        if untold
            && !known
            && let End::Unclear { why } = &end
        {
            self.tell_unclear(now, why);
        }
        self.emit(now, Fact::MoveEnded { of: of.clone(), outcome, certainty, not_before, granted: false });
        if aborts {
            self.emit(now, Fact::WalkAborted { of: of.clone() });
            self.step.effects.push(Effect::Unwind { of: of.clone(), since });
        }
        if !told {
            let error = Box::new(trouble);
            self.reply_move(of, Envelope::of(Body::Error { outcome: Some(outcome), error }), true);
        }
    }

    /// Tells a person that a move was done of which its machine cannot tell what follows: the machine is to be mended.
    fn tell_unclear(&mut self, now: Timestamp, why: &str) {
        let Some(open) = self.state.open_move().filter(|_| self.can_ask()) else { return };
        let taking = &open.taking;
        let question = format!(
            "take notice: `{}` of `{}` was done, and its machine cannot tell what follows from it: {}",
            taking.action,
            open.machine,
            bounded(why)
        );
        let notice = self.notice(now, &taking.id, "_unclear", ToolName::new(taking.action.as_str()), question);
        let notice = Interaction { principal: taking.principal.clone(), view: taking.view.clone(), ..notice };
        self.put_to_people(now, notice);
    }

    /// What a person is told of a move; they need only say that they have seen it.
    pub(in crate::dispatcher) fn notice(
        &self,
        now: Timestamp,
        of: &CallId,
        what: &str,
        tool: ToolName,
        question: String,
    ) -> Interaction {
        let name = of.as_str().strip_prefix("call_").unwrap_or(of.as_str());
        Interaction {
            id: InteractionId::new(format!("int_{name}{what}")),
            session: self.state.id.clone(),
            call: of.clone(),
            tool,
            principal: self.state.principal().clone(),
            queue: "default".to_owned(),
            kind: InteractionKind::Confirm,
            subject: Subject::Notice,
            question,
            view: None,
            options: vec![choice::SEEN.to_owned()],
            default: choice::SEEN.to_owned(),
            opened: now,
            due: now + ANSWER_WITHIN_MS,
            arrives_by: None,
            grounds: None,
            gives: None,
        }
    }

    pub(in crate::dispatcher) fn put_to_people(&mut self, now: Timestamp, interaction: Interaction) {
        self.emit(now, Fact::InteractionOpened { interaction: Box::new(interaction.clone()) });
        self.step.effects.push(Effect::Ask(Box::new(interaction)));
    }

    /// What is told of the call that failed, where it ended in this step.
    fn quoted(&self, open: &MoveState, end: &End) -> Option<Trouble> {
        let (End::Failed { leg, .. } | End::TimedOut { leg }) = end else { return None };
        let call = &open.legs.get(*leg)?.call;
        self.step.effects.iter().rev().find_map(|effect| match effect {
            Effect::Reply(reply) if reply.call == *call => match &reply.answer {
                Answer::Envelope(envelope) => envelope.error().cloned(),
                Answer::Forward { .. } | Answer::Recorded { .. } | Answer::Asked { .. } => None,
            },
            _ => None,
        })
    }

    /// What could be undone of a walk that was given up is. A person hears of the rest.
    pub(in crate::dispatcher) fn unwound(
        &mut self,
        now: Timestamp,
        of: CallId,
        undone: u32,
        failed: Vec<CallId>,
        mut doubtful: Vec<CallId>,
    ) {
        doubtful.retain(|call| failed.contains(call));
        let walk = self.state.walk.as_ref().filter(|_| self.state.unwinds(&of));
        let (left, more) = match walk.map(|walk| (walk, &walk.unwound)) {
            Some((walk, _)) if walk.unwinding => walk.deeds.left(),
            // Something was undone late: by a result that came when nobody waited for it, by a person's word, with its token.
            Some((_, Some(before))) if before.leads_to(undone, &failed, &doubtful) => {
                (before.left.clone(), before.more)
            }
            _ => return self.ignore(now, format!("nothing is being undone that was given up with `{of}`")),
        };
        let late = walk.is_some_and(|walk| !walk.unwinding);
        self.emit(now, Fact::WalkUnwound { of: of.clone(), undone, failed, doubtful, left, more });
        if late && !self.takes_back_notice(now, &of) {
            // Whoever has seen it knows what to look at.
            return;
        }
        self.tell_unwound(now, &of, late);
    }

    /// The input that corrects what is recorded of a walk that was given up, where something was undone since of what could not be.
    pub fn undone_late(&self, undone: &[CallId]) -> Option<Input> {
        let (of, before) = self.given_up_with()?;
        let calls = before.failed.iter().map(|left| left.call.clone());
        let (since, failed): (Vec<CallId>, Vec<CallId>) = calls.partition(|call| undone.contains(call));
        let undone = before.undone.saturating_add(since.len() as u32);
        let doubtful = before.doubtful.iter().filter(|call| failed.contains(call)).cloned().collect();
        (!since.is_empty()).then_some(Input::Unwound { of, undone, failed, doubtful })
    }

    /// The same where it became known that what was in doubt was not undone.
    pub fn not_undone_late(&self, call: &CallId) -> Option<Input> {
        let (of, before) = self.given_up_with()?;
        let failed: Vec<CallId> = before.failed.iter().map(|left| left.call.clone()).collect();
        let doubtful = before.doubtful.iter().filter(|doubtful| *doubtful != call).cloned().collect();
        let is_news = before.doubtful.contains(call) && failed.contains(call);
        is_news.then_some(Input::Unwound { of, undone: before.undone, failed, doubtful })
    }

    /// The move with which the walk was given up that is undone by now, and how that went.
    fn given_up_with(&self) -> Option<(CallId, &Unwound)> {
        let walk = self.state.walk.as_ref().filter(|walk| !walk.unwinding)?;
        Some((walk.aborted_by.clone()?, walk.unwound.as_ref()?))
    }

    /// Takes back what people were told of what could not be undone; whether they had not seen it yet.
    fn takes_back_notice(&mut self, now: Timestamp, of: &CallId) -> bool {
        let notice =
            |question: &&Question| question.interaction.call == *of && question.interaction.subject == Subject::Notice;
        let Some(notice) = self.state.questions.values().find(notice).map(|asked| asked.interaction.id.clone()) else {
            return false;
        };
        self.emit(now, Fact::InteractionWithdrawn { interaction: notice.clone() });
        self.step.effects.push(Effect::Withdraw(notice));
        true
    }

    /// Tells a person what stays of a walk that was given up.
    fn tell_unwound(&mut self, now: Timestamp, of: &CallId, late: bool) {
        let Some(walk) = self.state.walk.as_ref().filter(|_| self.can_ask()) else { return };
        let Some(unwound) = &walk.unwound else { return };
        let shown = |left: &Left| format!("`{}` ({})", left.tool, left.call);
        let named: Vec<String> = unwound.stays().take(TOLD_MAX).map(shown).collect();
        let doubtful: Vec<String> = unwound.in_doubt().take(TOLD_MAX).map(shown).collect();
        let (undone, stays) = (unwound.undone, unwound.stays().count() + unwound.more as usize);
        if stays == 0 && doubtful.is_empty() {
            return;
        }
        let others = match stays - named.len() {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let mut question = format!("take notice: `{}` was given up; {undone} undone", walk.root);
        if !doubtful.is_empty() {
            let count = unwound.in_doubt().count();
            question.push_str(&format!(", and of {count} nobody knows whether it was undone: {}", doubtful.join(", ")));
        }
        if stays > 0 {
            question.push_str(&format!(", and {stays} could not be undone: {}{others}", named.join(", ")));
        }
        // One that was taken back stays so, so that the next needs a name of its own.
        let name = match (late, unwound.in_doubt().count()) {
            (false, _) => "_undo".to_owned(),
            (true, 0) => format!("_undo_{undone}"),
            (true, doubts) => format!("_undo_{undone}_{doubts}"),
        };
        let notice = self.notice(now, of, &name, ToolName::new(walk.root.as_str()), question);
        if !self.state.questions.contains_key(&notice.id) {
            self.put_to_people(now, notice);
        }
    }

    /// Asks a person whether the move may be made.
    pub(super) fn ask_for_move(&mut self, now: Timestamp) {
        let Some((open, action)) = self.state.walk.as_ref().and_then(WalkState::action) else { return };
        let Some(queue) = action.queue.clone() else { return };
        let taking = &open.taking;
        let question = format!("may `{}` of `{}` be done?", taking.action, open.machine);
        let asked = Interaction {
            principal: taking.principal.clone(),
            queue,
            kind: InteractionKind::Approve,
            subject: Subject::Move,
            view: taking.view.clone(),
            options: vec![choice::APPROVE.to_owned(), choice::DENY.to_owned()],
            default: choice::DENY.to_owned(),
            ..self.notice(now, &taking.id, "", ToolName::new(taking.action.as_str()), question)
        };
        self.put_to_people(now, asked);
    }

    /// The agent waits no longer for a person, who is still being asked about the move or a call of it.
    pub(in crate::dispatcher) fn answer_asking(&mut self, now: Timestamp) {
        if self.state.open_move().is_some_and(|open| open.answered) {
            return;
        }
        let Some((of, envelope)) = self.awaiting(now) else { return };
        self.emit(now, Fact::InterimAnswered { call: of.clone() });
        self.reply_move(of, envelope, false);
    }

    /// Another wish for what a person is being asked about.
    pub(super) fn answer_awaiting(&mut self, now: Timestamp, of: CallId) {
        if let Some((_, envelope)) = self.awaiting(now) {
            self.reply_move(of, envelope, true);
        }
    }

    fn awaiting(&self, now: Timestamp) -> Option<(CallId, Envelope)> {
        let open = self.state.open_move()?;
        let requested = open.taking.action.to_string();
        let mut asked = open.legs.iter().filter(|leg| leg.is_asked()).filter_map(|leg| self.state.calls.get(&leg.call));
        let (what, question) = match asked.next() {
            Some(call) => (format!("`{}` may be called for `{requested}`", call.received.tool), call.asked.clone()),
            None => (format!("`{requested}` may be done"), open.question.clone()),
        };
        let done = open.done_alone();
        let also = match done.is_empty() {
            true => String::new(),
            false => format!("; `{}` was done, and is not done again", done.join("`, `")),
        };
        let doubtful: Vec<&str> =
            self.beside(open).filter(|(_, of)| *of == Certainty::InDoubt).map(|(it, _)| it).collect();
        let unknown = match doubtful.is_empty() {
            true => String::new(),
            false => format!("; whether `{}` happened is not known yet", doubtful.join("`, `")),
        };
        let message = format!(
            "a person is asked whether {what}: tell the user, and do not call again in this turn{also}{unknown}"
        );
        let mut refusal = Refusal::of(RefusalKind::AwaitingPerson, message);
        refusal.recovery.get_or_insert_default().not_before = Some((now + COME_BACK_MS).ms());
        let mut error = Trouble::refused(&requested, &refusal);
        error.interaction = question;
        error.retryable = false;
        error.certainty = self.known_beside(open);
        error.safe_to_repeat = error.certainty != Certainty::InDoubt;
        let body = Body::Error { outcome: None, error: Box::new(error) };
        Some((open.taking.id.clone(), Envelope::of(body)))
    }

    /// What is known of what an open move did: what is made beside a call that waits for a person does not wait.
    fn known_beside(&self, open: &MoveState) -> Certainty {
        let known: Vec<Certainty> = self.beside(open).map(|(_, certainty)| certainty).collect();
        let most = [Certainty::InDoubt, Certainty::Processed, Certainty::NotProcessed];
        most.into_iter().find(|certainty| known.contains(certainty)).unwrap_or(Certainty::NotSent)
    }

    /// The writes of an open move, and what is known of each.
    fn beside<'a>(&'a self, open: &'a MoveState) -> impl Iterator<Item = (&'a str, Certainty)> {
        let writes = open.part(Part::Act).filter(|leg| !leg.reads);
        writes.map(|leg| {
            let call = self.state.calls.get(&leg.call);
            (leg.name.as_str(), call.map_or_else(|| leg.certainty(), CallState::certainty))
        })
    }

    /// A person did not allow the move, or nobody said anything in time.
    pub(in crate::dispatcher) fn deny_move(&mut self, now: Timestamp, of: &CallId, kind: RefusalKind) {
        let Some(open) = self.state.open_move().filter(|open| open.taking.id == *of) else { return };
        let refusal = not_allowed(kind, open.taking.action.as_str());
        if open.answered {
            // The agent was told that a person is asked; it hears the answer when it comes back.
            let ended = Fact::MoveEnded {
                of: of.clone(),
                outcome: Outcome::Refused,
                certainty: Certainty::NotSent,
                not_before: None,
                granted: false,
            };
            return self.emit(now, ended);
        }
        self.refuse_move(now, of, refusal);
    }

    fn reply_move(&mut self, of: CallId, envelope: Envelope, last: bool) {
        let answer = Answer::Envelope(envelope);
        self.step.effects.push(Effect::Reply(Box::new(Reply { call: of, answer, last })));
    }

    fn requested(&self, of: &CallId) -> String {
        let received = self.step.events.iter().rev().find_map(|event| match &event.fact {
            Fact::MoveReceived { taking, .. } if taking.id == *of => Some(taking.action.to_string()),
            _ => None,
        });
        let open = || self.state.open_move().map(|open| open.taking.action.to_string());
        received.or_else(open).unwrap_or_default()
    }
}

impl MoveState {
    /// What is told of a move that was made though it was passed over: why, and what of it was done.
    fn passed_over(&self) -> Option<Value> {
        let tried = || self.last_try().filter(|leg| leg.part != Part::Exit);
        let failed = tried().find_map(|leg| Some((leg, leg.end.as_ref().filter(|end| !end.done())?)));
        let held = self.gated == Some(Weighed::Retry);
        if failed.is_none() && !self.skips && !held {
            return None;
        }
        let done: Vec<&str> = self
            .part(Part::Act)
            .filter(|leg| !leg.reads && leg.certainty() == Certainty::Processed)
            .map(|leg| leg.name.as_str())
            .collect();
        let code = failed.and_then(|(_, end)| end.code);
        let message = match failed {
            Some((leg, end)) => {
                let means =
                    end.refused.map(RefusalKind::means).or(end.code.map(Code::means_upstream)).unwrap_or("It failed.");
                let which = if leg.name == "act" { String::new() } else { format!("`{}`: ", leg.name) };
                format!("it failed and was passed over: {which}{}", means.trim_end_matches('.'))
            }
            None if held => "its `gate` did not let it pass, and it was passed over".to_owned(),
            None if self.part(Part::Act).next().is_some() => "it was done, and passed over by its `assert`".to_owned(),
            None => "it need not be done, as its `gate` says".to_owned(),
        };
        let mut told = json!({ "message": message, "done": done });
        if let Some(code) = code {
            told["code"] = json!(code.as_str());
        }
        Some(told)
    }

    /// What was told of the call of it that is in doubt.
    pub(super) fn doubtful(&self) -> Option<&Told> {
        let mut ends = self.part(Part::Act).filter_map(|leg| leg.end.as_ref());
        ends.find_map(|end| end.told.as_deref().filter(|_| end.certainty == Certainty::InDoubt))
    }

    /// That its time is over, and which time that was.
    pub(super) fn out_of_time(&self) -> String {
        let (action, Budget { ms, of }) = (&self.taking.action, &self.budget);
        let left = of
            .as_ref()
            .map(|(machine, most_ms)| format!(", all that was left of the {most_ms} ms that `{machine}` may take"));
        format!("`{action}` was not done within {ms} ms{}", left.unwrap_or_default())
    }

    /// Whether it ends so because somebody stopped it, and not by itself.
    fn is_stopped(&self, end: &End, now: Timestamp) -> bool {
        self.cancel.is_some_and(CancelReason::is_wish)
            && match end {
                End::Cancelled => true,
                End::Failed { leg, code } => {
                    let broken = self.legs.get(*leg).is_some_and(LegState::is_stopped);
                    broken || code.is_none_or(|code| code.class() == Class::Cancellation)
                }
                End::TimedOut { .. } => now < self.deadline,
                End::NotWell | End::Unclear { .. } | End::Granted => false,
            }
    }
}
