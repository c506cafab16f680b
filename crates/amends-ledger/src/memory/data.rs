//! What a ledger in memory holds, and what is done to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::{CallId, Digest, Principal, Rules, SessionId, Timestamp};

use crate::append::{Appended, OpenWork, StoredAnswer, StoredArguments};
use crate::chain::{self, Link, Record, Tip};
use crate::claims::{self, ClaimRow};
use crate::error::Error;
use crate::node::{Node, is_dead};
use crate::row::{Lease, SessionRow, StoredEvent, Trace};
use crate::step::{FIRST_EPOCH, Opens, Place, Step};

/// Everything the nodes of a ledger in memory share.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) calls: BTreeMap<CallId, SessionId>,
    pub(super) claims: BTreeMap<Digest, ClaimRow>,
    pub(super) answers: BTreeMap<CallId, StoredAnswer>,
    pub(super) arguments: BTreeMap<CallId, StoredArguments>,
    pub(super) rules: BTreeMap<Digest, Arc<Rules>>,
    nodes: BTreeMap<String, Living>,
}

/// A session and its events.
#[derive(Debug)]
pub(super) struct Session {
    principal: Principal,
    door: String,
    pub(super) owner: String,
    epoch: u64,
    pub(super) opened: Timestamp,
    updated: Timestamp,
    pub(super) open: OpenWork,
    head: Link,
    /// The events as they were hashed, so that what is restored is what any store would give back.
    pub(super) events: Vec<(String, Link)>,
}

/// What a node said when it last said something.
#[derive(Debug)]
struct Living {
    place: String,
    lease_until: Timestamp,
}

impl Data {
    pub(super) fn heartbeat(&mut self, node: &Node, now: Timestamp) -> Timestamp {
        let lease_until = now + node.lease_ms;
        self.nodes.insert(node.id.clone(), Living { place: node.place.clone(), lease_until });
        lease_until
    }

    pub(super) fn append(&mut self, node: &Node, mut step: Step) -> Result<Appended, Error> {
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
            self.sessions.insert(step.session.clone(), Session::open(&step.session, opens, node));
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

    pub(super) fn may_take(&self, node: &Node, row: &Session, now: Timestamp) -> bool {
        let owner = self.nodes.get(&row.owner);
        row.owner == node.id || owner.is_none_or(|owner| is_dead(&owner.place, owner.lease_until, now))
    }

    pub(super) fn take(&mut self, node: &Node, session: &SessionId, now: Timestamp) -> Option<Lease> {
        if !self.sessions.get(session).is_some_and(|row| self.may_take(node, row, now)) {
            return None;
        }
        let row = self.sessions.get_mut(session)?;
        row.owner.clone_from(&node.id);
        row.epoch += 1;
        Some(Lease { epoch: row.epoch, seq: row.events.len() as u64 })
    }

    pub(super) fn sweep(&mut self, now: Timestamp, limit: usize) -> u64 {
        let mut swept = drop_some(&mut self.answers, limit, |_, answer| answer.until <= now);
        swept += drop_some(&mut self.claims, limit, |_, claim| claim.is_over(now));
        let is_open = |call: &CallId| {
            let session = self.calls.get(call).and_then(|session| self.sessions.get(session));
            session.is_some_and(|row| row.open.calls > 0)
        };
        swept += drop_some(&mut self.arguments, limit, |call, _| !is_open(call));
        let busy = |id: &String| self.sessions.values().any(|row| row.open.calls > 0 && row.owner == *id);
        swept + drop_some(&mut self.nodes, limit, |id, living| living.lease_until <= now && !busy(id))
    }
}

/// Drops at most `limit` entries of those that are over, and says how many.
fn drop_some<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, limit: usize, is_over: impl Fn(&K, &V) -> bool) -> u64 {
    let over: Vec<K> =
        map.iter().filter(|(key, value)| is_over(key, value)).map(|(key, _)| key.clone()).take(limit).collect();
    for key in &over {
        map.remove(key);
    }
    over.len() as u64
}

impl Session {
    fn open(session: &SessionId, opens: Opens, node: &Node) -> Self {
        Self {
            principal: opens.principal,
            door: opens.door,
            owner: node.id.clone(),
            epoch: FIRST_EPOCH,
            opened: opens.at,
            updated: opens.at,
            open: OpenWork::default(),
            head: Link::genesis(session),
            events: Vec::new(),
        }
    }

    pub(super) fn trace(&self, session: &SessionId) -> Result<Trace, Error> {
        let events = self.events.iter().zip(1..).map(|((body, hash), seq)| StoredEvent::read(seq, body, *hash));
        Ok(Trace { session: session.clone(), epoch: self.epoch, events: events.collect::<Result<_, _>>()? })
    }

    pub(super) fn listed(&self, session: &SessionId) -> SessionRow {
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

    pub(super) fn check(&self, session: &SessionId) -> Vec<chain::ChainFault> {
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
