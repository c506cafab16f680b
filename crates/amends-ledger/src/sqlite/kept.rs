//! What is kept under a name in SQLite.

use amends_core::Digest;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, number, read_number};
use crate::kept::Kept;

/// What is kept under that name.
pub(super) fn kept(connection: &Connection, name: &Digest) -> Result<Option<Kept>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT version, body FROM kept WHERE name = ?1")?;
    let found = statement.query_row([name.as_str()], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?))).optional()?;
    let Some((version, body)) = found else { return Ok(None) };
    Ok(Some(Kept { name: name.clone(), version: read_number(version)?, body: Bytes::from(body) }))
}

/// Keeps it, if it follows the one that is there.
pub(super) fn keep(tx: &Connection, kept: &Kept) -> Result<bool, Trouble> {
    let values = params![kept.name.as_str(), number(kept.version), &kept.body[..]];
    let keep = if kept.version == 1 {
        "INSERT INTO kept (name, version, body) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING"
    } else {
        "UPDATE kept SET version = ?2, body = ?3 WHERE name = ?1 AND version = ?2 - 1"
    };
    Ok(tx.prepare_cached(keep)?.execute(values)? == 1)
}
