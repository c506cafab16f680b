//! Sessions that go, and sessions that come whole from another ledger.

use amends_core::{Digest, SessionId, Tenant};
use rusqlite::{Connection, params};

use super::trouble::{Trouble, ms, number};
use crate::chain::Link;
use crate::step::FIRST_EPOCH;
use crate::whole::Whole;

/// Drops everything of a session but its last event, which says so, and the link that one goes on from.
///
/// Claims stay: they hold digests only, and a repeat that found none would be sent once more.
pub(super) fn drop_earlier(tx: &Connection, session: &SessionId, last: u64, before: Link) -> Result<(), Trouble> {
    let id = session.as_str();
    // What goes is overwritten, also on pages that would otherwise only be marked as free.
    tx.pragma_update(None, "secure_delete", true)?;
    tx.prepare_cached("UPDATE sessions SET cut = ?2, cut_link = ?3 WHERE id = ?1")?.execute(params![
        id,
        number(last - 1),
        before.bytes()
    ])?;
    for statement in [
        "DELETE FROM answers WHERE call IN (SELECT call FROM events WHERE session = ?1)",
        "DELETE FROM arguments WHERE call IN (SELECT call FROM events WHERE session = ?1)",
        "DELETE FROM fields WHERE session = ?1",
        "DELETE FROM interactions WHERE session = ?1",
        "DELETE FROM letters WHERE session = ?1 AND replied IS NOT NULL",
        "UPDATE reversals SET place = NULL, principal = NULL, tool = NULL, arguments = NULL WHERE session = ?1",
    ] {
        tx.prepare_cached(statement)?.execute([id])?;
    }
    tx.prepare_cached("DELETE FROM events WHERE session = ?1 AND seq < ?2")?.execute(params![id, number(last)])?;
    tx.pragma_update(None, "secure_delete", "FAST")?;
    Ok(())
}

/// Writes the log back and empties it, since it still holds what was dropped. While somebody reads it stays, and the next
/// one that is written back overwrites it.
pub(super) fn empty_log(connection: &Connection) {
    // That it could not be emptied now changes nothing that was promised.
    drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
}

/// Puts a session of another ledger here, unless there is such a session already.
pub(super) fn import(tx: &Connection, whole: &Whole) -> Result<bool, Trouble> {
    let Whole { row, cut_link, head, events } = whole;
    let id = row.session.as_str();
    let there =
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1) OR EXISTS (SELECT 1 FROM events WHERE session = ?1)";
    if tx.prepare_cached(there)?.query_row([id], |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    let mut insert = tx.prepare_cached(
        "INSERT INTO events (session, seq, at, kind, call, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (event, hash) in events {
        let call = event.call.as_ref().map(|call| call.as_str());
        insert.execute(params![id, number(event.seq), ms(event.at), event.kind, call, event.body, hash.bytes()])?;
        if let Some(call) = call.filter(|_| event.received) {
            tx.prepare_cached("INSERT OR IGNORE INTO calls (call, session) VALUES (?1, ?2)")?.execute([call, id])?;
        }
    }
    tx.prepare_cached(
        "INSERT INTO sessions
             (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due, cut, cut_link, machine,
              tenant)
         VALUES (?1, ?2, ?3, '', ?4, ?5, ?6, ?7, ?8, 0, NULL, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        id,
        row.principal.as_str(),
        row.door,
        number(FIRST_EPOCH),
        number(row.events),
        head.bytes(),
        ms(row.opened),
        ms(row.updated),
        number(row.cut),
        cut_link.as_ref().map(Link::bytes),
        row.machine,
        row.tenant().as_ref().map(Tenant::as_str)
    ])?;
    Ok(true)
}

/// Keeps the rules of a session that was imported; `false` where they are there already.
pub(super) fn import_rules(tx: &Connection, hash: &Digest, body: &str) -> Result<bool, Trouble> {
    let added = tx
        .prepare_cached("INSERT OR IGNORE INTO rules (hash, body) VALUES (?1, ?2)")?
        .execute(params![hash.as_str(), body])?;
    Ok(added == 1)
}
