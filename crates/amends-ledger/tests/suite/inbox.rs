//! The inbox: who takes a letter, and what becomes of it.

use amends_ledger::{Ledger, LetterId, LetterState};
use serde_json::json;

use crate::common::{LEASE_MS, Store, letter, ms, node, open};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The letters that a node gets, for one place.
async fn collected(ledger: &dyn Ledger, place: &str, now: u64) -> Vec<LetterId> {
    let letters = ledger.collect(&[place.to_owned()], ms(now), 9).await.unwrap();
    letters.into_iter().map(|(id, _)| id).collect()
}

pub(crate) async fn a_letter_is_taken_once_and_replied_to_once(store: impl Store) {
    let (a, b, c) = (store.join(node("a")), store.join(node("b")), store.join(node("c")));
    b.heartbeat(ms(0)).await.unwrap();
    c.heartbeat(ms(0)).await.unwrap();
    let id = a.post(letter(None, "hello"), ms(5)).await.unwrap();
    assert_eq!(a.letter(id).await.unwrap(), Some(LetterState { taken: false, reply: None }));
    let (to_b, to_c) = tokio::join!(b.collect(&[], ms(10), 9), c.collect(&[], ms(10), 9));
    let mut taken = [to_b.unwrap(), to_c.unwrap()].concat();
    assert_eq!(taken.pop(), Some((id, letter(None, "hello"))));
    assert_eq!(taken, [], "both took it");
    assert_eq!(collected(&*b, "", 11).await, []);
    assert_eq!(collected(&*c, "", 11).await, []);
    assert_eq!(a.letter(id).await.unwrap(), Some(LetterState { taken: true, reply: None }));
    assert!(b.reply_letter(id, json!({ "done": [1, null] }), ms(12)).await.unwrap());
    assert!(!c.reply_letter(id, json!("late"), ms(13)).await.unwrap());
    let done = LetterState { taken: true, reply: Some(json!({ "done": [1, null] })) };
    assert_eq!(a.letter(id).await.unwrap(), Some(done));
    assert_eq!(collected(&*c, "", 99 * LEASE_MS).await, [], "what is done is done, even if its node is dead");
    assert_eq!(a.letter(LetterId(id.0 + 1)).await.unwrap(), None);
    assert!(!a.reply_letter(LetterId(id.0 + 1), json!(1), ms(14)).await.unwrap());
}

pub(crate) async fn a_letter_goes_where_somebody_can_act_on_it(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.heartbeat(ms(0)).await.unwrap();
    let mut ids = Vec::new();
    for place in [Some("there"), Some("here"), None, Some("here")] {
        ids.push(ledger.post(letter(place, "x"), ms(5)).await.unwrap());
    }
    assert!(ids.is_sorted());
    let here = ["here".to_owned(), "here".to_owned(), "nowhere".to_owned()];
    let taken = ledger.collect(&here, ms(10), 2).await.unwrap();
    assert_eq!(taken, [(ids[1], letter(Some("here"), "x")), (ids[2], letter(None, "x"))], "the oldest first");
    assert_eq!(collected(&*ledger, "here", 10).await, [ids[3]]);
    assert_eq!(ledger.collect(&[], ms(10), 9).await.unwrap(), []);
    assert_eq!(collected(&*ledger, "there", 10).await, [ids[0]]);
}

pub(crate) async fn a_letter_of_a_dead_node_is_taken_by_another(store: impl Store) {
    let (a, b, c) = (store.join(node("a")), store.join(node("b")), store.join(node("c")));
    a.heartbeat(ms(0)).await.unwrap();
    b.heartbeat(ms(0)).await.unwrap();
    let id = a.post(letter(Some("here"), "x"), ms(5)).await.unwrap();
    assert_eq!(collected(&*a, "here", 10).await, [id]);
    assert_eq!(collected(&*b, "here", LEASE_MS - 1).await, []);
    b.heartbeat(ms(LEASE_MS)).await.unwrap();
    assert_eq!(collected(&*b, "here", LEASE_MS).await, [id]);
    assert_eq!(collected(&*c, "here", LEASE_MS).await, []);
    assert_eq!(collected(&*c, "here", 2 * LEASE_MS).await, [id]);
}

pub(crate) async fn letters_are_kept_until_a_day_after_the_reply(store: impl Store) {
    let ledger = store.join(node("a"));
    let mut ids = Vec::new();
    for body in ["replied to", "taken", "left"] {
        ids.push(ledger.post(letter((body == "left").then_some("nowhere"), body), ms(5)).await.unwrap());
    }
    assert_eq!(ledger.collect(&[], ms(6), 9).await.unwrap().len(), 2);
    ledger.reply_letter(ids[0], json!("yes"), ms(10)).await.unwrap();
    assert_eq!(ledger.sweep(ms(10 + DAY_MS - 1), 9).await.unwrap(), 0);
    assert_eq!(ledger.sweep(ms(10 + DAY_MS), 9).await.unwrap(), 1);
    assert_eq!(ledger.letter(ids[0]).await.unwrap(), None);
    assert_eq!(ledger.sweep(ms(99 * DAY_MS), 9).await.unwrap(), 0);
    assert!(ledger.letter(ids[1]).await.unwrap().is_some() && ledger.letter(ids[2]).await.unwrap().is_some());
    assert!(ledger.post(letter(None, "new"), ms(20)).await.unwrap() > ids[2], "no id is used twice");
}

pub(crate) async fn a_letter_for_the_holder_of_a_session_is_taken_by_no_other_node(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    b.heartbeat(ms(0)).await.unwrap();
    a.append(open("s", 5, 0)).await.unwrap();
    assert_eq!(b.holder(&"nowhere".into()).await.unwrap(), None);
    let place = b.holder(&"s".into()).await.unwrap().expect("it is there");
    let id = b.post(letter(Some(&place), "x"), ms(5)).await.unwrap();
    assert_eq!(collected(&*b, "here", 10).await, []);
    assert_eq!(collected(&*a, "here", 10).await, [id]);
}
