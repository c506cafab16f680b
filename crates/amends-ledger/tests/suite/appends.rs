//! Steps, their order, and what comes back of them.

use std::sync::Arc;

use amends_ledger::{Append, Appended, Error, Ledger};

use crate::common::{Store, claiming, length, node, note, open, opened, received, step, take, verified};

pub(crate) async fn a_trace_comes_back_as_it_was_appended(store: impl Store) {
    let ledger = store.join(node("a"));
    let first = step("s", 0, 5, vec![opened("s"), received("c")]);
    let second = step("s", 2, 6, vec![note("text with \"quotes\", \u{1F980} and \n lines")]);
    let (events, more) = (first.events.clone(), second.events.clone());
    assert_eq!(ledger.append(first).await.unwrap().seq, 2);
    let Appended { seq, head } = ledger.append(second).await.unwrap();
    assert_eq!(seq, 3);

    let trace = ledger.trace(&"s".into()).await.unwrap().unwrap();
    assert_eq!(trace.epoch, 1);
    assert_eq!(trace.events.iter().map(|stored| stored.event.clone()).collect::<Vec<_>>(), [events, more].concat());
    assert_eq!(trace.events[2].hash, head);
    assert_eq!(ledger.session_of(&"c".into()).await.unwrap(), Some("s".into()));
    assert_eq!(ledger.trace(&"nobody".into()).await.unwrap(), None);
    assert_eq!(ledger.session_of(&"nobody".into()).await.unwrap(), None);
    let verified = verified(&*ledger).await.unwrap();
    assert!(verified.is_consistent());
    assert_eq!((verified.sessions, verified.events), (1, 3));
}

pub(crate) async fn an_append_elsewhere_than_at_the_end_is_a_conflict(store: impl Store) {
    let ledger = store.join(node("a"));
    let at = |seq| step("s", seq, 5, vec![note("x")]);
    assert_eq!(ledger.append(at(4)).await, Err(Error::Conflict { expected: 4, actual: 0 }));
    ledger.append(open("s", 5, 2)).await.unwrap();
    assert_eq!(ledger.append(open("s", 5, 0)).await, Err(Error::Conflict { expected: 0, actual: 3 }));
    assert_eq!(ledger.append(at(2)).await, Err(Error::Conflict { expected: 2, actual: 3 }));
    assert_eq!(ledger.append(at(4)).await, Err(Error::Conflict { expected: 4, actual: 3 }));
    assert_eq!(length(&*ledger, "s").await, 3);
}

pub(crate) async fn steps_may_be_queued_behind_each_other(store: impl Store) {
    let ledger = store.join(node("a"));
    let mut commits = vec![ledger.append(open("s", 1, 0))];
    commits.extend((1..50).map(|seq| ledger.append(step("s", seq, seq, vec![note("n")]))));
    for (commit, seq) in commits.into_iter().zip(1..) {
        assert_eq!(commit.await.unwrap().seq, seq);
    }
    assert_eq!(length(&*ledger, "s").await, 50);
}

pub(crate) async fn a_step_behind_a_refused_one_is_a_conflict(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(claiming("other", 5, vec![take("n", "c1")])).await.unwrap();
    let commits = [
        ledger.append(open("s", 5, 0)),
        ledger.append(Append { claims: vec![take("n", "c2")], ..step("s", 1, 5, vec![note("x")]) }),
        ledger.append(step("s", 2, 5, vec![note("y")])),
        ledger.append(open("stranger", 5, 0)),
    ];
    let [opened, refused, behind, stranger] = commits;
    assert!(opened.await.is_ok());
    assert!(matches!(refused.await, Err(Error::Held(_))));
    assert_eq!(behind.await, Err(Error::Conflict { expected: 2, actual: 1 }));
    assert!(stranger.await.is_ok());
    assert!(verified(&*ledger).await.unwrap().is_consistent());
}

pub(crate) async fn a_step_that_makes_no_sense_is_not_recorded(store: impl Store) {
    let ledger = store.join(node("a"));
    let mut numbered_wrongly = open("s", 5, 2);
    numbered_wrongly.events.swap(1, 2);
    for nonsense in [
        numbered_wrongly,
        step("s", 0, 5, vec![note("no opening")]),
        step("s", 0, 5, vec![opened("another")]),
        step("s", 0, 5, Vec::new()),
        step("s", 0, u64::MAX, vec![opened("s")]),
    ] {
        assert!(matches!(ledger.append(nonsense).await, Err(Error::Corrupt { .. })));
    }
    assert_eq!(length(&*ledger, "s").await, 0);
}

pub(crate) async fn many_producers_get_whole_chains(store: impl Store) {
    let ledger: Arc<dyn Ledger> = Arc::from(store.join(node("a")));
    let mut producers = tokio::task::JoinSet::new();
    for producer in 0..64 {
        let ledger = Arc::clone(&ledger);
        producers.spawn(async move {
            let session = format!("s{producer}");
            let mut seq = ledger.append(open(&session, 1, 1)).await.unwrap().seq;
            while seq < 30 {
                let facts = vec![note("one"), note("two")];
                seq = ledger.append(step(&session, seq, seq, facts)).await.unwrap().seq;
            }
        });
    }
    producers.join_all().await;
    drop(ledger);
    let verified = verified(&*store.join(node("b"))).await.unwrap();
    assert_eq!(verified.faults, []);
    assert_eq!((verified.sessions, verified.events), (64, 64 * 30));
}
