//! The one thread that writes.
//!
//! It takes everything that is queued, applies it in one transaction, and answers after the commit, so that many steps
//! share one write to the disk. If anything fails in the transaction, nobody is told that his step was recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amends_core::{Digest, InteractionId, PersonAnswer, SessionId, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use serde_json::Value;
use tokio::sync::oneshot;

use super::file::File;
use super::trouble::Trouble;
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

/// How much may wait to be written.
const QUEUE_MAX: usize = 65_536;

/// How long what nobody waits for is held back.
const SOON: Duration = Duration::from_millis(5);

/// How much is written in one transaction. Other processes wait meanwhile.
const BATCH_MAX: usize = 1_024;

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
    queue: Option<Sender<Work>>,
    queued: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, file: Arc<File>, secret: [u8; 32], node: Node) -> Result<Self, Error> {
        let (queue, work) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let hand = Hand { connection: Some(connection), file, secret, node };
        let counter = Arc::clone(&queued);
        let thread = thread::Builder::new()
            .name("amends-ledger".into())
            .spawn(move || hand.write_all(&work, &counter))
            .map_err(|error| Error::Unavailable { reason: format!("the ledger's writer cannot start: {error}") })?;
        Ok(Self { queue: Some(queue), queued, thread: Some(thread) })
    }

    /// Queues something to be written, in the order of the calls. It does not wait.
    pub(super) fn queue(&self, work: Work) {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            work.fail(&Error::Unavailable { reason: "its queue is full".into() });
        } else if let Some(queue) = &self.queue {
            // If the writer has stopped, the answer is dropped with the work, and whoever waits for it is told.
            drop(queue.send(work));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What the writing thread holds.
struct Hand {
    /// Nothing after a failure, until the file could be opened again.
    connection: Option<Connection>,
    file: Arc<File>,
    secret: [u8; 32],
    node: Node,
}

/// Tells the fate of one piece of work, once it is known whether the batch was committed.
type Reply = Box<dyn FnOnce(Option<&Error>)>;

impl Hand {
    fn write_all(mut self, queue: &Receiver<Work>, queued: &AtomicUsize) {
        // Ends when the ledger is dropped: then nobody can queue any more, and what was queued has been received.
        while let Ok(first) = queue.recv() {
            let batch = gather(first, queue);
            queued.fetch_sub(batch.len(), Ordering::Relaxed);
            self.write(batch);
        }
    }

    fn write(&mut self, batch: Vec<Work>) {
        let mut replies = Vec::with_capacity(batch.len());
        let mut batch = batch.into_iter();
        match self.commit(&mut batch, &mut replies) {
            Ok(()) => replies.into_iter().for_each(|reply| reply(None)),
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
        for work in batch {
            retired |= work.retires();
            let (reply, broken) = work.apply(&tx, &self.node);
            replies.push(reply);
            if let Some(error) = broken {
                return Err(error.into());
            }
        }
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
        thread::sleep(Duration::from_millis(ms));
    }
}

/// Nothing happens here: a release build has no such file.
#[cfg(not(debug_assertions))]
fn stall() {}

/// Everything that is queued. While nobody waits for any of it, a little more is waited for.
fn gather(first: Work, queue: &Receiver<Work>) -> Vec<Work> {
    let until = Instant::now() + SOON;
    let mut hurried = first.is_hurried();
    let mut batch = vec![first];
    // Ends: each turn adds to a bounded batch, or the time is over.
    while batch.len() < BATCH_MAX {
        let next = match queue.try_recv() {
            Ok(work) => work,
            Err(_) if hurried => break,
            Err(_) => match queue.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(work) => work,
                Err(_) => break,
            },
        };
        hurried |= next.is_hurried();
        batch.push(next);
    }
    batch
}

impl Work {
    fn apply(self, tx: &Connection, node: &Node) -> (Reply, Option<rusqlite::Error>) {
        match self {
            Self::Append(step, answer, _) => owe(answer, record::record(tx, node, *step)),
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
    fn is_hurried(&self) -> bool {
        !matches!(self, Self::Append(_, _, Haste::Soon))
    }

    /// Tells that it was not written.
    fn fail(self, error: &Error) {
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
