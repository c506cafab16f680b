//! Sessions whose events are dropped: those that are older than what is kept, and those that somebody wants forgotten.

use std::sync::{Arc, Weak};
use std::time::Duration;

use amends_core::dispatcher::retire::RetireReason;
use amends_core::{Dispatcher, Gates, Input, ReversalState, SessionId, Timestamp};
use amends_ledger::{Append, Error, Ledger, SessionRow};

use crate::clock;
use crate::gateway::Gateway;

/// How many sessions are retired in one turn, and how many are looked at for it.
const RETIRED_MAX: usize = 256;
const LOOKED_AT_MAX: usize = 4_096;
const PAGE: usize = 256;

const TURN_MIN: Duration = Duration::from_secs(1);
const TURN_MAX: Duration = Duration::from_secs(30);

/// What became of the wish to retire a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retirement {
    /// So many events were dropped.
    Done {
        /// How many.
        events: u64,
    },
    /// It was retired before.
    Before,
    /// There is no such session.
    Unknown,
    /// Another process may be driving it.
    Elsewhere,
    /// It cannot be yet.
    NotYet {
        /// Why.
        why: &'static str,
    },
}

/// Retires a session of which nothing is open, unless another process holds its lease.
pub async fn retire(
    ledger: &dyn Ledger,
    session: &SessionId,
    reason: RetireReason,
    now: Timestamp,
) -> Result<Retirement, Error> {
    let Some(trace) = ledger.trace(session).await? else { return Ok(Retirement::Unknown) };
    if trace.cut > 0 {
        return Ok(Retirement::Before);
    }
    // Without their rules, open calls fail the folding; a session without open calls needs none.
    let folded = Dispatcher::restore(trace.events.iter().map(|stored| &stored.event), |_| None);
    let Ok(mut dispatcher) = folded else {
        return Ok(Retirement::NotYet { why: "a call in it is open" });
    };
    if dispatcher.open_calls() > 0 || dispatcher.open_questions() > 0 {
        return Ok(Retirement::NotYet { why: "a call or a question in it is open" });
    }
    if can_be_undone(ledger, session, now).await? {
        return Ok(Retirement::NotYet { why: "a write in it can still be undone" });
    }
    let Some(lease) = ledger.take(session, now).await? else { return Ok(Retirement::Elsewhere) };
    if lease.seq != dispatcher.seq() {
        return Ok(Retirement::NotYet { why: "something happened in it just now" });
    }
    let events = dispatcher.seq();
    let step = dispatcher.handle(now, &Gates::default(), Input::Retire { reason });
    let append = Append { retires: true, ..Append::of(session.clone(), lease.epoch, lease.seq, step.events) };
    match ledger.append(append).await {
        Ok(_) => Ok(Retirement::Done { events }),
        Err(Error::Fenced { .. } | Error::Conflict { .. }) => Ok(Retirement::Elsewhere),
        Err(error) => Err(error),
    }
}

async fn can_be_undone(ledger: &dyn Ledger, session: &SessionId, now: Timestamp) -> Result<bool, Error> {
    let rows = ledger.reversals_of(session).await?;
    Ok(rows.iter().any(|row| match row.state {
        ReversalState::Minted | ReversalState::Redeeming => true,
        ReversalState::Armed => row.until.is_none_or(|until| until > now),
        ReversalState::Redeemed | ReversalState::Void => false,
    }))
}

/// Retires a session for somebody who asked for it, unless an agent uses it here.
pub(super) async fn forget(gateway: &Gateway, session: &SessionId) -> Result<Retirement, Error> {
    if gateway.driver_of(session).is_some() {
        return Ok(Retirement::NotYet { why: "an agent is connected to it" });
    }
    let fate = retire(&*gateway.ledger, session, RetireReason::Forgotten, clock::now()).await?;
    count(gateway, fate);
    Ok(fate)
}

fn count(gateway: &Gateway, fate: Retirement) {
    if matches!(fate, Retirement::Done { .. }) {
        gateway.metrics.event("session_retired");
    }
}

/// Retires what is older than what is kept, a bounded number of sessions at a time.
pub async fn retire_old(gateway: Weak<Gateway>, kept: Duration) {
    let mut after: Option<SessionRow> = None;
    loop {
        tokio::time::sleep(kept.clamp(TURN_MIN, TURN_MAX)).await;
        let Some(gateway) = gateway.upgrade() else { return };
        match turn(&gateway, kept, after.take()).await {
            Ok(reached) => after = reached,
            Err(error) => tracing::warn!(%error, "what is older than is kept could not be dropped"),
        }
    }
}

/// One turn from that session on. Gives back where the next one goes on; nothing where it begins again.
async fn turn(
    gateway: &Arc<Gateway>,
    kept: Duration,
    mut after: Option<SessionRow>,
) -> Result<Option<SessionRow>, Error> {
    let now = clock::now();
    let kept_ms = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
    let Some(until) = now.ms().checked_sub(kept_ms).map(Timestamp::from_ms) else { return Ok(None) };
    let (mut looked_at, mut retired) = (0, 0);
    while looked_at < LOOKED_AT_MAX && retired < RETIRED_MAX {
        let page = gateway.ledger.sessions_after(Timestamp::default(), after.as_ref(), PAGE).await?;
        if page.is_empty() {
            return Ok(None);
        }
        for row in page {
            if row.opened > until {
                // The others are newer still.
                return Ok(None);
            }
            looked_at += 1;
            let over = row.updated <= until && row.open_calls == 0 && row.cut == 0;
            if over && gateway.driver_of(&row.session).is_none() {
                let fate = retire(&*gateway.ledger, &row.session, RetireReason::Retention, now).await?;
                count(gateway, fate);
                retired += usize::from(matches!(fate, Retirement::Done { .. }));
            }
            after = Some(row);
        }
    }
    Ok(after)
}
