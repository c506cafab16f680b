//! Recomputing a chain, and saying where it breaks.

use amends_core::{Event, Fact, Principal, SessionId};

use super::Link;

/// How many faults are told one by one; the rest are counted.
pub const FAULTS_MAX: usize = 1_000;

/// What verifying a ledger found. Without faults it is consistent; that it is complete takes an anchor outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many sessions were read.
    pub sessions: u64,
    /// How many events were read.
    pub events: u64,
    /// What is wrong, at most [`FAULTS_MAX`] of it.
    pub faults: Vec<ChainFault>,
    /// How many more there are at least.
    pub left_off: u64,
}

impl Verified {
    /// Whether nothing is wrong with what is there.
    pub const fn is_consistent(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds what one session's check found.
    pub fn add(&mut self, faults: impl IntoIterator<Item = ChainFault>) {
        for fault in faults {
            if self.faults.len() < FAULTS_MAX {
                self.faults.push(fault);
            } else {
                self.left_off += 1;
            }
        }
    }
}

/// A place where what is stored cannot be what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFault {
    /// The session.
    pub session: SessionId,
    /// The event, where it is about one.
    pub seq: Option<u64>,
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The same in words.
    pub words: String,
}

/// The kinds of fault that a check tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An event does not follow from the one before it: it, or the link beside it, was changed.
    Edited,
    /// Events are gone between two that are there.
    Missing,
    /// An event stands in another one's place.
    Reordered,
    /// Events are gone from the end.
    TailCut,
    /// Events are there, and their session is not.
    SessionMissing,
    /// An event cannot be read.
    Unreadable,
    /// The events are whole, and the session's own row names another end.
    HeadMismatch,
    /// The first event opens another session, or none.
    NotTheSession,
}

/// What a session's own row says of its chain.
#[derive(Clone, Debug)]
pub struct Tip<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// Whose it is.
    pub principal: &'a Principal,
    /// The door it came through.
    pub door: &'a str,
    /// The sequence of its last event.
    pub seq: u64,
    /// The chain's head, as it is stored.
    pub head: &'a [u8],
}

/// An event as it is stored: nothing of it is trusted.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The place it is stored at.
    pub seq: u64,
    /// Its canonical JSON.
    pub body: &'a [u8],
    /// The link stored beside it.
    pub hash: &'a [u8],
}

/// Checks a whole chain that is at hand. The records come in the order of their places.
pub fn check<'a>(tip: Tip<'_>, records: impl IntoIterator<Item = Record<'a>>) -> Vec<ChainFault> {
    let mut checker = Checker::new(tip);
    for record in records {
        checker.next(record);
    }
    checker.finish()
}

/// Checks a chain one record at a time, so that no session has to fit in memory.
///
/// A fault is told where it is. The check goes on from what is stored, so that one edit is one fault and not as many as
/// there are events after it.
#[derive(Debug)]
pub struct Checker<'a> {
    tip: Tip<'a>,
    /// How many of the first events were dropped.
    cut: u64,
    last: u64,
    /// The stored link before the next event; nothing where it cannot be known.
    link: Option<Link>,
    faults: Vec<ChainFault>,
}

impl<'a> Checker<'a> {
    /// A check of the chain whose session says this of it.
    pub fn new(tip: Tip<'a>) -> Self {
        let link = Some(Link::genesis(tip.session));
        Self { tip, cut: 0, last: 0, link, faults: Vec::new() }
    }

    /// A check of what is left of a chain whose first events were dropped: it goes on from the link that was kept.
    pub fn after(tip: Tip<'a>, cut: u64, link: Option<&[u8]>) -> Self {
        if cut == 0 && link.is_none() {
            return Self::new(tip);
        }
        let kept = link.and_then(Link::stored);
        let mut checker = Self { tip, cut, last: cut, link: kept, faults: Vec::new() };
        if cut == 0 || kept.is_none() {
            let words = "the session's row says that events were dropped, and not after which link".into();
            checker.fault(None, FaultKind::HeadMismatch, words);
        }
        checker
    }

    /// Checks the next record, and gives back its event where it can be read.
    pub fn next(&mut self, record: Record<'_>) -> Option<Event> {
        let expected = self.last + 1;
        if record.seq > expected {
            let words = if record.seq == expected + 1 {
                format!("event {expected} is missing")
            } else {
                format!("events {expected} to {} are missing", record.seq - 1)
            };
            self.fault(Some(expected), FaultKind::Missing, words);
            self.link = None;
        }
        self.last = record.seq;
        let event = serde_json::from_slice::<Event>(record.body).ok();
        let stored = Link::stored(record.hash);
        let computed = self.link.map(|link| link.next(record.body));
        let seq = Some(record.seq);
        self.link = stored;
        match &event {
            None => self.fault(seq, FaultKind::Unreadable, format!("event {} cannot be read", record.seq)),
            Some(event) if event.seq != record.seq => {
                let words = format!("event {} stands in the place of event {}", event.seq, record.seq);
                self.fault(seq, FaultKind::Reordered, words);
                self.link = None;
            }
            Some(event) if record.seq == self.cut + 1 && !self.begins(event) => {
                let words = "the first event does not open this session as its row describes it";
                self.fault(seq, FaultKind::NotTheSession, words.into());
            }
            Some(_) if stored.is_none() || computed.is_some_and(|computed| Some(computed) != stored) => {
                let words = format!("event {} does not follow from what is stored before it", record.seq);
                self.fault(seq, FaultKind::Edited, words);
            }
            Some(_) => {}
        }
        event
    }

    /// Records a fault that the caller found in the record it has just checked.
    pub fn fault(&mut self, seq: Option<u64>, kind: FaultKind, words: String) {
        // One session cannot fill the memory: what is beyond the bound would not be told anyway.
        if self.faults.len() <= FAULTS_MAX {
            self.faults.push(ChainFault { session: self.tip.session.clone(), seq, kind, words });
        }
    }

    /// Compares the end of the chain with what the session's row says, and gives back everything that is wrong.
    pub fn finish(mut self) -> Vec<ChainFault> {
        let (last, end) = (self.last, self.tip.seq);
        if last < end {
            let words = format!("the session has {end} events by its row, and the last one there is {last}");
            self.fault(Some(last + 1), FaultKind::TailCut, words);
        } else if last > end {
            let words = format!("the session ends at event {end} by its row, and event {last} is there");
            self.fault(Some(end + 1), FaultKind::HeadMismatch, words);
        } else if self.faults.iter().all(|fault| fault.seq != Some(last))
            && self.link.is_some_and(|link| link.bytes() != self.tip.head)
        {
            let words = "the head in the session's row is not the last event's link".into();
            self.fault(Some(last), FaultKind::HeadMismatch, words);
        }
        self.faults
    }

    /// Whether what is there can begin with that event: it opens the session, or says that those before it are gone.
    fn begins(&self, event: &Event) -> bool {
        let (session, principal, door) = match &event.fact {
            Fact::SessionOpened { session, principal, door, .. } if self.cut == 0 => (session, principal, door),
            Fact::SessionRetired { session, principal, door, events, .. } if self.cut > 0 && *events == self.cut => {
                (session, principal, door)
            }
            _ => return false,
        };
        session == self.tip.session && principal == self.tip.principal && door == self.tip.door
    }
}

#[cfg(test)]
mod tests {
    use amends_core::Timestamp;
    use amends_core::dispatcher::retire::RetireReason;

    use super::*;
    use crate::chain::canonical;

    struct Stored {
        seq: u64,
        body: String,
        hash: Vec<u8>,
    }

    fn chain(session: &str, length: u64) -> Vec<Stored> {
        let mut link = Link::genesis(&session.into());
        (1..=length)
            .map(|seq| {
                let fact = if seq == 1 {
                    Fact::SessionOpened { session: session.into(), seed: 1, principal: "p".into(), door: "mcp".into() }
                } else {
                    Fact::Ignored { why: format!("{session} {seq}") }
                };
                let body = canonical(&Event { v: 1, seq, at: Timestamp::from_ms(seq), fact }).unwrap();
                link = link.next(body.as_bytes());
                Stored { seq, body, hash: link.bytes().to_vec() }
            })
            .collect()
    }

    fn faults(stored: &[Stored], seq: u64, head: &[u8]) -> Vec<(FaultKind, u64)> {
        let (session, principal) = (SessionId::from("a"), Principal::from("p"));
        let tip = Tip { session: &session, principal: &principal, door: "mcp", seq, head };
        let records = stored.iter().map(|s| Record { seq: s.seq, body: s.body.as_bytes(), hash: &s.hash });
        check(tip, records).into_iter().map(|fault| (fault.kind, fault.seq.unwrap_or_default())).collect()
    }

    #[test]
    fn a_chain_that_nobody_touched_has_no_fault() {
        let stored = chain("a", 6);
        assert_eq!(faults(&stored, 6, &stored[5].hash), []);
    }

    #[test]
    fn every_way_of_touching_a_chain_is_told_from_the_others() {
        let head = chain("a", 6)[5].hash.clone();
        let touched = |touch: fn(&mut Vec<Stored>)| {
            let mut stored = chain("a", 6);
            touch(&mut stored);
            faults(&stored, 6, &head)
        };
        let edit = |stored: &mut Vec<Stored>| stored[2].body = stored[2].body.replace("a 3", "b 3");
        assert_eq!(touched(edit), [(FaultKind::Edited, 3)]);
        assert_eq!(touched(|stored| drop(stored.remove(3))), [(FaultKind::Missing, 4)]);
        assert_eq!(touched(|stored| drop(stored.drain(1..4))), [(FaultKind::Missing, 2)]);
        assert_eq!(touched(|stored| stored.truncate(4)), [(FaultKind::TailCut, 5)]);
        assert_eq!(touched(Vec::clear), [(FaultKind::TailCut, 1)]);
        assert_eq!(touched(|stored| stored[4].body.truncate(9)), [(FaultKind::Unreadable, 5)]);
        assert_eq!(touched(|stored| stored[4].hash.truncate(9)), [(FaultKind::Edited, 5)]);
        let swap = |stored: &mut Vec<Stored>| {
            stored.swap(2, 3);
            (stored[2].seq, stored[3].seq) = (3, 4);
        };
        assert_eq!(touched(swap), [(FaultKind::Reordered, 3), (FaultKind::Reordered, 4)]);
    }

    #[test]
    fn what_is_left_of_a_retired_session_goes_on_from_the_link_that_was_kept() {
        let stored = chain("a", 4);
        let kept = stored[3].hash.clone();
        let fact = |events| Fact::SessionRetired {
            session: "a".into(),
            principal: "p".into(),
            door: "mcp".into(),
            events,
            reason: RetireReason::Retention,
        };
        let last = |events| canonical(&Event { v: 1, seq: 5, at: Timestamp::from_ms(9), fact: fact(events) }).unwrap();
        let faults = |body: String, cut: u64, link: Option<&[u8]>| {
            let head = Link::stored(&kept).unwrap().next(body.as_bytes());
            let (session, principal) = (SessionId::from("a"), Principal::from("p"));
            let tip = Tip { session: &session, principal: &principal, door: "mcp", seq: 5, head: head.bytes() };
            let mut checker = Checker::after(tip, cut, link);
            checker.next(Record { seq: 5, body: body.as_bytes(), hash: head.bytes() });
            checker.finish().into_iter().map(|fault| fault.kind).collect::<Vec<_>>()
        };
        assert_eq!(faults(last(4), 4, Some(&kept)), []);
        assert_eq!(faults(last(4), 4, Some(&stored[2].hash)), [FaultKind::Edited]);
        assert_eq!(faults(last(4), 4, None), [FaultKind::HeadMismatch]);
        assert_eq!(faults(last(3), 4, Some(&kept)), [FaultKind::NotTheSession]);
        assert_eq!(faults(last(4), 3, Some(&kept))[0], FaultKind::Missing);
        assert_eq!(faults(last(4), 0, None)[0], FaultKind::Missing);
    }

    #[test]
    fn an_event_of_another_session_does_not_fit() {
        let (mut stored, mut other) = (chain("a", 4), chain("b", 4));
        let head = stored[3].hash.clone();
        stored[1] = other.remove(1);
        assert_eq!(faults(&stored, 4, &head)[0], (FaultKind::Edited, 2));
        let other = chain("b", 4);
        assert_eq!(faults(&other, 4, &other[3].hash), [(FaultKind::NotTheSession, 1)]);
    }

    #[test]
    fn a_chain_computed_anew_does_not_end_at_the_head() {
        let stored = chain("a", 3);
        assert_eq!(faults(&stored, 3, &chain("b", 3)[2].hash), [(FaultKind::HeadMismatch, 3)]);
        assert_eq!(faults(&stored, 2, &stored[1].hash), [(FaultKind::HeadMismatch, 3)]);
    }
}
