//! Traces from a store that may be corrupt: they fold or are refused, and what folds can be gone on with.

use std::sync::Arc;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::dispatcher::redecide::redecide;
use amends_core::{CallId, Contract, Digest, Dispatcher, Event, Gates, Input, Playbook, Rules, Timestamp};

use crate::bytes::Bytes;
use crate::dispatcher::inputs;

/// Reads the bytes as a trace, an event in each line: as it stands, and with its numbers and times put in order.
pub fn target(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut events: Vec<Event> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for event in &events {
        let kept = serde_json::to_string(event).expect("an event can be kept");
        let found: Event = serde_json::from_str(&kept).unwrap_or_else(|error| panic!("{error}: {kept}"));
        assert_eq!(found, *event);
    }
    go_on(&events);
    let (mut seq, mut at) = (0, Timestamp::default());
    for event in &mut events {
        seq += 1;
        at = at.max(event.at);
        (event.v, event.seq, event.at) = (1, seq, at);
    }
    go_on(&events);
    // Where one line cannot follow, the others may.
    let mut legal: Vec<Event> = Vec::new();
    for event in events {
        let seq = legal.len() as u64 + 1;
        legal.push(Event { seq, ..event });
        if Dispatcher::restore(&legal, rules).is_err() {
            legal.pop();
        }
    }
    go_on(&legal);
}

/// The rules that a digest stands for: none for `none`, else some that the digest decides.
fn rules(digest: &Digest) -> Option<Arc<Rules>> {
    match digest.as_str() {
        "none" => None,
        "undeclared" => {
            let contract = Contract::undeclared(1000, 5000, 60_000);
            Some(Arc::new(Rules { contract, playbook: Playbook::default() }))
        }
        other => Some(Arc::new(inputs::rules(&mut Bytes::new(other.as_bytes())))),
    }
}

fn go_on(events: &[Event]) {
    let Ok(restored) = Dispatcher::restore(events, rules) else {
        return;
    };
    // Deciding again trusts the numbers of a trace, so it comes after folding, which checks them.
    let _ = redecide(events, rules);
    assert_eq!(restored.seq(), events.len() as u64);
    let now = events.last().map_or(Timestamp::default(), |event| event.at);
    let calls: Vec<CallId> = events.iter().filter_map(|event| event.fact.call().cloned()).collect();
    let mut inputs = vec![Input::Resume, Input::Tick];
    for call in calls.into_iter().take(4) {
        inputs.push(Input::Delivery { call: call.clone() });
        inputs.push(Input::Cancel { call, reason: CancelReason::Asked });
    }
    for input in inputs {
        let mut dispatcher = restored.clone();
        let due = dispatcher.deadline().map_or(now, |deadline| deadline.at);
        let _ = dispatcher.handle(due, &Gates::default(), input);
        let _ = dispatcher.handle(due + 1_000_000, &Gates::default(), Input::Tick);
        let _ = (dispatcher.deadline(), dispatcher.open_calls(), dispatcher.only_reads());
    }
}
