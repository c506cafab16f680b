//! The one thread that writes.
//!
//! It takes everything that is queued, applies it in one transaction, and answers after the commit, so that many steps
//! share one write to the disk. If anything fails in the transaction, nobody is told that his step was recorded.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use amends_core::{Digest, InteractionId, PersonAnswer, SessionId, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use serde_json::Value;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::file::File;
use super::queue::Queue;
use super::trouble::Trouble;
use super::write_back::WriteBack;
use super::{grants, inbox, kept, log, nodes, pins, questions, record, retire, schema, sweep};
use crate::append::Appended;
use crate::error::Error;
use crate::interactions::{AnswerFate, Posting};
use crate::kept::Kept;
use crate::letter::{Letter, LetterId};
use crate::log::{LogEntry, StoredCheckpoint};
use crate::node::Node;
use crate::pin::PinnedTool;
use crate::row::{Lease, Reach};
use crate::step::Step;
use crate::whole::Whole;

/// Where the fate of something written is told.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// How long something may wait for others to be written with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// Not at all: somebody waits for it.
    Now,
    /// A few milliseconds.
    Soon,
}

/// Something to write, and where its fate is told.
#[derive(Debug)]
pub(super) enum Work {
    Append(Box<Step>, Answer<Appended>, Haste),
    Take { session: SessionId, now: Timestamp, reach: Reach, answer: Answer<Option<Lease>> },
    Heartbeat(Timestamp, Answer<Timestamp>),
    Sweep { now: Timestamp, limit: usize, answer: Answer<u64> },
    AnswerInteraction { id: InteractionId, given: PersonAnswer, answer: Answer<AnswerFate> },
    Post { letter: Letter, now: Timestamp, answer: Answer<LetterId> },
    Collect { places: Vec<String>, now: Timestamp, limit: usize, answer: Answer<Vec<(LetterId, Letter)>> },
    Reply { id: LetterId, body: Value, now: Timestamp, answer: Answer<bool> },
    Import { whole: Box<Whole>, answer: Answer<bool> },
    KeepPin { pin: Box<PinnedTool>, answer: Answer<bool> },
    Posting { id: InteractionId, posting: Posting, now: Timestamp, answer: Answer<bool> },
    Keep { kept: Kept, answer: Answer<bool> },
    Revoke { name: Digest, answer: Answer<bool> },
    ImportRules { hash: Digest, body: String, answer: Answer<bool> },
    ExtendLog { expected: u64, entries: Vec<LogEntry>, checkpoint: StoredCheckpoint, answer: Answer<bool> },
}

/// The thread that writes, and the queue before it. When it is dropped, what is queued is written first.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, file: Arc<File>, secret: [u8; 32], node: Node) -> Result<Self, Error> {
        let queue = Arc::new(Queue::default());
        let hand = Hand { connection: Some(connection), file, secret, node, write_back: WriteBack::default() };
        let writes = Writes(queue.clone());
        let thread = thread::Builder::new()
            .name("amends-ledger".into())
            .spawn(move || hand.write_all(&writes))
            .map_err(|error| Error::Unavailable { reason: format!("the ledger's writer cannot start: {error}") })?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Queues something to be written, in the order of the calls. It does not wait.
    pub(super) fn queue(&self, work: Work) {
        self.queue.put(work);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The queue of somebody who writes. When it is dropped, also by a panic, nobody does any more.
struct Writes(Arc<Queue>);

impl Drop for Writes {
    fn drop(&mut self) {
        self.0.desert();
    }
}

/// What the writing thread holds.
struct Hand {
    /// Nothing after a failure, until the file could be opened again.
    connection: Option<Connection>,
    file: Arc<File>,
    secret: [u8; 32],
    node: Node,
    write_back: WriteBack,
}

/// Tells the fate of one piece of work, once it is known whether the batch was committed.
type Reply = Box<dyn FnOnce(Option<&Error>)>;

impl Hand {
    fn write_all(mut self, Writes(queue): &Writes) {
        // Ends when the ledger is dropped: then nobody can queue any more, and what was queued has been taken.
        while let Some(batch) = queue.take() {
            self.write(batch);
        }
    }

    fn write(&mut self, batch: Vec<Work>) {
        let mut replies = Vec::with_capacity(batch.len());
        let mut batch = batch.into_iter();
        match self.commit(&mut batch, &mut replies) {
            // The last first: a driver waits for the oldest of its steps, and is woken once, when all of them are known.
            Ok(()) => {
                replies.into_iter().rev().for_each(|reply| reply(None));
                if let Some(connection) = &self.connection {
                    self.write_back.after_commit(connection, &self.file.path);
                }
            }
            Err(error) => {
                // It may be committed all the same. What is there is read anew before anything else is written.
                self.connection = None;
                let error = match Error::from(error) {
                    Error::Unavailable { reason } => Error::Unavailable { reason },
                    other => Error::Unavailable { reason: other.to_string() },
                };
                replies.into_iter().for_each(|reply| reply(Some(&error)));
                batch.for_each(|work| work.fail(&error));
            }
        }
    }

    fn commit(&mut self, batch: &mut impl Iterator<Item = Work>, replies: &mut Vec<Reply>) -> Result<(), Trouble> {
        self.file.still_there()?;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(schema::reopen(&self.file.path, &self.secret)?),
        };
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut retired = false;
        let mut left = Batch::default();
        for work in batch {
            // Whatever is no step finds the tables as they are.
            if !matches!(work, Work::Append(..))
                && let Err(trouble) = left.write(&tx, &self.node)
            {
                let error = Error::from(trouble);
                work.fail(&error);
                return Err(error.into());
            }
            retired |= work.retires();
            let (reply, broken) = work.apply(&tx, &self.node, &mut left);
            replies.push(reply);
            if let Some(error) = broken {
                return Err(error.into());
            }
        }
        left.write(&tx, &self.node)?;
        stall();
        tx.commit()?;
        if retired {
            retire::empty_log(connection);
        }
        Ok(())
    }
}

/// Takes as long as a test asks for: so many milliseconds as the file says that `AMENDS_SLOW_DISK_MS` names.
#[cfg(debug_assertions)]
fn stall() {
    let file = std::env::var_os("AMENDS_SLOW_DISK_MS");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if let Ok(ms) = text.trim().parse() {
        thread::sleep(std::time::Duration::from_millis(ms));
    }
}

/// Nothing happens here: a release build has no such file.
#[cfg(not(debug_assertions))]
fn stall() {}

impl Work {
    fn apply(self, tx: &Connection, node: &Node, left: &mut Batch) -> (Reply, Option<rusqlite::Error>) {
        match self {
            Self::Append(step, answer, _) => owe(answer, record::record(tx, node, left, *step)),
            Self::Take { session, now, reach, answer } => owe(answer, nodes::take(tx, node, &session, now, reach)),
            Self::Heartbeat(now, answer) => owe(answer, nodes::heartbeat(tx, node, now)),
            Self::Sweep { now, limit, answer } => owe(answer, sweep::sweep(tx, now, limit)),
            Self::AnswerInteraction { id, given, answer } => owe(answer, questions::answer(tx, &id, &given)),
            Self::Post { letter, now, answer } => owe(answer, inbox::post(tx, &letter, now)),
            Self::Collect { places, now, limit, answer } => owe(answer, inbox::collect(tx, node, &places, now, limit)),
            Self::Reply { id, body, now, answer } => owe(answer, inbox::reply(tx, id, &body, now)),
            Self::Import { whole, answer } => owe(answer, retire::import(tx, &whole)),
            Self::KeepPin { pin, answer } => owe(answer, pins::keep(tx, &pin)),
            Self::Posting { id, posting, now, answer } => owe(answer, questions::posting(tx, node, &id, posting, now)),
            Self::Keep { kept, answer } => owe(answer, kept::keep(tx, &kept)),
            Self::Revoke { name, answer } => owe(answer, grants::revoke(tx, &name)),
            Self::ImportRules { hash, body, answer } => owe(answer, retire::import_rules(tx, &hash, &body)),
            Self::ExtendLog { expected, entries, checkpoint, answer } => {
                owe(answer, log::extend(tx, expected, &entries, &checkpoint))
            }
        }
    }

    /// Whether it drops events.
    fn retires(&self) -> bool {
        matches!(self, Self::Append(step, ..) if step.retires)
    }

    /// Whether somebody waits for it.
    pub(super) fn is_hurried(&self) -> bool {
        !matches!(self, Self::Append(_, _, Haste::Soon))
    }

    /// Tells that it was not written.
    pub(super) fn fail(self, error: &Error) {
        match self {
            Self::Append(_, answer, _) => drop(answer.send(Err(error.clone()))),
            Self::Take { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Heartbeat(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Sweep { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::AnswerInteraction { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Post { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Collect { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Reply { answer, .. }
            | Self::ExtendLog { answer, .. }
            | Self::Import { answer, .. }
            | Self::KeepPin { answer, .. }
            | Self::Posting { answer, .. }
            | Self::Keep { answer, .. }
            | Self::Revoke { answer, .. }
            | Self::ImportRules { answer, .. } => drop(answer.send(Err(error.clone()))),
        }
    }
}

fn owe<T: 'static>(answer: Answer<T>, fate: Result<T, Trouble>) -> (Reply, Option<rusqlite::Error>) {
    let (fate, broken) = match fate {
        Ok(done) => (Ok(done), None),
        Err(Trouble::Refused(error)) => (Err(error), None),
        Err(Trouble::Broken(error)) => (Err(super::trouble::unavailable(&error)), Some(error)),
    };
    let reply = Box::new(move |failure: Option<&Error>| {
        drop(answer.send(match failure {
            None => fate,
            Some(error) => Err(error.clone()),
        }));
    });
    (reply, broken)
}
