//! Whether anybody is at an address: seen whenever a connection is made, and looked at while nobody speaks to it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;
use tokio::sync::watch;

use super::Shared;
use super::pool::{Departure, Pool};
use crate::upstream::Health;
use crate::upstream::exchange::Request;

/// How often one that is away is looked for.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// After how long a silence it is looked whether somebody is still there.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const REACH_WITHIN: Duration = Duration::from_secs(5);

/// Why nobody can be reached at an address, for as long as that is so.
#[derive(Debug)]
pub(crate) struct Presence {
    away: watch::Sender<Option<Arc<str>>>,
}

impl Default for Presence {
    fn default() -> Self {
        Self { away: watch::Sender::new(None) }
    }
}

impl Presence {
    /// Why nobody can be reached; nothing where somebody was, or nobody tried.
    pub(in crate::upstream) fn away(&self) -> Option<Arc<str>> {
        self.away.borrow().clone()
    }

    /// Somebody is there.
    pub(super) fn here(&self) {
        self.away.send_if_modified(|away| away.take().is_some());
    }

    /// Nobody is.
    pub(super) fn gone(&self, address: &str, reason: &str) {
        let changed = self.away.send_if_modified(|away| {
            let first = away.is_none();
            *away = Some(reason.into());
            first
        });
        if changed {
            tracing::warn!(address, reason, "nobody can be reached there");
        }
    }

    fn follow(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.away.subscribe()
    }
}

/// Looks for whoever is away until somebody is there again, each time.
pub(in crate::upstream) async fn look_for(pool: &Pool) {
    let mut away = pool.presence().follow();
    // Ends with the task: the sender lives as long as the pool.
    while away.wait_for(Option::is_some).await.is_ok() {
        tokio::time::sleep(AGAIN_AFTER).await;
        let _ = pool.reach(Instant::now() + REACH_WITHIN).await;
    }
}

/// The same for an endpoint that was greeted, which is looked at in its silence, too. Once it is back, it is seen whether it still
/// knows its session with us.
pub(super) async fn watch(shared: Arc<Shared>) {
    let mut health = shared.health.subscribe();
    let mut away = shared.pool.presence().follow();
    let mut was_away = false;
    loop {
        if health.wait_for(|health| matches!(health, Health::Ready { .. })).await.is_err() {
            return;
        }
        let is_away = away.borrow_and_update().is_some();
        if was_away && !is_away {
            tracing::info!(address = shared.pool.address(), "an upstream is back");
            meet_again(&shared).await;
        }
        was_away = is_away;
        let wait = if is_away { AGAIN_AFTER } else { LOOK_EVERY };
        if tokio::time::timeout(wait, away.changed()).await.is_err() {
            let _ = shared.pool.reach(Instant::now() + REACH_WITHIN).await;
        }
    }
}

/// One with sessions is asked whether it is there, which it denies where it has forgotten ours, and then it is greeted again. One
/// without is taken for new: it may have other tools by now.
async fn meet_again(shared: &Arc<Shared>) {
    match shared.known().await.map(|session| session.era) {
        Some(Era::Legacy) => {
            let ticket = shared.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let request = Request {
                method: "ping".into(),
                subject: None,
                params: None,
                headers: Vec::new(),
                asides: None,
                send_by: Instant::now() + REACH_WITHIN,
                run: None,
            };
            let departure = Departure::default();
            let by = OnceLock::new();
            let _ = tokio::time::timeout(REACH_WITHIN, shared.request(ticket, request, &departure, &by)).await;
        }
        Some(Era::Modern) => shared.health.send_modify(|_| {}),
        None => {}
    }
}
