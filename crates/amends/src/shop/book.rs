//! The book: what arrived and what really happened, kept in a SQLite file.
//!
//! Several processes may have one book open. A row is durable before anything that follows from it is
//! done, so a crash can lose an answer but never an effect, and no fault meets two requests.

mod effects;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};

pub(crate) use effects::{Effect, Keyed};

use super::fault::{Fault, Kind, Plan};

/// What went wrong between the shop and its file.
pub(crate) type Error = rusqlite::Error;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const BUSY_PAUSE: Duration = Duration::from_millis(5);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS effects (
        id INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        tool TEXT NOT NULL,
        order_id TEXT,
        key TEXT,
        ref TEXT NOT NULL,
        body TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS effects_by_key ON effects (tool, key);
    CREATE INDEX IF NOT EXISTS effects_by_order ON effects (tool, order_id);
    CREATE INDEX IF NOT EXISTS effects_by_ref ON effects (tool, ref);
    CREATE TABLE IF NOT EXISTS requests (
        id INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        tool TEXT NOT NULL,
        args TEXT NOT NULL,
        fault TEXT,
        note TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE IF NOT EXISTS fault_counters (
        fault TEXT PRIMARY KEY,
        seen INTEGER NOT NULL
    );
";

/// The shop's durable memory.
#[derive(Debug)]
pub(crate) struct Book {
    connection: Mutex<Connection>,
}

/// The number of a row in the table of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(i64);

/// What there is to say about a request beside its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Nothing,
    Cancelled,
    InvalidArguments,
    UnknownTool,
}

impl Note {
    fn text(self) -> &'static str {
        match self {
            Note::Nothing => "",
            Note::Cancelled => "cancelled",
            Note::InvalidArguments => "invalid arguments",
            Note::UnknownTool => "unknown tool",
        }
    }
}

impl Book {
    /// Opens the book at `path`, and begins it if there is none.
    pub(crate) fn open(path: &Path) -> Result<Book, Error> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        write_ahead(&connection)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(SCHEMA)?;
        change.commit()?;
        Ok(Book { connection: Mutex::new(connection) })
    }

    /// Writes down a request that arrived and counts it for its fault; says what it is going to meet.
    pub(crate) fn arrive(
        &self,
        tool: &str,
        arguments: &str,
        fault: Option<&Fault>,
        note: Note,
    ) -> Result<(RequestId, Plan), Error> {
        self.change(|change| {
            let plan = match fault {
                Some(fault) => fault.plan(count(change, fault)?),
                None => Plan::SMOOTH,
            };
            let kind = (plan.kind != Kind::Ok).then(|| plan.kind.name());
            change
                .prepare_cached("INSERT INTO requests (at_ms, tool, args, fault, note) VALUES (?, ?, ?, ?, ?)")?
                .execute(params![now_ms(), tool, arguments, kind, note.text()])?;
            Ok((RequestId(change.last_insert_rowid()), plan))
        })
    }

    /// Replaces what is noted about a request.
    pub(crate) fn note(&self, request: RequestId, note: Note) -> Result<(), Error> {
        self.change(|change| {
            change
                .prepare_cached("UPDATE requests SET note = ? WHERE id = ?")?
                .execute(params![note.text(), request.0])?;
            Ok(())
        })
    }

    /// Does all of `work` or none of it, with no other writer in between.
    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let mut connection = self.connection();
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&change)?;
        change.commit()?;
        Ok(done)
    }

    /// A transaction that a panic interrupted was rolled back, so a poisoned lock holds a sound connection.
    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Switches the file to write-ahead logging, which SQLite refuses at once, without waiting for its busy
/// timeout, while another process does the same.
fn write_ahead(connection: &Connection) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(cause)
                if cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(BUSY_PAUSE);
            }
            settled => return settled,
        }
    }
}

/// Counts one more request for `fault` and returns how many came before it.
fn count(change: &Transaction<'_>, fault: &Fault) -> Result<usize, Error> {
    let seen: Option<i64> = change
        .prepare_cached("SELECT seen FROM fault_counters WHERE fault = ?")?
        .query_row([&fault.key], |row| row.get(0))
        .optional()?;
    change
        .prepare_cached(
            "INSERT INTO fault_counters (fault, seen) VALUES (?, 1)
             ON CONFLICT (fault) DO UPDATE SET seen = seen + 1",
        )?
        .execute([&fault.key])?;
    Ok(usize::try_from(seen.unwrap_or(0)).unwrap_or(0))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::super::tool::Tool;
    use super::*;

    #[test]
    fn a_fault_is_counted_on_after_the_book_is_opened_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("shop.db");
        let mut script = Script::default();
        script.add_flag("charge_card=lose_response,status_500").expect("the flag is sound");
        let fault = script.fault_for(Tool::ChargeCard, &serde_json::Map::new());
        let kinds: Vec<_> = (0..3)
            .map(|_| {
                let book = Book::open(&path).expect("the book opens");
                let arrival = book.arrive("charge_card", "{}", fault, Note::Nothing);
                arrival.expect("the row is written").1.kind
            })
            .collect();
        assert_eq!(kinds, [Kind::LoseResponse, Kind::Status500, Kind::Ok]);
    }

    #[test]
    fn two_books_on_one_file_see_each_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("shop.db");
        let (one, two) = (Book::open(&path).expect("the book opens"), Book::open(&path).expect("the book opens twice"));
        let (request, plan) = one.arrive("get_order", "{}", None, Note::Nothing).expect("the row is written");
        assert_eq!(plan, Plan::SMOOTH);
        two.note(request, Note::Cancelled).expect("the note is written");
        let note: String =
            one.connection().query_row("SELECT note FROM requests", [], |row| row.get(0)).expect("there is one row");
        assert_eq!(note, "cancelled");
    }
}
