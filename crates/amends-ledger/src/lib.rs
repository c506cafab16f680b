//! The ledger: it remembers, in memory, in SQLite or in PostgreSQL, behind one trait.
//!
//! One append is one transaction: a step's events, the claims it takes or gives up, the answer it stores, the questions it
//! asks, the reversal tokens it mints or spends. Sessions have a hash chain each, so they never wait for each other. A
//! session belongs to the node that holds its lease. What arrives at another node is answered or posted here, and the one
//! that can act looks for it.

pub mod anchor;
mod append;
pub mod chain;
mod claims;
mod error;
mod glance;
mod grant;
mod interactions;
mod kept;
mod letter;
mod log;
mod memory;
pub mod merkle;
mod node;
pub mod note;
mod pin;
mod postgres;
pub mod proof;
mod reversals;
mod row;
mod sqlite;
mod step;
mod stored;
mod vault;
mod verify;
mod whole;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use amends_core::{CallId, Digest, Held, InteractionId, PersonAnswer, Principal, Rules, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use serde_json::Value;

pub use append::{Append, Appended, Commit, Form, OpenWork, StoredAnswer, StoredArguments, StoredFields};
pub use chain::{digest, exactly, keyed_digest, rules_digest};
pub use claims::{ClaimRow, Left as ClaimLeft, decide as decide_claims};
pub use error::Error;
pub use glance::Glance;
pub use grant::Grant;
pub use interactions::{AnswerFate, Closing, Posting, QueueEntry, QueueFilter, QueueState};
pub use kept::Kept;
pub use letter::{Letter, LetterId, LetterState};
pub use log::{Checkpoint, LogEntry, StoredCheckpoint, origin};
pub use memory::MemoryLedger;
pub use node::{Node, uptime_ms};
pub use pin::{Definition, PinnedTool};
pub use postgres::{LeaseClock, PostgresLedger};
pub use reversals::{ReversalRow, StoredUndo, decide as decide_reversals};
pub use row::{Lease, SessionRow, StoredEvent, StoredRecord, StoredSession, StoredTip, Trace};
pub use sqlite::SqliteLedger;
pub use vault::{KeyError, Vault, new_key};
pub use verify::{FAULTS_MAX, Fault, FaultKind, Proven, Verified, VerifyOptions, verify};

/// A future that a ledger hands out.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// What every store can do. One suite runs over all of them.
pub trait Ledger: Debug + Send + Sync {
    /// Records a step in one transaction. The step is queued when this is called, in the order of the calls, and durable
    /// when the commit says so; steps of one session may be queued behind each other.
    fn append(&self, append: Append) -> Commit;

    /// The same for a step that nobody waits for: a store may hold it back for a few milliseconds, so that it shares a
    /// write to the disk with others. It keeps its place among the session's steps.
    fn append_soon(&self, append: Append) -> Commit {
        self.append(append)
    }

    /// A session's events, in order, with their hashes. `None` where there is no such session.
    fn trace(&self, session: &SessionId) -> Pending<'_, Option<Trace>>;

    /// The newest sessions first, at most `limit` of them.
    fn sessions(&self, limit: usize) -> Pending<'_, Vec<SessionRow>>;

    /// The newest sessions of a tenant first, at most `limit` of them.
    fn sessions_of(&self, tenant: &Tenant, limit: usize) -> Pending<'_, Vec<SessionRow>>;

    /// The session a call belongs to.
    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>>;

    /// Where to post a letter for the node that holds the session, dead or alive. `None` where there is no such session.
    fn holder(&self, session: &SessionId) -> Pending<'_, Option<String>>;

    /// Who holds a claim at that time, if anybody does.
    fn held(&self, name: &Digest, now: Timestamp) -> Pending<'_, Option<Held>>;

    /// The answer stored for a call that ended, while it is kept.
    fn answer(&self, call: &CallId) -> Pending<'_, Option<StoredAnswer>>;

    /// The arguments kept for an open call.
    fn arguments(&self, call: &CallId) -> Pending<'_, Option<StoredArguments>>;

    /// What was written into a walk's fields: the number of each move that wrote some, and what it wrote, in the order of
    /// the numbers. Nothing once the session was retired, or where it came from another ledger.
    fn fields(&self, session: &SessionId) -> Pending<'_, Vec<(u64, Bytes)>>;

    /// The rules of that digest, as an earlier append stored them.
    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>>;

    /// Takes the lease of a session for this node: it is free, its node is dead, or it is ours already. The epoch goes up,
    /// so that whoever held it can no longer append. `None` while another living node holds it, or where there is none.
    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>>;

    /// The same, and also from a living node where the session rests: it has no open calls, and no question that is not closed.
    fn take_idle(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>>;

    /// Sessions whose node is dead and that have something to do: open calls, an answered question, or a deadline that has
    /// passed. At most `limit` of them.
    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>>;

    /// Sessions without open calls that have a question which is due or answered, and whose node is this one or dead: nobody
    /// may be driving them. At most `limit` of them.
    fn due(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>>;

    /// Says that this node lives, and until when it may send. A node that has never said so counts as dead.
    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp>;

    /// Drops what is over: answers, claims, arguments of calls of sessions with nothing open, dead nodes without open calls,
    /// questions long closed, how to undo what can no longer be undone, letters long replied to. At most `limit` of each.
    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64>;

    /// The questions to people, the one that is due first in front, at most `limit` of them.
    fn queue(&self, filter: &QueueFilter, limit: usize) -> Pending<'_, Vec<QueueEntry>>;

    /// A question, while it is kept.
    fn interaction(&self, id: &InteractionId) -> Pending<'_, Option<QueueEntry>>;

    /// Takes a person's answer to a question, if it is the first, one of the options, and the question is not closed. When
    /// it says so, the answer is durable. The session acts on it later, and closes the question.
    fn answer_interaction(&self, id: &InteractionId, answer: PersonAnswer) -> Pending<'_, AnswerFate>;

    /// Records how far a question is on its way to an address. `false` where it is over or was taken there before, or where another
    /// node is posting it; then nothing is changed.
    fn posting(&self, id: &InteractionId, posting: Posting, now: Timestamp) -> Pending<'_, bool>;

    /// Questions of all sessions that were answered and that their session has not closed, the oldest answers first.
    fn answered(&self, limit: usize) -> Pending<'_, Vec<(SessionId, InteractionId, PersonAnswer)>>;

    /// A reversal token, by its digest.
    fn reversal(&self, token: &Digest) -> Pending<'_, Option<ReversalRow>>;

    /// The tokens of a session's writes, the one minted last in front.
    fn reversals_of(&self, session: &SessionId) -> Pending<'_, Vec<ReversalRow>>;

    /// Puts a letter into the inbox. It is kept until somebody has replied to it.
    fn post(&self, letter: Letter, now: Timestamp) -> Pending<'_, LetterId>;

    /// Takes letters for this node, the oldest first: those for nobody in particular, for this node, or for one of these places,
    /// that are free or whose taker is dead. A letter may so be acted upon twice, if its taker died after it had acted.
    fn collect(&self, places: &[String], now: Timestamp, limit: usize) -> Pending<'_, Vec<(LetterId, Letter)>>;

    /// Replies to a letter, which is done with it. `false` where it has a reply already, or is not known.
    fn reply_letter(&self, id: LetterId, body: Value, now: Timestamp) -> Pending<'_, bool>;

    /// Where a letter stands, while it is kept.
    fn letter(&self, id: LetterId) -> Pending<'_, Option<LetterState>>;

    /// Sessions that were opened at `since` or later, the oldest first, then by id: those that come after the session
    /// `after`, at most `limit` of them. For walking over a whole ledger in pieces.
    fn sessions_after(
        &self,
        since: Timestamp,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>>;

    /// The sessions of one principal through one door, but for walks: the oldest first, then by id, those that come after the
    /// session `after`, at most `limit` of them. For walking over all of them in pieces.
    fn sessions_by(
        &self,
        principal: &Principal,
        door: &str,
        after: Option<&SessionRow>,
        limit: usize,
    ) -> Pending<'_, Vec<SessionRow>>;

    /// Heads of sessions that have gone on since their last entry in the log, or have none; at most `limit` of them.
    fn unlogged(&self, limit: usize) -> Pending<'_, Vec<LogEntry>>;

    /// The log's entries from that place on, in order, at most `limit` of them. The first entry has place 0.
    fn log(&self, from: u64, limit: usize) -> Pending<'_, Vec<LogEntry>>;

    /// Adds entries to the log and keeps the checkpoint that covers them, in one transaction, if the log has exactly
    /// `expected` entries; `false` where it has not, and then nothing is changed. Entries may be none.
    fn extend_log(&self, expected: u64, entries: Vec<LogEntry>, checkpoint: StoredCheckpoint) -> Pending<'_, bool>;

    /// The newest checkpoints first, at most `limit` of them.
    fn checkpoints(&self, limit: usize) -> Pending<'_, Vec<StoredCheckpoint>>;

    /// Puts a session of another ledger here, with its events and hashes as they were. It belongs to no living node and
    /// leaves nothing open. `false` where there is such a session already, and then nothing is changed.
    fn import(&self, row: SessionRow, trace: Trace) -> Pending<'_, bool>;

    /// The pinned tools of one place, or of all, at most `limit` of them.
    fn pins(&self, place: Option<&Digest>, limit: usize) -> Pending<'_, Vec<PinnedTool>>;

    /// Keeps a pinned tool, if its version follows the one that is kept; `false` where it does not, and then nothing is
    /// changed.
    fn keep_pin(&self, pin: PinnedTool) -> Pending<'_, bool>;

    /// What is kept under that name.
    fn kept(&self, name: &Digest) -> Pending<'_, Option<Kept>>;

    /// Keeps something under its name, if its version follows the one that is kept; `false` where it does not, and then nothing
    /// is changed.
    fn keep(&self, kept: Kept) -> Pending<'_, bool>;

    /// What people said yes to beforehand and is good at that time, in the order of the names, at most `limit` of them.
    fn grants(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<Grant>>;

    /// Takes back what people said yes to beforehand. `false` where there is nothing of that name, or a call has spent it.
    fn revoke(&self, name: &Digest) -> Pending<'_, bool>;

    /// Keeps rules of another ledger as they are written there, so that its sessions can be decided again here. A text that has
    /// not that digest is refused; rules that are there already are left as they are.
    fn import_rules(&self, hash: Digest, body: String) -> Pending<'_, bool>;

    /// Waits until somebody else may have answered a question, posted a letter or replied to one: a hint, which may come
    /// for nothing and may fail to come. Whoever waits must look by itself from time to time.
    fn hint(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Sessions exactly as they are stored, for whoever trusts nothing of it: those whose id comes after `after`, in the
    /// order of their ids, at most `limit` of them. Each is read at one moment. A session of which only events are left
    /// is among them.
    fn stored(&self, after: Option<&SessionId>, limit: usize) -> Pending<'_, Vec<StoredSession>>;

    /// The text that is kept as the rules of that digest, for whoever trusts nothing of it. Where a store does not give it
    /// out, it is written anew from what it reads of it.
    fn stored_rules(&self, hash: &Digest) -> Pending<'_, Option<String>> {
        let rules = self.rules(hash);
        Box::pin(async move {
            let written = rules.await?.map(|rules| serde_json::to_string(&*rules)).transpose();
            written.map_err(|error| Error::Corrupt { reason: format!("rules cannot be written: {error}") })
        })
    }

    /// The secret under which digests are keyed. Made once for each ledger.
    fn secret(&self) -> [u8; 32];
}
