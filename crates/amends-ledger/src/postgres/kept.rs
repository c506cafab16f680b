//! What is kept under a name in PostgreSQL.

use amends_core::Digest;
use bytes::Bytes;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::kept::Kept;
use crate::stored::{number, read_number};

/// What is kept under that name.
pub(super) async fn kept(connection: &Connection, name: &Digest) -> Result<Option<Kept>, Trouble> {
    let Some(row) = connection.row("SELECT version, body FROM kept WHERE name = $1", &[&name.as_str()]).await? else {
        return Ok(None);
    };
    let body = Bytes::from(row.try_get::<_, Vec<u8>>(1)?);
    Ok(Some(Kept { name: name.clone(), version: read_number(row.try_get(0)?)?, body }))
}

/// Keeps it, if it follows the one that is there.
pub(super) async fn keep(connection: &Connection, kept: &Kept) -> Result<bool, Trouble> {
    let keep = if kept.version == 1 {
        "INSERT INTO kept (name, version, body) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING"
    } else {
        "UPDATE kept SET version = $2::int8, body = $3 WHERE name = $1 AND version = $2::int8 - 1"
    };
    Ok(connection.change(keep, &[&kept.name.as_str(), &number(kept.version), &&kept.body[..]]).await? == 1)
}
