//! What is swept.

use amends_core::Timestamp;
use rusqlite::{Connection, params};

use super::trouble::{Trouble, ms, number};
use crate::interactions::CLOSED_KEPT_MS;
use crate::letter::REPLIED_KEPT_MS;

/// Drops what is over, at most `limit` of each kind.
pub(super) fn sweep(tx: &Connection, now: Timestamp, limit: usize) -> Result<u64, Trouble> {
    let limit = number(limit as u64);
    let mut swept = 0;
    for (statement, kept_ms) in [
        ("DELETE FROM answers WHERE call IN (SELECT call FROM answers WHERE until <= ?1 LIMIT ?2)", 0),
        ("DELETE FROM claims WHERE name IN (SELECT name FROM claims WHERE until <= ?1 LIMIT ?2)", 0),
        (
            "DELETE FROM nodes WHERE id IN (
                 SELECT n.id FROM nodes n WHERE n.lease_until <= ?1 AND NOT EXISTS (
                     SELECT 1 FROM sessions s WHERE s.owner = n.id AND s.open_calls > 0) LIMIT ?2)",
            0,
        ),
        (
            "DELETE FROM interactions WHERE id IN (SELECT id FROM interactions WHERE closed <= ?1 LIMIT ?2)",
            CLOSED_KEPT_MS,
        ),
        (
            "UPDATE reversals SET place = NULL, principal = NULL, tool = NULL, arguments = NULL WHERE minting IN (
                 SELECT minting FROM reversals WHERE state = 'armed' AND place IS NOT NULL AND until <= ?1 LIMIT ?2)",
            0,
        ),
        ("DELETE FROM letters WHERE id IN (SELECT id FROM letters WHERE replied <= ?1 LIMIT ?2)", REPLIED_KEPT_MS),
    ] {
        // What would have to be closed before 1970 is not over.
        let Some(until) = now.ms().checked_sub(kept_ms) else { continue };
        swept += tx.prepare_cached(statement)?.execute(params![ms(Timestamp::from_ms(until)), limit])?;
    }
    let closed = "DELETE FROM arguments WHERE call IN (
         SELECT a.call FROM arguments a
         LEFT JOIN calls c ON c.call = a.call LEFT JOIN sessions s ON s.id = c.session
         WHERE coalesce(s.open_calls, 0) = 0 AND NOT EXISTS (
             SELECT 1 FROM interactions i WHERE i.session = c.session AND i.closed IS NULL)
         LIMIT ?1)";
    swept += tx.prepare_cached(closed)?.execute([limit])?;
    Ok(swept as u64)
}
