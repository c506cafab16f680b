//! The promises, and how each is held against what really happened.

use std::collections::BTreeMap;
use std::fmt;

use amends_core::interaction::Subject as About;
use amends_core::limits::ATTEMPTS_MAX;
use amends_core::{
    AttemptId, CallId, Certainty, Code, Compensation, Effect, EffectKind, Event, Fact, Purpose, Rules, Step, WhoMustAct,
};

use super::agent::{is_other, is_undoing};
use super::subject::Subject;
use super::told::Told;
use super::upstream::{Done, Upstream};

/// A promise that a drill can see broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A wish takes effect at most once.
    AtMostOnce,
    /// Nothing is sent without its event in the same step.
    IntentFirst,
    /// What an agent is told of the effect is the truth, and doubt is said as doubt.
    ToldTruthfully,
    /// What is called safe to repeat is.
    SafeToRepeat,
    /// Each call ends exactly once.
    OneEnd,
    /// A write is undone at most once, and only what was done.
    TokenedReversals,
    /// A person is asked wherever the agent is told that one settles a doubt.
    PeopleAsked,
    /// Retries keep to their ladder, their deadline, and what the upstream asked for.
    RetriesBounded,
    /// The agent has an answer within its deadline.
    WithinDeadline,
    /// The trace folds to the live state and is decided again in the same way.
    SameDecisions,
    /// What an agent stopped is not sent any more.
    Cancellation,
    /// While a write to an object is under way or in doubt, no other one is sent to it.
    OneObject,
}

impl Promise {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at_most_once",
            Self::IntentFirst => "intent_first",
            Self::ToldTruthfully => "told_truthfully",
            Self::SafeToRepeat => "safe_to_repeat",
            Self::OneEnd => "one_end",
            Self::TokenedReversals => "tokened_reversals",
            Self::PeopleAsked => "people_asked",
            Self::RetriesBounded => "retries_bounded",
            Self::WithinDeadline => "within_deadline",
            Self::SameDecisions => "same_decisions",
            Self::Cancellation => "cancellation",
            Self::OneObject => "one_object",
        }
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which one.
    pub promise: Promise,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.promise.name(), self.what)
    }
}

/// What the judge gives back: nothing, or a broken promise.
pub(super) type Judged = Result<(), Broken>;

pub(super) fn broken(promise: Promise, what: impl Into<String>) -> Judged {
    Err(Broken { promise, what: what.into() })
}

/// What the judge remembers of a call.
#[derive(Debug, Default)]
struct CallView {
    deadline: u64,
    effect_key: String,
    purposes: Vec<Purpose>,
    /// Until when the upstream asked to wait, for each purpose.
    not_before: BTreeMap<Purpose, u64>,
    /// What went wrong with each attempt.
    codes: BTreeMap<u32, Code>,
    ends: u32,
    /// Whether it was sent, and it is not known what became of that.
    unknown: bool,
    stopped: bool,
    asked: bool,
    /// For how long people were waited for.
    people_ms: u64,
    told_nothing: bool,
}

/// The judge of one run.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    subject: &'a Subject,
    calls: BTreeMap<CallId, CallView>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(subject: &'a Subject) -> Self {
        Self { subject, calls: BTreeMap::new() }
    }

    /// What governs a call.
    fn rules(&self, call: &CallId) -> &'a Rules {
        match &self.subject.undo {
            Some(undo) if is_undoing(call) => undo,
            _ => &self.subject.rules,
        }
    }

    /// The key minted for a call's effect.
    pub(super) fn effect_key(&self, call: &CallId) -> String {
        self.calls.get(call).map(|view| view.effect_key.clone()).unwrap_or_default()
    }

    /// When a call's deadline is; people's time does not count.
    pub(super) fn deadline(&self, call: &CallId) -> u64 {
        self.calls.get(call).map_or(0, |view| view.deadline + view.people_ms)
    }

    /// Every send of a step has its event in the step.
    pub(super) fn steps(&self, step: &Step) -> Judged {
        for effect in &step.effects {
            let Effect::Send(attempt) = effect else {
                continue;
            };
            let started =
                |event: &Event| matches!(&event.fact, Fact::AttemptStarted { attempt: id, .. } if *id == attempt.id);
            if !step.events.iter().any(started) {
                return broken(Promise::IntentFirst, format!("{} is sent without an intent", attempt.id));
            }
        }
        Ok(())
    }

    /// An event became durable.
    pub(super) fn durable(&mut self, event: &Event) -> Judged {
        let at = event.at.ms();
        if let Fact::CallReceived { received, .. } = &event.fact {
            let view = CallView {
                deadline: received.deadline.ms(),
                effect_key: received.effect_key.clone(),
                ..CallView::default()
            };
            self.calls.insert(received.call.clone(), view);
            return Ok(());
        }
        if let Fact::InteractionOpened { interaction } = &event.fact
            && let Some(view) = self.calls.get_mut(&interaction.call)
        {
            view.asked = true;
            if interaction.subject == About::Resend {
                view.people_ms = interaction.due.since_ms(interaction.opened);
            }
            return Ok(());
        }
        if let Fact::AttemptStarted { attempt, purpose: Purpose::Act, .. } = &event.fact {
            self.alone_on_its_object(&attempt.call)?;
        }
        let rules = event.fact.call().map_or(&*self.subject.rules, |call| self.rules(call));
        let Some((call, view)) = event.fact.call().and_then(|call| Some((call, self.calls.get_mut(call)?))) else {
            return Ok(());
        };
        view.follow(&event.fact);
        match &event.fact {
            Fact::AttemptStarted { attempt, purpose, .. } => view.starts(attempt, *purpose, at),
            Fact::AttemptEnded { attempt, report, .. } => {
                view.codes.extend(report.failure.as_ref().map(|failure| (attempt.n, failure.code)));
                let asked = report.failure.as_ref().and_then(|failure| failure.retry_after_ms);
                let purpose = view.purposes.get(attempt.n as usize - 1).copied();
                if let Some((asked, purpose)) = asked.zip(purpose) {
                    view.not_before.insert(purpose, at + asked);
                }
                Ok(())
            }
            Fact::AttemptTimedOut { attempt, .. } => {
                view.codes.insert(attempt.n, Code::NetworkTimeout);
                Ok(())
            }
            Fact::AttemptOrphaned { attempt, .. } => {
                view.codes.insert(attempt.n, Code::ConnectionLost);
                Ok(())
            }
            Fact::FailureJudged { attempt, verdict, retry: Some(retry), .. } => {
                let code = view.codes.get(&attempt.n).copied().unwrap_or(Code::ActionError);
                let steps = match &rules.playbook.rule(*verdict, code).compensation {
                    Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => ladder.backoff_ms.len(),
                    _ => 0,
                };
                if *retry as usize > steps {
                    let what = format!("{attempt} is followed by retry {retry} of a ladder with {steps} steps");
                    return broken(Promise::RetriesBounded, what);
                }
                Ok(())
            }
            Fact::CancelRequested { reason, .. } => {
                view.stopped |= reason.is_wish();
                Ok(())
            }
            Fact::CallEnded { .. } | Fact::CallRefused { .. } => {
                view.ends += 1;
                if view.ends > 1 {
                    return broken(Promise::OneEnd, format!("{call} ends {} times", view.ends));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// No call of another agent to the same object is under way or in doubt. What may be repeated without harm is no doubt.
    fn alone_on_its_object(&self, call: &CallId) -> Judged {
        let harmless = self.subject.contract().effect == EffectKind::Idempotent;
        let others = self.calls.iter().filter(|(other, _)| is_other(other) != is_other(call));
        match others.into_iter().find(|(_, view)| view.unknown && !harmless) {
            Some((other, _)) => {
                broken(Promise::OneObject, format!("{call} is sent while it is not known what became of {other}"))
            }
            None => Ok(()),
        }
    }

    /// An answer is given for a call.
    pub(super) fn answers(&mut self, call: &CallId, told: &Told, upstream: &Upstream<'_>) -> Judged {
        let effect = self.rules(call).contract.effect;
        let book = if is_undoing(call) { &upstream.undoings } else { &upstream.book };
        let undone = upstream.undone;
        let Some(view) = self.calls.get_mut(call) else {
            return Ok(());
        };
        let unsettled = told.certainty == Certainty::InDoubt && !told.safe_to_repeat;
        let asks = told.question || view.asked || told.replayed;
        if unsettled && told.who == Some(WhoMustAct::Person) && !asks {
            return broken(Promise::PeopleAsked, "the agent is told that a person settles it, and nobody is asked");
        }
        if effect.is_read() {
            return Ok(());
        }
        let own = |done: &Done| done.call == *call || done.effect_key == view.effect_key;
        match told.certainty {
            Certainty::Processed if book.is_empty() => {
                return broken(Promise::ToldTruthfully, format!("{call} is told that it was done, and it was not"));
            }
            Certainty::NotSent | Certainty::NotProcessed if !told.replayed => {
                view.told_nothing = true;
                if book.iter().any(own) {
                    let what = format!("{call} is told `{}`, and it was done", told.certainty.as_str());
                    return broken(Promise::ToldTruthfully, what);
                }
            }
            _ => {}
        }
        let safe = match told.certainty {
            Certainty::NotSent | Certainty::NotProcessed => true,
            Certainty::Processed => undone > 0,
            Certainty::InDoubt => effect != EffectKind::Write,
        };
        if told.safe_to_repeat && !safe {
            let what = format!("{call} is told `{}` and that it is safe to repeat", told.certainty.as_str());
            return broken(Promise::SafeToRepeat, what);
        }
        Ok(())
    }

    /// Something happened at the upstream.
    pub(super) fn happened(&self, upstream: &Upstream<'_>, adds_up: bool) -> Judged {
        let (book, undone) = (&upstream.book, upstream.undone);
        let effects = book.iter().filter(|done| !is_other(&done.call)).count() as u32;
        let undo = self.subject.undo.as_ref().map(|undo| undo.contract.effect);
        if upstream.undoings.len() > 1 && (undo != Some(EffectKind::Idempotent) || adds_up) {
            let what = format!("one token was redeemed, and it was undone {} times", upstream.undoings.len());
            return broken(Promise::TokenedReversals, what);
        }
        if undone > effects || undone > 1 {
            return broken(Promise::TokenedReversals, format!("{effects} effects were undone {undone} times"));
        }
        let mut all = book.iter().chain(&upstream.undoings);
        if let Some(done) = all.find(|done| self.calls.get(&done.call).is_some_and(|view| view.told_nothing)) {
            let what = format!("{} was told that nothing was done, and then it was", done.call);
            return broken(Promise::ToldTruthfully, what);
        }
        let harmless = self.subject.contract().effect == EffectKind::Idempotent && !adds_up;
        if effects - undone > 1 && !harmless {
            return broken(Promise::AtMostOnce, format!("one wish took effect {effects} times"));
        }
        Ok(())
    }

    /// Everything has happened.
    pub(super) fn over(&self) -> Judged {
        match self.calls.iter().find(|(_, view)| view.ends != 1) {
            Some((call, view)) => broken(Promise::OneEnd, format!("{call} ended {} times", view.ends)),
            None => Ok(()),
        }
    }
}

impl CallView {
    /// What is known of it after that.
    fn follow(&mut self, fact: &Fact) {
        match fact {
            Fact::AttemptStarted { purpose: Purpose::Act, .. } => self.unknown = true,
            Fact::CallEnded { certainty, replayed: false, .. } | Fact::DoubtResolved { certainty, .. } => {
                self.unknown = *certainty == Certainty::InDoubt;
            }
            _ => {}
        }
    }

    fn starts(&mut self, attempt: &AttemptId, purpose: Purpose, at: u64) -> Judged {
        self.purposes.push(purpose);
        let late = matches!(purpose, Purpose::Act | Purpose::Baseline | Purpose::Evidence)
            && at >= self.deadline + self.people_ms;
        if attempt.n > ATTEMPTS_MAX || late {
            let what = format!("{attempt} ({}) begins after its bounds", purpose.as_str());
            return broken(Promise::RetriesBounded, what);
        }
        if self.not_before.get(&purpose).is_some_and(|until| at < *until) {
            return broken(Promise::RetriesBounded, format!("{attempt} is earlier than the upstream asked for"));
        }
        if purpose == Purpose::Act && self.stopped {
            return broken(Promise::Cancellation, format!("{attempt} is sent although the agent stopped the call"));
        }
        Ok(())
    }
}
