//! The tables, and how a file is opened.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::file;
use super::trouble::{Trouble, is_busy, number};
use crate::error::Error;

/// The version of the tables. A file with a newer one is refused.
pub(super) const VERSION: usize = 10;

/// How long a process waits for another one that is writing.
const BUSY_MS_MAX: u64 = 5_000;

/// How many prepared statements a connection keeps; more than there are.
const STATEMENTS_MAX: usize = 96;

/// How large the log beside the file stays after it once grew.
const LOG_BYTES_KEPT: i64 = 32 << 20;

/// How long the log beside the file grows before SQLite writes it back by itself, inside a commit. It is written back long before that.
const LOG_PAGES_FAR_TOO_MANY: i64 = 48_000;

/// The size of a page in a new file. A step changes a few rows in many pages, and all of each goes into the log.
const PAGE_BYTES: i64 = 2_048;

/// How much of the file the writer keeps in memory. SQLite looks through all of it after some commits.
const CACHE_KIB: i64 = 2 << 10;

/// The tables of version 1. Events are kept in the order in which they came, with an index by session: the steps of a batch then share pages. Kept by
/// session, each would write a page of its own, and half as many fit through.
const TABLES: &str = "
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    secret BLOB NOT NULL
) STRICT;
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    door TEXT NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    head BLOB NOT NULL,
    opened INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    open_calls INTEGER NOT NULL,
    due INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_age ON sessions (opened, id);
CREATE INDEX sessions_open ON sessions (owner, id) WHERE open_calls > 0;
CREATE TABLE events (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call TEXT,
    body TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT;
CREATE TABLE calls (
    call TEXT PRIMARY KEY,
    session TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE claims (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    state TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    effect_key TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_ending ON claims (until) WHERE until IS NOT NULL;
CREATE TABLE answers (
    call TEXT PRIMARY KEY,
    outcome TEXT NOT NULL,
    certainty TEXT NOT NULL,
    form TEXT NOT NULL,
    body BLOB NOT NULL,
    until INTEGER NOT NULL
) STRICT;
CREATE INDEX answers_ending ON answers (until);
CREATE TABLE arguments (
    call TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE rules (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What each later version adds: the first makes version 2 of version 1.
const ADDED: [&str; VERSION - 1] = [
    "
CREATE INDEX sessions_due ON sessions (due) WHERE open_calls = 0 AND due IS NOT NULL;
CREATE TABLE interactions (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    queue TEXT NOT NULL,
    due INTEGER NOT NULL,
    body TEXT NOT NULL,
    answer TEXT,
    answered INTEGER,
    closing TEXT,
    closed INTEGER
) STRICT;
CREATE INDEX interactions_open ON interactions (due, id) WHERE closed IS NULL AND answered IS NULL;
CREATE INDEX interactions_answered ON interactions (answered, id) WHERE closed IS NULL AND answered IS NOT NULL;
CREATE INDEX interactions_unclosed ON interactions (session) WHERE closed IS NULL;
CREATE INDEX interactions_closed ON interactions (closed) WHERE closed IS NOT NULL;
CREATE TABLE reversals (
    minting INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    state TEXT NOT NULL,
    minted INTEGER NOT NULL,
    until INTEGER,
    redeemer TEXT,
    place TEXT,
    principal TEXT,
    tool TEXT,
    arguments BLOB
) STRICT;
CREATE INDEX reversals_by_session ON reversals (session, minting);
CREATE INDEX reversals_ending ON reversals (until) WHERE state = 'armed' AND place IS NOT NULL;
CREATE TABLE letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT,
    session TEXT,
    body TEXT NOT NULL,
    posted INTEGER NOT NULL,
    taker TEXT,
    taken INTEGER,
    reply TEXT,
    replied INTEGER
) STRICT;
CREATE INDEX letters_waiting ON letters (place, id) WHERE replied IS NULL;
CREATE INDEX letters_replied ON letters (replied) WHERE replied IS NOT NULL;
",
    "
ALTER TABLE sessions ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cut_link BLOB;
",
    LOG,
    PINS,
    WALKS,
    TENANTS,
    POSTINGS,
    KEPT,
    BEHIND,
];

/// What version 4 adds. What is not in the log yet is found by age: new sessions then share pages, which they would not by id.
const LOG: &str = "
ALTER TABLE sessions ADD COLUMN logged INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_unlogged ON sessions (opened, id) WHERE seq > logged;
CREATE TABLE log (
    place INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    note TEXT NOT NULL
) STRICT;
";

/// What version 5 adds.
const PINS: &str = "
CREATE TABLE pins (
    place TEXT NOT NULL,
    tool TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (place, tool)
) STRICT;
";

/// What version 6 adds. Rows are kept by session: a walk's are read together.
const WALKS: &str = "
ALTER TABLE sessions ADD COLUMN machine TEXT;
CREATE TABLE fields (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
";

/// What version 7 adds.
const TENANTS: &str = "
ALTER TABLE sessions ADD COLUMN tenant TEXT;
CREATE INDEX sessions_by_tenant ON sessions (tenant, opened, id) WHERE tenant IS NOT NULL;
ALTER TABLE interactions ADD COLUMN tenant TEXT;
";

/// What version 8 adds.
const POSTINGS: &str = "
ALTER TABLE interactions ADD COLUMN posting TEXT;
ALTER TABLE interactions ADD COLUMN posting_until INTEGER;
ALTER TABLE interactions ADD COLUMN posted INTEGER;
";

/// What version 9 adds.
const KEPT: &str = "
CREATE TABLE kept (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What version 10 adds. Whether a session is behind in the log is a column of its own, which changes when it falls behind and when it is
/// logged, and not with every step: an index over the sequence was written anew each time.
const BEHIND: &str = "
ALTER TABLE sessions ADD COLUMN behind INTEGER NOT NULL DEFAULT 1;
UPDATE sessions SET behind = 0 WHERE seq <= logged;
DROP INDEX sessions_unlogged;
CREATE INDEX sessions_behind ON sessions (opened, id) WHERE behind = 1;
";

/// Opens a file, making it where there is none, and gives back a connection that writes and the ledger's secret.
pub(super) fn open(path: &Path) -> Result<(Connection, [u8; 32]), Trouble> {
    // Closing a file gives up the locks that this process holds on it, also those of other connections. One opening at a
    // time means that nobody has locked the file while its maker closes it.
    static OPENING: Mutex<()> = Mutex::new(());
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    file::make(path).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
    let mut connection = connect_to_write(path)?;
    let secret = patiently(|| prepare(&mut connection))?;
    Ok((connection, secret))
}

/// Opens a file that is there, to write. It is not made: a ledger that went away must not come back empty.
pub(super) fn connect_to_write(path: &Path) -> Result<Connection, Trouble> {
    let connection = connect(path)?;
    // Counts only while the file is empty.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String =
        patiently(|| Ok(connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?))?;
    if mode != "wal" {
        return Err(Error::Unavailable { reason: "the file cannot be put into WAL mode".into() }.into());
    }
    // FULL: a commit is on the disk before it is acknowledged. NORMAL lost every one of them in a power cut.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What is dropped is overwritten where that costs no further page.
    connection.pragma_update(None, "secure_delete", "FAST")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_FAR_TOO_MANY)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}

/// Opens a file that is there, to write its log back.
pub(super) fn connect_to_write_back(path: &Path) -> Result<Connection, Trouble> {
    let connection = connect(path)?;
    // What is written back is on the disk before the log begins anew.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Opens a file that is there, to read.
pub(super) fn connect_to_read(path: &Path) -> Result<Connection, Trouble> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, Trouble> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS_MAX))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Opens a file again that was open before, if it is still the same ledger.
pub(super) fn reopen(path: &Path, secret: &[u8; 32]) -> Result<Connection, Trouble> {
    let mut connection = connect_to_write(path)?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (version, stored) = meta(&tx)?;
    if stored != *secret {
        return Err(Error::Unavailable { reason: "another ledger is in the file".into() }.into());
    }
    bring_up_to_date(&tx, version)?;
    tx.commit()?;
    Ok(connection)
}

/// Makes the tables where there are none, brings them up to date where there are, and gives back the secret. In one
/// transaction, so that two processes can open a new file at once.
fn prepare(connection: &mut Connection) -> Result<[u8; 32], Trouble> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 = tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| Error::Unavailable {
            reason: format!("no randomness for the ledger's secret: {error}"),
        })?;
        tx.execute_batch(TABLES)?;
        tx.execute("INSERT INTO meta (one, version, secret) VALUES (1, 1, ?1)", [secret])?;
    }
    let (version, secret) = meta(&tx)?;
    bring_up_to_date(&tx, version)?;
    tx.commit()?;
    Ok(secret)
}

/// Adds the tables that a file of that version lacks.
fn bring_up_to_date(tx: &Connection, version: usize) -> Result<(), Trouble> {
    for added in &ADDED[version - 1..] {
        tx.execute_batch(added)?;
    }
    if version < VERSION {
        tx.execute("UPDATE meta SET version = ?1", [number(VERSION as u64)])?;
    }
    Ok(())
}

/// The version of a file's tables, which is one that this program knows, and the ledger's secret.
fn meta(tx: &Connection) -> Result<(usize, [u8; 32]), Trouble> {
    let ours: bool = tx.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", [], |row| row.get(0))?;
    if !ours {
        return Err(Error::Unavailable { reason: "the file holds tables that are not a ledger's".into() }.into());
    }
    let version: i64 = tx.query_row("SELECT version FROM meta", [], |row| row.get(0))?;
    let known = usize::try_from(version).ok().filter(|version| (1..=VERSION).contains(version));
    let Some(version) = known else {
        let reason = format!("the file is of version {version}, and this program knows versions up to {VERSION}");
        return Err(Error::Unavailable { reason }.into());
    };
    let secret: Option<[u8; 32]> = tx.query_row("SELECT secret FROM meta", [], |row| row.get(0)).optional()?;
    let secret = secret.ok_or_else(|| Error::Corrupt { reason: "the ledger's secret is missing".into() })?;
    Ok((version, secret))
}

/// Tries again while another process is in the way: SQLite does not wait by itself while the log is being set up.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    let until = Instant::now() + Duration::from_millis(BUSY_MS_MAX);
    loop {
        match attempt() {
            Err(Trouble::Broken(error)) if is_busy(&error) && Instant::now() < until => sleep(Duration::from_millis(5)),
            fate => return fate,
        }
    }
}
