//! Reading, on connections of its own, so that no reader waits for the writer.
//!
//! Each of these is one statement, or does not mind what happens between two: a statement sees the tables as they were at
//! one moment.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use amends_core::{CallId, Digest, Held, Principal, Rules, SessionId, Tenant, Timestamp};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_postgres::Row;

use super::connection::{Connection, SILENCE_MAX, Target};
use super::trouble::Trouble;
use crate::append::{Form, StoredAnswer, StoredArguments};
use crate::chain::Link;
use crate::claims::ClaimRow;
use crate::error::Error;
use crate::row::{SessionRow, StoredEvent, Trace};
use crate::stored::{ms, number, read_json, read_link, read_ms, read_number, read_word};

/// How many reads run at once.
const READERS_MAX: usize = 3;

/// What is read or written on a connection.
pub(super) type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// The connections that read. They are made when they are needed, and again after a failure.
pub(super) struct Readers {
    target: Target,
    secret: [u8; 32],
    free: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(target: Target, secret: [u8; 32]) -> Self {
        Self { target, secret, free: Semaphore::new(READERS_MAX), idle: Mutex::default() }
    }

    /// Reads. A connection that broke while nobody looked is made again once.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, Error>
    where
        F: for<'a> Fn(&'a Connection) -> Doing<'a, T>,
    {
        let _turn =
            self.free.acquire().await.map_err(|_| Error::Unavailable { reason: "its readers stopped".into() })?;
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(connection) = kept {
            match self.read_on(connection, &read).await {
                Err(trouble) if !trouble.is_told() => {}
                fate => return Ok(fate?),
            }
        }
        let connection = self.target.reconnect(&self.secret).await?;
        Ok(self.read_on(connection, &read).await?)
    }

    async fn read_on<T, F>(&self, connection: Connection, read: &F) -> Result<T, Trouble>
    where
        F: for<'a> Fn(&'a Connection) -> Doing<'a, T>,
    {
        let fate = timeout(SILENCE_MAX, read(&connection)).await.unwrap_or(Err(Trouble::Silent));
        if fate.as_ref().err().is_none_or(Trouble::is_told) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        fate
    }
}

/// A session's events with their hashes.
pub(super) async fn trace(connection: &Connection, session: &SessionId) -> Result<Option<Trace>, Trouble> {
    let find = "SELECT s.epoch, s.seq, s.cut, e.seq, e.body, e.hash, s.cut_link
        FROM sessions s LEFT JOIN events e ON e.session = s.id WHERE s.id = $1 ORDER BY e.seq";
    let rows = connection.rows(find, &[&session.as_str()]).await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let (epoch, last, cut) =
        (read_number(first.try_get(0)?)?, read_number(first.try_get(1)?)?, read_number(first.try_get(2)?)?);
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(seq) = row.try_get::<_, Option<i64>>(3)? {
            events.push(StoredEvent::read(read_number(seq)?, row.try_get(4)?, read_link(row.try_get(5)?)?)?);
        }
    }
    // Invariant: a trace is whole. Half of one would be restored into a session that never was.
    if events.iter().map(|stored| stored.event.seq).ne(cut + 1..=last) {
        let reason = format!("`{session}` has events {} to {last} by its row, and they are not all there", cut + 1);
        return Err(Error::Corrupt { reason }.into());
    }
    let cut_link = first.try_get::<_, Option<&[u8]>>(6)?.map(read_link).transpose()?.map(Link::hex);
    Ok(Some(Trace { session: session.clone(), epoch, cut, cut_link, events }))
}

/// The newest sessions first.
pub(super) async fn sessions(connection: &Connection, limit: usize) -> Result<Vec<SessionRow>, Trouble> {
    let find = "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions ORDER BY opened DESC, id DESC LIMIT $1";
    connection.rows(find, &[&number(limit as u64)]).await?.iter().map(listed).collect()
}

/// The newest sessions of a tenant first.
pub(super) async fn sessions_of(
    connection: &Connection,
    tenant: &Tenant,
    limit: usize,
) -> Result<Vec<SessionRow>, Trouble> {
    let find = "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine
         FROM sessions WHERE tenant = $1 ORDER BY opened DESC, id DESC LIMIT $2";
    connection.rows(find, &[&tenant.as_str(), &number(limit as u64)]).await?.iter().map(listed).collect()
}

/// Sessions that were opened at `since` or later and come after that one, the oldest first.
pub(super) async fn sessions_after(
    connection: &Connection,
    since: Timestamp,
    after: Option<&(Timestamp, SessionId)>,
    limit: usize,
) -> Result<Vec<SessionRow>, Trouble> {
    let find = "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine FROM sessions
         WHERE opened >= $1 AND ($2::bigint IS NULL OR (opened, id) > ($2, $3::text))
         ORDER BY opened, id LIMIT $4";
    let opened = after.map(|(opened, _)| ms(*opened));
    let id = after.map(|(_, session)| session.as_str());
    connection.rows(find, &[&ms(since), &opened, &id, &number(limit as u64)]).await?.iter().map(listed).collect()
}

/// The sessions of one principal through one door that are no walks, the oldest first, after that one.
pub(super) async fn sessions_by(
    connection: &Connection,
    principal: &Principal,
    door: &str,
    after: Option<&(Timestamp, SessionId)>,
    limit: usize,
) -> Result<Vec<SessionRow>, Trouble> {
    let find = "SELECT id, principal, door, opened, updated, seq, open_calls, cut, machine FROM sessions
         WHERE ($1::bigint IS NULL OR (opened, id) > ($1, $2::text)) AND principal = $3 AND door = $4 AND machine IS NULL
         ORDER BY opened, id LIMIT $5";
    let opened = after.map(|(opened, _)| ms(*opened));
    let id = after.map(|(_, session)| session.as_str());
    let limit = number(limit as u64);
    connection.rows(find, &[&opened, &id, &principal.as_str(), &door, &limit]).await?.iter().map(listed).collect()
}

fn listed(row: &Row) -> Result<SessionRow, Trouble> {
    Ok(SessionRow {
        session: SessionId::new(row.try_get::<_, String>(0)?),
        principal: Principal::new(row.try_get::<_, String>(1)?),
        door: row.try_get(2)?,
        opened: read_ms(row.try_get(3)?)?,
        updated: read_ms(row.try_get(4)?)?,
        events: read_number(row.try_get(5)?)?,
        open_calls: u32::try_from(row.try_get::<_, i64>(6)?)
            .map_err(|_| Error::Corrupt { reason: "a session has a senseless number of open calls".into() })?,
        cut: read_number(row.try_get(7)?)?,
        machine: row.try_get(8)?,
    })
}

/// The session a call belongs to.
pub(super) async fn session_of(connection: &Connection, call: &CallId) -> Result<Option<SessionId>, Trouble> {
    let row = connection.row("SELECT session FROM calls WHERE call = $1", &[&call.as_str()]).await?;
    Ok(row.map(|row| row.try_get::<_, String>(0)).transpose()?.map(SessionId::new))
}

/// A claim as it is stored.
pub(super) async fn claim(connection: &Connection, name: &Digest) -> Result<Option<ClaimRow>, Trouble> {
    let find = "SELECT name, kind, session, call, state, fingerprint, effect_key, since, until
        FROM claims WHERE name = $1";
    connection.row(find, &[&name.as_str()]).await?.as_ref().map(read_claim).transpose()
}

/// A claim's row.
pub(super) fn read_claim(row: &Row) -> Result<ClaimRow, Trouble> {
    let held = Held {
        name: Digest::new(row.try_get::<_, String>(0)?),
        session: SessionId::new(row.try_get::<_, String>(2)?),
        call: CallId::new(row.try_get::<_, String>(3)?),
        state: read_word(row.try_get(4)?)?,
        fingerprint: Digest::new(row.try_get::<_, String>(5)?),
        effect_key: row.try_get(6)?,
        since: read_ms(row.try_get(7)?)?,
    };
    let until = row.try_get::<_, Option<i64>>(8)?.map(read_ms).transpose()?;
    Ok(ClaimRow { held, kind: read_word(row.try_get(1)?)?, until })
}

/// The answer stored for a call that ended.
pub(super) async fn answer(connection: &Connection, call: &CallId) -> Result<Option<StoredAnswer>, Trouble> {
    let find = "SELECT outcome, certainty, form, body, until FROM answers WHERE call = $1";
    let Some(row) = connection.row(find, &[&call.as_str()]).await? else {
        return Ok(None);
    };
    let form = match row.try_get(2)? {
        "forward" => Form::Forward,
        "envelope" => Form::Envelope,
        "asked" => Form::Asked,
        other => {
            return Err(Error::Corrupt { reason: format!("`{other}` is stored as an answer's form") }.into());
        }
    };
    Ok(Some(StoredAnswer {
        call: call.clone(),
        outcome: read_word(row.try_get(0)?)?,
        certainty: read_word(row.try_get(1)?)?,
        form,
        body: Bytes::from(row.try_get::<_, Vec<u8>>(3)?),
        until: read_ms(row.try_get(4)?)?,
    }))
}

/// The arguments kept for an open call.
pub(super) async fn arguments(connection: &Connection, call: &CallId) -> Result<Option<StoredArguments>, Trouble> {
    let row = connection.row("SELECT body FROM arguments WHERE call = $1", &[&call.as_str()]).await?;
    let body = row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?;
    Ok(body.map(|body| StoredArguments { call: call.clone(), body: body.into() }))
}

/// The rules of that digest.
pub(super) async fn rules(connection: &Connection, hash: &Digest) -> Result<Option<Arc<Rules>>, Trouble> {
    let row = connection.row("SELECT body FROM rules WHERE hash = $1", &[&hash.as_str()]).await?;
    Ok(row.map(|row| read_json(row.try_get(0)?).map_err(Trouble::from)).transpose()?.map(Arc::new))
}
