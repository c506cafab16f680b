//! A session that comes from another ledger, checked before a store sees it.

use amends_core::{Digest, Fact, Rules};

use crate::chain::{self, Link};
use crate::error::Error;
use crate::row::{SessionRow, StoredRecord, StoredSession, StoredTip, Trace};
use crate::step::Written;

/// A session whose row, events and hashes fit together.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) row: SessionRow,
    pub(crate) cut_link: Option<Link>,
    pub(crate) head: Link,
    pub(crate) events: Vec<(Written, Link)>,
}

/// Refuses rules that are not those whose digest they have.
pub(crate) fn check_rules(hash: &Digest, body: &str) -> Result<Rules, Error> {
    let refused = || Error::Corrupt { reason: format!("the rules `{hash}` are not taken in: they are others") };
    chain::read_rules(body, hash).ok_or_else(refused)
}

impl Whole {
    /// Recomputes the chain, and refuses what does not follow from itself.
    pub(crate) fn check(row: SessionRow, trace: Trace) -> Result<Self, Error> {
        let refused = |reason: &str| Error::Corrupt { reason: format!("`{}` is not taken in: {reason}", row.session) };
        let link = |digest: &amends_core::Digest| Link::from_hex(digest.as_str());
        if row.session.as_str().is_empty() || trace.session != row.session || trace.cut != row.cut {
            return Err(refused("its row and its events are not of one session"));
        }
        let cut_link = match &trace.cut_link {
            Some(written) => Some(link(written).ok_or_else(|| refused("its cut is not a link"))?),
            None => None,
        };
        let mut events = Vec::with_capacity(trace.events.len());
        for stored in trace.events {
            let hash = link(&stored.hash).ok_or_else(|| refused("a hash is not a link"))?;
            let event = stored.event;
            let body = chain::canonical(&event)?;
            let received = matches!(event.fact, Fact::CallReceived { .. });
            let call = event.fact.call().cloned();
            events
                .push((Written { seq: event.seq, at: event.at, kind: event.fact.name(), call, received, body }, hash));
        }
        let (Some((first, _)), Some((last, head))) = (events.first(), events.last()) else {
            return Err(refused("it has no events"));
        };
        if (row.cut == 0 && first.at != row.opened) || last.at > row.updated {
            return Err(refused("its row says another time than its events"));
        }
        let head = *head;
        let tip = StoredTip {
            principal: row.principal.clone(),
            door: row.door.clone(),
            seq: row.events,
            head: head.bytes().to_vec(),
            cut: row.cut,
            cut_link: cut_link.map(|link| link.bytes().to_vec()),
            logged: 0,
        };
        let record = |(event, hash): &(Written, Link)| StoredRecord {
            seq: event.seq,
            at: event.at.ms(),
            kind: event.kind.to_owned(),
            call: event.call.as_ref().map(ToString::to_string),
            body: event.body.clone().into_bytes(),
            hash: hash.bytes().to_vec(),
        };
        let records = events.iter().map(record).collect();
        let stored = StoredSession { session: row.session.clone(), tip: Some(tip), records };
        match chain::check(&stored).faults.first() {
            Some(fault) => Err(refused(&fault.words)),
            None => Ok(Self { row, cut_link, head, events }),
        }
    }
}
