//! Recomputing every chain in the file.

use amends_core::{Principal, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, number, read_number};
use crate::chain::{ChainFault, Checker, FAULTS_MAX, FaultKind, Record, Tip, Verified};

/// How many events are read in one transaction. A long one would keep the log from being emptied while others write.
const PAGE: u64 = 1_000;

/// A session's row, as far as its chain is concerned.
struct Row {
    session: SessionId,
    principal: Principal,
    door: String,
    seq: u64,
    head: Vec<u8>,
    cut: u64,
    cut_link: Option<Vec<u8>>,
}

/// Recomputes every chain, one page of events at a time, while others go on writing. The connection is in no transaction.
pub(super) fn verify(connection: &Connection) -> Result<Verified, Trouble> {
    let mut verified = Verified::default();
    let mut after = String::new();
    // Ends when the ids are through: each round begins after the last one.
    while let Some(row) = next_session(connection, &after)? {
        verified.sessions += 1;
        let faults = check(connection, &row, &mut verified.events)?;
        verified.add(faults);
        row.session.as_str().clone_into(&mut after);
    }
    for table in ["events", "calls"] {
        verified.add(without_session(connection, table)?);
    }
    Ok(verified)
}

fn next_session(connection: &Connection, after: &str) -> Result<Option<Row>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, principal, door, seq, head, cut, cut_link FROM sessions WHERE id > ?1 ORDER BY id LIMIT 1",
    )?;
    let mut rows = statement.query([after])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(Row {
        session: SessionId::new(row.get::<_, String>(0)?),
        principal: Principal::new(row.get::<_, String>(1)?),
        door: row.get(2)?,
        seq: read_number(row.get(3)?)?,
        head: row.get(4)?,
        cut: read_number(row.get(5)?)?,
        cut_link: row.get(6)?,
    }))
}

/// Checks one chain up to the end that its row names. What others append meanwhile lies behind it.
fn check(connection: &Connection, row: &Row, events: &mut u64) -> Result<Vec<ChainFault>, Trouble> {
    let Row { session, principal, door, seq: end, head, cut, cut_link } = row;
    let tip = Tip { session, principal, door, seq: *end, head };
    let mut checker = Checker::after(tip, *cut, cut_link.as_deref());
    let mut statement = connection.prepare_cached(
        "SELECT seq, body, hash, at, kind, call FROM events
         WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
    )?;
    let mut after = -1;
    loop {
        let mut read = 0;
        let mut rows = statement.query(params![session.as_str(), after, number(*end), number(PAGE)])?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            read += 1;
            let seq = read_number(after)?;
            let (body, hash) = (row.get_ref(1)?, row.get_ref(2)?);
            let record =
                Record { seq, body: body.as_bytes().unwrap_or_default(), hash: hash.as_bytes().unwrap_or_default() };
            let Some(event) = checker.next(record) else {
                continue;
            };
            let (at, kind, call): (i64, String, Option<String>) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let named = event.fact.call().map(|call| call.as_str());
            if number(event.at.ms()) != at || event.fact.name() != kind || named != call.as_deref() {
                let words = format!("the columns beside event {seq} do not say what the event says");
                checker.fault(Some(seq), FaultKind::Edited, words);
            }
        }
        *events += read;
        if read < PAGE {
            break;
        }
    }
    let mut faults = checker.finish();
    if let Some(last) = beyond(connection, session)? {
        let words = format!("event {last} is there, and the session's row ends before it");
        faults.push(ChainFault { session: session.clone(), seq: Some(last), kind: FaultKind::HeadMismatch, words });
    }
    Ok(faults)
}

/// The last event of a session, if it lies behind the end that the session's row names at that moment.
fn beyond(connection: &Connection, session: &SessionId) -> Result<Option<u64>, Trouble> {
    let last: Option<i64> = connection
        .prepare_cached(
            "SELECT e.seq FROM sessions s JOIN events e ON e.session = s.id
             WHERE s.id = ?1 AND e.seq > s.seq ORDER BY e.seq DESC LIMIT 1",
        )?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    Ok(last.map(read_number).transpose()?)
}

/// Sessions of which something is there, but not their own row.
fn without_session(connection: &Connection, table: &str) -> Result<Vec<ChainFault>, Trouble> {
    let mut statement = connection.prepare(&format!(
        "SELECT DISTINCT session FROM {table} t
         WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.session) LIMIT {}",
        FAULTS_MAX + 1
    ))?;
    let mut rows = statement.query([])?;
    let mut faults = Vec::new();
    while let Some(row) = rows.next()? {
        faults.push(ChainFault {
            session: SessionId::new(row.get::<_, String>(0)?),
            seq: None,
            kind: FaultKind::SessionMissing,
            words: format!("its {table} are there, and its row is not"),
        });
    }
    Ok(faults)
}
