//! Sessions as a whole: as they are stored, checked, and taken over from another ledger.

use amends_core::{CallId, Fact, Principal, SessionId};

use super::connection::Connection;
use super::trouble::Trouble;
use crate::chain::{ChainFault, Checker, FAULTS_MAX, FaultKind, Link, Record, Tip, canonical};
use crate::error::Error;
use crate::row::{SessionRow, StoredRecord, StoredSession, StoredTip, Trace};
use crate::step::FIRST_EPOCH;
use crate::stored::{ms, number};

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

/// What is wrong with a session as it is stored.
pub(super) fn check(stored: &StoredSession) -> Vec<ChainFault> {
    let session = &stored.session;
    let Some(tip) = &stored.tip else {
        let words = "its events are there, and its row is not".into();
        return vec![ChainFault { session: session.clone(), seq: None, kind: FaultKind::SessionMissing, words }];
    };
    let StoredTip { principal, door, seq, head, .. } = tip;
    let mut checker = Checker::new(Tip { session, principal, door, seq: *seq, head });
    for record in &stored.records {
        let Some(event) = checker.next(Record { seq: record.seq, body: &record.body, hash: &record.hash }) else {
            continue;
        };
        let named = event.fact.call().map(CallId::as_str);
        if event.at.ms() != record.at || event.fact.name() != record.kind || named != record.call.as_deref() {
            let words = format!("the columns beside event {} do not say what the event says", record.seq);
            checker.fault(Some(record.seq), FaultKind::Edited, words);
        }
    }
    checker.finish()
}

/// Calls whose session is not there.
pub(super) async fn stray_calls(connection: &Connection) -> Result<Vec<ChainFault>, Trouble> {
    let find = "SELECT DISTINCT c.session FROM calls c
        WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = c.session) LIMIT $1";
    let rows = connection.rows(find, &[&number(FAULTS_MAX as u64 + 1)]).await?;
    rows.iter()
        .map(|row| {
            let session = SessionId::new(row.try_get::<_, String>(0)?);
            let words = "its calls are there, and its row is not".into();
            Ok(ChainFault { session, seq: None, kind: FaultKind::SessionMissing, words })
        })
        .collect()
}

/// Puts a session of another ledger here, as it was.
pub(super) async fn import(connection: &Connection, row: &SessionRow, trace: &Trace) -> Result<bool, Trouble> {
    let session = row.session.as_str();
    let hashes = trace.events.iter().map(|stored| read_hex(stored.hash.as_str())).collect::<Result<Vec<_>, _>>()?;
    let head =
        *hashes.last().ok_or_else(|| Error::Corrupt { reason: "a session without events is imported".into() })?;
    let seq = trace.cut + trace.events.len() as u64;
    let open = "INSERT INTO sessions
            (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due, cut)
        VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, 0, NULL, $9) ON CONFLICT (id) DO NOTHING";
    let (principal, epoch) = (row.principal.as_str(), number(trace.epoch.max(FIRST_EPOCH)));
    let (opened, updated) = (ms(row.opened), ms(row.updated));
    let opened = connection
        .change(
            open,
            &[
                &session,
                &principal,
                &row.door,
                &epoch,
                &number(seq),
                &&head.bytes()[..],
                &opened,
                &updated,
                &number(trace.cut),
            ],
        )
        .await?;
    if opened == 0 {
        return Ok(false);
    }
    let event = "INSERT INTO events (session, seq, at, kind, call, body, hash) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let call = "INSERT INTO calls (call, session) VALUES ($1, $2) ON CONFLICT (call) DO NOTHING";
    for (stored, hash) in trace.events.iter().zip(&hashes) {
        let happened = &stored.event;
        let named = happened.fact.call().map(CallId::as_str);
        let (seq, at, kind) = (number(happened.seq), ms(happened.at), happened.fact.name());
        let body = canonical(happened)?;
        connection.change(event, &[&session, &seq, &at, &kind, &named, &body, &&hash.bytes()[..]]).await?;
        if let (Fact::CallReceived { .. }, Some(named)) = (&happened.fact, named) {
            connection.change(call, &[&named, &session]).await?;
        }
    }
    Ok(true)
}

fn read_hex(hash: &str) -> Result<Link, Error> {
    let bytes = (0..hash.len())
        .step_by(2)
        .map(|at| hash.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<Vec<u8>>>();
    bytes
        .and_then(|bytes| Link::stored(&bytes))
        .ok_or_else(|| Error::Corrupt { reason: format!("`{hash}` is no hash") })
}
