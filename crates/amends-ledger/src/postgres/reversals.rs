//! Reversal tokens in PostgreSQL.

use amends_core::{CallId, Digest, Principal, SessionId, ToolName};
use bytes::Bytes;
use tokio_postgres::Row;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::reversals::{ReversalRow, StoredUndo};
use crate::stored::{read_ms, read_word};

/// A token, by its digest.
pub(super) async fn reversal(connection: &Connection, token: &Digest) -> Result<Option<ReversalRow>, Trouble> {
    let find = "SELECT token, session, call, state, minted, until, redeemer, place, principal, tool, arguments
        FROM reversals WHERE token = $1";
    connection.row(find, &[&token.as_str()]).await?.as_ref().map(read).transpose()
}

/// The tokens of a session's writes, the one minted last in front.
pub(super) async fn of_session(connection: &Connection, session: &SessionId) -> Result<Vec<ReversalRow>, Trouble> {
    let find = "SELECT token, session, call, state, minted, until, redeemer, place, principal, tool, arguments
        FROM reversals WHERE session = $1 ORDER BY minted_seq DESC, minted_nth DESC";
    connection.rows(find, &[&session.as_str()]).await?.iter().map(read).collect()
}

/// A token's row.
pub(super) fn read(row: &Row) -> Result<ReversalRow, Trouble> {
    let token = Digest::new(row.try_get::<_, String>(0)?);
    let undo = match row.try_get::<_, Option<String>>(7)? {
        Some(place) => Some(StoredUndo {
            token: token.clone(),
            place,
            principal: Principal::new(row.try_get::<_, String>(8)?),
            tool: ToolName::new(row.try_get::<_, String>(9)?),
            arguments: Bytes::from(row.try_get::<_, Vec<u8>>(10)?),
        }),
        None => None,
    };
    Ok(ReversalRow {
        token,
        session: SessionId::new(row.try_get::<_, String>(1)?),
        call: CallId::new(row.try_get::<_, String>(2)?),
        state: read_word(row.try_get(3)?)?,
        minted: read_ms(row.try_get(4)?)?,
        until: row.try_get::<_, Option<i64>>(5)?.map(read_ms).transpose()?,
        by: row.try_get::<_, Option<String>>(6)?.map(CallId::new),
        undo,
    })
}
