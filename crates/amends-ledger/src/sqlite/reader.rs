//! Reading, on connections of its own, so that no reader waits for the writer.

use std::sync::{Arc, Mutex, PoisonError};

use amends_core::{CallId, Digest, Held, Principal, Rules, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Rows, params};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::file::File;
use super::schema;
use super::trouble::{Trouble, ms, number, read_link, read_ms, read_number, read_word, text};
use crate::append::{Form, StoredAnswer, StoredArguments};
use crate::chain::Link;
use crate::claims::ClaimRow;
use crate::error::Error;
use crate::row::{SessionRow, StoredEvent, Trace};

/// How many reads run at once.
const READERS_MAX: usize = 2;

/// The connections that read. They are opened when they are needed, and again after a failure.
#[derive(Debug)]
pub(super) struct Readers {
    file: Arc<File>,
    free: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self { file, free: Arc::new(Semaphore::new(READERS_MAX)), idle: Arc::default() }
    }

    /// Reads in one short transaction, on a thread that may block.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let (file, idle) = (Arc::clone(&self.file), Arc::clone(&self.idle));
        let turn = Arc::clone(&self.free).acquire_owned().await;
        let turn = turn.map_err(|_| Error::Unavailable { reason: "its readers have stopped".into() })?;
        let reading = spawn_blocking(move || {
            let _turn = turn;
            file.still_there()?;
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = kept.map_or_else(|| schema::connect_to_read(&file.path), Ok)?;
            let tx = connection.unchecked_transaction()?;
            let done = read(&tx)?;
            drop(tx);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(done)
        });
        match reading.await {
            Ok(done) => done.map_err(|trouble: Trouble| trouble.into()),
            Err(error) => Err(Error::Unavailable { reason: format!("a read was broken off: {error}") }),
        }
    }
}

/// A session's events with their hashes.
pub(super) fn trace(connection: &Connection, session: &SessionId) -> Result<Option<Trace>, Trouble> {
    let place = connection
        .prepare_cached("SELECT epoch, seq, cut, cut_link FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| {
            let link: Option<Vec<u8>> = row.get(3)?;
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, link))
        })
        .optional()?;
    let Some((epoch, seq, cut, cut_link)) = place else {
        return Ok(None);
    };
    let (epoch, last, cut) = (read_number(epoch)?, read_number(seq)?, read_number(cut)?);
    let cut_link = cut_link.as_deref().map(read_link).transpose()?.map(Link::hex);
    let mut events = Vec::new();
    let mut statement =
        connection.prepare_cached("SELECT seq, body, hash FROM events WHERE session = ?1 ORDER BY seq")?;
    let mut rows = statement.query([session.as_str()])?;
    while let Some(row) = rows.next()? {
        let body: String = row.get(1)?;
        events.push(StoredEvent::read(read_number(row.get(0)?)?, &body, read_link(&row.get::<_, Vec<u8>>(2)?)?)?);
    }
    // Invariant: a trace is whole. Half of one would be restored into a session that never was.
    if events.iter().map(|stored| stored.event.seq).ne(cut + 1..=last) {
        let reason = format!(
            "`{session}` has {last} events by its row, {cut} of them dropped, and the others are not all there"
        );
        return Err(Error::Corrupt { reason }.into());
    }
    Ok(Some(Trace { session: session.clone(), epoch, cut, cut_link, events }))
}

/// The newest sessions first.
pub(super) fn sessions(connection: &Connection, limit: usize) -> Result<Vec<SessionRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions ORDER BY opened DESC, id DESC LIMIT ?1",
    )?;
    listed(statement.query([number(limit as u64)])?)
}

/// The newest sessions of a tenant first.
pub(super) fn sessions_of(connection: &Connection, tenant: &Tenant, limit: usize) -> Result<Vec<SessionRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions WHERE tenant = ?1 ORDER BY opened DESC, id DESC LIMIT ?2",
    )?;
    listed(statement.query(params![tenant.as_str(), number(limit as u64)])?)
}

/// The sessions opened at a time or later, the oldest first, after that one.
pub(super) fn sessions_after(
    connection: &Connection,
    since: Timestamp,
    after: Option<&(Timestamp, SessionId)>,
    limit: usize,
) -> Result<Vec<SessionRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions WHERE (opened, id) > (?1, ?2) ORDER BY opened, id LIMIT ?3",
    )?;
    // No id is empty, so that the first of a time comes after the empty one.
    let (opened, id) =
        after.map_or((since, ""), |(opened, id)| if *opened < since { (since, "") } else { (*opened, id.as_str()) });
    listed(statement.query(params![ms(opened), id, number(limit as u64)])?)
}

/// The sessions of one principal through one door that are no walks, the oldest first, after that one.
pub(super) fn sessions_by(
    connection: &Connection,
    principal: &Principal,
    door: &str,
    after: Option<&(Timestamp, SessionId)>,
    limit: usize,
) -> Result<Vec<SessionRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions WHERE (opened, id) > (?1, ?2) AND principal = ?3 AND door = ?4 AND machine IS NULL
         ORDER BY opened, id LIMIT ?5",
    )?;
    let (opened, id) = after.map_or((0, ""), |(opened, id)| (ms(*opened), id.as_str()));
    listed(statement.query(params![opened, id, principal.as_str(), door, number(limit as u64)])?)
}

fn listed(mut rows: Rows<'_>) -> Result<Vec<SessionRow>, Trouble> {
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        listed.push(SessionRow {
            session: SessionId::new(row.get::<_, String>(0)?),
            principal: Principal::new(row.get::<_, String>(1)?),
            door: row.get(2)?,
            opened: read_ms(row.get(3)?)?,
            updated: read_ms(row.get(4)?)?,
            events: read_number(row.get(5)?)?,
            open_calls: row.get(6)?,
            cut: read_number(row.get(7)?)?,
            machine: row.get(8)?,
        });
    }
    Ok(listed)
}

/// The session a call belongs to.
pub(super) fn session_of(connection: &Connection, call: &CallId) -> Result<Option<SessionId>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT session FROM calls WHERE call = ?1")?;
    Ok(statement.query_row([call.as_str()], |row| row.get::<_, String>(0)).optional()?.map(SessionId::new))
}

/// A claim as it is stored.
pub(super) fn claim(connection: &Connection, name: &Digest) -> Result<Option<ClaimRow>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, session, call, state, fingerprint, effect_key, since, until FROM claims WHERE name = ?1",
    )?;
    let mut rows = statement.query([name.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let held = Held {
        name: name.clone(),
        session: SessionId::new(text(row, 1)?),
        call: CallId::new(text(row, 2)?),
        state: read_word(text(row, 3)?)?,
        fingerprint: Digest::new(text(row, 4)?),
        effect_key: text(row, 5)?.to_owned(),
        since: read_ms(row.get(6)?)?,
    };
    let until = row.get::<_, Option<i64>>(7)?.map(read_ms).transpose()?;
    Ok(Some(ClaimRow { held, kind: read_word(text(row, 0)?)?, until }))
}

/// The answer stored for a call that ended.
pub(super) fn answer(connection: &Connection, call: &CallId) -> Result<Option<StoredAnswer>, Trouble> {
    let mut statement =
        connection.prepare_cached("SELECT outcome, certainty, form, body, until FROM answers WHERE call = ?1")?;
    let mut rows = statement.query([call.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let form = match text(row, 2)? {
        "forward" => Form::Forward,
        "envelope" => Form::Envelope,
        "asked" => Form::Asked,
        other => {
            return Err(Error::Corrupt { reason: format!("`{other}` is stored as an answer's form") }.into());
        }
    };
    Ok(Some(StoredAnswer {
        call: call.clone(),
        outcome: read_word(text(row, 0)?)?,
        certainty: read_word(text(row, 1)?)?,
        form,
        body: Bytes::from(row.get::<_, Vec<u8>>(3)?),
        until: read_ms(row.get(4)?)?,
    }))
}

/// The arguments kept for an open call.
pub(super) fn arguments(connection: &Connection, call: &CallId) -> Result<Option<StoredArguments>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT body FROM arguments WHERE call = ?1")?;
    let body = statement.query_row([call.as_str()], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(body.map(|body| StoredArguments { call: call.clone(), body: body.into() }))
}

/// The rules of that digest.
pub(super) fn rules(connection: &Connection, hash: &Digest) -> Result<Option<Arc<Rules>>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT body FROM rules WHERE hash = ?1")?;
    let Some(body) = statement.query_row([hash.as_str()], |row| row.get::<_, String>(0)).optional()? else {
        return Ok(None);
    };
    let rules = serde_json::from_str(&body)
        .map_err(|error| Error::Corrupt { reason: format!("the rules `{hash}` cannot be read: {error}") })?;
    Ok(Some(Arc::new(rules)))
}
