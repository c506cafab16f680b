//! What people said yes to beforehand, in SQLite.

use amends_core::{Digest, Timestamp};
use rusqlite::{Connection, params};

use super::reader::claim;
use super::trouble::{Trouble, ms, number, text};
use crate::grant::Grant;

/// What is good at that time.
pub(super) fn good(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Grant>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT name FROM claims WHERE state = 'granted' AND (until IS NULL OR until > ?1) ORDER BY name LIMIT ?2",
    )?;
    let mut rows = statement.query(params![ms(now), number(limit as u64)])?;
    let mut grants = Vec::new();
    while let Some(row) = rows.next()? {
        grants.extend(claim(connection, &Digest::new(text(row, 0)?))?.map(Grant::of));
    }
    Ok(grants)
}

/// Takes one back.
pub(super) fn revoke(tx: &Connection, name: &Digest) -> Result<bool, Trouble> {
    let mut statement = tx.prepare_cached("DELETE FROM claims WHERE name = ?1 AND state = 'granted'")?;
    Ok(statement.execute([name.as_str()])? == 1)
}
