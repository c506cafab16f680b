//! Waiting for a task to become something else.

use std::sync::Arc;
use std::time::Duration;

use amends_core::{Principal, SessionId};
use amends_wire::a2a::{Refused, State, Version};
use tokio::sync::{mpsc, watch};

use super::task::{Seen, TaskId, changes, look};
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
    gateway: &Arc<Gateway>,
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

/// How a task is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) version: Version,
    /// Whether it ends where somebody is asked.
    pub(super) ends_asking: bool,
}

impl Manner {
    fn ends(self, state: State) -> bool {
        state.is_terminal() || (self.ends_asking && state.is_interrupted())
    }
}

/// Says each change of a task, until it is over or nobody listens. Everybody is told the same, however late they look: each state that
/// its trace went through since the last look.
pub(super) async fn tell(
    gateway: Arc<Gateway>,
    who: Principal,
    first: Seen,
    mut ear: Ear,
    manner: Manner,
    to: mpsc::Sender<String>,
) {
    let Manner { version, .. } = manner;
    let mut last = first;
    if to.send(last.view.answer(version)).await.is_err() || manner.ends(last.view.state) {
        return;
    }
    loop {
        tokio::select! {
            () = ear.hear(&gateway, &last.id.session) => {}
            () = to.closed() => return,
        }
        let changes = match changes(&gateway, &who, &last).await {
            Ok(Some(changes)) => changes,
            // What is retired or away is not told any further; whoever wants to know asks again.
            Ok(None) | Err(_) => return,
        };
        for seen in changes {
            let given = if seen.view.state.is_terminal() { seen.view.artifact_updates(version) } else { Vec::new() };
            for update in given.into_iter().chain([seen.view.status_update(version)]) {
                if to.send(update).await.is_err() {
                    return;
                }
            }
            last = seen;
            if manner.ends(last.view.state) {
                return;
            }
        }
    }
}
