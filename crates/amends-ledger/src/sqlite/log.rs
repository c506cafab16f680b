//! The log of session heads, and the checkpoints of it.

use amends_core::SessionId;
use rusqlite::{Connection, Row, params};

use super::trouble::{Trouble, ms, number, read_link, read_ms, read_number, text};
use crate::error::Error;
use crate::log::{LogEntry, StoredCheckpoint};

/// Heads of sessions that have gone on since their last entry, the oldest sessions first.
pub(super) fn unlogged(connection: &Connection, limit: usize) -> Result<Vec<LogEntry>, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT id, seq, head FROM sessions WHERE behind = 1 ORDER BY opened, id LIMIT ?1")?;
    let mut rows = statement.query([number(limit as u64)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

/// The entries from that place on. They end before the first place that is empty.
pub(super) fn entries(connection: &Connection, from: u64, limit: usize) -> Result<Vec<LogEntry>, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT session, seq, head, place FROM log WHERE place >= ?1 ORDER BY place LIMIT ?2")?;
    let mut rows = statement.query([number(from), number(limit as u64)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(3)? != number(from + entries.len() as u64) {
            break;
        }
        entries.push(entry(row)?);
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> Result<LogEntry, Trouble> {
    Ok(LogEntry {
        session: SessionId::new(text(row, 0)?),
        seq: read_number(row.get(1)?)?,
        head: read_link(row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?)?,
    })
}

/// Adds entries and the checkpoint that covers them, if the log has exactly so many.
pub(super) fn extend(
    tx: &Connection,
    expected: u64,
    entries: &[LogEntry],
    checkpoint: &StoredCheckpoint,
) -> Result<bool, Trouble> {
    let size: i64 =
        tx.prepare_cached("SELECT coalesce(max(place) + 1, 0) FROM log")?.query_row([], |row| row.get(0))?;
    if size != number(expected) {
        return Ok(false);
    }
    if checkpoint.size != expected + entries.len() as u64 {
        let reason = "a checkpoint does not cover the log that it is kept with".into();
        return Err(Error::Corrupt { reason }.into());
    }
    let mut insert = tx.prepare_cached("INSERT INTO log (place, session, seq, head) VALUES (?1, ?2, ?3, ?4)")?;
    let mut mark =
        tx.prepare_cached("UPDATE sessions SET logged = ?2, behind = seq > ?2 WHERE id = ?1 AND logged < ?2")?;
    for (entry, place) in entries.iter().zip(expected..) {
        let (session, seq) = (entry.session.as_str(), number(entry.seq));
        insert.execute(params![number(place), session, seq, entry.head.bytes()])?;
        mark.execute(params![session, seq])?;
    }
    tx.prepare_cached("INSERT INTO checkpoints (size, at, note) VALUES (?1, ?2, ?3)")?.execute(params![
        number(checkpoint.size),
        ms(checkpoint.at),
        checkpoint.note
    ])?;
    Ok(true)
}

/// The newest checkpoints first.
pub(super) fn checkpoints(connection: &Connection, limit: usize) -> Result<Vec<StoredCheckpoint>, Trouble> {
    let mut statement =
        connection.prepare_cached("SELECT size, at, note FROM checkpoints ORDER BY number DESC LIMIT ?1")?;
    let mut rows = statement.query([number(limit as u64)])?;
    let mut checkpoints = Vec::new();
    while let Some(row) = rows.next()? {
        let (size, at) = (read_number(row.get(0)?)?, read_ms(row.get(1)?)?);
        checkpoints.push(StoredCheckpoint { size, at, note: row.get(2)? });
    }
    Ok(checkpoints)
}
