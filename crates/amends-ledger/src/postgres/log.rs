//! The log of session heads in PostgreSQL.

use amends_core::SessionId;
use tokio_postgres::Row;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::error::Error;
use crate::log::{LogEntry, StoredCheckpoint};
use crate::stored::{ms, number, read_link, read_ms, read_number};

/// Heads of sessions that have gone on since their last entry, the oldest sessions first.
pub(super) async fn unlogged(connection: &Connection, limit: usize) -> Result<Vec<LogEntry>, Trouble> {
    let find = "SELECT id, seq, head FROM sessions WHERE logged < seq ORDER BY opened, id LIMIT $1";
    connection.rows(find, &[&number(limit as u64)]).await?.iter().map(read).collect()
}

/// The log's entries from that place on. They end before the first place that is empty.
pub(super) async fn entries(connection: &Connection, from: u64, limit: usize) -> Result<Vec<LogEntry>, Trouble> {
    let find = "SELECT session, seq, head, place FROM log WHERE place >= $1 ORDER BY place LIMIT $2";
    let mut entries = Vec::new();
    for (row, place) in connection.rows(find, &[&number(from), &number(limit as u64)]).await?.iter().zip(from..) {
        if row.try_get::<_, i64>(3)? != number(place) {
            break;
        }
        entries.push(read(row)?);
    }
    Ok(entries)
}

/// Adds entries and the checkpoint that covers them, if the log has as many entries as expected.
pub(super) async fn extend(
    connection: &Connection,
    expected: u64,
    entries: &[LogEntry],
    checkpoint: &StoredCheckpoint,
) -> Result<bool, Trouble> {
    // One at a time: whoever comes second counts again.
    connection.rows("SELECT one FROM meta FOR UPDATE", &[]).await?;
    let count = "SELECT coalesce(max(place) + 1, 0) FROM log";
    let row = connection.row(count, &[]).await?.ok_or(Trouble::Raced)?;
    if read_number(row.try_get(0)?)? != expected {
        return Ok(false);
    }
    if checkpoint.size != expected + entries.len() as u64 {
        let reason = "a checkpoint does not cover the log that it is kept with".into();
        return Err(Error::Corrupt { reason }.into());
    }
    let places: Vec<i64> = (number(expected)..).take(entries.len()).collect();
    let sessions: Vec<&str> = entries.iter().map(|entry| entry.session.as_str()).collect();
    let seqs: Vec<i64> = entries.iter().map(|entry| number(entry.seq)).collect();
    let heads: Vec<&[u8]> = entries.iter().map(|entry| &entry.head.bytes()[..]).collect();
    let insert = "INSERT INTO log (place, session, seq, head)
        SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::bigint[], $4::bytea[]) ON CONFLICT (place) DO NOTHING";
    connection.change_exactly(entries.len(), insert, &[&places, &sessions, &seqs, &heads]).await?;
    let mark = "UPDATE sessions s SET logged = u.seq
        FROM (SELECT id, max(seq) AS seq FROM UNNEST($1::text[], $2::bigint[]) AS e (id, seq) GROUP BY id) AS u
        WHERE s.id = u.id AND s.logged < u.seq";
    connection.change(mark, &[&sessions, &seqs]).await?;
    let keep = "INSERT INTO checkpoints (number, size, at, note)
        SELECT coalesce(max(number) + 1, 0), $1::bigint, $2::bigint, $3::text FROM checkpoints";
    connection.change(keep, &[&number(checkpoint.size), &ms(checkpoint.at), &checkpoint.note]).await?;
    Ok(true)
}

/// The newest checkpoints first.
pub(super) async fn checkpoints(connection: &Connection, limit: usize) -> Result<Vec<StoredCheckpoint>, Trouble> {
    let find = "SELECT size, at, note FROM checkpoints ORDER BY number DESC LIMIT $1";
    let rows = connection.rows(find, &[&number(limit as u64)]).await?;
    rows.iter()
        .map(|row| {
            let (size, at) = (read_number(row.try_get(0)?)?, read_ms(row.try_get(1)?)?);
            Ok(StoredCheckpoint { size, at, note: row.try_get(2)? })
        })
        .collect()
}

fn read(row: &Row) -> Result<LogEntry, Trouble> {
    let session = SessionId::new(row.try_get::<_, String>(0)?);
    Ok(LogEntry { session, seq: read_number(row.try_get(1)?)?, head: read_link(row.try_get(2)?)? })
}
