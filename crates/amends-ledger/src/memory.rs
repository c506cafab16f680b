//! The ledger in memory, for tests, simulations and ledgers that need not outlive their process.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::{CallId, Digest, Held, Principal, Rules, SessionId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::append::{Append, Appended, Commit, OpenWork, StoredAnswer, StoredArguments};
use crate::chain::{self, Link, Record, Tip, Verified};
use crate::claims::{self, ClaimRow};
use crate::error::Error;
use crate::node::{Node, is_dead};
use crate::row::{Lease, SessionRow, StoredEvent, Trace};
use crate::step::{FIRST_EPOCH, Opens, Place, Step};
use crate::{Ledger, Pending};

/// A ledger in memory. Nothing in it waits: every future is ready when it is first asked, and the same calls give the same
/// ledger every time.
#[derive(Debug)]
pub struct MemoryLedger {
    node: Node,
    data: Arc<Mutex<Data>>,
    secret: [u8; 32],
    unavailable: AtomicBool,
    in_doubt: AtomicBool,
}

#[derive(Debug, Default)]
struct Data {
    sessions: BTreeMap<SessionId, Session>,
    calls: BTreeMap<CallId, SessionId>,
    claims: BTreeMap<Digest, ClaimRow>,
    answers: BTreeMap<CallId, StoredAnswer>,
    arguments: BTreeMap<CallId, StoredArguments>,
    rules: BTreeMap<Digest, Arc<Rules>>,
    nodes: BTreeMap<String, Living>,
}

#[derive(Debug)]
struct Session {
    principal: Principal,
    door: String,
    owner: String,
    epoch: u64,
    opened: Timestamp,
    updated: Timestamp,
    open: OpenWork,
    head: Link,
    /// The events as they were hashed, so that what is restored is what any store would give back.
    events: Vec<(String, Link)>,
}

#[derive(Debug)]
struct Living {
    place: String,
    lease_until: Timestamp,
}

impl MemoryLedger {
    /// An empty ledger, and this node's handle on it. Its secret follows from the node's id.
    pub fn new(node: Node) -> Self {
        let secret = Sha256::new_with_prefix(b"amends/memory/1\n").chain_update(&node.id).finalize().into();
        Self::over(node, Arc::default(), secret)
    }

    /// Another node's handle on the same ledger.
    #[must_use]
    pub fn share(&self, node: Node) -> Self {
        Self::over(node, Arc::clone(&self.data), self.secret)
    }

    fn over(node: Node, data: Arc<Mutex<Data>>, secret: [u8; 32]) -> Self {
        Self { node, data, secret, unavailable: AtomicBool::new(false), in_doubt: AtomicBool::new(false) }
    }

    /// While it is set, nothing that goes through this handle is done, and everything is answered `Unavailable`.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.unavailable.store(unavailable, Ordering::SeqCst);
    }

    /// While it is set, steps that go through this handle are recorded, and their commits answered `Unavailable`: what a
    /// store does that fails after it has written.
    pub fn set_in_doubt(&self, in_doubt: bool) {
        self.in_doubt.store(in_doubt, Ordering::SeqCst);
    }

    fn data(&self) -> Result<MutexGuard<'_, Data>, Error> {
        if self.unavailable.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { reason: "it was made unavailable".into() });
        }
        Ok(self.data.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now<'a, T: Send + 'a>(&'a self, read: impl FnOnce(&mut Data) -> Result<T, Error>) -> Pending<'a, T> {
        Box::pin(ready(self.data().and_then(|mut data| read(&mut data))))
    }

    fn record(&self, append: Append) -> Result<Appended, Error> {
        let mut data = self.data()?;
        let appended = data.append(&self.node, Step::write(append)?)?;
        if self.in_doubt.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { reason: "it was made to lose its answer".into() });
        }
        Ok(appended)
    }
}

impl Ledger for MemoryLedger {
    fn append(&self, append: Append) -> Commit {
        Commit::ready(self.record(append))
    }

    fn trace(&self, session: &SessionId) -> Pending<'_, Option<Trace>> {
        self.now(|data| data.sessions.get(session).map(|row| row.trace(session)).transpose())
    }

    fn sessions(&self, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        self.now(|data| {
            let mut rows: Vec<_> = data.sessions.iter().collect();
            rows.sort_by(|(a, a_row), (b, b_row)| b_row.opened.cmp(&a_row.opened).then(b.cmp(a)));
            Ok(rows.into_iter().take(limit).map(|(session, row)| row.listed(session)).collect())
        })
    }

    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>> {
        self.now(|data| Ok(data.calls.get(call).cloned()))
    }

    fn held(&self, name: &Digest, now: Timestamp) -> Pending<'_, Option<Held>> {
        self.now(|data| Ok(data.claims.get(name).filter(|row| !row.is_over(now)).map(|row| row.held.clone())))
    }

    fn answer(&self, call: &CallId) -> Pending<'_, Option<StoredAnswer>> {
        self.now(|data| Ok(data.answers.get(call).cloned()))
    }

    fn arguments(&self, call: &CallId) -> Pending<'_, Option<StoredArguments>> {
        self.now(|data| Ok(data.arguments.get(call).cloned()))
    }

    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>> {
        self.now(|data| Ok(data.rules.get(hash).cloned()))
    }

    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        self.now(|data| Ok(data.take(&self.node, session, now)))
    }

    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        self.now(|data| {
            let open = data.sessions.iter().filter(|(_, row)| row.open.calls > 0);
            let orphans = open.filter(|(_, row)| data.may_take(&self.node, row, now) && row.owner != self.node.id);
            Ok(orphans.take(limit).map(|(session, _)| session.clone()).collect())
        })
    }

    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp> {
        self.now(|data| {
            let lease_until = now + self.node.lease_ms;
            let living = Living { place: self.node.place.clone(), lease_until };
            data.nodes.insert(self.node.id.clone(), living);
            Ok(lease_until)
        })
    }

    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64> {
        self.now(|data| Ok(data.sweep(now, limit)))
    }

    fn verify(&self) -> Pending<'_, Verified> {
        self.now(|data| {
            let mut verified = Verified::default();
            for (session, row) in &data.sessions {
                verified.sessions += 1;
                verified.events += row.events.len() as u64;
                verified.add(row.check(session));
            }
            Ok(verified)
        })
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }
}

impl Data {
    fn append(&mut self, node: &Node, mut step: Step) -> Result<Appended, Error> {
        let row = self.sessions.get(&step.session);
        step.admit(row.map(|row| Place { epoch: row.epoch, seq: row.events.len() as u64 }))?;
        let at = step.at().or(row.map(|row| row.updated)).unwrap_or_default();
        let changes = std::mem::take(&mut step.claims);
        let left = claims::decide(changes, &step.session, at, |name| Ok::<_, Error>(self.claims.get(name).cloned()))?;
        for (name, row) in left {
            match row {
                Some(row) => drop(self.claims.insert(name, row)),
                None => drop(self.claims.remove(&name)),
            }
        }
        for call in step.received() {
            self.calls.entry(call.clone()).or_insert_with(|| step.session.clone());
        }
        self.answers.extend(step.answers.into_iter().map(|answer| (answer.call.clone(), answer)));
        self.arguments.extend(step.arguments.into_iter().map(|arguments| (arguments.call.clone(), arguments)));
        for call in &step.forget {
            self.arguments.remove(call);
        }
        for (hash, rules) in step.rules {
            self.rules.entry(hash).or_insert(rules);
        }
        if let Some(opens) = step.opens {
            self.sessions.insert(step.session.clone(), Session::open(&step.session, opens, node, at));
        }
        let row = self.sessions.get_mut(&step.session).expect("it was admitted or has just been opened");
        for event in step.events {
            row.head = row.head.next(event.body.as_bytes());
            row.events.push((event.body, row.head));
        }
        row.updated = at;
        row.open = step.open;
        Ok(Appended { seq: row.events.len() as u64, head: row.head.hex() })
    }

    fn may_take(&self, node: &Node, row: &Session, now: Timestamp) -> bool {
        let owner = self.nodes.get(&row.owner);
        row.owner == node.id || owner.is_none_or(|owner| is_dead(&owner.place, owner.lease_until, now))
    }

    fn take(&mut self, node: &Node, session: &SessionId, now: Timestamp) -> Option<Lease> {
        if !self.sessions.get(session).is_some_and(|row| self.may_take(node, row, now)) {
            return None;
        }
        let row = self.sessions.get_mut(session)?;
        row.owner.clone_from(&node.id);
        row.epoch += 1;
        Some(Lease { epoch: row.epoch, seq: row.events.len() as u64 })
    }

    fn sweep(&mut self, now: Timestamp, limit: usize) -> u64 {
        let mut swept = drop_some(&mut self.answers, limit, |_, answer| answer.until <= now);
        swept += drop_some(&mut self.claims, limit, |_, claim| claim.is_over(now));
        let is_open = |call: &CallId| {
            let session = self.calls.get(call).and_then(|session| self.sessions.get(session));
            session.is_some_and(|row| row.open.calls > 0)
        };
        swept += drop_some(&mut self.arguments, limit, |call, _| !is_open(call));
        let busy = |id: &String| self.sessions.values().any(|row| row.open.calls > 0 && row.owner == *id);
        let dead = |living: &Living| is_dead(&living.place, living.lease_until, now);
        swept + drop_some(&mut self.nodes, limit, |id, living| dead(living) && !busy(id))
    }
}

/// Drops at most `limit` entries of those that are over, and says how many.
fn drop_some<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, limit: usize, is_over: impl Fn(&K, &V) -> bool) -> u64 {
    let over: Vec<K> = map.iter().filter(|(key, value)| is_over(key, value)).map(|(key, _)| key.clone()).take(limit).collect();
    for key in &over {
        map.remove(key);
    }
    over.len() as u64
}

impl Session {
    fn open(session: &SessionId, opens: Opens, node: &Node, at: Timestamp) -> Self {
        Self {
            principal: opens.principal,
            door: opens.door,
            owner: node.id.clone(),
            epoch: FIRST_EPOCH,
            opened: at,
            updated: at,
            open: OpenWork::default(),
            head: Link::genesis(session),
            events: Vec::new(),
        }
    }

    fn trace(&self, session: &SessionId) -> Result<Trace, Error> {
        let events = self.events.iter().zip(1..).map(|((body, hash), seq)| StoredEvent::read(seq, body, *hash));
        Ok(Trace { session: session.clone(), epoch: self.epoch, events: events.collect::<Result<_, _>>()? })
    }

    fn listed(&self, session: &SessionId) -> SessionRow {
        SessionRow {
            session: session.clone(),
            principal: self.principal.clone(),
            door: self.door.clone(),
            opened: self.opened,
            updated: self.updated,
            events: self.events.len() as u64,
            open_calls: self.open.calls,
        }
    }

    fn check(&self, session: &SessionId) -> Vec<chain::ChainFault> {
        let tip = Tip {
            session,
            principal: &self.principal,
            door: &self.door,
            seq: self.events.len() as u64,
            head: self.head.bytes(),
        };
        let records = self.events.iter().zip(1..);
        chain::check(tip, records.map(|((body, hash), seq)| Record { seq, body: body.as_bytes(), hash: hash.bytes() }))
    }
}
