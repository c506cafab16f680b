//! The fields of walks in PostgreSQL.

use amends_core::SessionId;
use bytes::Bytes;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::stored::read_number;

/// Keeps what moves wrote.
pub(super) const KEEP: &str = "INSERT INTO fields (session, seq, body)
    SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bytea[])
    ON CONFLICT (session, seq) DO UPDATE SET body = excluded.body";

/// What the moves of a walk wrote, in their order.
pub(super) async fn of_session(connection: &Connection, session: &SessionId) -> Result<Vec<(u64, Bytes)>, Trouble> {
    let find = "SELECT seq, body FROM fields WHERE session = $1 ORDER BY seq";
    let rows = connection.rows(find, &[&session.as_str()]).await?;
    rows.iter().map(|row| Ok((read_number(row.try_get(0)?)?, row.try_get::<_, Vec<u8>>(1)?.into()))).collect()
}
