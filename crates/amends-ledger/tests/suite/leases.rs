//! Leases, and the sessions of nodes that died.

use amends_core::SessionId;
use amends_ledger::{Append, Error, Lease};

use crate::common::{LEASE_MS, Store, busy, ms, node, note, open, step};

pub(crate) async fn whoever_lost_the_lease_is_fenced(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    a.append(open("s", 5, 0)).await.unwrap();
    assert_eq!(b.take(&"s".into(), ms(LEASE_MS)).await.unwrap(), Some(Lease { epoch: 2, seq: 1 }));
    assert_eq!(a.append(step("s", 1, 6, vec![note("late")])).await, Err(Error::Fenced { epoch: 1 }));
    b.append(Append { epoch: 2, ..step("s", 1, 6, vec![note("ours")]) }).await.unwrap();
    assert_eq!(a.append(step("s", 1, 6, vec![note("late")])).await, Err(Error::Fenced { epoch: 1 }));
    assert_eq!(b.trace(&"s".into()).await.unwrap().unwrap().epoch, 2);
}

pub(crate) async fn a_living_nodes_session_is_not_taken(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    assert_eq!(a.heartbeat(ms(0)).await.unwrap(), ms(LEASE_MS));
    a.append(open("s", 5, 0)).await.unwrap();
    let session = SessionId::from("s");
    assert_eq!(b.take(&session, ms(LEASE_MS - 1)).await.unwrap(), None);
    assert_eq!(b.take(&"nobody".into(), ms(0)).await.unwrap(), None);
    assert_eq!(a.take(&session, ms(1)).await.unwrap(), Some(Lease { epoch: 2, seq: 1 }));
    a.heartbeat(ms(500)).await.unwrap();
    assert_eq!(b.take(&session, ms(LEASE_MS + 499)).await.unwrap(), None);
    assert_eq!(b.take(&session, ms(LEASE_MS + 500)).await.unwrap(), Some(Lease { epoch: 3, seq: 1 }));
}

pub(crate) async fn sessions_with_open_calls_of_dead_nodes_are_orphans(store: impl Store) {
    let (a, b, c) = (store.join(node("a")), store.join(node("b")), store.join(node("c")));
    for (ledger, prefix) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        if prefix != "c" {
            ledger.heartbeat(ms(if prefix == "a" { 0 } else { 500 })).await.unwrap();
        }
        ledger.append(busy(open(&format!("{prefix}1"), 5, 0))).await.unwrap();
        ledger.append(open(&format!("{prefix}2"), 5, 0)).await.unwrap();
    }
    let names = |ids: Vec<SessionId>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(a.orphans(ms(100), 9).await.unwrap()), ["c1"], "a node that is not known does not live");
    assert_eq!(names(b.orphans(ms(LEASE_MS), 9).await.unwrap()), ["a1", "c1"]);
    assert_eq!(names(a.orphans(ms(LEASE_MS + 500), 9).await.unwrap()), ["b1", "c1"]);
    assert_eq!(b.orphans(ms(LEASE_MS), 1).await.unwrap().len(), 1);
    b.take(&"a1".into(), ms(LEASE_MS)).await.unwrap().unwrap();
    assert_eq!(names(b.orphans(ms(LEASE_MS), 9).await.unwrap()), ["c1"]);
}
