//! What is said of an effect is the truth, and stays it.

use amends_core::{Answer, CallId, Certainty, Event, Fact, Outcome, Reply};

use crate::upstream::{Book, Done};
use crate::watch::view::AttemptView;
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A call that ended as done is in the book; one that ended as not done is not, and never will be.
    pub(crate) fn truthful_end(&mut self, event: &Event, book: &Book) -> Verdicts {
        let Fact::CallEnded { call, outcome, certainty, replayed, .. } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        if view.effect().is_read() || *replayed {
            return Ok(());
        }
        let key = view.received.effect_key.clone();
        let succeeded = matches!(outcome, Outcome::Succeeded | Outcome::SucceededAfterCompensation);
        self.outcome_fits(call, *outcome, *certainty)?;
        if succeeded && view.undoings().any(|undoing| !nothing_happened(undoing)) {
            let what = "it is said to have succeeded, and may have been undone".into();
            return Err(self.broken("truthful", Some(call.clone()), what));
        }
        let undone = book.done().iter().any(|done| done.undoes.as_ref() == Some(call));
        if *outcome == Outcome::Reversed && !undone {
            let what = "it is said to have been undone, and was not".into();
            return Err(self.broken("truthful", Some(call.clone()), what));
        }
        if succeeded {
            self.holds(call, &key, Certainty::Processed, book)?;
        }
        self.holds(call, &key, *certainty, book)?;
        if certainty.nothing_happened() {
            self.never.insert(key, call.clone());
        }
        Ok(())
    }

    /// What a person said of a call is the truth, and stays it.
    pub(crate) fn truthful_resolution(&mut self, event: &Event, book: &Book) -> Verdicts {
        let Fact::DoubtResolved { call, certainty, .. } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let (key, superseded) = (view.received.effect_key.clone(), view.superseded);
        self.holds(call, &key, *certainty, book)?;
        if certainty.nothing_happened() && !superseded {
            self.never.insert(key, call.clone());
        }
        Ok(())
    }

    /// A call that was refused did nothing, and never will.
    pub(crate) fn truthful_refusal(&mut self, call: &CallId, book: &Book) -> Verdicts {
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        if view.received.repeat_of.is_some() {
            // The call it repeats may have done it; the refusal speaks of this one alone.
            return Ok(());
        }
        let key = view.received.effect_key.clone();
        self.holds(call, &key, Certainty::NotSent, book)?;
        self.never.insert(key, call.clone());
        Ok(())
    }

    /// What an envelope says of an effect is the truth.
    pub(crate) fn truthful_envelope(&self, reply: &Reply, book: &Book) -> Verdicts {
        let Some(view) = self.calls.get(&reply.call) else {
            return Ok(());
        };
        let Answer::Envelope(envelope) = &reply.answer else {
            return Ok(());
        };
        let Some(error) = envelope.error().filter(|_| !view.effect().is_read() && !view.refused) else {
            return Ok(());
        };
        let key = &view.received.effect_key;
        let undone = view.ended.as_ref().is_some_and(|end| end.outcome == Outcome::Reversed);
        if error.safe_to_repeat && error.certainty == Certainty::Processed && !undone {
            let what = "it was done, and is called safe to repeat".into();
            return Err(self.broken("truthful", Some(reply.call.clone()), what));
        }
        self.holds(&reply.call, key, error.certainty, book)
    }

    /// What was proven not to have happened does not happen later.
    pub(crate) fn never_again(&self, done: &Done) -> Verdicts {
        match self.never.get(&done.effect_key) {
            Some(call) => {
                let what =
                    format!("it was said that {} never happens, and {}/{} did it", done.effect_key, done.call, done.n);
                Err(self.broken("truthful", Some(call.clone()), what))
            }
            None => Ok(()),
        }
    }

    fn holds(&self, call: &CallId, key: &str, certainty: Certainty, book: &Book) -> Verdicts {
        let happened = book.has(key);
        let lie = match certainty {
            Certainty::Processed => !happened,
            Certainty::NotSent | Certainty::NotProcessed => happened,
            Certainty::InDoubt => false,
        };
        if lie {
            let what = format!("it is said to be {certainty:?}; in the book: {happened}");
            return Err(self.broken("truthful", Some(call.clone()), what));
        }
        Ok(())
    }

    /// An outcome does not contradict what is known of the effect.
    fn outcome_fits(&self, call: &CallId, outcome: Outcome, certainty: Certainty) -> Verdicts {
        let fits = match outcome {
            Outcome::Succeeded | Outcome::SucceededAfterCompensation => certainty == Certainty::Processed,
            Outcome::Unresolved => certainty == Certainty::InDoubt,
            Outcome::Cancelled | Outcome::Refused => certainty.nothing_happened(),
            Outcome::Exhausted => certainty != Certainty::Processed,
            Outcome::Deprecated | Outcome::Escalated | Outcome::Reversed => true,
        };
        if fits {
            return Ok(());
        }
        let what = format!("it ends {outcome:?} and {certainty:?}");
        Err(self.broken("truthful", Some(call.clone()), what))
    }
}

fn nothing_happened(attempt: &AttemptView) -> bool {
    attempt.end.as_ref().is_some_and(|end| end.certainty.nothing_happened())
}
