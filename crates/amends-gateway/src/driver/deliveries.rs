//! Answers on their way out. What became of one is known to us a moment before it is on the ledger; an equal call that
//! comes in that moment must not be taken for a repeat of what its agent has read.

use std::collections::HashMap;
use std::sync::Arc;

use amends_core::CallId;
use tokio::sync::watch;

/// The answers that have begun to leave and whose fate is not on the ledger yet.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    leaving: HashMap<CallId, u64>,
}

/// A moment in the order in which answers begin to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// One answer that is leaving. Dropped once its fate is on the ledger, or will never be.
#[derive(Debug)]
pub(crate) struct Leaving {
    call: CallId,
    deliveries: Arc<Deliveries>,
}

impl Deliveries {
    /// The answer of that call begins to leave.
    pub(crate) fn begin(self: &Arc<Self>, call: &CallId) -> Leaving {
        self.state.send_modify(|state| {
            state.begun += 1;
            state.leaving.insert(call.clone(), state.begun);
        });
        Leaving { call: call.clone(), deliveries: self.clone() }
    }

    /// This moment: what has begun to leave may have been read by now.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.state.borrow().begun)
    }

    /// Whether the answer of that call can have been read before that moment: it had begun to leave, or is gone by now.
    pub(crate) fn may_precede(&self, call: &CallId, moment: Moment) -> bool {
        self.state.borrow().leaving.get(call).is_none_or(|begun| *begun <= moment.0)
    }

    /// Waits until the fate of that call's answer is on the ledger, as far as it ever will be.
    pub(crate) async fn settled(&self, call: &CallId) {
        // The sender lives as long as we do.
        let _ = self.state.subscribe().wait_for(|state| !state.leaving.contains_key(call)).await;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.deliveries.state.send_modify(|state| {
            state.leaving.remove(&self.call);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_to_leave_after_a_moment_cannot_have_been_read_before_it() {
        let deliveries = Arc::new(Deliveries::default());
        let (one, two) = (CallId::new("one"), CallId::new("two"));
        let first = deliveries.begin(&one);
        let moment = deliveries.now();
        let _second = deliveries.begin(&two);
        assert!(deliveries.may_precede(&one, moment));
        assert!(!deliveries.may_precede(&two, moment));
        drop(first);
        assert!(deliveries.may_precede(&one, moment));
    }
}
