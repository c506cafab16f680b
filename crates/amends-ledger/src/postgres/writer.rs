//! The one task that writes.
//!
//! It takes what is queued, records steps that stand behind each other in one transaction, and answers after the commit.
//! A transaction that met another node's is done again. If its commit was not answered, nobody is told that his step was
//! recorded, although it may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{Connection, SILENCE_MAX, Target};
use super::reader::Doing;
use super::record::{self, record};
use super::trouble::Trouble;
use crate::append::Appended;
use crate::error::Error;
use crate::node::Node;
use crate::step::Step;

/// How much may wait to be written.
const QUEUE_MAX: usize = 65_536;

/// How long what nobody waits for is held back.
const SOON: Duration = Duration::from_millis(5);

/// How much is taken from the queue at once.
const BATCH_MAX: usize = 512;

/// How often something is done again that met another node's work.
const TRIES_MAX: u32 = 8;

/// How long after a failure nobody tries to connect, at first and at most.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

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
pub(super) enum Work {
    Append(Box<Step>, Answer<Appended>, Haste),
    Other(Box<dyn Job>),
}

/// Something that is done in a transaction of its own.
pub(super) trait Job: Send {
    /// Does it, and keeps what it gave. It may be done again.
    fn run<'a>(&'a mut self, connection: &'a Connection) -> Doing<'a, ()>;

    /// Tells what it gave, or that it was not done.
    fn tell(self: Box<Self>, failure: Option<Error>);
}

/// A job made of a function.
pub(super) struct Deed<T, F> {
    pub(super) doing: F,
    pub(super) answer: Answer<T>,
    pub(super) done: Option<T>,
}

impl<T, F> Job for Deed<T, F>
where
    T: Send,
    F: for<'a> Fn(&'a Connection) -> Doing<'a, T> + Send,
{
    fn run<'a>(&'a mut self, connection: &'a Connection) -> Doing<'a, ()> {
        let doing = (self.doing)(connection);
        let done = &mut self.done;
        Box::pin(async move {
            *done = Some(doing.await?);
            Ok(())
        })
    }

    fn tell(self: Box<Self>, failure: Option<Error>) {
        let fate = match (failure, self.done) {
            (None, Some(done)) => Ok(done),
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::writer_stopped()),
        };
        // Whoever asked may have gone.
        drop(self.answer.send(fate));
    }
}

/// The queue before the task that writes. When it is dropped, what is queued is still written.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::UnboundedSender<Work>,
    queued: Arc<AtomicUsize>,
}

impl Writer {
    pub(super) fn start(connection: Connection, target: Target, secret: [u8; 32], node: Node) -> Self {
        let (queue, work) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let hand =
            Hand { connection: Some(connection), prepared: false, target, secret, node, backoff: BACKOFF, away: None };
        tokio::spawn(hand.write_all(work, Arc::clone(&queued)));
        Self { queue, queued }
    }

    /// Queues something to be written, in the order of the calls. It does not wait.
    pub(super) fn queue(&self, work: Work) {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            work.fail(Error::Unavailable { reason: "its queue is full".into() });
        } else {
            // If the writer has stopped, the answer is dropped with the work, and whoever waits for it is told.
            drop(self.queue.send(work));
        }
    }
}

/// What the writing task holds.
struct Hand {
    /// Nothing after a failure, until PostgreSQL is there again.
    connection: Option<Connection>,
    /// Whether the statements of a group are prepared.
    prepared: bool,
    target: Target,
    secret: [u8; 32],
    node: Node,
    backoff: Duration,
    /// Until when nobody tries to connect, and what PostgreSQL's last failure was.
    away: Option<(Instant, Error)>,
}

/// Why a transaction was not committed, or may not have been.
struct Failure {
    trouble: Trouble,
    /// Whether its commit was sent, and nothing certain was heard of it.
    in_doubt: bool,
}

type Queued = (Box<Step>, Answer<Appended>);

impl Hand {
    async fn write_all(mut self, mut queue: mpsc::UnboundedReceiver<Work>, queued: Arc<AtomicUsize>) {
        // Ends when the ledger is dropped: then nobody can queue any more, and what was queued has been received.
        while let Some(first) = queue.recv().await {
            let batch = gather(first, &mut queue).await;
            queued.fetch_sub(batch.len(), Ordering::Relaxed);
            let mut group: Vec<Queued> = Vec::new();
            for work in batch {
                match work {
                    Work::Append(step, answer, _) => {
                        let retires = step.retires;
                        group.push((step, answer));
                        if retires {
                            self.write_group(std::mem::take(&mut group)).await;
                        }
                    }
                    Work::Other(job) => {
                        self.write_group(std::mem::take(&mut group)).await;
                        self.write_job(job).await;
                    }
                }
            }
            self.write_group(group).await;
        }
    }

    /// Records steps together. Where that does not go, one of them may be the reason, and each is recorded by itself.
    async fn write_group(&mut self, group: Vec<Queued>) {
        if group.is_empty() {
            return;
        }
        let steps: Vec<&Step> = group.iter().map(|(step, _)| &**step).collect();
        match self.try_group(&steps).await {
            Ok(fates) => tell(group, fates),
            Err(failure) if failure.in_doubt || !failure.trouble.is_told() || group.len() == 1 => {
                let error = failure.trouble.told();
                let fates = vec![Err(error); group.len()];
                tell(group, fates);
            }
            Err(_) => {
                for queued in group {
                    Box::pin(self.write_group(vec![queued])).await;
                }
            }
        }
    }

    async fn try_group(&mut self, steps: &[&Step]) -> Result<Vec<Result<Appended, Error>>, Failure> {
        let mut tries = Tries::default();
        loop {
            let node = self.node.clone();
            let connection = self.connection().await.map_err(certain)?;
            let fate = match patiently(record(connection, &node, steps)).await {
                Ok(fates) => commit(connection).await.map(|()| fates),
                Err(trouble) => Err(certain(trouble)),
            };
            match self.settle(fate, &mut tries).await {
                Some(fate) => return fate,
                None => continue,
            }
        }
    }

    async fn write_job(&mut self, mut job: Box<dyn Job>) {
        let mut tries = Tries::default();
        loop {
            let connection = match self.connection().await {
                Ok(connection) => connection,
                Err(trouble) => return job.tell(Some(trouble.into())),
            };
            let doing = async {
                connection.run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
                job.run(connection).await
            };
            let fate = match patiently(doing).await {
                Ok(()) => commit(connection).await,
                Err(trouble) => Err(certain(trouble)),
            };
            match self.settle(fate, &mut tries).await {
                Some(fate) => return job.tell(fate.err().map(|failure| failure.trouble.told())),
                None => continue,
            }
        }
    }

    /// What a transaction came to; nothing where it is to be tried again. A transaction that failed is left behind.
    async fn settle<T>(&mut self, fate: Result<T, Failure>, tries: &mut Tries) -> Option<Result<T, Failure>> {
        let failure = match fate {
            Ok(done) => {
                self.backoff = BACKOFF;
                return Some(Ok(done));
            }
            Err(failure) => failure,
        };
        let usable = failure.trouble.is_told() && !failure.in_doubt;
        let rolled_back = match &self.connection {
            Some(connection) if usable => patiently(connection.run("ROLLBACK")).await.is_ok(),
            _ => false,
        };
        if !rolled_back {
            self.connection = None;
        }
        if failure.in_doubt {
            return Some(Err(failure));
        }
        if failure.trouble.is_passing() && tries.met < TRIES_MAX {
            tries.met += 1;
            // Whoever was quicker gets on with it.
            sleep(Duration::from_millis(u64::from(tries.met))).await;
            return None;
        }
        // It broke before anything was to be committed, perhaps long ago while nobody looked.
        if !failure.trouble.is_told() && !tries.reconnected && !matches!(failure.trouble, Trouble::Silent) {
            tries.reconnected = true;
            return None;
        }
        Some(Err(failure))
    }

    /// The connection, made anew where it was lost. For a while after a failure it is not even tried.
    async fn connection(&mut self) -> Result<&Connection, Trouble> {
        if self.connection.is_none() {
            if let Some((until, error)) = &self.away
                && Instant::now() < *until
            {
                return Err(Trouble::Away(error.clone()));
            }
            match self.target.reconnect(&self.secret).await {
                Ok(connection) => {
                    (self.connection, self.prepared, self.away) = (Some(connection), false, None);
                }
                Err(trouble) => {
                    let error = Error::from(trouble);
                    self.away = Some((Instant::now() + self.backoff, error.clone()));
                    self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
                    return Err(Trouble::Away(error));
                }
            }
        }
        if !self.prepared
            && let Some(connection) = &self.connection
        {
            if let Err(trouble) = patiently(connection.prepare(&record::STATEMENTS)).await {
                self.connection = None;
                return Err(trouble);
            }
            self.prepared = true;
        }
        self.connection.as_ref().ok_or(Trouble::Silent)
    }
}

/// How often a piece of work was tried again.
#[derive(Default)]
struct Tries {
    /// Since it met another node's work.
    met: u32,
    /// Since its connection had broken.
    reconnected: bool,
}

/// Everything that is queued. While nobody waits for any of it, a little more is waited for.
async fn gather(first: Work, queue: &mut mpsc::UnboundedReceiver<Work>) -> Vec<Work> {
    let until = Instant::now() + SOON;
    let mut hurried = first.is_hurried();
    let mut batch = vec![first];
    // Ends: each turn adds to a bounded batch, or the time is over.
    while batch.len() < BATCH_MAX {
        let next = match queue.try_recv() {
            Ok(work) => work,
            Err(_) if hurried => break,
            Err(_) => match timeout_at(until, queue.recv()).await {
                Ok(Some(work)) => work,
                Ok(None) | Err(_) => break,
            },
        };
        hurried |= next.is_hurried();
        batch.push(next);
    }
    batch
}

impl Work {
    /// Whether somebody waits for it.
    fn is_hurried(&self) -> bool {
        !matches!(self, Self::Append(_, _, Haste::Soon))
    }

    fn fail(self, error: Error) {
        match self {
            Self::Append(_, answer, _) => drop(answer.send(Err(error))),
            Self::Other(job) => job.tell(Some(error)),
        }
    }
}

fn tell(group: Vec<Queued>, fates: Vec<Result<Appended, Error>>) {
    for ((_, answer), fate) in group.into_iter().zip(fates) {
        // Whoever queued it may have gone.
        drop(answer.send(fate));
    }
}

/// Commits. Where PostgreSQL says that it did not, that is certain; where it says nothing, nothing is. A commit that waits
/// for a standby must not be cut short: PostgreSQL would then say that it was done, and the standby might not have it.
async fn commit(connection: &Connection) -> Result<(), Failure> {
    match patiently(connection.run("SET LOCAL statement_timeout = 0; COMMIT")).await {
        Ok(()) => Ok(()),
        Err(trouble) => Err(Failure { in_doubt: !trouble.is_told(), trouble }),
    }
}

fn certain(trouble: Trouble) -> Failure {
    Failure { trouble, in_doubt: false }
}

async fn patiently<T>(doing: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    timeout(SILENCE_MAX, doing).await.unwrap_or(Err(Trouble::Silent))
}
