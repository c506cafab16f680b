//! Waiting for a task to become something else.

use std::sync::Arc;
use std::time::Duration;

use amends_core::{Principal, SessionId};
use amends_wire::a2a::{Refused, State, Version};
use tokio::sync::{mpsc, watch};

use super::task::{Seen, TaskId, look};
use crate::gateway::Gateway;
use crate::live::From;

/// How often a task is looked at when nothing is heard of it: another process may drive it.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a task that was just begun may take to be on the ledger.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
/// How many facts are looked through at once.
const FACTS_MAX: usize = 1024;

/// Hears of what is recorded in one session.
pub(super) struct Ear {
    newest: watch::Receiver<u64>,
    at: u64,
}

impl Ear {
    pub(super) fn open(gateway: &Gateway) -> Self {
        let (from, newest) = gateway.live.watch(None);
        let at = match from {
            From::After(at) => at,
            From::Lost => gateway.live.newest(),
        };
        Self { newest, at }
    }

    /// Waits until something is recorded in that session, or for a while.
    pub(super) async fn hear(&mut self, gateway: &Gateway, session: &SessionId) {
        let until = tokio::time::Instant::now() + LOOK_EVERY;
        loop {
            match gateway.live.after(self.at, FACTS_MAX) {
                None => {
                    self.at = gateway.live.newest();
                    return;
                }
                Some(facts) => {
                    let heard = facts.iter().any(|(_, seen)| seen.session == *session);
                    if let Some((number, _)) = facts.last() {
                        self.at = *number;
                    }
                    if heard {
                        return;
                    }
                }
            }
            tokio::select! {
                changed = self.newest.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }
}

/// Waits until a task is where somebody waits for it to be, at most for that long; it is given as it is then.
pub(super) async fn wait(
    gateway: &Gateway,
    who: &Principal,
    id: &TaskId,
    ear: &mut Ear,
    within: Option<Duration>,
    there: impl Fn(State) -> bool,
) -> Result<Seen, Refused> {
    let began = tokio::time::Instant::now();
    loop {
        match look(gateway, who, id).await? {
            Some(seen) if there(seen.view.state) || within.is_some_and(|within| began.elapsed() >= within) => {
                return Ok(seen);
            }
            Some(_) => {}
            None if began.elapsed() >= BEGINS_WITHIN => return Err(id.unknown()),
            None => {}
        }
        ear.hear(gateway, &id.session).await;
    }
}

/// Says each change of a task, until it is over or nobody listens.
pub(super) async fn tell(
    gateway: Arc<Gateway>,
    who: Principal,
    first: Seen,
    mut ear: Ear,
    version: Version,
    to: mpsc::Sender<String>,
) {
    let mut last = first.view.clone();
    if to.send(last.answer(version)).await.is_err() || last.state.is_terminal() {
        return;
    }
    loop {
        tokio::select! {
            () = ear.hear(&gateway, &first.id.session) => {}
            () = to.closed() => return,
        }
        let seen = match look(&gateway, &who, &first.id).await {
            Ok(Some(seen)) => seen,
            // What is retired or away is not told any further; whoever wants to know asks again.
            Ok(None) | Err(_) => return,
        };
        let is_other = seen.view.state != last.state || seen.view.since != last.since;
        last = seen.view;
        if !is_other {
            continue;
        }
        for update in last.artifact_updates(version).into_iter().chain([last.status_update(version)]) {
            if to.send(update).await.is_err() {
                return;
            }
        }
        if last.state.is_terminal() {
            return;
        }
    }
}
