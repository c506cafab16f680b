//! The ledger: it remembers, in memory or in SQLite, behind one trait.
//!
//! One append is one transaction: a step's events, the claims it takes or gives up, the answer it stores. Sessions have a
//! hash chain each, so they never wait for each other. A session belongs to the node that holds its lease.

mod append;
pub mod chain;
mod claims;
mod error;
mod memory;
mod node;
mod row;
mod sqlite;
mod step;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use amends_core::{CallId, Digest, Held, Rules, SessionId, Timestamp};

pub use append::{Append, Appended, Commit, Form, OpenWork, StoredAnswer, StoredArguments};
pub use chain::{ChainFault, FaultKind, Verified, digest, keyed_digest};
pub use error::Error;
pub use memory::MemoryLedger;
pub use node::Node;
pub use row::{Lease, SessionRow, StoredEvent, Trace};
pub use sqlite::SqliteLedger;

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

    /// The session a call belongs to.
    fn session_of(&self, call: &CallId) -> Pending<'_, Option<SessionId>>;

    /// Who holds a claim at that time, if anybody does.
    fn held(&self, name: &Digest, now: Timestamp) -> Pending<'_, Option<Held>>;

    /// The answer stored for a call that ended, while it is kept.
    fn answer(&self, call: &CallId) -> Pending<'_, Option<StoredAnswer>>;

    /// The arguments kept for an open call.
    fn arguments(&self, call: &CallId) -> Pending<'_, Option<StoredArguments>>;

    /// The rules of that digest, as an earlier append stored them.
    fn rules(&self, hash: &Digest) -> Pending<'_, Option<Arc<Rules>>>;

    /// Takes the lease of a session for this node: it is free, its node is dead, or it is ours already. The epoch goes up,
    /// so that whoever held it can no longer append. `None` while another living node holds it, or where there is none.
    fn take(&self, session: &SessionId, now: Timestamp) -> Pending<'_, Option<Lease>>;

    /// Sessions with open calls whose node is dead, at most `limit` of them.
    fn orphans(&self, now: Timestamp, limit: usize) -> Pending<'_, Vec<SessionId>>;

    /// Says that this node lives, and until when it may send. A node that has never said so counts as dead.
    fn heartbeat(&self, now: Timestamp) -> Pending<'_, Timestamp>;

    /// Drops what is over: answers, claims, arguments of calls that are not open, dead nodes without open calls. At most
    /// `limit` of each.
    fn sweep(&self, now: Timestamp, limit: usize) -> Pending<'_, u64>;

    /// Recomputes every chain and compares it with what is stored.
    fn verify(&self) -> Pending<'_, Verified>;

    /// The secret under which digests are keyed. Made once for each ledger.
    fn secret(&self) -> [u8; 32];
}
