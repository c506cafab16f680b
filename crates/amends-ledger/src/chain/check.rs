//! Recomputing a chain, and saying where it breaks.

use amends_core::{Event, Fact};

use super::Link;
use crate::row::{StoredRecord, StoredSession, StoredTip};
use crate::verify::{FAULTS_MAX, Fault, FaultKind};

/// What checking one session's chain gave.
#[derive(Debug, Default)]
pub struct Checked {
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// The events that could be read, in order.
    pub events: Vec<Event>,
}

/// Checks a session's chain, the columns beside its events, and its own row.
///
/// A fault is told where it is. The check goes on from what is stored, so that one edit is one fault and not as many as
/// there are events after it.
pub fn check(stored: &StoredSession) -> Checked {
    let Some(tip) = &stored.tip else {
        let words = "its events are there, and its row is not".into();
        let fault = Fault::of(FaultKind::SessionMissing, Some(&stored.session), None, words);
        return Checked { faults: vec![fault], events: Vec::new() };
    };
    let mut checker = Checker::new(stored, tip);
    stored.records.iter().for_each(|record| checker.next(record));
    checker.finish()
}

#[derive(Debug)]
struct Checker<'a> {
    stored: &'a StoredSession,
    tip: &'a StoredTip,
    last: u64,
    /// The stored link before the next event; nothing where it cannot be known.
    link: Option<Link>,
    checked: Checked,
}

impl<'a> Checker<'a> {
    fn new(stored: &'a StoredSession, tip: &'a StoredTip) -> Self {
        let link = match tip.cut {
            0 => Some(Link::genesis(&stored.session)),
            _ => tip.cut_link.as_deref().and_then(Link::stored),
        };
        let events = Vec::with_capacity(stored.records.len());
        let mut checker = Self { stored, tip, last: tip.cut, link, checked: Checked { faults: Vec::new(), events } };
        if link.is_none() || (tip.cut == 0 && tip.cut_link.is_some()) {
            let words = "the session's row says that events were dropped, and not after which link".into();
            checker.fault(tip.cut, FaultKind::HeadMismatch, words);
        }
        checker
    }

    fn next(&mut self, record: &StoredRecord) {
        let expected = self.last + 1;
        if record.seq > expected {
            let words = if record.seq == expected + 1 {
                format!("event {expected} is missing")
            } else {
                format!("events {expected} to {} are missing", record.seq - 1)
            };
            self.fault(expected, FaultKind::Missing, words);
            self.link = None;
        }
        self.last = record.seq;
        let event = serde_json::from_slice::<Event>(&record.body).ok();
        let stored = Link::stored(&record.hash);
        let computed = self.link.map(|link| link.next(&record.body));
        self.link = stored;
        let seq = record.seq;
        match &event {
            None => self.fault(seq, FaultKind::Unreadable, format!("event {seq} cannot be read")),
            Some(event) if event.seq != seq || seq < expected => {
                let words = format!("event {} stands in the place of event {seq}", event.seq);
                self.fault(seq, FaultKind::Reordered, words);
                self.link = None;
            }
            Some(event) if seq == self.tip.cut + 1 && !self.begins(event) => {
                let words = "the first event does not open this session as its row describes it";
                self.fault(seq, FaultKind::NotTheSession, words.into());
            }
            Some(_) if stored.is_none() || computed.is_some_and(|computed| Some(computed) != stored) => {
                let words = format!("event {seq} does not follow from what is stored before it");
                self.fault(seq, FaultKind::Edited, words);
            }
            Some(event) if !says_the_same(record, event) => {
                let words = format!("the columns beside event {seq} do not say what the event says");
                self.fault(seq, FaultKind::Columns, words);
            }
            Some(_) => {}
        }
        self.checked.events.extend(event);
    }

    /// Compares the end of the chain with what the session's row says.
    fn finish(mut self) -> Checked {
        let (last, end) = (self.last, self.tip.seq);
        if last < end {
            let words = format!("the session has {end} events by its row, and the last one there is {last}");
            self.fault(last + 1, FaultKind::TailCut, words);
        } else if last > end {
            let words = format!("the session ends at event {end} by its row, and event {last} is there");
            self.fault(last, FaultKind::HeadMismatch, words);
        } else if self.checked.faults.iter().all(|fault| fault.seq != Some(last))
            && self.link.is_some_and(|link| link.bytes() != &self.tip.head[..])
        {
            let words = "the head in the session's row is not the last event's link".into();
            self.fault(last, FaultKind::HeadMismatch, words);
        }
        self.checked
    }

    fn fault(&mut self, seq: u64, kind: FaultKind, words: String) {
        // One session cannot fill the memory: what is beyond the bound would not be told anyway.
        if self.checked.faults.len() <= FAULTS_MAX {
            self.checked.faults.push(Fault::of(kind, Some(&self.stored.session), Some(seq), words));
        }
    }

    /// Whether an event can be the first that there is.
    fn begins(&self, event: &Event) -> bool {
        let (session, principal, door) = match &event.fact {
            Fact::SessionOpened { session, principal, door, .. } if self.tip.cut == 0 => (session, principal, door),
            Fact::SessionRetired { session, principal, door, events, .. } if *events == self.tip.cut => {
                (session, principal, door)
            }
            _ => return false,
        };
        *session == self.stored.session && *principal == self.tip.principal && *door == self.tip.door
    }
}

fn says_the_same(record: &StoredRecord, event: &Event) -> bool {
    event.at.ms() == record.at
        && event.fact.name() == record.kind
        && event.fact.call().map(|call| call.as_str()) == record.call.as_deref()
}

#[cfg(test)]
mod tests {
    use amends_core::Timestamp;
    use amends_core::dispatcher::retire::RetireReason;

    use super::*;
    use crate::chain::canonical;

    fn chain(session: &str, length: u64) -> Vec<StoredRecord> {
        let mut link = Link::genesis(&session.into());
        (1..=length)
            .map(|seq| {
                let fact = if seq == 1 {
                    Fact::SessionOpened {
                        session: session.into(),
                        seed: 1,
                        principal: "p".into(),
                        door: "mcp".into(),
                        tenant: None,
                        decider: Default::default(),
                    }
                } else {
                    Fact::Ignored { why: format!("{session} {seq}") }
                };
                let kind = fact.name().to_owned();
                let body = canonical(&Event { v: 1, seq, at: Timestamp::from_ms(seq), fact }).unwrap();
                link = link.next(body.as_bytes());
                let (body, hash) = (body.into_bytes(), link.bytes().to_vec());
                StoredRecord { seq, at: seq, kind, call: None, body, hash }
            })
            .collect()
    }

    fn stored(records: Vec<StoredRecord>, seq: u64, head: &[u8]) -> StoredSession {
        let (principal, door) = ("p".into(), "mcp".to_owned());
        let tip = StoredTip { principal, door, seq, head: head.to_vec(), cut: 0, cut_link: None, logged: 0 };
        StoredSession { session: "a".into(), tip: Some(tip), records }
    }

    fn faults(records: Vec<StoredRecord>, seq: u64, head: &[u8]) -> Vec<(FaultKind, u64)> {
        told(&stored(records, seq, head))
    }

    fn told(session: &StoredSession) -> Vec<(FaultKind, u64)> {
        check(session).faults.into_iter().map(|fault| (fault.kind, fault.seq.unwrap_or_default())).collect()
    }

    #[test]
    fn a_chain_that_nobody_touched_has_no_fault() {
        let records = chain("a", 6);
        let head = records[5].hash.clone();
        assert_eq!(faults(records, 6, &head), []);
    }

    #[test]
    fn every_way_of_touching_a_chain_is_told_from_the_others() {
        let head = chain("a", 6)[5].hash.clone();
        let touched = |touch: fn(&mut Vec<StoredRecord>)| {
            let mut records = chain("a", 6);
            touch(&mut records);
            faults(records, 6, &head)
        };
        let edit = |records: &mut Vec<StoredRecord>| {
            let body = String::from_utf8(records[2].body.clone()).unwrap();
            records[2].body = body.replace("a 3", "b 3").into_bytes();
        };
        assert_eq!(touched(edit), [(FaultKind::Edited, 3)]);
        assert_eq!(touched(|records| drop(records.remove(3))), [(FaultKind::Missing, 4)]);
        assert_eq!(touched(|records| drop(records.drain(1..4))), [(FaultKind::Missing, 2)]);
        assert_eq!(touched(|records| records.truncate(4)), [(FaultKind::TailCut, 5)]);
        assert_eq!(touched(Vec::clear), [(FaultKind::TailCut, 1)]);
        assert_eq!(touched(|records| records[4].body.truncate(9)), [(FaultKind::Unreadable, 5)]);
        assert_eq!(touched(|records| records[4].hash.truncate(9)), [(FaultKind::Edited, 5)]);
        assert_eq!(touched(|records| records[4].kind = "ticked".into()), [(FaultKind::Columns, 5)]);
        assert_eq!(touched(|records| records[4].at = 99), [(FaultKind::Columns, 5)]);
        assert_eq!(touched(|records| records[4].call = Some("c".into())), [(FaultKind::Columns, 5)]);
        let swap = |records: &mut Vec<StoredRecord>| {
            records.swap(2, 3);
            (records[2].seq, records[3].seq) = (3, 4);
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
            let (body, hash) = (body.into_bytes(), head.bytes().to_vec());
            let record = StoredRecord { seq: 5, at: 9, kind: "session_retired".into(), call: None, body, hash };
            let mut session = super::tests::stored(vec![record], 5, head.bytes());
            if let Some(tip) = &mut session.tip {
                (tip.cut, tip.cut_link) = (cut, link.map(<[u8]>::to_vec));
            }
            told(&session).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
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
        let (mut records, mut other) = (chain("a", 4), chain("b", 4));
        let head = records[3].hash.clone();
        records[1] = other.remove(1);
        assert_eq!(faults(records, 4, &head)[0], (FaultKind::Edited, 2));
        let other = chain("b", 4);
        let head = other[3].hash.clone();
        assert_eq!(faults(other, 4, &head), [(FaultKind::NotTheSession, 1)]);
    }

    #[test]
    fn a_chain_computed_anew_does_not_end_at_the_head() {
        assert_eq!(faults(chain("a", 3), 3, &chain("b", 3)[2].hash), [(FaultKind::HeadMismatch, 3)]);
        assert_eq!(faults(chain("a", 3), 2, &chain("a", 3)[1].hash), [(FaultKind::HeadMismatch, 3)]);
    }

    #[test]
    fn events_without_their_session_are_told() {
        let records = chain("a", 2);
        assert_eq!(told(&StoredSession { session: "a".into(), tip: None, records }), [(FaultKind::SessionMissing, 0)]);
    }
}
