//! An answer is known to have arrived.

use crate::claim::{ClaimChange, ClaimKind};
use crate::dispatcher::Dispatcher;
use crate::event::Fact;
use crate::id::CallId;
use crate::time::Timestamp;

impl Dispatcher {
    /// From now on an equal call is another call, unless it brings the same key.
    pub(super) fn delivery(&mut self, now: Timestamp, id: CallId) {
        if self.state.walk.as_ref().is_some_and(|walk| walk.recent.iter().any(|made| made.id == id && !made.delivered))
        {
            return self.emit(now, Fact::AnswerDelivered { call: id });
        }
        let Some(ended) = self.state.ended.get(&id) else {
            return self.ignore(now, format!("the delivery of `{id}` changes nothing"));
        };
        let names: Vec<_> = ended
            .received
            .claims
            .iter()
            .filter(|claim| ended.complete && matches!(claim.kind, ClaimKind::Arguments | ClaimKind::ArgumentsIfFree))
            .map(|claim| claim.name.clone())
            .collect();
        self.emit(now, Fact::AnswerDelivered { call: id.clone() });
        for name in names {
            self.step.claims.push(ClaimChange::Release { name, call: id.clone() });
        }
    }
}
