//! What is swept.
//!
//! Each statement says twice what is over: once to find it, once about the row as it is when its turn comes. Without the
//! second, a claim that another node took anew while this one waited for its row would be dropped.

use amends_core::Timestamp;

use super::LeaseClock;
use super::connection::Connection;
use super::nodes::Here;
use super::trouble::Trouble;
use crate::interactions::CLOSED_KEPT_MS;
use crate::letter::REPLIED_KEPT_MS;
use crate::stored::{ms, number};

const OVER: [(&str, u64); 5] = [
    (
        "DELETE FROM answers WHERE until <= $1 AND call IN
             (SELECT call FROM answers WHERE until <= $1 ORDER BY until, call LIMIT $2)",
        0,
    ),
    (
        "DELETE FROM claims WHERE until <= $1 AND name IN
             (SELECT name FROM claims WHERE until <= $1 ORDER BY until, name LIMIT $2)",
        0,
    ),
    (
        "DELETE FROM interactions WHERE closed <= $1 AND id IN
             (SELECT id FROM interactions WHERE closed <= $1 ORDER BY closed, id LIMIT $2)",
        CLOSED_KEPT_MS,
    ),
    (
        "UPDATE reversals SET place = NULL, principal = NULL, tool = NULL, arguments = NULL
         WHERE state = 'armed' AND place IS NOT NULL AND until <= $1 AND token IN
             (SELECT token FROM reversals WHERE state = 'armed' AND place IS NOT NULL AND until <= $1
              ORDER BY until, token LIMIT $2)",
        0,
    ),
    (
        "DELETE FROM letters WHERE replied <= $1 AND id IN
             (SELECT id FROM letters WHERE replied <= $1 ORDER BY replied, id LIMIT $2)",
        REPLIED_KEPT_MS,
    ),
];

const DEAD: &str = "DELETE FROM nodes n
    WHERE n.lease_until <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
      AND n.id IN (SELECT m.id FROM nodes m
        WHERE m.lease_until <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
          AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.owner = m.id AND s.open_calls > 0)
        ORDER BY m.id LIMIT $2)";

const ARGUMENTS: &str = "DELETE FROM arguments WHERE call IN (
    SELECT a.call FROM arguments a
    LEFT JOIN calls c ON c.call = a.call LEFT JOIN sessions s ON s.id = c.session
    WHERE coalesce(s.open_calls, 0) = 0 AND NOT EXISTS (
        SELECT 1 FROM interactions i WHERE i.session = c.session AND i.closed IS NULL)
    ORDER BY a.call LIMIT $1)";

/// Drops what is over, at most `limit` of each kind.
pub(super) async fn sweep(connection: &Connection, here: &Here, now: Timestamp, limit: usize) -> Result<u64, Trouble> {
    let limit = number(limit as u64);
    let mut swept = 0;
    for (statement, kept_ms) in OVER {
        // What would have to be closed before 1970 is not over.
        let Some(until) = now.ms().checked_sub(kept_ms) else { continue };
        swept += connection.change(statement, &[&number(until), &limit]).await?;
    }
    let now_there = match here.clock {
        LeaseClock::Database => None,
        LeaseClock::Caller => Some(ms(now)),
    };
    swept += connection.change(DEAD, &[&now_there, &limit]).await?;
    swept += connection.change(ARGUMENTS, &[&limit]).await?;
    Ok(swept)
}
