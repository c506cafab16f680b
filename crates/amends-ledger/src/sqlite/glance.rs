//! A look at a file that makes and changes nothing.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::schema::VERSION;
use super::stored;
use super::trouble::{Trouble, number, read_ms, read_number, text};
use crate::error::Error;
use crate::glance::{EVENTS_MAX, Glance, NEWEST_MAX};
use amends_core::SessionId;

/// Looks at a ledger. Nothing where the file holds no tables yet.
pub(crate) fn glance(path: &Path) -> Result<Option<Glance>, Error> {
    Ok(look(path)?)
}

fn look(path: &Path) -> Result<Option<Glance>, Trouble> {
    let connection = connect(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // All of it at one moment.
    connection.execute_batch("BEGIN")?;
    let count =
        |query: &str| -> Result<u64, Trouble> { Ok(read_number(connection.query_row(query, [], |row| row.get(0))?)?) };
    if count("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(None);
    }
    if count("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'")? == 0 {
        return Err(Error::Unavailable { reason: "the file holds tables that are not a ledger's".into() }.into());
    }
    let mut glance =
        Glance { version: count("SELECT version FROM meta")?, version_known: VERSION as u64, ..Glance::default() };
    if glance.version != glance.version_known {
        // What else is there is another version's business.
        return Ok(Some(glance));
    }
    let newest = |query: &str| -> Result<Option<_>, Trouble> {
        let at: Option<i64> = connection.query_row(query, [], |row| row.get(0))?;
        Ok(at.map(read_ms).transpose()?)
    };
    glance.sessions = count("SELECT count(*) FROM sessions")?;
    glance.open_calls = count("SELECT coalesce(sum(open_calls), 0) FROM sessions")?;
    glance.updated = newest("SELECT max(updated) FROM sessions")?;
    glance.checkpoint = newest("SELECT max(at) FROM checkpoints")?;
    glance.unlogged = count("SELECT count(*) FROM sessions WHERE logged < seq")?;
    glance.questions = count("SELECT count(*) FROM interactions WHERE closed IS NULL AND answered IS NULL")?;
    let mut statement = connection.prepare("SELECT lease_until FROM nodes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        glance.leases.push(read_ms(row.get(0)?)?);
    }
    glance.check(&sessions(&connection)?);
    Ok(Some(glance))
}

/// A file that nobody has open is read as it lies there: opening it the usual way would make files beside it.
fn connect(path: &Path) -> Result<Connection, Trouble> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if Path::new(&log).exists() {
        return Ok(Connection::open_with_flags(path, flags)?);
    }
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Ok(Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)?)
}

fn sessions(connection: &Connection) -> Result<Vec<crate::row::StoredSession>, Trouble> {
    let mut statement =
        connection.prepare("SELECT id FROM sessions WHERE seq - cut <= ?2 ORDER BY updated DESC, id LIMIT ?1")?;
    let mut rows = statement.query([number(NEWEST_MAX as u64), number(EVENTS_MAX)])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(stored::one(connection, SessionId::new(text(row, 0)?))?);
    }
    Ok(sessions)
}
