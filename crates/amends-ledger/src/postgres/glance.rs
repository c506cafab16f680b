//! A look at a database that makes and changes nothing.

use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::connection::{Connection, SILENCE_MAX, Target};
use super::schema::VERSION;
use super::trouble::Trouble;
use crate::error::Error;
use crate::glance::Glance;
use crate::stored::{read_ms, read_number};

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const META: &str = "SELECT version FROM meta";
const SESSIONS: &str = "SELECT count(*)::bigint, coalesce(sum(open_calls), 0)::bigint, max(updated),
        count(*) FILTER (WHERE logged < seq)::bigint FROM sessions";
const CHECKPOINT: &str = "SELECT max(at) FROM checkpoints";
const QUESTIONS: &str = "SELECT count(*)::bigint FROM interactions WHERE closed IS NULL AND answered IS NULL";
const LEASES: &str = "SELECT lease_until FROM nodes";

/// Looks at a ledger. Nothing where there are no tables yet.
pub(crate) async fn glance(url: &str) -> Result<Option<Glance>, Error> {
    let target = Target::parse(url)?;
    let connection = target.connect().await?;
    Ok(timeout(SILENCE_MAX, look(&connection)).await.unwrap_or(Err(Trouble::Silent))?)
}

async fn look(connection: &Connection) -> Result<Option<Glance>, Trouble> {
    connection.run("SET default_transaction_read_only = on").await?;
    let count = |row: &tokio_postgres::Row, at: usize| -> Result<u64, Trouble> { Ok(read_number(row.try_get(at)?)?) };
    let clock = connection.row(CLOCK, &[]).await?.map(|row| count(&row, 0)).transpose()?;
    let row = match connection.row(META, &[]).await {
        Err(Trouble::Broken(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
        other => other?,
    };
    let Some(row) = row else { return Ok(None) };
    let mut glance = Glance {
        version: count(&row, 0)?,
        version_known: VERSION,
        clock: clock.map(amends_core::Timestamp::from_ms),
        ..Glance::default()
    };
    if glance.version != glance.version_known {
        return Ok(Some(glance));
    }
    let newest = |row: &tokio_postgres::Row, at: usize| -> Result<Option<_>, Trouble> {
        let at: Option<i64> = row.try_get(at)?;
        Ok(at.map(read_ms).transpose()?)
    };
    if let Some(row) = connection.row(SESSIONS, &[]).await? {
        (glance.sessions, glance.open_calls, glance.unlogged) = (count(&row, 0)?, count(&row, 1)?, count(&row, 3)?);
        glance.updated = newest(&row, 2)?;
    }
    if let Some(row) = connection.row(CHECKPOINT, &[]).await? {
        glance.checkpoint = newest(&row, 0)?;
    }
    if let Some(row) = connection.row(QUESTIONS, &[]).await? {
        glance.questions = count(&row, 0)?;
    }
    for row in connection.rows(LEASES, &[]).await? {
        glance.leases.push(read_ms(row.try_get(0)?)?);
    }
    Ok(Some(glance))
}
