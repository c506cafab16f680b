//! Leases, and sessions that nobody drives.

use amends_core::{SessionId, Timestamp};

use super::LeaseClock;
use super::connection::Connection;
use super::trouble::Trouble;
use crate::node::{Node, is_dead, letters_for};
use crate::row::{Lease, Reach};
use crate::stored::{ms, number, read_ms, read_number};

/// This node, and the clock by which it judges the others.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) node: Node,
    pub(super) clock: LeaseClock,
}

impl Here {
    /// Says that this node lives. By the database's clock it does so a little longer than by the caller's own, which was
    /// read before.
    pub(super) async fn heartbeat(&self, connection: &Connection, now: Timestamp) -> Result<Timestamp, Trouble> {
        let beat = "INSERT INTO nodes (id, place, lease_until)
            VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $4::bigint)
            ON CONFLICT (id) DO UPDATE SET place = excluded.place, lease_until = excluded.lease_until";
        let now_there = match self.clock {
            LeaseClock::Database => None,
            LeaseClock::Caller => Some(ms(now)),
        };
        connection.change(beat, &[&self.node.id, &self.node.place, &now_there, &number(self.node.lease_ms)]).await?;
        Ok(now + self.node.lease_ms)
    }

    /// Takes the lease of a session for this node, unless it is out of reach: another living node holds it.
    pub(super) async fn take(
        &self,
        connection: &Connection,
        session: &SessionId,
        now: Timestamp,
        reach: Reach,
    ) -> Result<Option<Lease>, Trouble> {
        let find = "SELECT owner, epoch, seq, open_calls FROM sessions WHERE id = $1 FOR UPDATE";
        let Some(row) = connection.row(find, &[&session.as_str()]).await? else {
            return Ok(None);
        };
        let (owner, epoch): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let held = owner != self.node.id && self.living(connection, now).await?.iter().any(|living| living == owner);
        if held && (reach == Reach::Dead || row.try_get::<_, i64>(3)? > 0 || asks(connection, session).await?) {
            return Ok(None);
        }
        let lease = Lease { epoch: read_number(epoch)? + 1, seq: read_number(row.try_get(2)?)? };
        let take = "UPDATE sessions SET owner = $2, epoch = $3 WHERE id = $1 AND epoch = $4";
        let epoch_now = number(lease.epoch);
        connection.change_exactly(1, take, &[&session.as_str(), &self.node.id, &epoch_now, &epoch]).await?;
        Ok(Some(lease))
    }

    /// Sessions whose node is dead and that have something to do.
    pub(super) async fn orphans(
        &self,
        connection: &Connection,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SessionId>, Trouble> {
        let mut living = self.living(connection, now).await?;
        living.push(self.node.id.clone());
        let busy = "SELECT id FROM sessions WHERE open_calls > 0 AND owner <> ALL ($1) ORDER BY owner, id LIMIT $2";
        let mut orphans = connection.rows(busy, &[&living, &number(limit as u64)]).await?;
        let resting = "SELECT s.id FROM interactions i JOIN sessions s ON s.id = i.session
             WHERE i.closed IS NULL AND i.answered IS NOT NULL AND s.open_calls = 0 AND s.owner <> ALL ($1)
             UNION
             SELECT id FROM sessions WHERE open_calls = 0 AND due IS NOT NULL AND due <= $2 AND owner <> ALL ($1)
             ORDER BY 1 LIMIT $3";
        let left = number(limit.saturating_sub(orphans.len()) as u64);
        orphans.extend(connection.rows(resting, &[&living, &ms(now), &left]).await?);
        orphans.iter().map(|row| Ok(SessionId::new(row.try_get::<_, String>(0)?))).collect()
    }

    /// Sessions without open calls that have a question which is due or answered, and whose node is this one or dead.
    pub(super) async fn due(
        &self,
        connection: &Connection,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SessionId>, Trouble> {
        let mut others = self.living(connection, now).await?;
        others.retain(|living| *living != self.node.id);
        let due = "SELECT DISTINCT s.id FROM interactions i JOIN sessions s ON s.id = i.session
             WHERE i.closed IS NULL AND (i.answered IS NOT NULL OR i.due <= $2)
               AND s.open_calls = 0 AND s.owner <> ALL ($1)
             ORDER BY s.id LIMIT $3";
        let rows = connection.rows(due, &[&others, &ms(now), &number(limit as u64)]).await?;
        rows.iter().map(|row| Ok(SessionId::new(row.try_get::<_, String>(0)?))).collect()
    }

    /// The nodes that live. One that is not known does not.
    pub(super) async fn living(&self, connection: &Connection, now: Timestamp) -> Result<Vec<String>, Trouble> {
        let find = "SELECT id, place, lease_until, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM nodes";
        let mut living = Vec::new();
        for row in connection.rows(find, &[]).await? {
            let now = match self.clock {
                LeaseClock::Database => read_ms(row.try_get(3)?)?,
                LeaseClock::Caller => now,
            };
            if !is_dead(row.try_get(1)?, read_ms(row.try_get(2)?)?, now) {
                living.push(row.try_get(0)?);
            }
        }
        Ok(living)
    }
}

/// Whether a session has a question that is not closed. Its row must be locked: nobody asks anything for it then. It is a
/// statement of its own, since one that had to wait for the lock sees other tables as they were before.
async fn asks(connection: &Connection, session: &SessionId) -> Result<bool, Trouble> {
    let find = "SELECT 1 FROM interactions WHERE session = $1 AND closed IS NULL LIMIT 1";
    Ok(connection.row(find, &[&session.as_str()]).await?.is_some())
}

/// Where the node that holds a session gets its letters.
pub(super) async fn holder(connection: &Connection, session: &SessionId) -> Result<Option<String>, Trouble> {
    let row = connection.row("SELECT owner FROM sessions WHERE id = $1", &[&session.as_str()]).await?;
    Ok(row.map(|row| row.try_get::<_, &str>(0).map(letters_for)).transpose()?)
}

/// The time by the database's clock.
pub(super) async fn clock(connection: &Connection) -> Result<Timestamp, Trouble> {
    let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    match connection.row(time, &[]).await? {
        Some(row) => Ok(read_ms(row.try_get(0)?)?),
        None => Ok(Timestamp::default()),
    }
}
