//! The inbox in SQLite.

use amends_core::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::nodes::lives;
use super::trouble::{Trouble, ms, number, read_json, read_number, text, write_json};
use crate::letter::{Letter, LetterId, LetterState};
use crate::node::Node;

/// Puts a letter into the inbox.
pub(super) fn post(tx: &Connection, letter: &Letter, now: Timestamp) -> Result<LetterId, Trouble> {
    let body = write_json(&letter.body)?;
    let session = letter.session.as_ref().map(|session| session.as_str());
    tx.prepare_cached("INSERT INTO letters (place, session, body, posted) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![letter.place, session, body, ms(now)])?;
    Ok(LetterId(read_number(tx.last_insert_rowid())?))
}

/// Takes letters for this node.
pub(super) fn collect(
    tx: &Connection,
    node: &Node,
    places: &[String],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(LetterId, Letter)>, Trouble> {
    let free = free(tx, node, places, now, limit)?;
    for (id, _) in &free {
        tx.prepare_cached("UPDATE letters SET taker = ?2, taken = ?3 WHERE id = ?1")?.execute(params![
            number(id.0),
            node.id,
            ms(now)
        ])?;
    }
    Ok(free)
}

/// The letters that this node could take, the oldest first.
pub(super) fn free(
    connection: &Connection,
    node: &Node,
    places: &[String],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(LetterId, Letter)>, Trouble> {
    let mut free = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT l.id, l.place, l.session, l.body, l.taker, n.place, n.lease_until
         FROM letters l LEFT JOIN nodes n ON n.id = l.taker
         WHERE l.replied IS NULL AND l.place IS ?1 ORDER BY l.id",
    )?;
    let mut named: Vec<Option<&str>> = places.iter().map(|place| Some(place.as_str())).collect();
    named.sort_unstable();
    named.dedup();
    for place in std::iter::once(None).chain(named) {
        let mut rows = statement.query([place])?;
        let mut found = 0;
        while found < limit
            && let Some(row) = rows.next()?
        {
            let is_taken = match row.get::<_, Option<String>>(4)? {
                Some(taker) => taker == node.id || lives(row.get(5)?, row.get(6)?, now)?,
                None => false,
            };
            if !is_taken {
                let session = row.get::<_, Option<String>>(2)?.map(SessionId::new);
                let letter = Letter { place: row.get(1)?, session, body: read_json(text(row, 3)?)? };
                free.push((LetterId(read_number(row.get(0)?)?), letter));
                found += 1;
            }
        }
    }
    free.sort_by_key(|(id, _)| *id);
    free.truncate(limit);
    Ok(free)
}

/// Replies to a letter, if nobody has.
pub(super) fn reply(tx: &Connection, id: LetterId, body: &Value, now: Timestamp) -> Result<bool, Trouble> {
    let body = write_json(body)?;
    let changed = tx
        .prepare_cached("UPDATE letters SET reply = ?2, replied = ?3 WHERE id = ?1 AND replied IS NULL")?
        .execute(params![number(id.0), body, ms(now)])?;
    Ok(changed == 1)
}

/// Where a letter stands.
pub(super) fn letter(connection: &Connection, id: LetterId) -> Result<Option<LetterState>, Trouble> {
    let found = connection
        .prepare_cached("SELECT taker IS NOT NULL, reply FROM letters WHERE id = ?1")?
        .query_row([number(id.0)], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?)))
        .optional()?;
    let Some((taken, reply)) = found else {
        return Ok(None);
    };
    let reply = reply.as_deref().map(read_json).transpose()?;
    Ok(Some(LetterState { taken, reply }))
}
