//! Reversal tokens in SQLite.

use amends_core::{CallId, Digest, Principal, SessionId, ToolName};
use bytes::Bytes;
use rusqlite::{Connection, Row, params};

use super::trouble::{Trouble, ms, read_ms, read_word, text, word};
use crate::reversals::{ReversalRow, StoredUndo};

/// A token, by its digest.
pub(super) fn reversal(connection: &Connection, token: &Digest) -> Result<Option<ReversalRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT token, session, call, state, minted, until, redeemer, place, principal, tool, arguments
         FROM reversals WHERE token = ?1",
    )?;
    let mut rows = statement.query([token.as_str()])?;
    rows.next()?.map(read).transpose()
}

/// The tokens of a session's writes, the one minted last in front.
pub(super) fn of_session(connection: &Connection, session: &SessionId) -> Result<Vec<ReversalRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT token, session, call, state, minted, until, redeemer, place, principal, tool, arguments
         FROM reversals WHERE session = ?1 ORDER BY minting DESC",
    )?;
    let mut rows = statement.query([session.as_str()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Writes what a step left of a token.
pub(super) fn write(tx: &Connection, row: &ReversalRow) -> Result<(), Trouble> {
    let undo = row.undo.as_ref();
    tx.prepare_cached(
        "INSERT INTO reversals
             (token, session, call, state, minted, until, redeemer, place, principal, tool, arguments)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (token) DO UPDATE SET state = ?4, until = ?6, redeemer = ?7,
             place = ?8, principal = ?9, tool = ?10, arguments = ?11",
    )?
    .execute(params![
        row.token.as_str(),
        row.session.as_str(),
        row.call.as_str(),
        word(&row.state),
        ms(row.minted),
        row.until.map(ms),
        row.by.as_ref().map(|by| by.as_str()),
        undo.map(|undo| &undo.place),
        undo.map(|undo| undo.principal.as_str()),
        undo.map(|undo| undo.tool.as_str()),
        undo.map(|undo| &undo.arguments[..])
    ])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<ReversalRow, Trouble> {
    let token = Digest::new(text(row, 0)?);
    let undo = match row.get::<_, Option<String>>(7)? {
        Some(place) => Some(StoredUndo {
            token: token.clone(),
            place,
            principal: Principal::new(text(row, 8)?),
            tool: ToolName::new(text(row, 9)?),
            arguments: Bytes::from(row.get::<_, Vec<u8>>(10)?),
        }),
        None => None,
    };
    Ok(ReversalRow {
        token,
        session: SessionId::new(text(row, 1)?),
        call: CallId::new(text(row, 2)?),
        state: read_word(text(row, 3)?)?,
        minted: read_ms(row.get(4)?)?,
        until: row.get::<_, Option<i64>>(5)?.map(read_ms).transpose()?,
        by: row.get::<_, Option<String>>(6)?.map(CallId::new),
        undo,
    })
}
