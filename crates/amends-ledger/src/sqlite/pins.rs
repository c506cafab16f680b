//! Pinned tools in SQLite.

use amends_core::Digest;
use rusqlite::{Connection, params};

use super::trouble::{Trouble, number};
use crate::error::Error;
use crate::pin::PinnedTool;

/// The pins of one place, or of all, in the order of their places and names.
pub(super) fn pins(connection: &Connection, place: Option<&Digest>, limit: usize) -> Result<Vec<PinnedTool>, Trouble> {
    let find = "SELECT body FROM pins WHERE ?1 IS NULL OR place = ?1 ORDER BY place, tool LIMIT ?2";
    let mut statement = connection.prepare_cached(find)?;
    let mut rows = statement.query(params![place.map(Digest::as_str), number(limit as u64)])?;
    let mut pins = Vec::new();
    while let Some(row) = rows.next()? {
        let body: String = row.get(0)?;
        let unreadable = |error| Error::Corrupt { reason: format!("a pinned tool cannot be read: {error}") };
        pins.push(serde_json::from_str(&body).map_err(unreadable)?);
    }
    Ok(pins)
}

/// Keeps a pin, if it follows the one that is there.
pub(super) fn keep(tx: &Connection, pin: &PinnedTool) -> Result<bool, Trouble> {
    let body = serde_json::to_string(pin)
        .map_err(|error| Error::Corrupt { reason: format!("a pinned tool cannot be written: {error}") })?;
    let values = params![pin.place.as_str(), pin.tool, number(pin.version), body];
    let keep = if pin.version == 1 {
        "INSERT INTO pins (place, tool, version, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (place, tool) DO NOTHING"
    } else {
        "UPDATE pins SET version = ?3, body = ?4 WHERE place = ?1 AND tool = ?2 AND version = ?3 - 1"
    };
    Ok(tx.prepare_cached(keep)?.execute(values)? == 1)
}
