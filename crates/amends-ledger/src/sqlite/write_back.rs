//! Writing the log beside the file back into it, while the writer goes on.
//!
//! Left to itself, SQLite does it inside some commit, and whoever waits for that one waits for all of it. Here a thread of its own
//! does most of it, on a connection of its own. The writer does the little that came meanwhile: the log begins anew only when nothing in
//! it is left to be written back.

use std::path::Path;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::schema::connect_to_write_back;
use super::trouble::Trouble;

/// How long the log grows before it is written back. Pages that change often are written back once.
const LOG_PAGES_MAX: i64 = 8_000;

/// After how many commits the writer looks how long the log is.
const LOOK_EVERY: u32 = 64;

/// How the log is kept short.
#[derive(Debug)]
pub(super) struct WriteBack {
    pages_max: i64,
    /// Commits since the writer last looked.
    commits: u32,
    thread: Option<JoinHandle<()>>,
}

impl Default for WriteBack {
    fn default() -> Self {
        Self { pages_max: LOG_PAGES_MAX, commits: 0, thread: None }
    }
}

impl WriteBack {
    /// Keeps the log short after a commit. What fails here changes nothing that was promised, and is tried again: what is in the log
    /// is as safe as what is in the file, and SQLite itself sees to a log that becomes far too long.
    pub(super) fn after_commit(&mut self, connection: &Connection, path: &Path) {
        match self.thread.take_if(|thread| thread.is_finished()) {
            // It has nothing to say, and one that panicked wrote back less.
            Some(thread) => {
                drop(thread.join());
                drop(write_back(connection));
            }
            None if self.thread.is_none() => {
                self.commits += 1;
                if self.commits < LOOK_EVERY {
                    return;
                }
                self.commits = 0;
                if pages_left(connection).is_ok_and(|pages| pages >= self.pages_max) {
                    self.thread = begin(path);
                }
            }
            None => {}
        }
    }
}

impl Drop for WriteBack {
    /// Whoever closes a ledger may open, move or remove its file at once.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn begin(path: &Path) -> Option<JoinHandle<()>> {
    let path = path.to_owned();
    let work = move || {
        let done = connect_to_write_back(&path).and_then(|connection| Ok(write_back(&connection)?));
        drop(done);
    };
    thread::Builder::new().name("amends-log".into()).spawn(work).ok()
}

/// Writes back what it can without keeping anybody from reading or writing.
fn write_back(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// How many pages in the log are not written back yet.
fn pages_left(connection: &Connection) -> Result<i64, Trouble> {
    let look = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?);
    Ok(connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], look)?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::schema;
    use super::*;

    #[test]
    fn the_log_begins_anew_while_it_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let (connection, _) = schema::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE scratch (n INTEGER PRIMARY KEY, body BLOB)").unwrap();
        let mut write_back = WriteBack { pages_max: 200, commits: 0, thread: None };
        let log_pages =
            || -> i64 { connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).unwrap() };
        let (mut longest, mut anew) = (0, 0);
        let until = Instant::now() + Duration::from_secs(120);
        while anew < 3 && Instant::now() < until {
            connection.execute("INSERT INTO scratch (body) VALUES (zeroblob(3000))", []).unwrap();
            write_back.after_commit(&connection, &path);
            let pages = log_pages();
            anew += u32::from(pages < longest);
            longest = if pages < longest { pages } else { longest.max(pages) };
        }
        assert_eq!(anew, 3);
        drop(write_back);
        let rows: i64 = connection.query_row("SELECT count(*) FROM scratch", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, connection.last_insert_rowid());
    }

    #[test]
    fn a_file_that_is_gone_is_not_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        if let Some(thread) = begin(&path) {
            thread.join().unwrap();
        }
        assert!(!path.exists());
    }
}
