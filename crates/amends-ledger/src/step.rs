//! What every store does with a step before it touches a row, so that they cannot differ in it.

use std::sync::Arc;

use amends_core::{
    CallId, ClaimChange, Digest, Event, Fact, Interaction, InteractionId, Principal, ReversalChange, Rules, SessionId,
    Tenant, Timestamp,
};

use crate::append::{Append, OpenWork, StoredAnswer, StoredArguments, StoredFields};
use crate::chain;
use crate::error::Error;
use crate::interactions::Closing;
use crate::reversals::StoredUndo;

/// A step whose events are numbered as it says and written canonically.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) session: SessionId,
    pub(crate) epoch: u64,
    pub(crate) expected_seq: u64,
    /// Whose session it opens, where it opens one.
    pub(crate) opens: Option<Opens>,
    pub(crate) events: Vec<Written>,
    pub(crate) claims: Vec<ClaimChange>,
    pub(crate) answers: Vec<StoredAnswer>,
    pub(crate) arguments: Vec<StoredArguments>,
    pub(crate) fields: Vec<StoredFields>,
    pub(crate) machine: Option<String>,
    pub(crate) forget: Vec<CallId>,
    pub(crate) rules: Vec<(Digest, Arc<Rules>)>,
    pub(crate) asks: Vec<Interaction>,
    pub(crate) closes: Vec<(InteractionId, Closing)>,
    pub(crate) reversals: Vec<ReversalChange>,
    pub(crate) undo: Vec<StoredUndo>,
    pub(crate) retires: bool,
    pub(crate) open: OpenWork,
}

/// What the event that opens a session says of it.
#[derive(Debug)]
pub(crate) struct Opens {
    pub(crate) at: Timestamp,
    pub(crate) principal: Principal,
    pub(crate) door: String,
    pub(crate) tenant: Option<Tenant>,
}

/// An event in its canonical form.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) kind: &'static str,
    pub(crate) call: Option<CallId>,
    /// Whether the call begins here.
    pub(crate) received: bool,
    pub(crate) body: String,
}

/// What a step needs to know of the session's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
}

/// The epoch a session is opened with.
pub(crate) const FIRST_EPOCH: u64 = 1;

impl Step {
    /// Writes the events of a step canonically, and refuses one that could not be read back.
    pub(crate) fn write(append: Append) -> Result<Self, Error> {
        let Append {
            session,
            epoch,
            expected_seq,
            events,
            claims,
            answers,
            arguments,
            fields,
            machine,
            forget,
            rules,
            asks,
            closes,
            reversals,
            undo,
            retires,
            open,
        } = append;
        let says_so = matches!(events.last(), Some(Event { fact: Fact::SessionRetired { .. }, .. }));
        if retires != says_so || (retires && (open != OpenWork::default() || expected_seq == 0)) {
            return Err(nonsense("a step retires a session that has something open, or does not say so"));
        }
        if session.as_str().is_empty() {
            return Err(nonsense("the session of a step has no id"));
        }
        if asks.iter().any(|asked| asked.session != session) {
            return Err(nonsense("a step asks a question of another session"));
        }
        let is_armed = |undo: &StoredUndo| {
            reversals.iter().any(|change| matches!(change, ReversalChange::Arm { token, .. } if *token == undo.token))
        };
        if !undo.iter().all(is_armed) {
            return Err(nonsense("a step says how to undo a write whose token it does not arm"));
        }
        let opens = match (expected_seq, events.first().map(|event| (event.at, &event.fact))) {
            (0, Some((at, Fact::SessionOpened { session: named, principal, door, tenant, .. })))
                if *named == session =>
            {
                Some(Opens { at, principal: principal.clone(), door: door.clone(), tenant: tenant.clone() })
            }
            (0, _) => return Err(nonsense("the first event of a session does not open it")),
            (1.., _) => None,
        };
        let mut written = Vec::with_capacity(events.len());
        for (event, expected) in events.into_iter().zip(expected_seq.saturating_add(1)..) {
            if event.seq != expected {
                return Err(nonsense("the events of a step are not numbered from its expected sequence"));
            }
            written.push(Written {
                seq: event.seq,
                at: event.at,
                kind: event.fact.name(),
                call: event.fact.call().cloned(),
                received: matches!(event.fact, Fact::CallReceived { .. }),
                body: chain::canonical(&event)?,
            });
        }
        Ok(Self {
            session,
            epoch,
            expected_seq,
            opens,
            events: written,
            claims,
            answers,
            arguments,
            fields,
            machine,
            forget,
            rules,
            asks,
            closes,
            reversals,
            undo,
            retires,
            open,
        })
    }

    /// Whether it may be recorded on a session that stands there.
    pub(crate) fn admit(&self, place: Option<Place>) -> Result<(), Error> {
        let expected = self.expected_seq;
        match place {
            None if expected == 0 && self.epoch == FIRST_EPOCH => Ok(()),
            None if expected == 0 => Err(Error::Fenced { epoch: self.epoch }),
            None => Err(Error::Conflict { expected, actual: 0 }),
            Some(place) if expected == 0 => Err(Error::Conflict { expected, actual: place.seq }),
            Some(place) if place.epoch != self.epoch => Err(Error::Fenced { epoch: self.epoch }),
            Some(place) if place.seq != expected => Err(Error::Conflict { expected, actual: place.seq }),
            Some(_) => Ok(()),
        }
    }

    /// When it happened: the time of its last event.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        self.events.last().map(|event| event.at)
    }

    /// The sequence of its last event.
    pub(crate) fn last_seq(&self) -> u64 {
        self.expected_seq + self.events.len() as u64
    }

    /// The calls that begin in it.
    pub(crate) fn received(&self) -> impl Iterator<Item = &CallId> {
        self.events.iter().filter(|event| event.received).filter_map(|event| event.call.as_ref())
    }
}

fn nonsense(reason: &str) -> Error {
    Error::Corrupt { reason: reason.into() }
}
