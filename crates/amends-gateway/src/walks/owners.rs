//! Whose the walks are that were used here.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amends_core::{Principal, SessionId};

/// How many are remembered; what is forgotten is read again.
const OWNERS_MAX: usize = 65_536;

/// Whose the walks are. What is not here is on the ledger.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<SessionId, Principal>>);

impl Owners {
    /// Whose that walk is.
    pub(crate) fn of(&self, session: &SessionId) -> Option<Principal> {
        self.owned().get(session).cloned()
    }

    /// Remembers a walk.
    pub(crate) fn remember(&self, session: &SessionId, principal: &Principal) {
        let mut owned = self.owned();
        if owned.len() >= OWNERS_MAX {
            owned.clear();
        }
        owned.insert(session.clone(), principal.clone());
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Principal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
