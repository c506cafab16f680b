//! Deciding a session again with the rules that its calls name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use amends_core::dispatcher::redecide::redecide;
use amends_core::event::VERSION;
use amends_core::{Digest, Event, Fact, Rules, TraceError};

use super::{Fault, FaultKind, Verified};
use crate::Ledger;
use crate::chain::read_rules;
use crate::error::Error;
use crate::row::StoredSession;

/// Decides sessions again. It keeps the rules it has seen: a ledger has few.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Nothing for rules that are gone, or are not what they are kept as.
    rules: BTreeMap<Digest, Option<Arc<Rules>>>,
}

impl Judge {
    /// Decides a session again whose chain is whole.
    pub(super) async fn decide(
        &mut self,
        ledger: &dyn Ledger,
        session: &StoredSession,
        events: &[Event],
        faults: &mut Vec<Fault>,
        verified: &mut Verified,
    ) -> Result<(), Error> {
        for event in events {
            if let Fact::CallReceived { received, .. } = &event.fact {
                self.find(ledger, &received.rules, verified).await?;
            }
        }
        let whole = session.tip.as_ref().is_some_and(|tip| tip.cut == 0);
        if !whole || events.is_empty() || events.iter().any(|event| event.v > VERSION) {
            verified.undecidable += 1;
            return Ok(());
        }
        let mut illegal = |seq: u64, words: String| {
            faults.push(Fault::of(FaultKind::Illegal, Some(&session.session), Some(seq), words));
        };
        match redecide(events, |hash| self.rules.get(hash).cloned().flatten()) {
            Ok(None) => verified.decided += 1,
            Err(
                TraceError::RulesMissing { .. }
                | TraceError::Newer { .. }
                | TraceError::NewerDecider { .. }
                | TraceError::Retired,
            ) => verified.undecidable += 1,
            Ok(Some(difference)) if difference.is_older() => verified.older += 1,
            Ok(Some(difference)) => {
                let name = |event: &Option<Event>| event.as_ref().map_or("nothing", |event| event.fact.name());
                let (recorded, decided) = (name(&difference.recorded), name(&difference.decided));
                let words = format!("`{recorded}` is recorded, and the same input is decided as `{decided}`");
                illegal(difference.seq, words);
            }
            Err(error @ TraceError::NoBeginning) => illegal(1, error.to_string()),
            Err(error @ TraceError::Gap { found, .. }) => illegal(found, error.to_string()),
            Err(error @ TraceError::Illegal { seq, .. }) => illegal(seq, error.to_string()),
        }
        Ok(())
    }

    async fn find(&mut self, ledger: &dyn Ledger, hash: &Digest, verified: &mut Verified) -> Result<(), Error> {
        let Entry::Vacant(place) = self.rules.entry(hash.clone()) else {
            return Ok(());
        };
        let rules = match ledger.stored_rules(hash).await? {
            None => None,
            Some(body) => {
                let rules = read_rules(&body, hash).map(Arc::new);
                if rules.is_none() {
                    let words = format!("the rules kept as `{hash}` are others");
                    verified.add([Fault::of(FaultKind::RulesChanged, None, None, words)]);
                }
                rules
            }
        };
        place.insert(rules);
        Ok(())
    }
}
