//! What nobody knows of what a move did.

use amends_core::walk::Part;
use amends_core::{CallId, Certainty};

use super::{MoveView, Told};
use crate::watch::Watch;
use crate::watch::view::{CallView, EndView};

impl Watch {
    /// Whether something that a move did is still in doubt.
    pub(super) fn in_doubt(&self, of: &CallId) -> bool {
        self.doubtful_acts(of).next().is_some()
    }

    /// The same, unless a call that went on with the key of what it did has found out that nothing was, or an equal wish was told since
    /// that it was.
    pub(super) fn may_have_been_done(&self, of: &CallId) -> bool {
        if self.was_told(of) {
            return false;
        }
        let not_done = |end: &EndView| end.certainty == Certainty::NotProcessed;
        self.doubtful_acts(of).any(|call| {
            // One that went on with its key speaks for both: by what it was answered, or by what a person said where it sent nothing.
            let mut same = self.calls.values().filter(|other| other.received.effect_key == call.received.effect_key);
            !same.any(|other| !other.refused && other.ended.as_ref().is_some_and(not_done))
        })
    }

    /// Whether a later equal wish of its walk was told that it was done. Moves are named in their order.
    fn was_told(&self, of: &CallId) -> bool {
        let Some(first) = self.moves.get(of) else { return false };
        let equal = |view: &MoveView| view.session == first.session && view.fingerprint == first.fingerprint;
        let told = |view: &MoveView| view.told == Told::Ended(Certainty::Processed);
        self.moves.iter().any(|(id, view)| id > of && equal(view) && told(view))
    }

    fn doubtful_acts(&self, of: &CallId) -> impl Iterator<Item = &CallView> {
        let acts = self.moves.get(of).into_iter().flat_map(|view| &view.legs).filter(|(leg, _)| leg.part == Part::Act);
        acts.filter_map(|(_, call)| self.calls.get(call)).filter(|call| {
            let doubtful = call.ended.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt);
            !call.refused && !call.effect().is_read() && doubtful
        })
    }

    /// Whether somebody still finds out what a move did.
    pub(super) fn settling(&self, of: &CallId) -> bool {
        let acts = self.moves.get(of).into_iter().flat_map(|view| &view.legs).filter(|(leg, _)| leg.part == Part::Act);
        acts.map(|(_, call)| call)
            .any(|call| self.calls.get(call).is_some_and(CallView::is_open) || self.is_asked_about(call))
    }
}
