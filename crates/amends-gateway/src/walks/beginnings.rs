//! Walks that agents begin without a handle. Whoever lost the answer of its first step does not know the walk, and can only wish
//! for the same once more: that finds the walk it began, by its key or by being equal. So does the key of a fork.
//!
//! The handle of such a walk follows from what it began with and the ledger's secret, so that another process finds it too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use amends_core::id::MachineName;
use amends_core::machine::{Does, ToolUse};
use amends_core::{Digest, Principal, SessionId};
use amends_ledger::keyed_digest;
use tokio::sync::OwnedMutexGuard;

use crate::clock;
use crate::driver::MoveWish;
use crate::equal;
use crate::gateway::Gateway;
use crate::mint;

/// How many are remembered; what is forgotten is read again.
const NAMES_MAX: usize = 65_536;
/// Equal beginnings are counted for this long; a repeat comes within it, or within the next.
const SPAN_MS: u64 = 15 * 60 * 1000;
/// How many characters of a digest a handle has.
const HANDLE_CHARS: usize = 32;

/// What the walks began with that were begun without a handle.
#[derive(Debug, Default)]
pub(crate) struct Beginnings(Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<Count>>>>);

/// How many walks began with the same.
#[derive(Debug, Default)]
pub(crate) struct Count {
    newest: Option<SessionId>,
    /// The span they are counted in, and how many there are.
    counted: Option<(u64, u64)>,
}

/// What a walk begins with, held while it does: whoever wishes for the same waits, and nobody else.
pub(crate) enum Named {
    /// The agent's own key: there is one walk for it.
    Key(SessionId, Held),
    /// The wish alone. A walk that began with an equal one is gone on with only where the wish repeats that.
    Wish(Equal),
}

/// Held while a walk begins.
pub(crate) type Held = OwnedMutexGuard<Count>;

/// The walks that began with equal wishes.
pub(crate) struct Equal {
    name: Digest,
    count: Held,
}

impl Beginnings {
    /// What a walk through that machine begins with; nothing where a second one does no harm.
    pub(crate) async fn of(
        gateway: &Gateway,
        principal: &Principal,
        machine: &MachineName,
        wish: &MoveWish,
    ) -> Option<Named> {
        let name = |kind: &[u8], parts: &[&[u8]]| {
            let who = [b"begins".as_slice(), kind, principal.as_str().as_bytes(), machine.as_str().as_bytes()];
            keyed_digest(&gateway.secret, &[who.as_slice(), parts].concat())
        };
        if let Some(key) = &wish.key {
            let name = name(b"key", &[key.as_bytes()]);
            let count = gateway.beginnings.held(&name).await;
            return Some(Named::Key(handle(&name), count));
        }
        if !writes(gateway, machine, &wish.action) {
            return None;
        }
        let inputs = equal::form(&wish.inputs, &wish.raw);
        let name = name(b"wish", &[wish.action.as_bytes(), &inputs]);
        let count = gateway.beginnings.held(&name).await;
        Some(Named::Wish(Equal { name, count }))
    }

    /// The walk that a fork of that one begins for a key, held while it does.
    pub(crate) async fn of_fork(
        gateway: &Gateway,
        principal: &Principal,
        of: &SessionId,
        key: &str,
    ) -> (SessionId, Held) {
        let who = [b"forks".as_slice(), principal.as_str().as_bytes(), of.as_str().as_bytes(), key.as_bytes()];
        let name = keyed_digest(&gateway.secret, &who);
        let count = gateway.beginnings.held(&name).await;
        (handle(&name), count)
    }

    async fn held(&self, name: &Digest) -> Held {
        let count = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= NAMES_MAX {
                // Those that somebody holds stay, so that equal ones still wait for each other.
                known.retain(|_, count| Arc::strong_count(count) > 1);
            }
            known.entry(name.clone()).or_default().clone()
        };
        count.lock_owned().await
    }
}

impl Equal {
    /// The newest walk that began like that, as far as a repeat can mean it.
    pub(crate) async fn newest(&mut self, gateway: &Gateway) -> Result<Option<SessionId>, amends_ledger::Error> {
        if self.count.counted.is_none() {
            let span = span();
            let (before, now) = (self.begun(gateway, span - 1).await?, self.begun(gateway, span).await?);
            self.count.counted = Some((span, now));
            let last = if now > 0 { Some((span, now)) } else { (before > 0).then_some((span - 1, before)) };
            self.count.newest = last.map(|(span, count)| self.nth(span, count - 1));
        }
        Ok(self.count.newest.clone())
    }

    /// The handle of the next one.
    pub(crate) fn next(&mut self) -> SessionId {
        let (span, count) = match self.count.counted {
            Some((counted, count)) if counted == span() => (counted, count),
            _ => (span(), 0),
        };
        let id = self.nth(span, count);
        self.count.counted = Some((span, count + 1));
        self.count.newest = Some(id.clone());
        id
    }

    /// How many began in that span: all before one that is there are there.
    async fn begun(&self, gateway: &Gateway, span: u64) -> Result<u64, amends_ledger::Error> {
        let (mut there, mut not) = (0, 1);
        while self.is_there(gateway, span, not - 1).await? {
            (there, not) = (not, not * 2);
        }
        while not - there > 1 {
            let middle = there + (not - there) / 2;
            if self.is_there(gateway, span, middle - 1).await? { there = middle } else { not = middle }
        }
        Ok(there)
    }

    async fn is_there(&self, gateway: &Gateway, span: u64, n: u64) -> Result<bool, amends_ledger::Error> {
        Ok(gateway.ledger.trace(&self.nth(span, n)).await?.is_some())
    }

    fn nth(&self, span: u64, n: u64) -> SessionId {
        // The name is secret, and so is what follows from it.
        let parts = [self.name.as_str().as_bytes(), &span.to_be_bytes(), &n.to_be_bytes()];
        handle(&keyed_digest(self.name.as_str().as_bytes(), &parts))
    }
}

fn span() -> u64 {
    (clock::now().ms() / SPAN_MS).max(1)
}

fn handle(name: &Digest) -> SessionId {
    name.as_str().get(..HANDLE_CHARS).map_or_else(mint::session, |named| SessionId::new(format!("ses_{named}")))
}

/// Whether an action does something that must not be done twice.
fn writes(gateway: &Gateway, machine: &MachineName, action: &str) -> bool {
    let (config, listing) = (gateway.config(), gateway.catalogue.now());
    let Some((_, action)) = config.machines.get(machine).and_then(|machine| machine.action(action)) else {
        return false;
    };
    let reads =
        |tool: &ToolUse| listing.find(tool.tool.as_str()).is_some_and(|known| known.rules.contract.effect.is_read());
    // What is called last is called however it went.
    let last = action.stage.exit.iter().map(|(_, tool)| tool);
    matches!(action.does, Does::Function(_)) || action.does.tools().chain(last).any(|tool| !reads(tool))
}
