//! The tables, and how a file is opened.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::file;
use super::trouble::{Trouble, is_busy};
use crate::error::Error;

/// The version of the tables. A file with a newer one is refused.
const VERSION: i64 = 1;

/// How long a process waits for another one that is writing.
const BUSY_MS_MAX: u64 = 5_000;

/// How many prepared statements a connection keeps; more than there are.
const STATEMENTS_MAX: usize = 64;

/// How large the log beside the file stays after it once grew.
const LOG_BYTES_KEPT: i64 = 32 << 20;

/// How long the log beside the file grows before it is written back. Pages that change often are written back once.
const LOG_PAGES_MAX: i64 = 4_000;

/// How much of the file the writer keeps in memory.
const CACHE_KIB: i64 = 32 << 10;

/// Events are kept in the order in which they came, with an index by session: the steps of a batch then share pages. Kept by
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
    let mode: String =
        patiently(|| Ok(connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?))?;
    if mode != "wal" {
        return Err(Error::Unavailable { reason: "the file cannot be put into WAL mode".into() }.into());
    }
    // FULL: a commit is on the disk before it is acknowledged. NORMAL lost every one of them in a power cut.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
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

/// Makes the tables where there are none, checks their version where there are, and gives back the secret. In one
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
        tx.execute("INSERT INTO meta (one, version, secret) VALUES (1, ?1, ?2)", params![VERSION, secret])?;
        tx.commit()?;
        return Ok(secret);
    }
    let secret = meta(&tx)?;
    tx.commit()?;
    Ok(secret)
}

/// Checks the version of a file's tables, and reads its secret.
pub(super) fn meta(connection: &Connection) -> Result<[u8; 32], Trouble> {
    let ours: bool =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", [], |row| row.get(0))?;
    if !ours {
        return Err(Error::Unavailable { reason: "the file holds tables that are not a ledger's".into() }.into());
    }
    let version: i64 = connection.query_row("SELECT version FROM meta", [], |row| row.get(0))?;
    if version > VERSION {
        let reason = format!("the file is of version {version}, and this program knows versions up to {VERSION}");
        return Err(Error::Unavailable { reason }.into());
    }
    let secret: Option<[u8; 32]> = connection.query_row("SELECT secret FROM meta", [], |row| row.get(0)).optional()?;
    secret.ok_or_else(|| Error::Corrupt { reason: "the ledger's secret is missing".into() }.into())
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
