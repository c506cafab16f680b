//! Cancellation reaches the bottom.

use amends_core::{AttemptId, Purpose};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// After the agent asked for a stop no further attempt to act begins.
    pub(crate) fn cancellation(&self, attempt: &AttemptId, purpose: Purpose) -> Verdicts {
        let stopped = self.calls.get(&attempt.call).is_some_and(|view| view.asked_to_stop);
        if stopped && matches!(purpose, Purpose::Act | Purpose::Baseline | Purpose::Evidence) {
            let what = format!("{attempt} begins after the agent asked for a stop");
            return Err(self.broken("cancellation", Some(attempt.call.clone()), what));
        }
        Ok(())
    }
}
