//! Pinned tools in PostgreSQL.

use amends_core::Digest;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::error::Error;
use crate::pin::PinnedTool;
use crate::stored::number;

/// The pins of one place, or of all, in the order of their places and names.
pub(super) async fn pins(
    connection: &Connection,
    place: Option<&Digest>,
    limit: usize,
) -> Result<Vec<PinnedTool>, Trouble> {
    let find = "SELECT body FROM pins WHERE $1::text IS NULL OR place = $1 ORDER BY place, tool LIMIT $2";
    let rows = connection.rows(find, &[&place.map(Digest::as_str), &number(limit as u64)]).await?;
    let read = |row: &tokio_postgres::Row| {
        let unreadable = |error| Error::Corrupt { reason: format!("a pinned tool cannot be read: {error}") };
        Ok(serde_json::from_str(row.try_get(0)?).map_err(unreadable)?)
    };
    rows.iter().map(read).collect()
}

/// Keeps a pin, if it follows the one that is there.
pub(super) async fn keep(connection: &Connection, pin: &PinnedTool) -> Result<bool, Trouble> {
    let body = serde_json::to_string(pin)
        .map_err(|error| Error::Corrupt { reason: format!("a pinned tool cannot be written: {error}") })?;
    let keep = if pin.version == 1 {
        "INSERT INTO pins (place, tool, version, body) VALUES ($1, $2, $3, $4) ON CONFLICT (place, tool) DO NOTHING"
    } else {
        "UPDATE pins SET version = $3::int8, body = $4 WHERE place = $1 AND tool = $2 AND version = $3::int8 - 1"
    };
    Ok(connection.change(keep, &[&pin.place.as_str(), &pin.tool, &number(pin.version), &body]).await? == 1)
}
