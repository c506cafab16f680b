//! What people are asked on account of a step.

use std::sync::Arc;

use amends_core::interaction::Subject;
use amends_core::{CallId, Fact, Interaction, SessionId};
use amends_ledger::QueueState;
use tokio::sync::watch;

use crate::gateway::Gateway;
use crate::live::From;

/// How many facts are looked at at once.
const AT_ONCE: usize = 256;

/// Sees when a question is put to people in a session that is driven here.
#[derive(Debug)]
pub(super) struct Watch {
    newest: watch::Receiver<u64>,
    at: u64,
}

impl Watch {
    /// Watches from now on.
    pub(super) fn begin(gateway: &Gateway) -> Self {
        let (from, newest) = gateway.live.watch(None);
        let at = match from {
            From::After(number) => number,
            From::Lost => gateway.live.newest(),
        };
        Self { newest, at }
    }

    /// Waits until a question may have been put in that session.
    pub(super) async fn asked(&mut self, gateway: &Gateway, session: &SessionId) {
        loop {
            match gateway.live.after(self.at, AT_ONCE) {
                Some(seen) if seen.is_empty() => {
                    if self.newest.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                Some(seen) => {
                    for (number, seen) in seen {
                        self.at = number;
                        if seen.session == *session && seen.event == "interaction_opened" {
                            return;
                        }
                    }
                }
                None => {
                    self.at = gateway.live.newest();
                    return;
                }
            }
        }
    }
}

/// The open questions of a session that something waits for. What a person should merely know, and what is found out about a
/// doubt, holds nothing up.
pub(super) async fn open(gateway: &Arc<Gateway>, session: &SessionId) -> Vec<Interaction> {
    let trace = match gateway.ledger.trace(session).await {
        Ok(Some(trace)) => trace,
        Ok(None) => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "what is asked could not be read");
            return Vec::new();
        }
    };
    let mut open = Vec::new();
    for stored in &trace.events {
        let Fact::InteractionOpened { interaction } = &stored.event.fact else { continue };
        if matches!(interaction.subject, Subject::Notice | Subject::Doubt) {
            continue;
        }
        if let Ok(Some(entry)) = gateway.ledger.interaction(&interaction.id).await
            && entry.state == QueueState::Open
        {
            open.push(entry.interaction);
        }
    }
    open
}

/// The open questions about a call, or about the one it repeats.
pub(super) async fn about(gateway: &Arc<Gateway>, session: &SessionId, call: &CallId) -> Vec<Interaction> {
    let own: Vec<_> = open(gateway, session).await.into_iter().filter(|asked| asked.call == *call).collect();
    if !own.is_empty() {
        return own;
    }
    let Ok(Some(trace)) = gateway.ledger.trace(session).await else { return Vec::new() };
    let first = trace.events.iter().find_map(|stored| match &stored.event.fact {
        Fact::CallReceived { received, .. } if received.call == *call => received.repeat_of.clone(),
        _ => None,
    });
    match first {
        Some(first) => {
            let asked = open(gateway, &first.session).await;
            asked.into_iter().filter(|asked| asked.call == first.call).collect()
        }
        None => Vec::new(),
    }
}
