//! Stateful MCP sessions: each is a session of ours, found by an id nobody can guess.
//!
//! An id carries the proof that a node of this ledger gave it to this principal. Another node takes it up in a session of
//! its own, and so does a node that was started again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amends_core::Principal;
use amends_core::dispatcher::cancel::CancelReason;
use amends_ledger::keyed_digest;
use amends_wire::mcp::{Askable, ClientTraits, Dialect, Era};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::value::RawValue;

use super::body::Body;
use super::{Door, plain_text, stream};
use crate::door::mcp::{Client, Said};
use crate::mint;

/// How long a session that nobody uses is remembered, and how many there may be.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
const SESSIONS_MAX: usize = 10_000;
/// How many sessions that are over are remembered, so that they stay so.
const OVER_MAX: usize = 10_000;
/// How long the random part of an id is, and its proof.
const TOKEN_LENGTH: usize = 24;
const PROOF_LENGTH: usize = 32;
const MARKS_LENGTH: usize = 2;

/// The stateful sessions of a door.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<String, (Arc<Client>, Instant)>>,
    over: Mutex<VecDeque<String>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Arc<Client>, Instant)>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session for a client of that principal that said that, and gives its id; nothing when there are too many.
    pub(super) fn open(&self, door: &Door, who: &Principal, said: Said) -> Option<(String, Arc<Client>)> {
        let id = Id::mint(who, Marks::of(&said)).proven(&door.gateway.secret);
        let client = self.keep(door, who, &id, said)?;
        Some((id, client))
    }

    /// The session of that id, which may be another node's. Another principal's is as good as none.
    pub(super) fn find(&self, door: &Door, who: &Principal, id: &str) -> Option<Arc<Client>> {
        if let Some((client, used)) = self.lock().get_mut(id).filter(|(client, _)| client.principal == *who) {
            *used = Instant::now();
            return Some(client.clone());
        }
        let is_over = self.over.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|over| over == id);
        let known = Id::read(id, who, &door.gateway.secret).filter(|_| !is_over)?;
        self.keep(door, who, id, known.marks.said())
    }

    fn keep(&self, door: &Door, who: &Principal, id: &str, said: Said) -> Option<Arc<Client>> {
        let now = Instant::now();
        let mut by_id = self.lock();
        if by_id.len() >= SESSIONS_MAX {
            by_id.retain(|_, (_, used)| now.duration_since(*used) < IDLE_MAX);
        }
        if by_id.len() >= SESSIONS_MAX {
            return None;
        }
        // Of two requests that bring an unknown id at once, the second finds the session of the first.
        let fresh = || {
            let client = Client::new(door.gateway.clone(), who.clone(), "mcp/http", said);
            client.known_by(id);
            (Arc::new(client), now)
        };
        Some(by_id.entry(id.to_owned()).or_insert_with(fresh).0.clone())
    }

    /// Ends a session of that principal; `false` where there is none. Other nodes do not hear of it.
    fn end(&self, door: &Door, who: &Principal, id: &str) -> bool {
        let Some(_) = Id::read(id, who, &door.gateway.secret) else { return false };
        let ended = self.lock().remove(id);
        let kept = ended.is_some();
        if let Some((client, _)) = ended {
            client.ends(CancelReason::SessionEnded);
        }
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept && over.iter().any(|over| over == id) {
            return false;
        }
        if over.len() >= OVER_MAX {
            over.pop_front();
        }
        over.push_back(id.to_owned());
        true
    }
}

/// What the id of a session says.
#[derive(Debug, PartialEq, Eq)]
struct Id {
    principal: Principal,
    /// What nobody can guess.
    token: String,
    marks: Marks,
}

/// What another node has to know of a client that greeted this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    validates_errors: bool,
    askable: Askable,
}

impl Marks {
    fn of(said: &Said) -> Self {
        let askable = Askable::of(said.capabilities.as_deref().map(|declared| declared.get()));
        Self { validates_errors: said.traits.validates_errors, askable }
    }

    fn said(self) -> Said {
        let traits =
            ClientTraits { era: Era::Legacy, validates_errors: self.validates_errors, dialect: Dialect::default() };
        Said { traits, capabilities: RawValue::from_string(self.askable.declared()).ok() }
    }

    fn written(self) -> String {
        let Askable { form, url, sampling, sampling_tools, roots } = self.askable;
        let all = [self.validates_errors, form, url, sampling, sampling_tools, roots];
        let bits = all.into_iter().fold(0_u8, |bits, bit| bits << 1 | u8::from(bit));
        format!("{bits:02x}")
    }

    fn read(text: &str) -> Option<Self> {
        let bits = u8::from_str_radix(text, 16).ok()?;
        let bit = |n: u8| bits >> n & 1 == 1;
        let askable = Askable { form: bit(4), url: bit(3), sampling: bit(2), sampling_tools: bit(1), roots: bit(0) };
        Some(Self { validates_errors: bit(5), askable })
    }
}

impl Id {
    fn mint(principal: &Principal, marks: Marks) -> Self {
        Self { principal: principal.clone(), token: mint::token(), marks }
    }

    /// The id as it is given out, with the proof that it is ours.
    fn proven(&self, secret: &[u8]) -> String {
        let marks = self.marks.written();
        let parts =
            [b"mcp-session" as &[u8], self.principal.as_str().as_bytes(), self.token.as_bytes(), marks.as_bytes()];
        let proof = keyed_digest(secret, &parts);
        format!("{}{marks}{}", self.token, &proof.as_str()[..PROOF_LENGTH])
    }

    /// Reads an id that a node of the ledger with that secret gave to that principal.
    fn read(id: &str, principal: &Principal, secret: &[u8]) -> Option<Self> {
        if id.len() != TOKEN_LENGTH + MARKS_LENGTH + PROOF_LENGTH || !id.is_ascii() {
            return None;
        }
        let marks = Marks::read(&id[TOKEN_LENGTH..TOKEN_LENGTH + MARKS_LENGTH])?;
        let read = Self { principal: principal.clone(), token: id[..TOKEN_LENGTH].to_owned(), marks };
        let proven = read.proven(secret);
        // Every byte is looked at, so that the time it takes says nothing of where they differ.
        let differing = proven.bytes().zip(id.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
        (differing == 0).then_some(read)
    }
}

/// `DELETE /mcp`: the agent is done with its session.
pub(super) fn delete(door: &Door, who: &Principal, request: &Request<Incoming>) -> Response<Body> {
    let Some(id) = stream::session(request) else { return stream::not_allowed() };
    match door.sessions.end(door, who, id) {
        true => plain_text(StatusCode::OK, "the session is over"),
        false => plain_text(StatusCode::NOT_FOUND, "there is no such session"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_by_every_node_of_its_ledger_and_for_its_principal_alone() {
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let every = |bit: bool| Askable { form: bit, url: bit, sampling: bit, sampling_tools: bit, roots: bit };
        let some = Askable { form: true, sampling: true, ..Askable::default() };
        for (validates_errors, askable) in [(true, every(true)), (false, every(false)), (false, some)] {
            let marks = Marks { validates_errors, askable };
            assert_eq!(Marks::of(&marks.said()), marks);
            let minted = Id::mint(&ada, marks);
            let id = minted.proven(b"secret");
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
            assert_eq!(Id::read(&id, &ada, b"another"), None);
            assert_eq!(Id::read(&id, &bob, b"secret"), None);
            for at in 0..id.len() {
                let mut forged = id.clone().into_bytes();
                forged[at] = if forged[at] == b'x' { b'y' } else { b'x' };
                assert_eq!(Id::read(&String::from_utf8(forged).unwrap(), &ada, b"secret"), None, "{at}");
            }
            assert_eq!(Id::read(&id[1..], &ada, b"secret"), None);
            assert_eq!(Id::read(&id, &ada, b"secret"), Some(minted));
        }
    }
}
