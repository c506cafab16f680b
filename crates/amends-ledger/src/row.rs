//! What a ledger gives back.

use amends_core::event::VERSION;
use amends_core::{Digest, Event, Principal, SessionId, Tenant, Timestamp};
use serde::Deserialize;

use crate::chain::Link;
use crate::error::Error;

/// A session's events, in order, with their hashes.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The session.
    pub session: SessionId,
    /// The epoch of its lease.
    pub epoch: u64,
    /// How many of its first events were dropped by retention; 0 where it is whole. What remains then begins with the
    /// event that says so.
    pub cut: u64,
    /// The link after the last event that was dropped, in hexadecimal, where some were.
    pub cut_link: Option<Digest>,
    /// Its events, from `cut + 1` on.
    pub events: Vec<StoredEvent>,
}

/// An event with its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// The event.
    pub event: Event,
    /// The chain's head after it, in hexadecimal.
    pub hash: Digest,
}

/// A session as it is stored; nothing of it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its id.
    pub session: SessionId,
    /// Its own row; nothing where only events are left.
    pub tip: Option<StoredTip>,
    /// Its events, in the order of their places.
    pub records: Vec<StoredRecord>,
}

/// What a session's own row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTip {
    /// Whose it is.
    pub principal: Principal,
    /// The door it came through.
    pub door: String,
    /// The sequence of its last event.
    pub seq: u64,
    /// The chain's head.
    pub head: Vec<u8>,
    /// How many of its first events were dropped by retention.
    pub cut: u64,
    /// The link after the last event that was dropped, where some were.
    pub cut_link: Option<Vec<u8>>,
    /// The sequence of its last entry in the log; 0 where it has none.
    pub logged: u64,
}

/// An event's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The place it is stored at.
    pub seq: u64,
    /// When it happened, by its row.
    pub at: u64,
    /// Its kind, by its row.
    pub kind: String,
    /// The call it is about, by its row.
    pub call: Option<String>,
    /// Its canonical JSON.
    pub body: Vec<u8>,
    /// The link stored beside it.
    pub hash: Vec<u8>,
}

/// One session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub principal: Principal,
    /// The door it came through.
    pub door: String,
    /// When it began.
    pub opened: Timestamp,
    /// When its last event was.
    pub updated: Timestamp,
    /// How many events it had, those that were dropped included.
    pub events: u64,
    /// How many of its first events were dropped by retention; 0 where it is whole.
    pub cut: u64,
    /// How many calls are open.
    pub open_calls: u32,
    /// The machine it walks, where it walks one.
    pub machine: Option<String>,
}

impl SessionRow {
    /// The tenant it belongs to.
    pub fn tenant(&self) -> Option<Tenant> {
        self.principal.tenant()
    }
}

/// The right to append to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The epoch to append under.
    pub epoch: u64,
    /// The session's last event.
    pub seq: u64,
}

/// Whose sessions a node takes, beside its own and those of dead nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nobody else's.
    Dead,
    /// Those of living nodes as well, where they rest.
    Idle,
}

/// The one thing that is read of an event whatever its shape.
#[derive(Deserialize)]
struct Shape {
    v: u32,
}

impl StoredEvent {
    /// Reads an event back from its canonical JSON.
    pub(crate) fn read(seq: u64, body: &str, hash: Link) -> Result<Self, Error> {
        let read: Result<Event, _> = serde_json::from_str(body);
        // A newer shape may be readable by chance. It would be read for something else than was meant.
        let version = match &read {
            Ok(event) => event.v,
            Err(_) => serde_json::from_str(body).map_or(0, |Shape { v }| v),
        };
        if version > VERSION {
            return Err(Error::Newer { seq, version });
        }
        let event = read.map_err(|error| Error::Corrupt { reason: format!("event {seq} cannot be read: {error}") })?;
        if event.seq != seq {
            return Err(Error::Corrupt { reason: format!("event {} stands in the place of event {seq}", event.seq) });
        }
        Ok(Self { event, hash: hash.hex() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<StoredEvent, Error> {
        StoredEvent::read(7, body, Link::genesis(&"s".into()))
    }

    #[test]
    fn what_a_newer_version_wrote_is_named_whether_or_not_it_can_be_read() {
        let readable = r#"{"v":2,"seq":7,"at":1,"event":"ignored","why":"x"}"#;
        let unknown = r#"{"v":9,"seq":7,"at":1,"event":"dreamt","of":"sheep"}"#;
        assert_eq!(read(readable), Err(Error::Newer { seq: 7, version: 2 }));
        let error = read(unknown).unwrap_err();
        assert_eq!(error, Error::Newer { seq: 7, version: 9 });
        assert!(error.to_string().starts_with("event 7 was written by a newer Amends"), "{error}");
        let broken = r#"{"v":1,"seq":7,"at":1,"event":"dreamt"}"#;
        assert!(matches!(read(broken), Err(Error::Corrupt { .. })));
    }
}
