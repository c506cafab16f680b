//! The ledger in PostgreSQL, which many nodes share.
//!
//! **Isolation.** Every transaction is `READ COMMITTED`, and none relies on a snapshot. Whatever a decision rests on is read
//! with a row lock and so cannot change before the commit; what is not there cannot be locked, and is inserted with
//! `ON CONFLICT DO NOTHING`. Each write names the state it was decided on (a session's epoch and sequence, a claim's holder) and
//! the rows it changed are counted: one row too few means that somebody was quicker, and the whole transaction is rolled
//! back and decided anew. A stricter isolation level gives the same result with more retries, so a database that knows only
//! `SERIALIZABLE` will do.
//!
//! **Time.** Leases are kept in the database's time, so that nodes need not agree on theirs.
//!
//! Correctness takes no advisory locks, no triggers, no sequences and no notifications; `NOTIFY` is a hint.

mod columns;
mod connection;
mod fields;
mod glance;
mod grants;
mod ground;
mod hints;
mod inbox;
mod log;
mod nodes;
mod pins;
mod questions;
mod reader;
mod record;
mod reversals;
mod schema;
mod sweep;
mod tls;
mod trouble;
mod whole;
mod writer;

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use amends_core::{CallId, Digest, Held, InteractionId, PersonAnswer, Principal, Rules, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::append::{Append, Commit, StoredAnswer, StoredArguments};
use crate::error::Error;
use crate::grant::Grant;
use crate::interactions::{AnswerFate, InteractionRow, Posting, QueueEntry, QueueFilter};
use crate::letter::{Letter, LetterId, LetterState};
use crate::log::{LogEntry, StoredCheckpoint};
use crate::node::Node;
use crate::pin::PinnedTool;
use crate::reversals::ReversalRow;
use crate::row::{Lease, Reach, SessionRow, StoredSession, Trace};
use crate::step::Step;
use crate::vault::Vault;
use crate::whole::{Whole, check_rules};
use crate::{Ledger, Pending};

use connection::{Connection, Target};
pub(crate) use glance::glance;
use hints::Hints;
use nodes::Here;
use reader::{Doing, Readers};
use writer::{Deed, Haste, Work, Writer};

/// Whose clock leases are measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseClock {
    /// The database's. A node whose own clock is wrong then neither loses its sessions nor takes those of others.
    Database,
    /// The caller's, as it is passed in: for tests that make up their times.
    Caller,
}

/// A ledger in PostgreSQL. What it has acknowledged is committed.
///
/// One task writes, and commits in one go whatever is queued. Reads run beside it on a few connections of their own.
/// Nothing is remembered between two transactions, so any number of nodes may share the database.
pub struct PostgresLedger {
    here: Here,
    secret: [u8; 32],
    writer: Writer,
    readers: Readers,
    hints: Hints,
    vault: Vault,
}

impl PostgresLedger {
    /// Opens the ledger in a database for a node, and makes its tables where there are none. The address is one of
    /// `postgres://user:password@host:port/database`, with the options that PostgreSQL's own tools know. It needs a tokio
    /// runtime, and lives in it.
    pub async fn open(url: &str, node: Node) -> Result<Self, Error> {
        Self::open_by(url, node, LeaseClock::Database).await
    }

    /// The same, with leases measured by that clock, which must be the same for all nodes.
    pub async fn open_by(url: &str, node: Node, clock: LeaseClock) -> Result<Self, Error> {
        let target = Target::parse(url)?;
        let (connection, secret) = schema::open(&target).await?;
        Ok(Self {
            writer: Writer::start(connection, target.clone(), secret, node.clone()),
            readers: Readers::new(target.clone(), secret),
            hints: Hints::new(target),
            here: Here { node, clock },
            secret,
            vault: Vault::unlocked(),
        })
    }

    /// The time by the database's clock, which all nodes begin with.
    pub async fn clock(&self) -> Result<Timestamp, Error> {
        self.read(|connection| Box::pin(nodes::clock(connection))).await
    }

    /// The same ledger, whose payloads are sealed by that vault.
    #[must_use]
    pub fn with_vault(mut self, vault: Vault) -> Self {
        self.vault = vault;
        self
    }

    fn read<T, F>(&self, read: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a Connection) -> Doing<'a, T> + Send + Sync + 'static,
    {
        Box::pin(self.readers.read(read))
    }

    fn write<T, F>(&self, doing: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a Connection) -> Doing<'a, T> + Send + 'static,
    {
        let (answer, fate) = oneshot::channel();
        self.writer.queue(Work::Other(Box::new(Deed { doing, answer, done: None })));
        Box::pin(async move { fate.await.unwrap_or_else(|_| Err(Error::writer_stopped())) })
    }

    fn record(&self, append: Append, haste: Haste) -> Commit {
        match self.vault.seal(append).and_then(Step::write) {
            Ok(step) => {
                let (answer, commit) = Commit::channel();
                self.writer.queue(Work::Append(Box::new(step), answer, haste));
                commit
            }
            Err(error) => Commit::ready(Err(error)),
        }
    }

    fn take_within(&self, session: &SessionId, now: Timestamp, reach: Reach) -> Pending<'_, Option<Lease>> {
        let (here, session) = (self.here.clone(), session.clone());
        self.write(move |connection| {
            let here = here.clone();
            let session = session.clone();
            Box::pin(async move { here.take(connection, &session, now, reach).await })
        })
    }

    /// Gives the other nodes a hint once that went well.
    fn hinting<'a, T: Send + 'a>(&'a self, done: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            let done = done.await?;
            // Not in the same transaction: a database that cannot notify must not fail it.
            drop(self.read(|connection| Box::pin(hints::give(connection))).await);
            Ok(done)
        })
    }
}

impl fmt::Debug for PostgresLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLedger").field("here", &self.here).finish_non_exhaustive()
    }
}

impl Ledger for PostgresLedger {
    fn append(&self, append: Append) -> Commit {
        self.record(append, Haste::Now)
    }

    fn append_soon(&self, append: Append) -> Commit {
        self.record(append, Haste::Soon)
    }

    fn trace(&self, session: &SessionId) -> Pending<'_, Option<Trace>> {
        let session = session.clone();
        self.read(move |connection| {
            let session = session.clone();
            Box::pin(async move { reader::trace(connection, &session).await })
        })
    }

    fn sessions(&self, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        self.read(move |connection| Box::pin(reader::sessions(connection, limit)))
    }

    fn sessions_of(&self, tenant: &Tenant, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        let tenant = tenant.clone();
        self.read(move |connection| {
            let tenant = tenant.clone();
            Box::pin(async move { reader::sessions_of(connection, &tenant, limit).await })
        })
    }

    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>> {
        let call = call.clone();
        self.read(move |connection| {
            let call = call.clone();
            Box::pin(async move { reader::session_of(connection, &call).await })
        })
    }

    fn holder(&self, session: &SessionId) -> Pending<'_, Option<String>> {
        let session = session.clone();
        self.read(move |connection| {
            let session = session.clone();
            Box::pin(async move { nodes::holder(connection, &session).await })
        })
    }

    fn held(&self, name: &Digest, now: Timestamp) -> Pending<'_, Option<Held>> {
        let name = name.clone();
        self.read(move |connection| {
            let name = name.clone();
            Box::pin(async move {
                let row = reader::claim(connection, &name).await?;
                Ok(row.filter(|row| !row.is_over(now)).map(|row| row.held))
            })
        })
    }

    fn answer(&self, call: &CallId) -> Pending<'_, Option<StoredAnswer>> {
        let call = call.clone();
        let answer = self.read(move |connection| {
            let call = call.clone();
            Box::pin(async move { reader::answer(connection, &call).await })
        });
        Box::pin(async move { answer.await?.map(|answer| self.vault.open_answer(answer)).transpose() })
    }

    fn arguments(&self, call: &CallId) -> Pending<'_, Option<StoredArguments>> {
        let call = call.clone();
        let arguments = self.read(move |connection| {
            let call = call.clone();
            Box::pin(async move { reader::arguments(connection, &call).await })
        });
        Box::pin(async move { arguments.await?.map(|arguments| self.vault.open_arguments(arguments)).transpose() })
    }

    fn fields(&self, session: &SessionId) -> Pending<'_, Vec<(u64, Bytes)>> {
        let (session, whose) = (session.clone(), session.clone());
        let stored = self.read(move |connection| {
            let session = session.clone();
            Box::pin(async move { fields::of_session(connection, &session).await })
        });
        Box::pin(async move { self.vault.open_fields(&whose, stored.await?) })
    }

    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>> {
        let hash = hash.clone();
        self.read(move |connection| {
            let hash = hash.clone();
            Box::pin(async move { reader::rules(connection, &hash).await })
        })
    }

    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        self.take_within(session, now, Reach::Dead)
    }

    fn take_idle(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        self.take_within(session, now, Reach::Idle)
    }

    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        let here = self.here.clone();
        self.read(move |connection| {
            let here = here.clone();
            Box::pin(async move { here.orphans(connection, now, limit).await })
        })
    }

    fn due(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        let here = self.here.clone();
        self.read(move |connection| {
            let here = here.clone();
            Box::pin(async move { here.due(connection, now, limit).await })
        })
    }

    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp> {
        let here = self.here.clone();
        self.write(move |connection| {
            let here = here.clone();
            Box::pin(async move { here.heartbeat(connection, now).await })
        })
    }

    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64> {
        let here = self.here.clone();
        self.write(move |connection| {
            let here = here.clone();
            Box::pin(async move { sweep::sweep(connection, &here, now, limit).await })
        })
    }

    fn queue(&self, filter: &QueueFilter, limit: usize) -> Pending<'_, Vec<QueueEntry>> {
        let filter = filter.clone();
        self.read(move |connection| {
            let filter = filter.clone();
            Box::pin(async move { questions::queue(connection, &filter, limit).await })
        })
    }

    fn interaction(&self, id: &InteractionId) -> Pending<'_, Option<QueueEntry>> {
        let id = id.clone();
        let entry = self.read(move |connection| {
            let id = id.clone();
            Box::pin(async move { Ok(questions::interaction(connection, &id).await?.map(InteractionRow::entry)) })
        });
        Box::pin(async move { entry.await?.map(|entry| self.vault.open_content(entry)).transpose() })
    }

    fn answer_interaction(&self, id: &InteractionId, given: PersonAnswer) -> Pending<'_, AnswerFate> {
        let id = id.clone();
        let given = match self.vault.seal_content(&id, given) {
            Ok(given) => given,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.hinting(self.write(move |connection| {
            let (id, given) = (id.clone(), given.clone());
            Box::pin(async move { questions::answer(connection, &id, &given).await })
        }))
    }

    fn posting(&self, id: &InteractionId, posting: Posting, now: Timestamp) -> Pending<'_, bool> {
        let (here, id) = (self.here.clone(), id.clone());
        self.write(move |connection| {
            let (here, id) = (here.clone(), id.clone());
            Box::pin(async move { questions::posting(connection, &here.node.id, &id, posting, now).await })
        })
    }

    fn answered(&self, limit: usize) -> Pending<'_, Vec<(SessionId, InteractionId, PersonAnswer)>> {
        self.read(move |connection| Box::pin(questions::answered(connection, limit)))
    }

    fn reversal(&self, token: &Digest) -> Pending<'_, Option<ReversalRow>> {
        let token = token.clone();
        let row = self.read(move |connection| {
            let token = token.clone();
            Box::pin(async move { reversals::reversal(connection, &token).await })
        });
        Box::pin(async move { row.await?.map(|row| self.vault.open_reversal(row)).transpose() })
    }

    fn reversals_of(&self, session: &SessionId) -> Pending<'_, Vec<ReversalRow>> {
        let session = session.clone();
        let rows = self.read(move |connection| {
            let session = session.clone();
            Box::pin(async move { reversals::of_session(connection, &session).await })
        });
        Box::pin(async move { rows.await?.into_iter().map(|row| self.vault.open_reversal(row)).collect() })
    }

    fn post(&self, letter: Letter, now: Timestamp) -> Pending<'_, LetterId> {
        let letter = match self.vault.seal_letter(letter) {
            Ok(letter) => letter,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.hinting(self.write(move |connection| {
            let letter = letter.clone();
            Box::pin(async move { inbox::post(connection, &letter, now).await })
        }))
    }

    fn collect(&self, places: &[String], now: Timestamp, limit: usize) -> Pending<'_, Vec<(LetterId, Letter)>> {
        let (here, places) = (self.here.clone(), self.here.node.collects(places));
        Box::pin(async move {
            // The inbox is looked at often and mostly empty: only what is there is worth the one writer's turn.
            let looking = (here.clone(), places.clone());
            let is_waiting = self.read(move |connection| {
                let (here, places) = looking.clone();
                Box::pin(async move { inbox::is_waiting(connection, &here, &places, now).await })
            });
            if !is_waiting.await? {
                return Ok(Vec::new());
            }
            let taken = self.write(move |connection| {
                let (here, places) = (here.clone(), places.clone());
                Box::pin(async move { inbox::collect(connection, &here, &places, now, limit).await })
            });
            taken.await?.into_iter().map(|(id, letter)| Ok((id, self.vault.open_letter(letter)?))).collect()
        })
    }

    fn reply_letter(&self, id: LetterId, body: Value, now: Timestamp) -> Pending<'_, bool> {
        let body = match self.vault.seal_reply(id, body) {
            Ok(body) => body,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.hinting(self.write(move |connection| {
            let body = body.clone();
            Box::pin(async move { inbox::reply(connection, id, &body, now).await })
        }))
    }

    fn letter(&self, id: LetterId) -> Pending<'_, Option<LetterState>> {
        let state = self.read(move |connection| Box::pin(inbox::letter(connection, id)));
        Box::pin(async move { state.await?.map(|state| self.vault.open_reply(id, state)).transpose() })
    }

    fn sessions_after(
        &self,
        since: Timestamp,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>> {
        let after = after.map(|row| (row.opened, row.session.clone()));
        self.read(move |connection| {
            let after = after.clone();
            Box::pin(async move { reader::sessions_after(connection, since, after.as_ref(), limit).await })
        })
    }

    fn sessions_by(
        &self,
        principal: &Principal,
        door: &str,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>> {
        let after = after.map(|row| (row.opened, row.session.clone()));
        let (principal, door) = (principal.clone(), door.to_owned());
        self.read(move |connection| {
            let (principal, door, after) = (principal.clone(), door.clone(), after.clone());
            Box::pin(async move { reader::sessions_by(connection, &principal, &door, after.as_ref(), limit).await })
        })
    }

    fn unlogged(&self, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.read(move |connection| Box::pin(log::unlogged(connection, limit)))
    }

    fn log(&self, from: u64, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.read(move |connection| Box::pin(log::entries(connection, from, limit)))
    }

    fn extend_log(&self, expected: u64, entries: Vec<LogEntry>, checkpoint: StoredCheckpoint) -> Pending<'_, bool> {
        self.write(move |connection| {
            let (entries, checkpoint) = (entries.clone(), checkpoint.clone());
            Box::pin(async move { log::extend(connection, expected, &entries, &checkpoint).await })
        })
    }

    fn checkpoints(&self, limit: usize) -> Pending<'_, Vec<StoredCheckpoint>> {
        self.read(move |connection| Box::pin(log::checkpoints(connection, limit)))
    }

    fn import(&self, row: SessionRow, trace: Trace) -> Pending<'_, bool> {
        let whole = match Whole::check(row, trace) {
            Ok(whole) => Arc::new(whole),
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.write(move |connection| {
            let whole = Arc::clone(&whole);
            Box::pin(async move { whole::import(connection, &whole).await })
        })
    }

    fn pins(&self, place: Option<&Digest>, limit: usize) -> Pending<'_, Vec<PinnedTool>> {
        let place = place.cloned();
        self.read(move |connection| {
            let place = place.clone();
            Box::pin(async move { pins::pins(connection, place.as_ref(), limit).await })
        })
    }

    fn keep_pin(&self, pin: PinnedTool) -> Pending<'_, bool> {
        self.write(move |connection| {
            let pin = pin.clone();
            Box::pin(async move { pins::keep(connection, &pin).await })
        })
    }

    fn grants(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<Grant>> {
        self.read(move |connection| Box::pin(grants::good(connection, now, limit)))
    }

    fn revoke(&self, name: &Digest) -> Pending<'_, bool> {
        let name = name.clone();
        self.write(move |connection| {
            let name = name.clone();
            Box::pin(async move { grants::revoke(connection, &name).await })
        })
    }

    fn import_rules(&self, hash: Digest, body: String) -> Pending<'_, bool> {
        if let Err(error) = check_rules(&hash, &body) {
            return Box::pin(ready(Err(error)));
        }
        self.write(move |connection| {
            let (hash, body) = (hash.clone(), body.clone());
            Box::pin(async move { whole::import_rules(connection, &hash, &body).await })
        })
    }

    fn hint(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.hints.next())
    }

    fn stored(&self, after: Option<&SessionId>, limit: usize) -> Pending<'_, Vec<StoredSession>> {
        let after = after.cloned();
        self.read(move |connection| {
            let after = after.clone();
            Box::pin(async move { whole::stored(connection, after.as_ref(), limit).await })
        })
    }

    fn stored_rules(&self, hash: &Digest) -> Pending<'_, Option<String>> {
        let hash = hash.clone();
        self.read(move |connection| {
            let hash = hash.clone();
            Box::pin(async move { whole::rules(connection, &hash).await })
        })
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }
}
