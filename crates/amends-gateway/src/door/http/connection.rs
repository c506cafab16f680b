//! One connection, and which of the answers on it are known to have arrived.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use amends_core::Digest;
use amends_ledger::digest;
use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::driver::Delivery;

/// One connection. An answer that was written in full on it has arrived once the connection is used again or closed
/// cleanly; when it breaks, nobody knows.
#[derive(Debug, Default)]
pub(super) struct Connection {
    written: Mutex<Vec<Delivery>>,
    /// The digest of what the last request showed of its sender.
    shown: Mutex<Option<Digest>>,
    /// Whether its other end is on this machine.
    pub(super) is_local: bool,
}

impl Connection {
    /// A connection from that address.
    pub(super) fn from(peer: SocketAddr) -> Self {
        Self { written: Mutex::default(), shown: Mutex::default(), is_local: peer.ip().to_canonical().is_loopback() }
    }

    /// Whether a request with those headers shows what the one before showed. One that does not may be another agent's.
    pub(super) fn is_same_sender(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).map(|shown| digest(shown.as_bytes()));
        let mut last = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let same = *last == shown;
        *last = shown;
        same
    }

    /// An answer goes out as a response's last bytes.
    pub(super) fn answers(&self, delivery: Option<Delivery>) {
        if let Some(delivery) = delivery {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).push(delivery);
        }
    }

    /// The connection is about to be closed by us. It says whether an answer's fate hangs on how the agent takes that.
    pub(super) fn leaves(&self) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.iter_mut().for_each(Delivery::leaves);
        !written.is_empty()
    }

    /// Another request came. If it must be the same agent's, it has read what came before; otherwise nobody knows.
    pub(super) fn used_again(&self, by_the_same_agent: bool) {
        self.ended(by_the_same_agent);
    }

    /// The connection is over.
    pub(super) fn ended(&self, cleanly: bool) {
        let written = self.take();
        if cleanly {
            written.into_iter().for_each(Delivery::confirm);
        }
    }

    fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
