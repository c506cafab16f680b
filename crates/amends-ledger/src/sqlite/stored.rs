//! Sessions exactly as they are stored, for whoever trusts nothing of it.

use std::collections::BTreeSet;

use amends_core::{Digest, Principal, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, number, text};
use crate::row::{StoredRecord, StoredSession, StoredTip};

/// Those whose id comes after that one, in the order of their ids. All are read in the transaction of the connection.
pub(super) fn stored(
    connection: &Connection,
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<StoredSession>, Trouble> {
    let mut sessions = Vec::new();
    for session in next(connection, after, limit)? {
        sessions.push(one(connection, session)?);
    }
    Ok(sessions)
}

/// That session.
pub(super) fn one(connection: &Connection, session: SessionId) -> Result<StoredSession, Trouble> {
    let (tip, records) = (tip(connection, &session)?, records(connection, &session)?);
    Ok(StoredSession { session, tip, records })
}

/// The next ids of sessions that have a row of their own, or events.
fn next(connection: &Connection, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionId>, Trouble> {
    // A session has an id; nothing comes before the empty text.
    let after = after.map_or("", |session| session.as_str());
    let mut found = BTreeSet::new();
    for query in [
        "SELECT id FROM sessions WHERE id > ?1 ORDER BY id LIMIT ?2",
        "SELECT DISTINCT session FROM events WHERE session > ?1 ORDER BY session LIMIT ?2",
    ] {
        let mut statement = connection.prepare_cached(query)?;
        let mut rows = statement.query(params![after, number(limit as u64)])?;
        while let Some(row) = rows.next()? {
            found.insert(SessionId::new(text(row, 0)?));
        }
    }
    Ok(found.into_iter().take(limit).collect())
}

fn tip(connection: &Connection, session: &SessionId) -> Result<Option<StoredTip>, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT principal, door, seq, head, logged, cut, cut_link FROM sessions WHERE id = ?1")?;
    let mut rows = statement.query([session.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(StoredTip {
        principal: Principal::new(text(row, 0)?),
        door: row.get(1)?,
        seq: untrusted(row.get(2)?),
        head: row.get(3)?,
        cut: untrusted(row.get(5)?),
        cut_link: row.get(6)?,
        logged: untrusted(row.get(4)?),
    }))
}

fn records(connection: &Connection, session: &SessionId) -> Result<Vec<StoredRecord>, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT seq, at, kind, call, body, hash FROM events WHERE session = ?1 ORDER BY seq")?;
    let mut rows = statement.query([session.as_str()])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(StoredRecord {
            seq: untrusted(row.get(0)?),
            at: untrusted(row.get(1)?),
            kind: row.get(2)?,
            call: row.get(3)?,
            body: row.get_ref(4)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec(),
            hash: row.get_ref(5)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec(),
        });
    }
    Ok(records)
}

/// The text that is kept as the rules of that digest.
pub(super) fn rules(connection: &Connection, hash: &Digest) -> Result<Option<String>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT body FROM rules WHERE hash = ?1")?;
    Ok(statement.query_row([hash.as_str()], |row| row.get(0)).optional()?)
}

/// A number that somebody may have made negative, which then is none that anything else can match.
fn untrusted(stored: i64) -> u64 {
    stored.cast_unsigned()
}
