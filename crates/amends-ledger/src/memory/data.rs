//! What a ledger in memory holds, and what is done to it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::{CallId, Digest, InteractionId, Principal, Rules, SessionId, Timestamp};
use bytes::Bytes;

use crate::append::{Appended, OpenWork, StoredAnswer, StoredArguments};
use crate::chain::Link;
use crate::claims::{self, ClaimRow};
use crate::error::Error;
use crate::interactions::{CLOSED_KEPT_MS, InteractionRow, may_close};
use crate::kept::Kept;
use crate::letter::LetterId;
use crate::log::{LogEntry, StoredCheckpoint};
use crate::node::{Node, is_dead};
use crate::pin::PinnedTool;
use crate::reversals::{self, ReversalRow};
use crate::row::{Lease, Reach, SessionRow, StoredEvent, Trace};
use crate::step::{FIRST_EPOCH, Opens, Place, Step};
use crate::whole::Whole;

use super::inbox::Posted;

/// Everything the nodes of a ledger in memory share.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) calls: BTreeMap<CallId, SessionId>,
    pub(super) claims: BTreeMap<Digest, ClaimRow>,
    pub(super) answers: BTreeMap<CallId, StoredAnswer>,
    pub(super) arguments: BTreeMap<CallId, StoredArguments>,
    pub(super) fields: BTreeMap<(SessionId, u64), Bytes>,
    pub(super) rules: BTreeMap<Digest, Arc<Rules>>,
    pub(super) interactions: BTreeMap<InteractionId, InteractionRow>,
    /// Which node posts a question, and until when; nobody where it was posted.
    pub(super) postings: BTreeMap<InteractionId, Option<(String, Timestamp)>>,
    /// With their number in the order in which they were minted.
    pub(super) reversals: BTreeMap<Digest, (u64, ReversalRow)>,
    pub(super) letters: BTreeMap<LetterId, Posted>,
    /// The last letter that was posted.
    pub(super) last_letter: u64,
    pub(super) log: Vec<LogEntry>,
    pub(super) checkpoints: Vec<StoredCheckpoint>,
    pub(super) pins: BTreeMap<(Digest, String), PinnedTool>,
    pub(super) kept: BTreeMap<Digest, Kept>,
    nodes: BTreeMap<String, Living>,
}

/// A session and its events.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) principal: Principal,
    pub(super) door: String,
    machine: Option<String>,
    pub(super) owner: String,
    epoch: u64,
    pub(super) opened: Timestamp,
    updated: Timestamp,
    pub(super) open: OpenWork,
    pub(super) head: Link,
    /// How many of its first events were dropped, and the link after them.
    pub(super) cut: Option<(u64, Link)>,
    /// The sequence of its last entry in the log.
    pub(super) logged: u64,
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
        step.admit(row.map(|row| Place { epoch: row.epoch, seq: row.seq() }))?;
        let at = step.at().or(row.map(|row| row.updated)).unwrap_or_default();
        for (id, closing) in &step.closes {
            may_close(self.interactions.get(id), &step.session, *closing)?;
        }
        let changes = std::mem::take(&mut step.claims);
        let left = claims::decide(changes, &step.session, at, |name| Ok::<_, Error>(self.claims.get(name).cloned()))?;
        let (changes, undo) = (std::mem::take(&mut step.reversals), std::mem::take(&mut step.undo));
        let stored = |token: &Digest| Ok::<_, Error>(self.reversal(token).cloned());
        let reversals = reversals::decide(changes, undo, &step.session, at, stored)?;
        for row in reversals {
            let next = self.reversals.len() as u64;
            let (_, stored) = self.reversals.entry(row.token.clone()).or_insert_with(|| (next, row.clone()));
            *stored = row;
        }
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
        let fields = step.fields.into_iter().map(|fields| ((step.session.clone(), fields.seq), fields.body));
        self.fields.extend(fields);
        for call in &step.forget {
            self.arguments.remove(call);
        }
        for (hash, rules) in step.rules {
            self.rules.entry(hash).or_insert(rules);
        }
        self.ask_and_close(&step.session, step.asks, &step.closes, at);
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
        row.machine = step.machine.or(row.machine.take());
        let appended = Appended { seq: row.seq(), head: row.head.hex() };
        if step.retires {
            row.keep_last();
            self.drop_payloads(&step.session);
        }
        Ok(appended)
    }

    pub(super) fn may_take(&self, node: &Node, row: &Session, now: Timestamp) -> bool {
        row.owner == node.id || !self.lives(&row.owner, now)
    }

    /// Whether a session has nothing open.
    fn rests(&self, session: &SessionId, row: &Session) -> bool {
        let asks = |row: &InteractionRow| row.closed.is_none() && row.interaction.session == *session;
        row.open.calls == 0 && !self.interactions.values().any(asks)
    }

    /// Whether a node lives. One that is not known does not.
    pub(super) fn lives(&self, node: &str, now: Timestamp) -> bool {
        self.nodes.get(node).is_some_and(|node| !is_dead(&node.place, node.lease_until, now))
    }

    pub(super) fn reversal(&self, token: &Digest) -> Option<&ReversalRow> {
        self.reversals.get(token).map(|(_, row)| row)
    }

    pub(super) fn reversals_of(&self, session: &SessionId) -> Vec<ReversalRow> {
        let mut rows: Vec<_> = self.reversals.values().filter(|(_, row)| row.session == *session).collect();
        rows.sort_by_key(|(number, _)| Reverse(*number));
        rows.into_iter().map(|(_, row)| row.clone()).collect()
    }

    pub(super) fn fields_of(&self, session: &SessionId) -> Vec<(u64, Bytes)> {
        let theirs = self.fields.range((session.clone(), 0)..=(session.clone(), u64::MAX));
        theirs.map(|((_, seq), body)| (*seq, body.clone())).collect()
    }

    pub(super) fn take(&mut self, node: &Node, session: &SessionId, now: Timestamp, reach: Reach) -> Option<Lease> {
        let row = self.sessions.get(session)?;
        if !self.may_take(node, row, now) && (reach == Reach::Dead || !self.rests(session, row)) {
            return None;
        }
        let row = self.sessions.get_mut(session)?;
        row.owner.clone_from(&node.id);
        row.epoch += 1;
        Some(Lease { epoch: row.epoch, seq: row.seq() })
    }

    pub(super) fn sweep(&mut self, now: Timestamp, limit: usize) -> u64 {
        let mut swept = drop_some(&mut self.answers, limit, |_, answer| answer.until <= now);
        swept += drop_some(&mut self.claims, limit, |_, claim| claim.is_over(now));
        let is_open = |call: &CallId| {
            let session = self.calls.get(call).and_then(|session| self.sessions.get(session));
            session.is_some_and(|row| row.open.calls > 0)
        };
        let asks = |call: &CallId| {
            let session = self.calls.get(call);
            self.interactions.values().any(|row| row.closed.is_none() && Some(&row.interaction.session) == session)
        };
        swept += drop_some(&mut self.arguments, limit, |call, _| !is_open(call) && !asks(call));
        let busy = |id: &String| self.sessions.values().any(|row| row.open.calls > 0 && row.owner == *id);
        swept += drop_some(&mut self.nodes, limit, |id, living| living.lease_until <= now && !busy(id));
        let long_closed = |row: &InteractionRow| row.closed.is_some_and(|(_, at)| at + CLOSED_KEPT_MS <= now);
        swept += drop_some(&mut self.interactions, limit, |_, row| long_closed(row));
        self.postings.retain(|id, _| self.interactions.contains_key(id));
        for (_, stale) in self.reversals.values_mut().filter(|(_, row)| row.is_stale(now)).take(limit) {
            stale.undo = None;
            swept += 1;
        }
        swept + drop_some(&mut self.letters, limit, |_, posted| posted.is_over(now))
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
    /// The sequence of its last event.
    pub(super) fn seq(&self) -> u64 {
        self.cut() + self.events.len() as u64
    }

    /// How many of its first events were dropped.
    pub(super) fn cut(&self) -> u64 {
        self.cut.map_or(0, |(dropped, _)| dropped)
    }

    fn open(session: &SessionId, opens: Opens, node: &Node) -> Self {
        Self {
            principal: opens.principal,
            door: opens.door,
            machine: None,
            owner: node.id.clone(),
            epoch: FIRST_EPOCH,
            opened: opens.at,
            updated: opens.at,
            open: OpenWork::default(),
            head: Link::genesis(session),
            cut: None,
            logged: 0,
            events: Vec::new(),
        }
    }

    /// A session of another ledger, which belongs to no node and has nothing open.
    pub(super) fn imported(whole: Whole) -> Self {
        let Whole { row, cut_link, head, events } = whole;
        Self {
            principal: row.principal,
            door: row.door,
            machine: row.machine,
            owner: String::new(),
            epoch: FIRST_EPOCH,
            opened: row.opened,
            updated: row.updated,
            open: OpenWork::default(),
            head,
            cut: cut_link.map(|link| (row.cut, link)),
            logged: 0,
            events: events.into_iter().map(|(event, hash)| (event.body, hash)).collect(),
        }
    }

    /// Drops every event but the last, which says so.
    fn keep_last(&mut self) {
        let dropped = self.events.len().saturating_sub(1);
        let cut = self.cut() + dropped as u64;
        if let Some((_, link)) = self.events.drain(..dropped).next_back() {
            self.cut = Some((cut, link));
        }
    }

    pub(super) fn trace(&self, session: &SessionId) -> Result<Trace, Error> {
        let numbered = self.events.iter().zip(self.cut() + 1..);
        let events =
            numbered.map(|((body, hash), seq)| StoredEvent::read(seq, body, *hash)).collect::<Result<_, _>>()?;
        let cut_link = self.cut.map(|(_, link)| link.hex());
        Ok(Trace { session: session.clone(), epoch: self.epoch, cut: self.cut(), cut_link, events })
    }

    pub(super) fn listed(&self, session: &SessionId) -> SessionRow {
        SessionRow {
            session: session.clone(),
            principal: self.principal.clone(),
            door: self.door.clone(),
            opened: self.opened,
            updated: self.updated,
            events: self.seq(),
            cut: self.cut(),
            open_calls: self.open.calls,
            machine: self.machine.clone(),
        }
    }
}
