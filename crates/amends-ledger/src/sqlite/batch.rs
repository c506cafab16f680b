//! What the steps of one transaction leave behind that would be written again by the next one: it is written once, at its end.
//!
//! A move is three steps of one session, and each changes the session's row; the arguments that the first one keeps, the second
//! one drops. A step sees what the ones before it left as if it were written.

use std::collections::BTreeMap;

use amends_core::{CallId, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::{Trouble, ms, number, read_link, read_ms, read_number};
use crate::append::{OpenWork, StoredArguments};
use crate::chain::Link;
use crate::error::Error;
use crate::node::Node;
use crate::step::{FIRST_EPOCH, Opens, Place, Step};

/// What is still to be written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    sessions: BTreeMap<SessionId, Row>,
    arguments: BTreeMap<CallId, Bytes>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    pub(super) place: Place,
    pub(super) head: Link,
    pub(super) updated: Timestamp,
    pub(super) open: OpenWork,
}

/// A session's row, as it is and as it will be.
#[derive(Debug)]
struct Row {
    /// Nothing where it is opened in this batch.
    written: Option<Standing>,
    opens: Option<Opens>,
    now: Standing,
    machine: Option<String>,
    /// Whether it has events after its end.
    goes_on: bool,
    /// Whether its row says that the log does not have all of it.
    behind: bool,
}

impl Batch {
    /// Where a session stands, if there is one.
    pub(super) fn standing(&mut self, tx: &Connection, session: &SessionId) -> Result<Option<Standing>, Trouble> {
        if !self.sessions.contains_key(session)
            && let Some(Found { standing: found, goes_on, behind }) = read(tx, session)?
        {
            let row = Row { written: Some(found), opens: None, now: found, machine: None, goes_on, behind };
            self.sessions.insert(session.clone(), row);
        }
        Ok(self.sessions.get(session).map(|row| row.now))
    }

    /// Fails if a session has events after its end, where the next ones belong.
    pub(super) fn has_room(&self, tx: &Connection, session: &SessionId) -> Result<(), Trouble> {
        let (goes_on, end) = match self.sessions.get(session) {
            Some(row) => (row.goes_on, row.now.place.seq),
            None => {
                let mut any = tx.prepare_cached("SELECT 1 FROM events WHERE session = ?1 LIMIT 1")?;
                (any.exists([session.as_str()])?, 0)
            }
        };
        if goes_on {
            return Err(Error::Corrupt { reason: format!("`{session}` has events after its end at {end}") }.into());
        }
        Ok(())
    }

    /// A step leaves its session there.
    pub(super) fn leave(&mut self, step: &mut Step, head: Link, updated: Timestamp) {
        let place = Place { epoch: step.epoch, seq: step.last_seq() };
        let now = Standing { place, head, updated, open: step.open };
        match self.sessions.get_mut(&step.session) {
            Some(row) => {
                row.now = now;
                row.machine = step.machine.take().or(row.machine.take());
            }
            None => {
                let (opens, machine) = (step.opens.take(), step.machine.take());
                let row = Row { written: None, opens, now, machine, goes_on: false, behind: true };
                self.sessions.insert(step.session.clone(), row);
            }
        }
    }

    /// Keeps the arguments of a call.
    pub(super) fn keep(&mut self, arguments: &StoredArguments) {
        self.arguments.insert(arguments.call.clone(), arguments.body.clone());
    }

    /// Drops the arguments of a call, wherever they are.
    pub(super) fn forget(&mut self, tx: &Connection, call: &CallId) -> Result<(), Trouble> {
        self.arguments.remove(call);
        tx.prepare_cached("DELETE FROM arguments WHERE call = ?1")?.execute([call.as_str()])?;
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn write(&mut self, tx: &Connection, node: &Node) -> Result<(), Trouble> {
        for (session, row) in std::mem::take(&mut self.sessions) {
            match (row.written, &row.opens) {
                (Some(written), _) if written == row.now && row.machine.is_none() => {}
                (Some(written), _) => change(tx, &session, &row, written)?,
                (None, Some(opens)) => open(tx, node, &session, &row, opens)?,
                (None, None) => return Err(Error::Corrupt { reason: format!("`{session}` was never opened") }.into()),
            }
        }
        for (call, body) in std::mem::take(&mut self.arguments) {
            tx.prepare_cached("INSERT OR REPLACE INTO arguments (call, body) VALUES (?1, ?2)")?
                .execute(params![call.as_str(), &body[..]])?;
        }
        Ok(())
    }
}

/// What a session's row says.
struct Found {
    standing: Standing,
    /// Whether there are events after where it stands.
    goes_on: bool,
    behind: bool,
}

fn read(tx: &Connection, session: &SessionId) -> Result<Option<Found>, Trouble> {
    let found = tx
        .prepare_cached(
            "SELECT epoch, seq, head, updated, open_calls, due,
                    EXISTS (SELECT 1 FROM events e WHERE e.session = s.id AND e.seq > s.seq), behind
             FROM sessions s WHERE id = ?1",
        )?
        .query_row([session.as_str()], |row| {
            let head = row.get_ref(2)?.as_blob().map(read_link);
            let numbers: (i64, i64, i64, u32) = (row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?);
            Ok((numbers, head, row.get::<_, Option<i64>>(5)?, row.get::<_, bool>(6)?, row.get::<_, bool>(7)?))
        })
        .optional()?;
    let Some(((epoch, seq, updated, calls), head, due, goes_on, behind)) = found else { return Ok(None) };
    let place = Place { epoch: read_number(epoch)?, seq: read_number(seq)? };
    let head = head.map_err(rusqlite::Error::from)??;
    let open = OpenWork { calls, due: due.map(read_ms).transpose()? };
    Ok(Some(Found { standing: Standing { place, head, updated: read_ms(updated)?, open }, goes_on, behind }))
}

fn open(tx: &Connection, node: &Node, session: &SessionId, row: &Row, opens: &Opens) -> Result<(), Trouble> {
    tx.prepare_cached(
        "INSERT INTO sessions (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due,
             machine, tenant)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        session.as_str(),
        opens.principal.as_str(),
        opens.door,
        node.id,
        number(FIRST_EPOCH),
        number(row.now.place.seq),
        row.now.head.bytes(),
        ms(opens.at),
        ms(row.now.updated),
        row.now.open.calls,
        row.now.open.due.map(ms),
        row.machine,
        opens.tenant.as_ref().map(Tenant::as_str)
    ])?;
    Ok(())
}

/// What did not change is not named: an index over it would be written again.
fn change(tx: &Connection, session: &SessionId, row: &Row, written: Standing) -> Result<(), Trouble> {
    let (seq, head, updated) = (number(row.now.place.seq), row.now.head.bytes(), ms(row.now.updated));
    if !row.behind {
        tx.prepare_cached("UPDATE sessions SET behind = 1 WHERE id = ?1")?.execute([session.as_str()])?;
    }
    if row.now.open == written.open && row.machine.is_none() {
        tx.prepare_cached("UPDATE sessions SET seq = ?2, head = ?3, updated = ?4 WHERE id = ?1")?.execute(params![
            session.as_str(),
            seq,
            head,
            updated
        ])?;
        return Ok(());
    }
    let (calls, due) = (row.now.open.calls, row.now.open.due.map(ms));
    tx.prepare_cached(
        "UPDATE sessions SET seq = ?2, head = ?3, updated = ?4, open_calls = ?5, due = ?6,
             machine = coalesce(?7, machine) WHERE id = ?1",
    )?
    .execute(params![session.as_str(), seq, head, updated, calls, due, row.machine])?;
    Ok(())
}
