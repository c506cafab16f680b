//! The ledger in memory, for tests, simulations and ledgers that need not outlive their process.

mod data;
mod inbox;
mod log;
mod pins;
mod questions;
mod retire;

use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::{
    CallId, ClaimState, Digest, Held, InteractionId, PersonAnswer, Principal, Rules, SessionId, Tenant, Timestamp,
};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::append::{Append, Appended, Commit, StoredAnswer, StoredArguments};
use crate::claims::ClaimRow;
use crate::error::Error;
use crate::grant::Grant;
use crate::interactions::{AnswerFate, InteractionRow, Posting, QueueEntry, QueueFilter};
use crate::letter::{Letter, LetterId, LetterState};
use crate::log::{LogEntry, StoredCheckpoint};
use crate::node::{Node, letters_for};
use crate::pin::PinnedTool;
use crate::reversals::ReversalRow;
use crate::row::{Lease, Reach, SessionRow, StoredSession, Trace};
use crate::step::Step;
use crate::whole::{Whole, check_rules};
use crate::{Ledger, Pending};

use data::Data;
use inbox::Posted;

/// A ledger in memory. Nothing in it waits: every future is ready when it is first asked, and the same calls give the same
/// ledger every time.
#[derive(Debug)]
pub struct MemoryLedger {
    node: Node,
    data: Arc<Mutex<Data>>,
    secret: [u8; 32],
    hints: Arc<Notify>,
    unavailable: AtomicBool,
    in_doubt: AtomicBool,
}

impl MemoryLedger {
    /// An empty ledger, and this node's handle on it. Its secret follows from the node's id.
    pub fn new(node: Node) -> Self {
        let secret = Sha256::new_with_prefix(b"amends/memory/1\n").chain_update(&node.id).finalize().into();
        Self::over(node, Arc::default(), secret, Arc::default())
    }

    /// Another node's handle on the same ledger.
    #[must_use]
    pub fn share(&self, node: Node) -> Self {
        Self::over(node, Arc::clone(&self.data), self.secret, Arc::clone(&self.hints))
    }

    fn over(node: Node, data: Arc<Mutex<Data>>, secret: [u8; 32], hints: Arc<Notify>) -> Self {
        Self { node, data, secret, hints, unavailable: AtomicBool::new(false), in_doubt: AtomicBool::new(false) }
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

    /// The same, of which the other handles are given a hint.
    fn hinting<'a, T: Send + 'a>(&'a self, write: impl FnOnce(&mut Data) -> Result<T, Error>) -> Pending<'a, T> {
        let done = self.now(write);
        self.hints.notify_waiters();
        done
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

    fn sessions_of(&self, tenant: &Tenant, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        self.now(|data| {
            let rows = data.sessions.iter().map(|(session, row)| row.listed(session));
            let mut rows: Vec<_> = rows.filter(|row| row.tenant().as_ref() == Some(tenant)).collect();
            rows.sort_by(|a, b| (b.opened, &b.session).cmp(&(a.opened, &a.session)));
            rows.truncate(limit);
            Ok(rows)
        })
    }

    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>> {
        self.now(|data| Ok(data.calls.get(call).cloned()))
    }

    fn holder(&self, session: &SessionId) -> Pending<'_, Option<String>> {
        self.now(|data| Ok(data.sessions.get(session).map(|session| letters_for(&session.owner))))
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

    fn fields(&self, session: &SessionId) -> Pending<'_, Vec<(u64, Bytes)>> {
        self.now(|data| Ok(data.fields_of(session)))
    }

    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>> {
        self.now(|data| Ok(data.rules.get(hash).cloned()))
    }

    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        self.now(|data| Ok(data.take(&self.node, session, now, Reach::Dead)))
    }

    fn take_idle(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        self.now(|data| Ok(data.take(&self.node, session, now, Reach::Idle)))
    }

    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        self.now(|data| Ok(data.orphans(&self.node, now, limit)))
    }

    fn due(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        self.now(|data| Ok(data.due(&self.node, now, limit)))
    }

    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp> {
        self.now(|data| Ok(data.heartbeat(&self.node, now)))
    }

    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64> {
        self.now(|data| Ok(data.sweep(now, limit)))
    }

    fn queue(&self, filter: &QueueFilter, limit: usize) -> Pending<'_, Vec<QueueEntry>> {
        self.now(|data| Ok(data.queue(filter, limit)))
    }

    fn interaction(&self, id: &InteractionId) -> Pending<'_, Option<QueueEntry>> {
        self.now(|data| Ok(data.interactions.get(id).cloned().map(InteractionRow::entry)))
    }

    fn answer_interaction(&self, id: &InteractionId, answer: PersonAnswer) -> Pending<'_, AnswerFate> {
        self.hinting(|data| Ok(data.answer_interaction(id, answer)))
    }

    fn posting(&self, id: &InteractionId, posting: Posting, now: Timestamp) -> Pending<'_, bool> {
        self.now(|data| Ok(data.posting(&self.node, id, posting, now)))
    }

    fn answered(&self, limit: usize) -> Pending<'_, Vec<(SessionId, InteractionId, PersonAnswer)>> {
        self.now(|data| Ok(data.answered(limit)))
    }

    fn reversal(&self, token: &Digest) -> Pending<'_, Option<ReversalRow>> {
        self.now(|data| Ok(data.reversal(token).cloned()))
    }

    fn reversals_of(&self, session: &SessionId) -> Pending<'_, Vec<ReversalRow>> {
        self.now(|data| Ok(data.reversals_of(session)))
    }

    fn post(&self, letter: Letter, _now: Timestamp) -> Pending<'_, LetterId> {
        self.hinting(|data| Ok(data.post(letter)))
    }

    fn collect(&self, places: &[String], now: Timestamp, limit: usize) -> Pending<'_, Vec<(LetterId, Letter)>> {
        self.now(|data| Ok(data.collect(&self.node, &self.node.collects(places), now, limit)))
    }

    fn reply_letter(&self, id: LetterId, body: Value, now: Timestamp) -> Pending<'_, bool> {
        self.hinting(|data| Ok(data.reply_letter(id, body, now)))
    }

    fn letter(&self, id: LetterId) -> Pending<'_, Option<LetterState>> {
        self.now(|data| Ok(data.letters.get(&id).map(Posted::state)))
    }

    fn pins(&self, place: Option<&Digest>, limit: usize) -> Pending<'_, Vec<PinnedTool>> {
        self.now(|data| Ok(data.pins(place, limit)))
    }

    fn keep_pin(&self, pin: PinnedTool) -> Pending<'_, bool> {
        self.now(|data| Ok(data.keep_pin(pin)))
    }

    fn grants(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<Grant>> {
        self.now(|data| {
            let good = |row: &&ClaimRow| row.held.state == ClaimState::Granted && !row.is_over(now);
            Ok(data.claims.values().filter(good).take(limit).cloned().map(Grant::of).collect())
        })
    }

    fn revoke(&self, name: &Digest) -> Pending<'_, bool> {
        self.now(|data| {
            let granted = data.claims.get(name).is_some_and(|row| row.held.state == ClaimState::Granted);
            if granted {
                data.claims.remove(name);
            }
            Ok(granted)
        })
    }

    fn hint(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.hints.notified())
    }

    fn sessions_after(
        &self,
        since: Timestamp,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>> {
        let after = after.map(|row| (row.opened, row.session.clone()));
        self.now(|data| Ok(data.sessions_after(since, after.as_ref(), limit)))
    }

    fn sessions_by(
        &self,
        principal: &Principal,
        door: &str,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>> {
        self.now(|data| {
            let rows = data.sessions.iter().map(|(session, row)| row.listed(session));
            let is_own = |row: &SessionRow| row.principal == *principal && row.door == door && row.machine.is_none();
            let is_later = |row: &SessionRow| {
                after.is_none_or(|after| (row.opened, &row.session) > (after.opened, &after.session))
            };
            let mut rows: Vec<_> = rows.filter(|row| is_own(row) && is_later(row)).collect();
            rows.sort_by(|a, b| (a.opened, &a.session).cmp(&(b.opened, &b.session)));
            rows.truncate(limit);
            Ok(rows)
        })
    }

    fn import(&self, row: SessionRow, trace: Trace) -> Pending<'_, bool> {
        let whole = Whole::check(row, trace);
        self.now(|data| Ok(data.import(whole?)))
    }

    fn import_rules(&self, hash: Digest, body: String) -> Pending<'_, bool> {
        let rules = check_rules(&hash, &body);
        self.now(|data| {
            let (there, rules) = (data.rules.contains_key(&hash), Arc::new(rules?));
            data.rules.entry(hash).or_insert(rules);
            Ok(!there)
        })
    }

    fn unlogged(&self, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.now(|data| Ok(data.unlogged(limit)))
    }

    fn log(&self, from: u64, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.now(|data| Ok(data.log.iter().skip(from as usize).take(limit).cloned().collect()))
    }

    fn extend_log(&self, expected: u64, entries: Vec<LogEntry>, checkpoint: StoredCheckpoint) -> Pending<'_, bool> {
        self.now(|data| data.extend_log(expected, entries, checkpoint))
    }

    fn checkpoints(&self, limit: usize) -> Pending<'_, Vec<StoredCheckpoint>> {
        self.now(|data| Ok(data.checkpoints.iter().rev().take(limit).cloned().collect()))
    }

    fn stored(&self, after: Option<&SessionId>, limit: usize) -> Pending<'_, Vec<StoredSession>> {
        self.now(|data| data.stored(after, limit))
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use amends_core::{Event, Fact};

    use super::*;

    /// What a future gives that must be ready when it is first asked.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it waits"),
        }
    }

    fn node(id: &str) -> Node {
        Node { id: id.into(), place: String::new(), lease_ms: 1_000 }
    }

    fn step(seq: u64) -> Append {
        let fact = match seq {
            0 => Fact::SessionOpened {
                session: "s".into(),
                seed: 1,
                principal: "local".into(),
                door: "mcp".into(),
                tenant: None,
                decider: Default::default(),
            },
            _ => Fact::Ignored { why: String::new() },
        };
        let event = Event { v: 1, seq: seq + 1, at: Timestamp::from_ms(5), fact };
        Append::of("s".into(), 1, seq, vec![event])
    }

    #[test]
    fn nothing_waits_and_the_same_calls_give_the_same_ledger() {
        let heads: Vec<_> = (0..2)
            .map(|_| {
                let ledger = MemoryLedger::new(node("a"));
                now(ledger.heartbeat(Timestamp::from_ms(0))).unwrap();
                now(ledger.append(step(0))).unwrap();
                assert!(now(crate::verify(&ledger, crate::VerifyOptions::default())).unwrap().is_consistent());
                (now(ledger.trace(&"s".into())).unwrap().unwrap(), ledger.secret())
            })
            .collect();
        assert_eq!(heads[0], heads[1]);
    }

    #[test]
    fn an_unavailable_handle_does_nothing_and_the_others_go_on() {
        let a = MemoryLedger::new(node("a"));
        let b = a.share(node("b"));
        a.set_unavailable(true);
        assert!(matches!(now(a.append(step(0))), Err(Error::Unavailable { .. })));
        assert!(matches!(now(a.sessions(1)), Err(Error::Unavailable { .. })));
        assert_eq!(now(b.append(step(0))).unwrap().seq, 1);
        a.set_unavailable(false);
        assert_eq!(now(a.sessions(1)).unwrap().len(), 1);
    }

    #[test]
    fn a_step_in_doubt_is_recorded_all_the_same() {
        let ledger = MemoryLedger::new(node("a"));
        ledger.set_in_doubt(true);
        assert!(matches!(now(ledger.append(step(0))), Err(Error::Unavailable { .. })));
        ledger.set_in_doubt(false);
        assert_eq!(now(ledger.append(step(1))).unwrap().seq, 2);
    }
}
