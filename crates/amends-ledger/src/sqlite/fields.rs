//! The fields of walks in SQLite.

use amends_core::SessionId;
use bytes::Bytes;
use rusqlite::{Connection, params};

use super::trouble::{Trouble, number, read_number};
use crate::append::StoredFields;

/// What the moves of a walk wrote, in their order.
pub(super) fn of_session(connection: &Connection, session: &SessionId) -> Result<Vec<(u64, Bytes)>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT seq, body FROM fields WHERE session = ?1 ORDER BY seq")?;
    let mut rows = statement.query([session.as_str()])?;
    let mut fields = Vec::new();
    while let Some(row) = rows.next()? {
        fields.push((read_number(row.get(0)?)?, Bytes::from(row.get::<_, Vec<u8>>(1)?)));
    }
    Ok(fields)
}

/// Keeps what a move wrote.
pub(super) fn keep(tx: &Connection, session: &SessionId, fields: &StoredFields) -> Result<(), Trouble> {
    tx.prepare_cached("INSERT OR REPLACE INTO fields (session, seq, body) VALUES (?1, ?2, ?3)")?.execute(params![
        session.as_str(),
        number(fields.seq),
        &fields.body[..]
    ])?;
    Ok(())
}
