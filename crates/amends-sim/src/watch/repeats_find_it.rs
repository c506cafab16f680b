//! Repeats find the call they repeat.

use amends_core::claim::ClaimState;
use amends_core::{AttemptId, Certainty, EffectKind, Event, Fact, Outcome, Purpose};

use crate::watch::view::CallView;
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A repeat of a write that is in flight, in doubt, or done and not known to be delivered sends nothing, unless it
    /// goes on with the same key.
    pub(crate) fn repeats_find_it(&self, attempt: &AttemptId, purpose: Purpose) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        if purpose == Purpose::Join || attempt.n != 1 || view.effect().is_read() {
            return Ok(());
        }
        let missed = self
            .calls
            .iter()
            .filter(|(call, _)| **call != attempt.call)
            .find(|(_, other)| names_the_same(view, other) && holds(other, view));
        match missed {
            Some((other, _)) => {
                let what = format!("{attempt} is sent although it repeats {other}");
                Err(self.broken("repeats_find_it", Some(attempt.call.clone()), what))
            }
            None => Ok(()),
        }
    }

    /// A replayed answer is the one that the holder got.
    pub(crate) fn replayed_as_recorded(&self, event: &Event) -> Verdicts {
        let Fact::CallEnded { call, outcome, certainty, replayed: true, .. } = &event.fact else {
            return Ok(());
        };
        let held = self.calls.get(call).and_then(|view| view.received.repeat_of.as_ref());
        let holder = held.and_then(|held| self.calls.get(&held.call));
        let end = holder.and_then(|holder| holder.ended.as_ref());
        let first = holder.and_then(|holder| holder.told_first);
        let last = end.map(|end| (end.outcome, end.certainty));
        if [first, last].contains(&Some((*outcome, *certainty))) {
            return Ok(());
        }
        let what = format!("it is given {outcome:?}, its holder got {end:?}");
        Err(self.broken("repeats_find_it", Some(call.clone()), what))
    }
}

/// Whether two calls are named by the same key, or both by the same arguments alone.
fn names_the_same(view: &CallView, other: &CallView) -> bool {
    match (&view.received.key, &other.received.key) {
        (Some(key), Some(others)) => key == others,
        (None, None) => {
            view.received.tool == other.received.tool && view.received.arguments == other.received.arguments
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Whether a call stands in the way of another one.
fn holds(other: &CallView, view: &CallView) -> bool {
    if other.refused || other.is_join() || other.effect().is_read() || other.superseded {
        return false;
    }
    if other.received.effect_key == view.received.effect_key {
        return false;
    }
    let Some(end) = &other.ended else {
        return true;
    };
    if end.outcome == Outcome::Reversed {
        return false;
    }
    let by_key = view.received.key.is_some();
    match end.certainty {
        Certainty::NotSent | Certainty::NotProcessed => false,
        // An error is no answer of what was done: it is given again for as long as one that may not have arrived.
        Certainty::Processed => {
            by_key
                || !other.delivered
                || !matches!(end.outcome, Outcome::Succeeded | Outcome::SucceededAfterCompensation)
        }
        Certainty::InDoubt => match state_in_doubt(other) {
            Some(ClaimState::Complete) => by_key || !other.delivered,
            Some(
                ClaimState::InDoubt
                | ClaimState::Resumable
                | ClaimState::InFlight
                | ClaimState::Awaiting
                | ClaimState::Granted,
            ) => true,
            None => false,
        },
    }
}

fn state_in_doubt(other: &CallView) -> Option<ClaimState> {
    let contract = other.tool.contract();
    match other.effect() {
        EffectKind::Read | EffectKind::Idempotent => None,
        // However long ago: once its key is no longer honoured, only a person can say.
        EffectKind::Keyed => Some(ClaimState::InDoubt),
        EffectKind::Write => {
            // Where nobody declared the tool, an error of the upstream's own leaves it to the agent.
            let answered = other.doubts().all(|doubt| doubt.end.as_ref().is_some_and(|end| end.report.answered));
            let to_the_agent = answered && !contract.declared;
            Some(if to_the_agent { ClaimState::Complete } else { ClaimState::InDoubt })
        }
    }
}
