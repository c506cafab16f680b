//! People are asked what only they can tell, their first answer counts, once, and their time is not the tool's.

use amends_core::interaction::{Interaction, Subject, choice};
use amends_core::limits::KEY_MARGIN_MS;
use amends_core::{CallId, Certainty, EffectKind, Event, Fact, InteractionId, Purpose, SessionId};

use crate::queue::Place;
use crate::watch::view::CallView;
use crate::watch::{Verdicts, Watch};

/// A question, as the durable events tell.
#[derive(Debug)]
pub(crate) struct QuestionView {
    pub(super) interaction: Interaction,
    lapsed: bool,
    withdrawn: bool,
    /// What was recorded as the answer.
    pub(super) answer: Option<String>,
    /// What the first person really answered.
    pub(super) first: Option<String>,
}

impl QuestionView {
    fn is_open(&self) -> bool {
        let over = self.lapsed && self.interaction.subject != Subject::Doubt;
        self.answer.is_none() && !self.withdrawn && !over
    }
}

impl Watch {
    /// Whether a question can be answered.
    pub(crate) fn is_open(&self, place: &Place) -> bool {
        self.questions.get(place).is_some_and(QuestionView::is_open)
    }

    /// A person answers; only the first answer counts.
    pub(crate) fn answers(&mut self, place: &Place, choice: &str) {
        if let Some(question) = self.questions.get_mut(place) {
            question.first.get_or_insert_with(|| choice.to_owned());
        }
    }

    /// Each question has one end: the first answer, its own default, or being taken back. A doubt without an answer in time
    /// can still get one.
    pub(crate) fn one_answer(&mut self, session: &SessionId, event: &Event) -> Verdicts {
        if let Fact::InteractionOpened { interaction } = &event.fact {
            return self.opens(session, interaction);
        }
        let id = match &event.fact {
            Fact::InteractionAnswered { interaction, .. }
            | Fact::InteractionLapsed { interaction, .. }
            | Fact::InteractionWithdrawn { interaction } => interaction,
            _ => return Ok(()),
        };
        let place = (session.clone(), id.clone());
        let question = self.questions.get(&place);
        let call = question.map(|question| question.interaction.call.clone());
        let broken = |what: String| Err(self.broken("people", call.clone(), what));
        let Some(question) = question.filter(|question| question.is_open()) else {
            return broken(format!("`{id}` is not open, and there is {:?}", event.fact));
        };
        match &event.fact {
            Fact::InteractionAnswered { answer, .. } if question.first.as_ref() != Some(&answer.choice) => {
                return broken(format!("`{}` counts, the first answer is {:?}", answer.choice, question.first));
            }
            Fact::InteractionLapsed { default, .. }
                if question.lapsed
                    || event.at < question.interaction.due
                    || *default != question.interaction.default =>
            {
                return broken(format!("`{id}` lapses with `{default}`: {question:?}"));
            }
            _ => {}
        }
        self.shift_deadline(&place, event);
        if let Some(question) = self.questions.get_mut(&place) {
            match &event.fact {
                Fact::InteractionAnswered { answer, .. } => question.answer = Some(answer.choice.clone()),
                Fact::InteractionLapsed { .. } => question.lapsed = true,
                _ => question.withdrawn = true,
            }
        }
        Ok(())
    }

    fn opens(&mut self, session: &SessionId, interaction: &Interaction) -> Verdicts {
        let place = (session.clone(), interaction.id.clone());
        let twice = self.open_about(&interaction.call, interaction.subject).next().is_some();
        if twice || self.is_open(&place) {
            let what = format!("`{}` is asked while the same is asked", interaction.id);
            return Err(self.broken("people", Some(interaction.call.clone()), what));
        }
        let interaction = interaction.clone();
        let question = QuestionView { interaction, lapsed: false, withdrawn: false, answer: None, first: None };
        self.questions.insert(place, question);
        Ok(())
    }

    /// What a person took is added to what the agent gives the call, unless the agent has its answer.
    fn shift_deadline(&mut self, place: &Place, event: &Event) {
        let Some(question) = self.questions.get(place) else {
            return;
        };
        let kept =
            matches!(event.fact, Fact::InteractionLapsed { .. }) && question.interaction.subject == Subject::Doubt;
        let waited = event.at.since_ms(question.interaction.opened);
        if matches!(event.fact, Fact::InteractionWithdrawn { .. }) || kept {
            return;
        }
        let call = self.calls.get_mut(&question.interaction.call);
        if let Some(view) = call.filter(|view| view.is_open() && !view.interim) {
            view.deadline = view.deadline + waited;
        }
    }

    /// A declared write of which only a person can tell what became has one open question when it ends.
    pub(crate) fn asks_a_person(&self, session: &SessionId, event: &Event) -> Verdicts {
        let Fact::CallEnded { call, certainty: Certainty::InDoubt, replayed: false, .. } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let open = self.open_about(call, Subject::Doubt).filter(|(asked, _)| *asked == session).count();
        if needs_person(view) != (open == 1) {
            let what = format!("it ends in doubt with {open} questions about it");
            return Err(self.broken("people", Some(call.clone()), what));
        }
        Ok(())
    }

    /// What a person says of a call is what is recorded of it, and nothing else settles a doubt after the end but the result of
    /// an attempt that was in doubt.
    pub(crate) fn resolved_by_answer(&self, session: &SessionId, event: &Event) -> Verdicts {
        let Fact::DoubtResolved { call, certainty, interaction, by, .. } = &event.fact else {
            return Ok(());
        };
        if let Some(by) = by {
            let heard = self.heard.get(by).map(|report| (report.certainty, report.failure.is_none()));
            let tells = match certainty {
                Certainty::Processed => heard == Some((*certainty, true)),
                Certainty::NotSent | Certainty::NotProcessed => heard.is_some_and(|(heard, _)| heard == *certainty),
                Certainty::InDoubt => false,
            };
            let open = self.open_about(call, Subject::Doubt).next().is_some();
            if by.call != *call || !tells || open {
                let what = format!("it is settled as {certainty:?} by {by}, which says {heard:?}; still asked: {open}");
                return Err(self.broken("people", Some(call.clone()), what));
            }
            return Ok(());
        }
        let question = interaction.as_ref().and_then(|id| self.questions.get(&(session.clone(), id.clone())));
        let said = question.and_then(|question| question.answer.as_deref());
        let means = match said {
            Some(choice::HAPPENED) => Some(Certainty::Processed),
            Some(choice::DID_NOT_HAPPEN) => Some(Certainty::NotProcessed),
            _ => None,
        };
        if means != Some(*certainty) || question.is_none_or(|question| question.interaction.call != *call) {
            let what = format!("it is settled as {certainty:?}, the answer is {said:?}");
            return Err(self.broken("people", Some(call.clone()), what));
        }
        Ok(())
    }

    /// A call about which a person was asked whether it is sent again is sent again only when they said so, with the time
    /// it had left when they were asked.
    pub(crate) fn approved_before_resend(&self, session: &SessionId, event: &Event) -> Verdicts {
        let Fact::AttemptStarted { attempt, purpose, deadline, .. } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        if !matches!(purpose, Purpose::Act | Purpose::Baseline | Purpose::Evidence) {
            return Ok(());
        }
        let broken = |what: String| Err(self.broken("people", Some(attempt.call.clone()), what));
        let asked = |(place, question): &(&Place, &QuestionView)| {
            let about = question.interaction.call == attempt.call && question.interaction.subject == Subject::Resend;
            about && place.0 == *session
        };
        let no = |question: &QuestionView| question.answer.as_deref() != Some(choice::APPROVE);
        if let Some((place, _)) = self.questions.iter().filter(asked).find(|(_, question)| no(question)) {
            return broken(format!("{attempt} is sent although nobody approved `{}`", place.1));
        }
        let allowed = (event.at + view.tool.contract().timeout_ms).min(view.deadline);
        if *deadline != allowed {
            return broken(format!("{attempt} may take until {deadline:?}, the call has until {allowed:?}"));
        }
        Ok(())
    }

    /// When everything has happened, no answer that came in time is without its effect.
    pub(crate) fn every_answer_counted(&self) -> Verdicts {
        let lost = |question: &&QuestionView| question.first.is_some() && question.is_open();
        match self.questions.values().find(lost) {
            Some(question) => {
                let what = format!("`{}` was answered, and the answer is lost", question.interaction.id);
                Err(self.broken("people", Some(question.interaction.call.clone()), what))
            }
            None => Ok(()),
        }
    }

    /// Whether a person is asked what became of a call, and has time left to say so.
    pub(crate) fn is_asked_about(&self, call: &CallId) -> bool {
        let in_time = |(session, id): (&SessionId, &InteractionId)| {
            self.questions.get(&(session.clone(), id.clone())).is_some_and(|question| !question.lapsed)
        };
        self.open_about(call, Subject::Doubt).any(in_time)
    }

    fn open_about<'a>(
        &'a self,
        call: &'a CallId,
        subject: Subject,
    ) -> impl Iterator<Item = (&'a SessionId, &'a InteractionId)> {
        let about = move |question: &QuestionView| {
            question.interaction.call == *call && question.interaction.subject == subject && question.is_open()
        };
        self.questions.iter().filter(move |(_, question)| about(question)).map(|((session, id), _)| (session, id))
    }
}

/// Whether only a person can tell what became of a call that ended in doubt.
fn needs_person(view: &CallView) -> bool {
    let contract = view.tool.contract();
    let repeatable = match view.effect() {
        EffectKind::Read | EffectKind::Idempotent => true,
        EffectKind::Keyed => {
            contract.key.as_ref().is_some_and(|key| key.durable && known_on_return(view, key.window_ms))
        }
        EffectKind::Write => false,
    };
    contract.declared && !repeatable
}

/// Whether an upstream still knows a call's key when an agent that waits as it was asked to comes back.
fn known_on_return(view: &CallView, window_ms: u64) -> bool {
    let since = view.received.repeat_of.as_ref().map_or(view.at, |held| held.since);
    let acts = view.attempts.iter().rev().filter(|attempt| attempt.purpose == Purpose::Act);
    let back = acts.filter_map(|act| act.end.as_ref()).next().map_or(view.at, |end| {
        let asked = end.report.failure.as_ref().and_then(|failure| failure.retry_after_ms);
        end.at + asked.unwrap_or_default()
    });
    back.since_ms(since) + view.tool.contract().request_life_ms() + KEY_MARGIN_MS < window_ms
}
