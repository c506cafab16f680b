//! Leases, and what is swept.

use amends_core::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, ms, number, read_ms, read_number};
use crate::node::{Node, is_dead};
use crate::row::Lease;

/// Takes the lease of a session for this node, unless another living node holds it.
pub(super) fn take(
    tx: &Connection,
    node: &Node,
    session: &SessionId,
    now: Timestamp,
) -> Result<Option<Lease>, Trouble> {
    let found = tx
        .prepare_cached(
            "SELECT s.owner, s.epoch, s.seq, n.place, n.lease_until
             FROM sessions s LEFT JOIN nodes n ON n.id = s.owner WHERE s.id = ?1",
        )?
        .query_row([session.as_str()], |row| {
            let owner: String = row.get(0)?;
            Ok((owner, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((owner, epoch, seq, place, lease_until)) = found else {
        return Ok(None);
    };
    if owner != node.id && lives(place, lease_until, now)? {
        return Ok(None);
    }
    let lease = Lease { epoch: read_number(epoch)? + 1, seq: read_number(seq)? };
    tx.prepare_cached("UPDATE sessions SET owner = ?2, epoch = ?3 WHERE id = ?1")?.execute(params![
        session.as_str(),
        node.id,
        number(lease.epoch)
    ])?;
    Ok(Some(lease))
}

/// Says that this node lives.
pub(super) fn heartbeat(tx: &Connection, node: &Node, now: Timestamp) -> Result<Timestamp, Trouble> {
    let lease_until = now + node.lease_ms;
    tx.prepare_cached("INSERT OR REPLACE INTO nodes (id, place, lease_until) VALUES (?1, ?2, ?3)")?
        .execute(params![node.id, node.place, ms(lease_until)])?;
    Ok(lease_until)
}

/// Sessions with open calls whose node is dead.
pub(super) fn orphans(
    connection: &Connection,
    node: &Node,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<SessionId>, Trouble> {
    let mut orphans = Vec::new();
    let mut owners = connection.prepare_cached(
        "SELECT s.owner, n.place, n.lease_until
         FROM (SELECT DISTINCT owner FROM sessions WHERE open_calls > 0) s LEFT JOIN nodes n ON n.id = s.owner",
    )?;
    let mut owned = connection
        .prepare_cached("SELECT id FROM sessions WHERE owner = ?1 AND open_calls > 0 ORDER BY id LIMIT ?2")?;
    let mut rows = owners.query([])?;
    while let Some(row) = rows.next()? {
        let owner: String = row.get(0)?;
        if owner == node.id || lives(row.get(1)?, row.get(2)?, now)? {
            continue;
        }
        let left = number((limit - orphans.len()) as u64);
        for id in owned.query_map(params![owner, left], |row| row.get::<_, String>(0))? {
            orphans.push(SessionId::new(id?));
        }
    }
    Ok(orphans)
}

/// Drops what is over: answers, claims, dead nodes that own nothing open, arguments of calls that are not open.
pub(super) fn sweep(tx: &Connection, now: Timestamp, limit: usize) -> Result<u64, Trouble> {
    let (now, limit) = (ms(now), number(limit as u64));
    let mut swept = 0;
    for statement in [
        "DELETE FROM answers WHERE call IN (SELECT call FROM answers WHERE until <= ?1 LIMIT ?2)",
        "DELETE FROM claims WHERE name IN (SELECT name FROM claims WHERE until <= ?1 LIMIT ?2)",
        "DELETE FROM nodes WHERE id IN (
             SELECT n.id FROM nodes n WHERE n.lease_until <= ?1 AND NOT EXISTS (
                 SELECT 1 FROM sessions s WHERE s.owner = n.id AND s.open_calls > 0) LIMIT ?2)",
    ] {
        swept += tx.prepare_cached(statement)?.execute([now, limit])?;
    }
    let closed = "DELETE FROM arguments WHERE call IN (
         SELECT a.call FROM arguments a
         LEFT JOIN calls c ON c.call = a.call LEFT JOIN sessions s ON s.id = c.session
         WHERE coalesce(s.open_calls, 0) = 0 LIMIT ?1)";
    swept += tx.prepare_cached(closed)?.execute([limit])?;
    Ok(swept as u64)
}

/// Whether a node lives. One that is not known does not.
fn lives(place: Option<String>, lease_until: Option<i64>, now: Timestamp) -> Result<bool, Trouble> {
    let (Some(place), Some(lease_until)) = (place, lease_until) else {
        return Ok(false);
    };
    Ok(!is_dead(&place, read_ms(lease_until)?, now))
}
