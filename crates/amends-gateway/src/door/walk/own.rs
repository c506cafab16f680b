//! The walks of a connection, which it means where it names none.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use amends_core::SessionId;
use amends_core::id::MachineName;

use crate::gateway::Gateway;
use crate::walks::Which;

/// How many characters of a digest a connection's handle has.
const HANDLE_CHARS: usize = 32;

/// The walks of a connection: one for each machine that a walk can begin with.
#[derive(Debug, Default)]
pub(crate) struct OwnWalks {
    begun: Mutex<Begun>,
    /// What the connection is known by, where another process may meet it too.
    known_by: OnceLock<String>,
    /// Held while a walk begins, so that two who come first begin one.
    pub(super) beginning: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Begun {
    by_machine: BTreeMap<MachineName, SessionId>,
    last: Option<SessionId>,
}

impl OwnWalks {
    /// The walk that was used last.
    pub(crate) fn last(&self) -> Option<SessionId> {
        self.begun().last.clone()
    }

    /// The connection is known by that, here and elsewhere.
    pub(crate) fn known_by(&self, id: &str) {
        // It is set once, when the connection begins or is taken up.
        let _ = self.known_by.set(id.to_owned());
    }

    /// The walk that is meant where none is named: the one that was used last, or the only one there can be.
    pub(crate) fn meant(&self, gateway: &Gateway) -> Option<SessionId> {
        let only = || match gateway.catalogue.now().machines().roots() {
            [only] => self.minted(gateway, only),
            _ => None,
        };
        self.last().or_else(only)
    }

    /// The walk through that machine. One that another process began is found by what the connection is known by.
    pub(super) fn through(&self, gateway: &Gateway, machine: &MachineName) -> Which {
        if let Some(known) = self.begun().by_machine.get(machine) {
            return Which::Known(known.clone());
        }
        match self.minted(gateway, machine) {
            Some(id) => Which::Own(id, machine.clone()),
            None => Which::New(machine.clone()),
        }
    }

    /// The handle of a connection's walk, which only we can tell.
    fn minted(&self, gateway: &Gateway, machine: &MachineName) -> Option<SessionId> {
        let parts = [b"walk" as &[u8], self.known_by.get()?.as_bytes(), machine.as_str().as_bytes()];
        let digest = amends_ledger::keyed_digest(&gateway.secret, &parts);
        Some(SessionId::new(format!("ses_{}", digest.as_str().get(..HANDLE_CHARS)?)))
    }

    pub(super) fn uses(&self, machine: Option<&MachineName>, session: &SessionId) {
        let mut begun = self.begun();
        begun.last = Some(session.clone());
        if let Some(machine) = machine {
            begun.by_machine.insert(machine.clone(), session.clone());
        }
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
