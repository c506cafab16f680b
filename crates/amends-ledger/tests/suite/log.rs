//! The log of session heads, its checkpoints, and sessions as they are stored.

use amends_core::SessionId;
use amends_ledger::anchor::Anchor;
use amends_ledger::merkle::Frontier;
use amends_ledger::note::NoteKey;
use amends_ledger::proof::{Proof, ProofError};
use amends_ledger::{Checkpoint, Error, Ledger, LogEntry, Proven, StoredCheckpoint, VerifyOptions, origin, verify};

use crate::common::{Store, length, ms, node, note, open, received, step, verified};

fn key() -> NoteKey {
    NoteKey::new("amends/test", &[9; 32]).unwrap()
}

fn checkpoint(size: u64) -> StoredCheckpoint {
    StoredCheckpoint { size, at: ms(7), note: format!("note {size}") }
}

/// Logs what is new and signs it.
async fn sign(ledger: &dyn Ledger) -> StoredCheckpoint {
    let mut tree = Frontier::default();
    ledger.log(0, 999).await.unwrap().iter().for_each(|entry| tree.push(entry.leaf()));
    let (expected, entries) = (tree.size(), ledger.unlogged(999).await.unwrap());
    entries.iter().for_each(|entry| tree.push(entry.leaf()));
    let stated = Checkpoint { origin: origin(&ledger.secret()), size: tree.size(), root: tree.root() };
    let checkpoint = StoredCheckpoint { size: tree.size(), at: ms(9), note: stated.sign(&key()) };
    assert!(ledger.extend_log(expected, entries, checkpoint.clone()).await.unwrap());
    checkpoint
}

fn ids(entries: &[LogEntry]) -> Vec<(String, u64)> {
    entries.iter().map(|entry| (entry.session.to_string(), entry.seq)).collect()
}

pub(crate) async fn a_session_is_unlogged_until_its_head_is_in_the_log(store: impl Store) {
    let ledger = store.join(node("a"));
    assert_eq!(ledger.unlogged(9).await.unwrap(), []);
    let head = ledger.append(open("s", 1, 2)).await.unwrap().head;
    ledger.append(open("t", 2, 0)).await.unwrap();
    let unlogged = ledger.unlogged(9).await.unwrap();
    assert_eq!(ids(&unlogged), [("s".to_owned(), 3), ("t".to_owned(), 1)]);
    assert_eq!(unlogged[0].head.hex(), head);
    assert_eq!(ledger.unlogged(1).await.unwrap().len(), 1);
    // What comes after the head was read is not covered by its entry.
    ledger.append(step("s", 3, 3, vec![note("more")])).await.unwrap();
    assert!(ledger.extend_log(0, unlogged, checkpoint(2)).await.unwrap());
    assert_eq!(ids(&ledger.unlogged(9).await.unwrap()), [("s".to_owned(), 4)]);
    sign(&*ledger).await;
    assert_eq!(ledger.unlogged(9).await.unwrap(), []);
    assert_eq!(ids(&store.join(node("b")).log(0, 9).await.unwrap()).len(), 3);
}

pub(crate) async fn the_log_is_extended_only_where_it_ends(store: impl Store) {
    let ledger = store.join(node("a"));
    for session in ["s", "t", "u"] {
        ledger.append(open(session, 1, 0)).await.unwrap();
    }
    let entries = ledger.unlogged(2).await.unwrap();
    assert!(ledger.extend_log(0, entries.clone(), checkpoint(2)).await.unwrap());
    assert!(!ledger.extend_log(0, entries.clone(), checkpoint(2)).await.unwrap());
    assert!(!ledger.extend_log(3, entries.clone(), checkpoint(5)).await.unwrap());
    assert!(matches!(ledger.extend_log(2, Vec::new(), checkpoint(3)).await, Err(Error::Corrupt { .. })));
    assert_eq!(ledger.log(0, 9).await.unwrap(), entries);
    assert_eq!(ledger.log(1, 9).await.unwrap(), entries[1..]);
    assert_eq!(ledger.log(0, 1).await.unwrap(), entries[..1]);
    assert_eq!(ledger.log(2, 9).await.unwrap(), []);
    assert!(ledger.extend_log(2, Vec::new(), checkpoint(2)).await.unwrap(), "entries may be none");
    assert!(ledger.extend_log(2, ledger.unlogged(9).await.unwrap(), checkpoint(3)).await.unwrap());
    let sizes: Vec<u64> = ledger.checkpoints(9).await.unwrap().iter().map(|checkpoint| checkpoint.size).collect();
    assert_eq!(sizes, [3, 2, 2], "the newest first");
    assert_eq!(ledger.checkpoints(1).await.unwrap(), [checkpoint(3)]);
}

pub(crate) async fn sessions_are_given_out_as_they_are_stored_in_the_order_of_their_ids(store: impl Store) {
    let ledger = store.join(node("a"));
    for session in ["c", "a", "b"] {
        ledger.append(open(session, 1, 1)).await.unwrap();
    }
    ledger.append(step("b", 2, 5, vec![received("call")])).await.unwrap();
    let names = |sessions: &[amends_ledger::StoredSession]| -> Vec<String> {
        sessions.iter().map(|stored| stored.session.to_string()).collect()
    };
    assert_eq!(names(&ledger.stored(None, 2).await.unwrap()), ["a", "b"]);
    let after = SessionId::from("a");
    let rest = ledger.stored(Some(&after), 9).await.unwrap();
    assert_eq!(names(&rest), ["b", "c"]);
    let (b, tip) = (&rest[0], rest[0].tip.as_ref().unwrap());
    assert_eq!((tip.seq, tip.logged, tip.cut, tip.door.as_str()), (3, 0, 0, "mcp"));
    assert_eq!(b.records[2].hash, tip.head);
    let last = &b.records[2];
    assert_eq!((last.seq, last.at, last.kind.as_str(), last.call.as_deref()), (3, 5, "call_received", Some("call")));
    let trace = ledger.trace(&"b".into()).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<amends_core::Event>(&last.body).unwrap(), trace.events[2].event);
}

pub(crate) async fn an_anchor_proves_what_it_covers(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(open("s", 1, 2)).await.unwrap();
    ledger.append(open("t", 1, 0)).await.unwrap();
    let anchor = Anchor { notes: vec![sign(&*ledger).await.note], debris: Vec::new() };
    ledger.append(step("s", 3, 3, vec![note("more")])).await.unwrap();
    let options = VerifyOptions { anchor: Some(anchor.clone()), key: Some(key().verifier()) };
    let found = verify(&*ledger, options.clone()).await.unwrap();
    assert_eq!(found.faults, []);
    assert_eq!(found.proven, Some(Proven { size: 2, events: 4, beyond: 1 }));
    let unkeyed = verify(&*ledger, VerifyOptions { key: None, ..options }).await.unwrap();
    assert_eq!((unkeyed.faults, unkeyed.proven), (Vec::new(), None), "without a key nothing is proven");
    sign(&*ledger).await;
    assert_eq!(verified(&*ledger).await.unwrap().logged, 3);
    assert_eq!(length(&*ledger, "s").await, 4);
}

pub(crate) async fn every_event_that_is_covered_can_be_proven(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(open("s", 1, 2)).await.unwrap();
    let one = |sessions: Vec<amends_ledger::StoredSession>| sessions.into_iter().find(|one| one.session == "s".into());
    let session = one(ledger.stored(None, 9).await.unwrap()).unwrap();
    assert_eq!(Proof::of(&*ledger, &session, 1).await, Err(ProofError::NotCovered));
    sign(&*ledger).await;
    ledger.append(open("t", 1, 0)).await.unwrap();
    ledger.append(step("s", 3, 3, vec![note("more")])).await.unwrap();
    sign(&*ledger).await;
    let session = one(ledger.stored(None, 9).await.unwrap()).unwrap();
    for seq in 1..=4 {
        let proof = Proof::of(&*ledger, &session, seq).await.unwrap();
        assert_eq!(proof.check(&key().verifier()).unwrap().size, 3, "{seq}");
        assert_eq!(proof.events.len(), if seq == 4 { 1 } else { 4 - seq as usize }, "it ends at the next entry");
    }
    assert_eq!(Proof::of(&*ledger, &session, 5).await, Err(ProofError::NotCovered));
}
