//! What needs a yes is sent only after it, as it was approved, and once.

use amends_core::interaction::{Subject, choice};
use amends_core::{AttemptId, CallId, ClaimState, Digest, Event, Fact, Held, Purpose, SessionId, Yes};

use crate::watch::view::{AttemptView, CallView};
use crate::watch::{Verdicts, Watch};
use crate::world::GRANTED_FOR_MS;

/// How long it takes at most to hand a call in again that the ledger found to be another's.
const HANDED_IN_AGAIN_MS: u64 = 1_000;

/// A yes to a call, and what had been read for it then.
#[derive(Debug)]
pub(crate) struct YesView {
    read: Vec<Digest>,
}

impl Watch {
    /// Nothing that needs a yes acts before it was given, or on something else than was read for it then.
    pub(crate) fn approved_first(&self, attempt: &AttemptId, purpose: Purpose) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call).filter(|view| self.needs_yes(view)) else {
            return Ok(());
        };
        if !matches!(purpose, Purpose::Act | Purpose::Baseline) {
            return Ok(());
        }
        let broken = |what: String| Err(self.broken("approved_first", Some(attempt.call.clone()), what));
        let Some(yes) = self.approved.get(&attempt.call) else {
            return broken(format!("{attempt} is sent, and nobody said yes to it"));
        };
        if self.granted.contains_key(&attempt.call) {
            return broken(format!("{attempt} is sent, and its yes was left for another call"));
        }
        let read = last_read(view);
        let acted = view.acts().next().is_some();
        if !acted && !read.is_empty() && read != yes.read {
            return broken(format!("{attempt} is sent on {read:?}, and was approved on {:?}", yes.read));
        }
        Ok(())
    }

    /// A yes is one that people really gave, to this call or to an equal one of which it is spent.
    pub(crate) fn a_yes_counts(&mut self, session: &SessionId, event: &Event) -> Verdicts {
        let Fact::CallApproved { call, yes, of, .. } = &event.fact else {
            return Ok(());
        };
        let broken = |what: String| Err(self.broken("approved_first", Some(call.clone()), what));
        let Some(view) = self.calls.get(call) else {
            return broken("it is approved, and nobody knows of it".into());
        };
        if self.approved.contains_key(call) {
            return broken("it is approved twice".into());
        }
        match yes {
            Yes::Person => {
                let names = self.said_yes(session, call);
                let persons = usize::from(view.tool.persons());
                if names.len() < persons {
                    return broken(format!("{persons} must say yes, and {names:?} did"));
                }
            }
            Yes::Grant => {
                let Some(given) = of.as_ref().and_then(|of| self.calls.get(of).zip(Some(of))) else {
                    return broken("it spends a yes that was given to nobody".into());
                };
                let (other, of) = given;
                let equal = other.received.tool == view.received.tool
                    && other.received.arguments.digest == view.received.arguments.digest
                    && other.received.principal == view.received.principal;
                // A call that came in time holds the yes from then on; what is read for it before it is sent may take longer.
                let found = view.received.repeat_of.as_ref().is_some_and(|held| held.state == ClaimState::Granted);
                // The ledger vouched that it was good when it was found; to hand the call in again takes a moment.
                let taken = if found { view.at - HANDED_IN_AGAIN_MS } else { event.at };
                let good = self.granted.get(of).is_some_and(|until| taken < *until);
                if !equal || !good || self.spent.contains(of) {
                    return broken(format!("it spends the yes to {of}: equal {equal}, good {good}"));
                }
            }
            Yes::Session | Yes::Arguments | Yes::Headless => {
                return broken(format!(
                    "nobody said yes to more than one call, and it is approved by {}",
                    yes.as_str()
                ));
            }
        }
        let read = last_read(view);
        if *yes == Yes::Grant
            && let Some(of) = of.clone()
        {
            if self.approved.get(&of).is_some_and(|given| given.read != read) {
                return broken(format!("it spends the yes to {of}, which was based on something else"));
            }
            self.spent.insert(of);
        }
        self.approved.insert(call.clone(), YesView { read });
        Ok(())
    }

    /// A yes is left for the next equal call.
    pub(crate) fn leaves_its_yes(&mut self, event: &Event) {
        if let Fact::CallEnded { call, granted: true, .. } = &event.fact {
            self.granted.insert(call.clone(), event.at + GRANTED_FOR_MS);
        }
    }

    /// Whether a person must say yes to a call. One that goes on with another's doubt, under its key, is no second effect.
    fn needs_yes(&self, view: &CallView) -> bool {
        let received = &view.received;
        let doubt = |held: &Held| matches!(held.state, ClaimState::InDoubt | ClaimState::Resumable);
        let goes_on = |held: &Held| doubt(held) && held.effect_key == received.effect_key;
        self.asks_first
            && view.tool.persons() > 0
            && received.redeems.is_none()
            && !received.repeat_of.as_ref().is_some_and(goes_on)
    }

    /// The persons who really said yes to a call, to whom that was put.
    fn said_yes(&self, session: &SessionId, call: &CallId) -> std::collections::BTreeSet<u8> {
        let about = self.questions.iter().filter(|((of, _), question)| of == session && question.is_about(call));
        about.filter_map(|(_, question)| question.counted_yes()).collect()
    }
}

/// What was read last of each piece of a call's evidence.
fn last_read(view: &CallView) -> Vec<Digest> {
    let read = |item: u32| {
        let of = |read: &&AttemptView| read.purpose == Purpose::Evidence && read.item == Some(item);
        let reads = view.attempts.iter().filter(of).filter_map(|read| read.end.as_ref());
        reads.filter_map(|end| Some(end.report.payload.as_ref()?.digest.clone())).next_back()
    };
    (0..view.received.evidence.len() as u32).filter_map(read).collect()
}

impl super::people::QuestionView {
    /// Whether it asks whether that call is sent at all.
    fn is_about(&self, call: &CallId) -> bool {
        self.interaction.call == *call && self.interaction.subject == Subject::Call
    }

    /// Which person's yes it is, where it was answered with one: by how many had said so before.
    fn counted_yes(&self) -> Option<u8> {
        let said = self.answer.as_deref() == Some(choice::APPROVE) && self.first.as_deref() == Some(choice::APPROVE);
        said.then(|| self.interaction.grounds.as_ref().map_or(0, |grounds| grounds.said_yes))
    }
}
