//! A look at a ledger from outside, which makes and changes nothing: for whoever looks for trouble.

use std::path::Path;

use amends_core::Timestamp;

use crate::chain::check;
use crate::error::Error;
use crate::row::StoredSession;
use crate::verify::Fault;

/// How many of the newest sessions are checked.
pub(crate) const NEWEST_MAX: usize = 20;
/// A session with more events than this is not read at a glance.
pub(crate) const EVENTS_MAX: u64 = 20_000;

/// What can be seen of a ledger at a glance.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The version of its tables.
    pub version: u64,
    /// The newest version that this program knows.
    pub version_known: u64,
    /// How many sessions it holds.
    pub sessions: u64,
    /// How many calls are open.
    pub open_calls: u64,
    /// When something last happened.
    pub updated: Option<Timestamp>,
    /// Until when each node that is known may send.
    pub leases: Vec<Timestamp>,
    /// When the newest checkpoint was signed.
    pub checkpoint: Option<Timestamp>,
    /// How many sessions have gone on since their last entry in the log.
    pub unlogged: u64,
    /// How many questions wait for a person.
    pub questions: u64,
    /// The store's own clock, where it has one.
    pub clock: Option<Timestamp>,
    /// How many of the newest sessions were checked.
    pub checked: u64,
    /// What is wrong with them.
    pub faults: Vec<Fault>,
}

impl Glance {
    /// Looks at a ledger in a SQLite file. Nothing where the file holds no tables yet.
    pub fn sqlite(path: &Path) -> Result<Option<Self>, Error> {
        crate::sqlite::glance(path)
    }

    /// Looks at a ledger in PostgreSQL. Nothing where there are no tables yet.
    pub async fn postgres(url: &str) -> Result<Option<Self>, Error> {
        crate::postgres::glance(url).await
    }

    /// Checks the chains of sessions.
    pub(crate) fn check(&mut self, sessions: &[StoredSession]) {
        self.checked = sessions.len() as u64;
        self.faults = sessions.iter().flat_map(|session| check(session).faults).collect();
    }
}
