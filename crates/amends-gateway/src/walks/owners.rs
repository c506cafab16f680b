//! Whose the walks are that were used here, and which declaration they go by.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amends_core::id::MachineName;
use amends_core::{Digest, Event, Fact, Principal, SessionId};

/// How many are remembered; what is forgotten is read again.
const OWNERS_MAX: usize = 65_536;

/// Whose the walks are. What is not here is on the ledger.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<SessionId, Owned>>);

#[derive(Clone, Debug)]
struct Owned {
    principal: Principal,
    machine: MachineName,
    hash: Digest,
}

impl Owners {
    /// Whose that walk is.
    pub(crate) fn of(&self, session: &SessionId) -> Option<Principal> {
        self.owned().get(session).map(|owned| owned.principal.clone())
    }

    /// The machine that a walk goes through, and the digest of its declaration.
    pub(crate) fn machine(&self, session: &SessionId) -> Option<(MachineName, Digest)> {
        self.owned().get(session).map(|owned| (owned.machine.clone(), owned.hash.clone()))
    }

    /// Remembers a walk.
    pub(crate) fn remember(&self, session: &SessionId, principal: &Principal, machine: &MachineName, hash: &Digest) {
        let mut owned = self.owned();
        if owned.len() >= OWNERS_MAX {
            owned.clear();
        }
        let (principal, machine, hash) = (principal.clone(), machine.clone(), hash.clone());
        owned.insert(session.clone(), Owned { principal, machine, hash });
    }

    /// Remembers a walk by its trace.
    pub(crate) fn read(&self, session: &SessionId, principal: &Principal, events: &[Event]) {
        let mut found = None;
        for event in events {
            match &event.fact {
                Fact::WalkBegan { beginning } => found = Some((beginning.machine.clone(), beginning.hash.clone())),
                Fact::WalkMigrated { hash, .. } => found = found.map(|(machine, _)| (machine, hash.clone())),
                _ => {}
            }
        }
        if let Some((machine, hash)) = found {
            self.remember(session, principal, &machine, &hash);
        }
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
