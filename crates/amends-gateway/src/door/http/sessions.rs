//! Stateful MCP sessions: each is a session of ours, found by an id nobody can guess.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amends_core::Principal;
use amends_core::dispatcher::cancel::CancelReason;
use amends_wire::mcp::{ClientTraits, Era};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::body::Body;
use super::{Door, plain_text};
use crate::driver::SessionHandle;
use crate::mint;

/// How long a session that nobody uses is remembered, and how many there may be.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
const SESSIONS_MAX: usize = 10_000;

/// The stateful sessions of a door.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<String, (Arc<Stateful>, Instant)>>,
}

/// One stateful session.
#[derive(Debug)]
pub(super) struct Stateful {
    pub(super) handle: SessionHandle,
    pub(super) traits: ClientTraits,
    running: Mutex<HashMap<String, oneshot::Sender<CancelReason>>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Arc<Stateful>, Instant)>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session and gives its id; nothing when there are too many.
    pub(super) fn open(&self, door: &Door, client: Option<&str>) -> Option<String> {
        let now = Instant::now();
        let mut by_id = self.lock();
        if by_id.len() >= SESSIONS_MAX {
            by_id.retain(|_, (_, used)| now.duration_since(*used) < IDLE_MAX);
        }
        if by_id.len() >= SESSIONS_MAX {
            return None;
        }
        let id = mint::token();
        let stateful = Stateful {
            handle: door.gateway.open_session(Principal::new("local"), "mcp/http"),
            traits: ClientTraits::of(Era::Legacy, client),
            running: Mutex::default(),
        };
        by_id.insert(id.clone(), (Arc::new(stateful), now));
        Some(id)
    }

    /// The session of that id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Stateful>> {
        let mut by_id = self.lock();
        let (stateful, used) = by_id.get_mut(id)?;
        *used = Instant::now();
        Some(stateful.clone())
    }
}

impl Stateful {
    /// A request that can be stopped by its id.
    pub(super) fn runs(&self, id: &str) -> oneshot::Receiver<CancelReason> {
        let (stop, stopped) = oneshot::channel();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), stop);
        stopped
    }

    /// A request is over.
    pub(super) fn ended(&self, id: &str) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// The agent wants a request stopped.
    pub(super) fn cancel(&self, id: &str) {
        let stop = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(stop) = stop {
            let _ = stop.send(CancelReason::Asked);
        }
    }

    /// Stops everything that runs in it.
    fn end(&self) {
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for stop in running.into_values() {
            // A request that is over by now needs no stopping.
            let _ = stop.send(CancelReason::SessionEnded);
        }
    }
}

/// `DELETE /mcp`: the agent is done with its session.
pub(super) fn delete(door: &Door, request: &Request<Incoming>) -> Response<Body> {
    let id = request.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).unwrap_or("");
    let ended = door.sessions.lock().remove(id);
    match ended {
        Some((stateful, _)) => {
            stateful.end();
            plain_text(StatusCode::OK, "the session is over")
        }
        None => plain_text(StatusCode::NOT_FOUND, "there is no such session"),
    }
}
