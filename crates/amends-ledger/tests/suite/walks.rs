//! What a walk leaves in a ledger, and how it goes from node to node.

use amends_core::SessionId;
use amends_ledger::{Append, Closing, Error, Lease, Ledger, MemoryLedger, StoredFields};
use bytes::Bytes;

use crate::common::{LEASE_MS, Store, asking, busy, ms, node, note, open, question, said, step};
use crate::retired::{both, retiring};

/// The fields that a move of that number wrote.
fn wrote(seq: u64, body: &'static str) -> StoredFields {
    StoredFields { seq, body: Bytes::from_static(body.as_bytes()) }
}

/// A step that begins a walk through a machine.
fn began(session: &str, machine: &str) -> Append {
    Append { machine: Some(machine.into()), fields: vec![wrote(0, r#"{"item":"tea"}"#)], ..open(session, 5, 0) }
}

async fn fields(ledger: &dyn Ledger, session: &str) -> Vec<(u64, String)> {
    let stored = ledger.fields(&session.into()).await.unwrap();
    stored.into_iter().map(|(seq, body)| (seq, String::from_utf8(body.to_vec()).unwrap())).collect()
}

pub(crate) async fn fields_come_back_in_the_order_of_their_moves(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.append(began("s", "order")).await.unwrap();
    a.append(began("t", "order")).await.unwrap();
    let moved = Append { fields: vec![wrote(10, "{}"), wrote(2, r#"{"n":1}"#)], ..step("s", 1, 6, vec![note("x")]) };
    a.append(moved).await.unwrap();
    let wanted = [(0, r#"{"item":"tea"}"#), (2, r#"{"n":1}"#), (10, "{}")].map(|(seq, body)| (seq, body.to_owned()));
    assert_eq!(fields(&*b, "s").await, wanted);
    assert_eq!(fields(&*b, "t").await, wanted[..1]);
    assert_eq!(fields(&*b, "nobody").await, []);
    a.append(Append { fields: vec![wrote(2, r#"{"n":2}"#)], ..step("s", 2, 7, vec![note("x")]) }).await.unwrap();
    assert_eq!(fields(&*b, "s").await[1], (2, r#"{"n":2}"#.to_owned()));
}

pub(crate) async fn a_refused_step_writes_no_fields_and_names_no_machine(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(open("s", 5, 0)).await.unwrap();
    let late = Append {
        machine: Some("order".into()),
        fields: vec![wrote(1, "{}")],
        ..step("s", 7, 6, vec![note("elsewhere")])
    };
    assert!(matches!(ledger.append(late).await, Err(Error::Conflict { .. })));
    assert_eq!(fields(&*ledger, "s").await, []);
    assert_eq!(ledger.sessions(9).await.unwrap()[0].machine, None);
}

pub(crate) async fn a_list_says_which_machine_a_session_walks(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(began("s", "order")).await.unwrap();
    ledger.append(step("s", 1, 6, vec![note("x")])).await.unwrap();
    ledger.append(open("t", 7, 0)).await.unwrap();
    ledger.append(open("u", 8, 0)).await.unwrap();
    ledger.append(Append { machine: Some("refund".into()), ..step("u", 1, 9, vec![note("x")]) }).await.unwrap();
    let named = |rows: Vec<amends_ledger::SessionRow>| rows.into_iter().map(|row| row.machine).collect::<Vec<_>>();
    let wanted = [Some("order".to_owned()), None, Some("refund".to_owned())];
    assert_eq!(named(ledger.sessions_after(ms(0), None, 9).await.unwrap()), wanted);
    let mut newest = named(ledger.sessions(9).await.unwrap());
    newest.reverse();
    assert_eq!(newest, wanted);
}

pub(crate) async fn a_retired_walk_loses_its_fields_and_keeps_its_machines_name(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(began("s", "order")).await.unwrap();
    ledger.append(began("t", "order")).await.unwrap();
    ledger.append(retiring("s", 1, 9)).await.unwrap();
    assert_eq!(fields(&*ledger, "s").await, []);
    assert_eq!(fields(&*ledger, "t").await.len(), 1);
    assert_eq!(both(&*ledger, "s").await.0.machine.as_deref(), Some("order"));
}

pub(crate) async fn a_walk_of_another_ledger_comes_without_its_fields(store: impl Store) {
    let from = MemoryLedger::new(node("elsewhere"));
    from.append(began("s", "order")).await.unwrap();
    let (row, trace) = both(&from, "s").await;
    let ledger = store.join(node("a"));
    assert!(ledger.import(row.clone(), trace.clone()).await.unwrap());
    assert_eq!(both(&*ledger, "s").await, (row, trace));
    assert_eq!(fields(&*ledger, "s").await, []);
}

pub(crate) async fn a_resting_session_is_taken_from_a_living_node_which_is_fenced(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    for ledger in [&a, &b] {
        ledger.heartbeat(ms(0)).await.unwrap();
    }
    let session = SessionId::from("s");
    a.append(began("s", "order")).await.unwrap();
    assert_eq!(b.take(&session, ms(1)).await.unwrap(), None);
    assert_eq!(b.take_idle(&session, ms(1)).await.unwrap(), Some(Lease { epoch: 2, seq: 1 }));
    let late = Append { fields: vec![wrote(1, "{}")], ..step("s", 1, 6, vec![note("late")]) };
    assert_eq!(a.append(late).await, Err(Error::Fenced { epoch: 1 }));
    b.append(Append { epoch: 2, ..step("s", 1, 6, vec![note("ours")]) }).await.unwrap();
    assert_eq!(fields(&*b, "s").await.len(), 1);
    assert_eq!(a.take(&session, ms(2)).await.unwrap(), None);
    assert_eq!(a.take_idle(&session, ms(2)).await.unwrap(), Some(Lease { epoch: 3, seq: 2 }));
    assert_eq!(a.take_idle(&"nobody".into(), ms(2)).await.unwrap(), None);
}

pub(crate) async fn a_session_with_something_open_is_not_taken_from_a_living_node(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    let (calls, asked) = (SessionId::from("calls"), SessionId::from("asked"));
    a.append(busy(open("calls", 5, 0))).await.unwrap();
    assert_eq!(b.take_idle(&calls, ms(1)).await.unwrap(), None);
    a.append(step("calls", 1, 6, vec![note("done")])).await.unwrap();
    assert_eq!(b.take_idle(&calls, ms(1)).await.unwrap(), Some(Lease { epoch: 2, seq: 2 }));

    a.append(asking("asked", vec![question("q", "asked", 900)])).await.unwrap();
    assert_eq!(b.take_idle(&asked, ms(1)).await.unwrap(), None);
    b.answer_interaction(&"q".into(), said("happened", "ann", 2)).await.unwrap();
    assert_eq!(b.take_idle(&asked, ms(3)).await.unwrap(), None, "its session has not acted on the answer yet");
    let closed = Append { closes: vec![("q".into(), Closing::Answered)], ..step("asked", 1, 6, vec![note("closed")]) };
    a.append(closed).await.unwrap();
    assert_eq!(b.take_idle(&asked, ms(4)).await.unwrap(), Some(Lease { epoch: 2, seq: 2 }));

    a.append(busy(open("dead", 5, 0))).await.unwrap();
    assert_eq!(b.take_idle(&"dead".into(), ms(LEASE_MS)).await.unwrap(), Some(Lease { epoch: 2, seq: 1 }));
}

pub(crate) async fn two_that_take_a_resting_session_at_once_have_different_epochs(store: impl Store) {
    let nodes = [store.join(node("a")), store.join(node("b")), store.join(node("c"))];
    for ledger in &nodes {
        ledger.heartbeat(ms(0)).await.unwrap();
    }
    nodes[0].append(open("s", 5, 0)).await.unwrap();
    let session = SessionId::from("s");
    let mut epochs = Vec::new();
    for _ in 0..10 {
        let (a, b, c) = tokio::join!(
            nodes[0].take_idle(&session, ms(1)),
            nodes[1].take_idle(&session, ms(1)),
            nodes[2].take_idle(&session, ms(1)),
        );
        epochs.extend([a, b, c].into_iter().filter_map(Result::unwrap).map(|lease| lease.epoch));
    }
    let newest = nodes[0].trace(&session).await.unwrap().unwrap().epoch;
    epochs.sort_unstable();
    assert_eq!(epochs, (2..=newest).collect::<Vec<_>>());
    let stale = |ledger: &dyn Ledger| ledger.append(Append { epoch: newest - 1, ..step("s", 1, 6, vec![note("x")]) });
    for ledger in &nodes {
        assert_eq!(stale(&**ledger).await, Err(Error::Fenced { epoch: newest - 1 }));
    }
    nodes[0].append(Append { epoch: newest, ..step("s", 1, 6, vec![note("x")]) }).await.unwrap();
}
