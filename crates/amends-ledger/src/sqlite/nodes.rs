//! Leases, and sessions that nobody drives.

use std::collections::HashMap;

use amends_core::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, ms, number, read_ms, read_number};
use crate::node::{Node, is_dead, letters_for, time_of};
use crate::row::{Lease, Reach};

/// Takes the lease of a session for this node, unless it is out of reach: another living node holds it.
pub(super) fn take(
    tx: &Connection,
    node: &Node,
    session: &SessionId,
    now: Timestamp,
    reach: Reach,
) -> Result<Option<Lease>, Trouble> {
    let found = tx
        .prepare_cached(
            "SELECT s.owner, s.epoch, s.seq, n.place, n.lease_until
             FROM sessions s LEFT JOIN nodes n ON n.id = s.owner WHERE s.id = ?1",
        )?
        .query_row([session.as_str()], |row| {
            let owner: String = row.get(0)?;
            Ok((owner, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((owner, epoch, seq, place, lease_until)) = found else {
        return Ok(None);
    };
    let held = owner != node.id && lives(place, lease_until, now)?;
    if held && (reach == Reach::Dead || !rests(tx, session)?) {
        return Ok(None);
    }
    let lease = Lease { epoch: read_number(epoch)? + 1, seq: read_number(seq)? };
    tx.prepare_cached("UPDATE sessions SET owner = ?2, epoch = ?3 WHERE id = ?1")?.execute(params![
        session.as_str(),
        node.id,
        number(lease.epoch)
    ])?;
    Ok(Some(lease))
}

/// Whether a session has nothing open.
fn rests(tx: &Connection, session: &SessionId) -> Result<bool, Trouble> {
    let find = "SELECT open_calls = 0 AND NOT EXISTS (
             SELECT 1 FROM interactions i WHERE i.session = s.id AND i.closed IS NULL)
         FROM sessions s WHERE id = ?1";
    Ok(tx.prepare_cached(find)?.query_row([session.as_str()], |row| row.get(0))?)
}

/// Says that this node lives.
pub(super) fn heartbeat(tx: &Connection, node: &Node, now: Timestamp) -> Result<Timestamp, Trouble> {
    let lease_until = now + node.lease_ms;
    tx.prepare_cached("INSERT OR REPLACE INTO nodes (id, place, lease_until) VALUES (?1, ?2, ?3)")?
        .execute(params![node.id, node.place_at(now), ms(lease_until)])?;
    Ok(lease_until)
}

/// Where the node that holds a session gets its letters.
pub(super) fn holder(connection: &Connection, session: &SessionId) -> Result<Option<String>, Trouble> {
    let mut find = connection.prepare_cached("SELECT owner FROM sessions WHERE id = ?1")?;
    let owner: Option<String> = find.query_row([session.as_str()], |row| row.get(0)).optional()?;
    Ok(owner.map(|owner| letters_for(&owner)))
}

/// The time by the clock of a living node of this machine, the one that says it is latest.
pub(super) fn clock(connection: &Connection) -> Result<Option<Timestamp>, Trouble> {
    let mut latest = None;
    let mut nodes = connection.prepare("SELECT place, lease_until FROM nodes")?;
    let mut rows = nodes.query([])?;
    while let Some(row) = rows.next()? {
        let place: String = row.get(0)?;
        latest = latest.max(time_of(&place, read_ms(row.get(1)?)?));
    }
    Ok(latest)
}

/// Sessions whose node is dead and that have something to do.
pub(super) fn orphans(
    connection: &Connection,
    node: &Node,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<SessionId>, Trouble> {
    let mut orphans = Vec::new();
    let mut owners = connection.prepare_cached(
        "SELECT s.owner, n.place, n.lease_until
         FROM (SELECT DISTINCT owner FROM sessions WHERE open_calls > 0) s LEFT JOIN nodes n ON n.id = s.owner",
    )?;
    let mut owned = connection
        .prepare_cached("SELECT id FROM sessions WHERE owner = ?1 AND open_calls > 0 ORDER BY id LIMIT ?2")?;
    let mut rows = owners.query([])?;
    while let Some(row) = rows.next()? {
        let owner: String = row.get(0)?;
        if owner == node.id || lives(row.get(1)?, row.get(2)?, now)? {
            continue;
        }
        let left = number((limit - orphans.len()) as u64);
        for id in owned.query_map(params![owner, left], |row| row.get::<_, String>(0))? {
            orphans.push(SessionId::new(id?));
        }
    }
    let resting = resting(
        connection,
        "SELECT s.id, s.owner, n.place, n.lease_until
         FROM interactions i CROSS JOIN sessions s ON s.id = i.session LEFT JOIN nodes n ON n.id = s.owner
         WHERE i.closed IS NULL AND i.answered IS NOT NULL AND s.open_calls = 0
         UNION
         SELECT s.id, s.owner, n.place, n.lease_until
         FROM sessions s LEFT JOIN nodes n ON n.id = s.owner
         WHERE s.open_calls = 0 AND s.due IS NOT NULL AND s.due <= ?1
         ORDER BY 1",
        now,
        limit - orphans.len(),
        |owner, lives| owner != node.id && !lives,
    )?;
    orphans.extend(resting);
    Ok(orphans)
}

/// Sessions without open calls that have a question which is due or answered, and whose node is this one or dead.
pub(super) fn due(
    connection: &Connection,
    node: &Node,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<SessionId>, Trouble> {
    resting(
        connection,
        "SELECT s.id, s.owner, n.place, n.lease_until
         FROM interactions i CROSS JOIN sessions s ON s.id = i.session LEFT JOIN nodes n ON n.id = s.owner
         WHERE i.closed IS NULL AND i.answered IS NOT NULL AND s.open_calls = 0
         UNION
         SELECT s.id, s.owner, n.place, n.lease_until
         FROM interactions i CROSS JOIN sessions s ON s.id = i.session LEFT JOIN nodes n ON n.id = s.owner
         WHERE i.closed IS NULL AND i.answered IS NULL AND i.due <= ?1 AND s.open_calls = 0
         ORDER BY 1",
        now,
        limit,
        |owner, lives| owner == node.id || !lives,
    )
}

/// Sessions without open calls that the query finds, of such owners: by their name, and whether they live.
fn resting(
    connection: &Connection,
    query: &str,
    now: Timestamp,
    limit: usize,
    such: impl Fn(&str, bool) -> bool,
) -> Result<Vec<SessionId>, Trouble> {
    let mut found = Vec::new();
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query([ms(now)])?;
    let mut seen: HashMap<String, bool> = HashMap::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let owner: String = row.get(1)?;
        let lives = match seen.get(&owner) {
            Some(lives) => *lives,
            None => lives(row.get(2)?, row.get(3)?, now)?,
        };
        if such(&owner, lives) {
            found.push(SessionId::new(row.get::<_, String>(0)?));
        }
        seen.insert(owner, lives);
    }
    Ok(found)
}

/// Whether a node lives. One that is not known does not.
pub(super) fn lives(place: Option<String>, lease_until: Option<i64>, now: Timestamp) -> Result<bool, Trouble> {
    let (Some(place), Some(lease_until)) = (place, lease_until) else {
        return Ok(false);
    };
    Ok(!is_dead(&place, read_ms(lease_until)?, now))
}
