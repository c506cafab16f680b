//! The ledger in SQLite, which several processes may share.

mod batch;
mod fields;
mod file;
mod glance;
mod grants;
mod inbox;
mod kept;
mod log;
mod nodes;
mod pins;
mod questions;
mod queue;
mod reader;
mod record;
mod retire;
mod reversals;
mod schema;
mod stored;
mod sweep;
mod trouble;
mod write_back;
mod writer;

use std::future::ready;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use amends_core::{CallId, Digest, Held, InteractionId, PersonAnswer, Principal, Rules, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use crate::append::{Append, Commit, StoredAnswer, StoredArguments};
use crate::error::Error;
use crate::grant::Grant;
use crate::interactions::{AnswerFate, InteractionRow, Posting, QueueEntry, QueueFilter};
use crate::kept::Kept;
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

use file::File;
pub(crate) use glance::glance;
use reader::Readers;
use trouble::Trouble;
use writer::{Answer, Haste, Work, Writer};

/// A ledger in a SQLite file. What it has acknowledged is on the disk.
///
/// One thread writes, and commits in one go whatever is queued. Reads run beside it on connections of their own, and need
/// a tokio runtime. Nothing is remembered between two transactions, so any number of processes may share the file.
#[derive(Debug)]
pub struct SqliteLedger {
    node: Node,
    secret: [u8; 32],
    writer: Writer,
    readers: Readers,
    vault: Vault,
    /// Told of what this process wrote for others to look for. Other processes find it when they look.
    hints: Notify,
}

impl SqliteLedger {
    /// Opens the ledger in a file for a node, and makes it where there is none, readable by its owner alone.
    pub fn open(path: &Path, node: Node) -> Result<Self, Error> {
        let opened = schema::open(path).map_err(Error::from).and_then(|(connection, secret)| {
            let file = Arc::new(File::at(path)?);
            let writer = Writer::start(connection, Arc::clone(&file), secret, node.clone())?;
            let readers = Readers::new(file);
            Ok(Self { readers, node, secret, writer, vault: Vault::unlocked(), hints: Notify::new() })
        });
        opened.map_err(|error| match error {
            Error::Unavailable { reason } => Error::Unavailable { reason: format!("`{}`: {reason}", path.display()) },
            other => other,
        })
    }

    /// The time by the clock of another process that uses the ledger on this machine, where one does: whoever joins it goes by
    /// the same clock, though the machine's may have been set since.
    pub async fn clock(&self) -> Result<Option<Timestamp>, Error> {
        self.read(nodes::clock).await
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
        F: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        Box::pin(self.readers.read(read))
    }

    fn write<T: Send + 'static>(&self, work: impl FnOnce(Answer<T>) -> Work) -> Pending<'_, T> {
        let (answer, fate) = oneshot::channel();
        self.writer.queue(work(answer));
        Box::pin(async move { fate.await.unwrap_or_else(|_| Err(Error::writer_stopped())) })
    }

    /// Gives whoever waits in this process a hint once that went well.
    fn hinting<'a, T: Send + 'a>(&'a self, done: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            let done = done.await?;
            self.hints.notify_waiters();
            Ok(done)
        })
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
}

impl Ledger for SqliteLedger {
    fn append(&self, append: Append) -> Commit {
        self.record(append, Haste::Now)
    }

    fn append_soon(&self, append: Append) -> Commit {
        self.record(append, Haste::Soon)
    }

    fn trace(&self, session: &SessionId) -> Pending<'_, Option<Trace>> {
        let session = session.clone();
        self.read(move |connection| reader::trace(connection, &session))
    }

    fn sessions(&self, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        self.read(move |connection| reader::sessions(connection, limit))
    }

    fn sessions_of(&self, tenant: &Tenant, limit: usize) -> Pending<'_, Vec<SessionRow>> {
        let tenant = tenant.clone();
        self.read(move |connection| reader::sessions_of(connection, &tenant, limit))
    }

    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>> {
        let call = call.clone();
        self.read(move |connection| reader::session_of(connection, &call))
    }

    fn holder(&self, session: &SessionId) -> Pending<'_, Option<String>> {
        let session = session.clone();
        self.read(move |connection| nodes::holder(connection, &session))
    }

    fn held(&self, name: &Digest, now: Timestamp) -> Pending<'_, Option<Held>> {
        let name = name.clone();
        self.read(move |connection| {
            let row = reader::claim(connection, &name)?;
            Ok(row.filter(|row| !row.is_over(now)).map(|row| row.held))
        })
    }

    fn answer(&self, call: &CallId) -> Pending<'_, Option<StoredAnswer>> {
        let call = call.clone();
        let answer = self.read(move |connection| reader::answer(connection, &call));
        Box::pin(async move { answer.await?.map(|answer| self.vault.open_answer(answer)).transpose() })
    }

    fn arguments(&self, call: &CallId) -> Pending<'_, Option<StoredArguments>> {
        let call = call.clone();
        let arguments = self.read(move |connection| reader::arguments(connection, &call));
        Box::pin(async move { arguments.await?.map(|arguments| self.vault.open_arguments(arguments)).transpose() })
    }

    fn fields(&self, session: &SessionId) -> Pending<'_, Vec<(u64, Bytes)>> {
        let (session, whose) = (session.clone(), session.clone());
        let stored = self.read(move |connection| fields::of_session(connection, &session));
        Box::pin(async move { self.vault.open_fields(&whose, stored.await?) })
    }

    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>> {
        let hash = hash.clone();
        self.read(move |connection| reader::rules(connection, &hash))
    }

    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        let session = session.clone();
        self.write(move |answer| Work::Take { session, now, reach: Reach::Dead, answer })
    }

    fn take_idle(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>> {
        let session = session.clone();
        self.write(move |answer| Work::Take { session, now, reach: Reach::Idle, answer })
    }

    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        let node = self.node.clone();
        self.read(move |connection| nodes::orphans(connection, &node, now, limit))
    }

    fn due(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>> {
        let node = self.node.clone();
        self.read(move |connection| nodes::due(connection, &node, now, limit))
    }

    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp> {
        self.write(move |answer| Work::Heartbeat(now, answer))
    }

    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64> {
        self.write(move |answer| Work::Sweep { now, limit, answer })
    }

    fn queue(&self, filter: &QueueFilter, limit: usize) -> Pending<'_, Vec<QueueEntry>> {
        let filter = filter.clone();
        self.read(move |connection| questions::queue(connection, &filter, limit))
    }

    fn interaction(&self, id: &InteractionId) -> Pending<'_, Option<QueueEntry>> {
        let id = id.clone();
        let entry =
            self.read(move |connection| Ok(questions::interaction(connection, &id)?.map(InteractionRow::entry)));
        Box::pin(async move { entry.await?.map(|entry| self.vault.open_content(entry)).transpose() })
    }

    fn answer_interaction(&self, id: &InteractionId, given: PersonAnswer) -> Pending<'_, AnswerFate> {
        let id = id.clone();
        match self.vault.seal_content(&id, given) {
            Ok(given) => self.hinting(self.write(move |answer| Work::AnswerInteraction { id, given, answer })),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn posting(&self, id: &InteractionId, posting: Posting, now: Timestamp) -> Pending<'_, bool> {
        let id = id.clone();
        self.write(move |answer| Work::Posting { id, posting, now, answer })
    }

    fn answered(&self, limit: usize) -> Pending<'_, Vec<(SessionId, InteractionId, PersonAnswer)>> {
        self.read(move |connection| questions::answered(connection, limit))
    }

    fn reversal(&self, token: &Digest) -> Pending<'_, Option<ReversalRow>> {
        let token = token.clone();
        let row = self.read(move |connection| reversals::reversal(connection, &token));
        Box::pin(async move { row.await?.map(|row| self.vault.open_reversal(row)).transpose() })
    }

    fn reversals_of(&self, session: &SessionId) -> Pending<'_, Vec<ReversalRow>> {
        let session = session.clone();
        let rows = self.read(move |connection| reversals::of_session(connection, &session));
        Box::pin(async move { rows.await?.into_iter().map(|row| self.vault.open_reversal(row)).collect() })
    }

    fn post(&self, letter: Letter, now: Timestamp) -> Pending<'_, LetterId> {
        match self.vault.seal_letter(letter) {
            Ok(letter) => self.hinting(self.write(move |answer| Work::Post { letter, now, answer })),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn collect(&self, places: &[String], now: Timestamp, limit: usize) -> Pending<'_, Vec<(LetterId, Letter)>> {
        let (node, places) = (self.node.clone(), self.node.collects(places));
        Box::pin(async move {
            // The inbox is looked at often and mostly empty: only what is there is worth the one writer's turn.
            let looked_for = places.clone();
            let free = self.read(move |connection| inbox::free(connection, &node, &looked_for, now, 1)).await?;
            if free.is_empty() {
                return Ok(Vec::new());
            }
            let taken = self.write(move |answer| Work::Collect { places, now, limit, answer }).await?;
            taken.into_iter().map(|(id, letter)| Ok((id, self.vault.open_letter(letter)?))).collect()
        })
    }

    fn reply_letter(&self, id: LetterId, body: Value, now: Timestamp) -> Pending<'_, bool> {
        match self.vault.seal_reply(id, body) {
            Ok(body) => self.hinting(self.write(move |answer| Work::Reply { id, body, now, answer })),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn letter(&self, id: LetterId) -> Pending<'_, Option<LetterState>> {
        let state = self.read(move |connection| inbox::letter(connection, id));
        Box::pin(async move { state.await?.map(|state| self.vault.open_reply(id, state)).transpose() })
    }

    fn pins(&self, place: Option<&Digest>, limit: usize) -> Pending<'_, Vec<PinnedTool>> {
        let place = place.cloned();
        self.read(move |connection| pins::pins(connection, place.as_ref(), limit))
    }

    fn keep_pin(&self, pin: PinnedTool) -> Pending<'_, bool> {
        self.write(move |answer| Work::KeepPin { pin: Box::new(pin), answer })
    }

    fn kept(&self, name: &Digest) -> Pending<'_, Option<Kept>> {
        let name = name.clone();
        let kept = self.read(move |connection| kept::kept(connection, &name));
        Box::pin(async move { kept.await?.map(|kept| self.vault.open_kept(kept)).transpose() })
    }

    fn keep(&self, kept: Kept) -> Pending<'_, bool> {
        match self.vault.seal_kept(kept) {
            Ok(kept) => self.write(move |answer| Work::Keep { kept, answer }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn grants(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<Grant>> {
        self.read(move |connection| grants::good(connection, now, limit))
    }

    fn revoke(&self, name: &Digest) -> Pending<'_, bool> {
        let name = name.clone();
        self.write(move |answer| Work::Revoke { name, answer })
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
        self.read(move |connection| reader::sessions_after(connection, since, after.as_ref(), limit))
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
        self.read(move |connection| reader::sessions_by(connection, &principal, &door, after.as_ref(), limit))
    }

    fn import(&self, row: SessionRow, trace: Trace) -> Pending<'_, bool> {
        match Whole::check(row, trace) {
            Ok(whole) => self.write(move |answer| Work::Import { whole: Box::new(whole), answer }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn import_rules(&self, hash: Digest, body: String) -> Pending<'_, bool> {
        match check_rules(&hash, &body) {
            Ok(_) => self.write(move |answer| Work::ImportRules { hash, body, answer }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn unlogged(&self, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.read(move |connection| log::unlogged(connection, limit))
    }

    fn log(&self, from: u64, limit: usize) -> Pending<'_, Vec<LogEntry>> {
        self.read(move |connection| log::entries(connection, from, limit))
    }

    fn extend_log(&self, expected: u64, entries: Vec<LogEntry>, checkpoint: StoredCheckpoint) -> Pending<'_, bool> {
        self.write(move |answer| Work::ExtendLog { expected, entries, checkpoint, answer })
    }

    fn checkpoints(&self, limit: usize) -> Pending<'_, Vec<StoredCheckpoint>> {
        self.read(move |connection| log::checkpoints(connection, limit))
    }

    fn stored(&self, after: Option<&SessionId>, limit: usize) -> Pending<'_, Vec<StoredSession>> {
        let after = after.cloned();
        self.read(move |connection| stored::stored(connection, after.as_ref(), limit))
    }

    fn stored_rules(&self, hash: &Digest) -> Pending<'_, Option<String>> {
        let hash = hash.clone();
        self.read(move |connection| stored::rules(connection, &hash))
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }
}
