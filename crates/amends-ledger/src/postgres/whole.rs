//! Sessions as a whole: as they are stored, and taken over from another ledger.

use amends_core::{CallId, Digest, Principal, SessionId};
use tokio_postgres::types::ToSql;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::row::{StoredRecord, StoredSession, StoredTip};
use crate::step::FIRST_EPOCH;
use crate::stored::{ms, number};
use crate::whole::Whole;

/// Sessions exactly as they are stored, those whose id comes after that one.
pub(super) async fn stored(
    connection: &Connection,
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<StoredSession>, Trouble> {
    let after = after.map_or("", SessionId::as_str);
    let find = "SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = connection.rows(find, &[&after, &number(limit as u64)]).await?;
    let mut ids = rows.iter().map(|row| row.try_get::<_, String>(0)).collect::<Result<Vec<_>, _>>()?;
    // Where the page is full, events without a session count up to its end, so that no event is looked at twice.
    let end = (ids.len() == limit).then(|| ids.last().cloned()).flatten();
    let strays = "SELECT DISTINCT e.session FROM events e
        WHERE e.session > $1 AND ($2::text IS NULL OR e.session <= $2)
          AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session)
        ORDER BY e.session LIMIT $3";
    for row in connection.rows(strays, &[&after, &end, &number(limit as u64)]).await? {
        ids.push(row.try_get(0)?);
    }
    ids.sort_unstable();
    ids.truncate(limit);
    let mut sessions = Vec::with_capacity(ids.len());
    for id in ids {
        sessions.push(one(connection, id).await?);
    }
    Ok(sessions)
}

/// One session, in one statement and so at one moment.
async fn one(connection: &Connection, id: String) -> Result<StoredSession, Trouble> {
    let find = "SELECT s.principal, s.door, s.seq, s.head, s.cut, s.cut_link, s.logged,
            e.seq, e.at, e.kind, e.call, e.body, e.hash
        FROM (SELECT $1::text COLLATE \"C\" AS id) k LEFT JOIN sessions s ON s.id = k.id
        LEFT JOIN events e ON e.session = k.id ORDER BY e.seq";
    let rows = connection.rows(find, &[&id]).await?;
    let tip = match rows.first() {
        Some(row) if row.try_get::<_, Option<i64>>(2)?.is_some() => Some(StoredTip {
            principal: Principal::new(row.try_get::<_, String>(0)?),
            door: row.try_get(1)?,
            seq: untrusted(row.try_get(2)?),
            head: row.try_get(3)?,
            cut: untrusted(row.try_get(4)?),
            cut_link: row.try_get(5)?,
            logged: untrusted(row.try_get(6)?),
        }),
        _ => None,
    };
    let mut records = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(seq) = row.try_get::<_, Option<i64>>(7)? {
            records.push(StoredRecord {
                seq: untrusted(seq),
                at: untrusted(row.try_get(8)?),
                kind: row.try_get(9)?,
                call: row.try_get(10)?,
                body: row.try_get::<_, String>(11)?.into_bytes(),
                hash: row.try_get(12)?,
            });
        }
    }
    Ok(StoredSession { session: SessionId::new(id), tip, records })
}

/// A number that somebody may have made negative, which then is none that anything else can match.
fn untrusted(stored: i64) -> u64 {
    stored.cast_unsigned()
}

/// The text that is kept as the rules of that digest.
pub(super) async fn rules(connection: &Connection, hash: &Digest) -> Result<Option<String>, Trouble> {
    let row = connection.row("SELECT body FROM rules WHERE hash = $1", &[&hash.as_str()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Puts a session of another ledger here, as it was, unless there is such a session already.
pub(super) async fn import(connection: &Connection, whole: &Whole) -> Result<bool, Trouble> {
    let Whole { row, cut_link, head, events } = whole;
    let session = row.session.as_str();
    let open = "INSERT INTO sessions
            (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due, cut, cut_link, machine,
             tenant)
        VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, 0, NULL, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING";
    let (principal, epoch, seq) = (row.principal.as_str(), number(FIRST_EPOCH), number(row.events));
    let (opened, updated, cut) = (ms(row.opened), ms(row.updated), number(row.cut));
    let (head, cut_link) = (&head.bytes()[..], cut_link.as_ref().map(|link| &link.bytes()[..]));
    let tenant = row.tenant().map(|tenant| tenant.to_string());
    let values: [&(dyn ToSql + Sync); 12] = [
        &session,
        &principal,
        &row.door,
        &epoch,
        &seq,
        &head,
        &opened,
        &updated,
        &cut,
        &cut_link,
        &row.machine,
        &tenant,
    ];
    let opened = connection.change(open, &values).await?;
    if opened == 0 {
        return Ok(false);
    }
    let event = "INSERT INTO events (session, seq, at, kind, call, body, hash) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let call = "INSERT INTO calls (call, session) VALUES ($1, $2) ON CONFLICT (call) DO NOTHING";
    for (written, hash) in events {
        let named = written.call.as_ref().map(CallId::as_str);
        let (seq, at) = (number(written.seq), ms(written.at));
        let values: [&(dyn ToSql + Sync); 7] =
            [&session, &seq, &at, &written.kind, &named, &written.body, &&hash.bytes()[..]];
        connection.change(event, &values).await?;
        if let (true, Some(named)) = (written.received, named) {
            connection.change(call, &[&named, &session]).await?;
        }
    }
    Ok(true)
}

/// Keeps the rules of a session that was imported; `false` where they are there already.
pub(super) async fn import_rules(connection: &Connection, hash: &Digest, body: &str) -> Result<bool, Trouble> {
    let insert = "INSERT INTO rules (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
    Ok(connection.change(insert, &[&hash.as_str(), &body]).await? == 1)
}
