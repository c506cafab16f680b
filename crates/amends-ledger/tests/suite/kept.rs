//! What is kept beside the events, listed and swept.

use std::sync::Arc;

use amends_core::playbook::PlaybookSpec;
use amends_core::{CallId, ClaimChange, ClaimState, Contract, Digest, Playbook, Rules};
use amends_ledger::{Append, Error, Kept, OpenWork, rules_digest};

use crate::common::{
    LEASE_MS, Store, answer, arguments, busy, holder, length, ms, node, note, open, opened, received, step, take,
};

pub(crate) async fn what_is_kept_beside_the_events_is_given_back_and_forgotten(store: impl Store) {
    let ledger = store.join(node("a"));
    let contract = Contract::undeclared(1_000, 2_000, 3_000);
    let playbook = Playbook::parse(&PlaybookSpec::default(), &contract).unwrap();
    let rules = Arc::new(Rules { contract, playbook });
    let hash = Digest::from("r");
    let first = Append {
        answers: vec![answer("c0", 99)],
        arguments: vec![arguments("c1"), arguments("c2")],
        rules: vec![(hash.clone(), Arc::clone(&rules))],
        ..open("s", 5, 0)
    };
    ledger.append(first).await.unwrap();
    let again = Append {
        rules: vec![(hash.clone(), Arc::clone(&rules))],
        forget: vec!["c1".into()],
        ..step("s", 1, 6, vec![note("x")])
    };
    ledger.append(again).await.unwrap();
    assert_eq!(ledger.answer(&"c0".into()).await.unwrap(), Some(answer("c0", 99)));
    assert_eq!(ledger.arguments(&"c1".into()).await.unwrap(), None);
    assert_eq!(ledger.arguments(&"c2".into()).await.unwrap(), Some(arguments("c2")));
    assert_eq!(ledger.rules(&hash).await.unwrap(), Some(rules));
    assert_eq!(ledger.rules(&"other".into()).await.unwrap(), None);
}

pub(crate) async fn steps_that_are_written_together_leave_what_they_would_one_by_one(store: impl Store) {
    let ledger = store.join(node("a"));
    let opened = Append { arguments: vec![arguments("c1"), arguments("c2")], ..open("s", 5, 0) };
    let opened = Append { open: OpenWork { calls: 2, due: Some(ms(50)) }, ..opened };
    let ended = Append { forget: vec!["c1".into()], ..step("s", 1, 6, vec![note("x")]) };
    let ended = Append { open: OpenWork { calls: 1, due: None }, ..ended };
    // In the place of one that is there already, so that it drops nothing.
    let refused = Append { forget: vec!["c2".into()], ..step("s", 1, 7, vec![note("y")]) };
    let queued = [ledger.append_soon(opened), ledger.append_soon(ended), ledger.append_soon(refused)];
    let [opened, ended, refused] = queued;
    let last = ledger.append(Append { machine: Some("m".into()), ..step("s", 2, 8, vec![note("z")]) });
    assert_eq!(opened.await.unwrap().seq, 1);
    assert_eq!(ended.await.unwrap().seq, 2);
    assert!(matches!(refused.await, Err(Error::Conflict { expected: 1, actual: 2 })));
    assert_eq!(last.await.unwrap().seq, 3);
    assert_eq!(ledger.arguments(&"c1".into()).await.unwrap(), None);
    assert_eq!(ledger.arguments(&"c2".into()).await.unwrap(), Some(arguments("c2")));
    let row = ledger.sessions(1).await.unwrap().remove(0);
    assert_eq!((row.events, row.updated, row.open_calls, row.machine), (3, ms(8), 0, Some("m".into())));
    assert_eq!(length(&*ledger, "s").await, 3);
}

pub(crate) async fn what_is_kept_under_a_name_is_replaced_only_by_what_follows_it(store: impl Store) {
    let ledger = store.join(node("a"));
    let kept = |version, body: &'static str| Kept { name: Digest::from("n"), version, body: body.into() };
    assert_eq!(ledger.kept(&"n".into()).await.unwrap(), None);
    assert!(!ledger.keep(kept(2, "nothing came before")).await.unwrap());
    assert!(ledger.keep(kept(1, "first")).await.unwrap());
    assert!(!ledger.keep(kept(1, "first as well")).await.unwrap());
    assert!(ledger.keep(kept(2, "second")).await.unwrap());
    assert!(!ledger.keep(kept(2, "second as well")).await.unwrap());
    let elsewhere = store.join(node("b"));
    assert_eq!(elsewhere.kept(&"n".into()).await.unwrap(), Some(kept(2, "second")));
    assert_eq!(elsewhere.kept(&"m".into()).await.unwrap(), None);
}

pub(crate) async fn rules_of_another_ledger_are_kept_under_their_own_digest_alone(store: impl Store) {
    let ledger = store.join(node("a"));
    let contract = Contract::undeclared(1_000, 2_000, 3_000);
    let playbook = Playbook::parse(&PlaybookSpec::default(), &contract).unwrap();
    let rules = Rules { contract, playbook };
    let (hash, body) = (rules_digest(&rules), serde_json::to_string(&rules).unwrap());
    assert!(ledger.import_rules("another".into(), body.clone()).await.is_err());
    assert!(ledger.import_rules(hash.clone(), body.replacen("1000", "1001", 1)).await.is_err());
    assert_eq!(ledger.rules(&hash).await.unwrap(), None);
    assert!(ledger.import_rules(hash.clone(), body.clone()).await.unwrap());
    assert!(!ledger.import_rules(hash.clone(), body).await.unwrap());
    assert_eq!(ledger.rules(&hash).await.unwrap(), Some(Arc::new(rules)));
}

pub(crate) async fn sessions_are_walked_in_pieces_the_oldest_first(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, at) in [("s2", 20), ("s4", 20), ("s1", 10), ("s3", 30)] {
        ledger.append(open(session, at, 0)).await.unwrap();
    }
    let (mut walked, mut last) = (Vec::new(), None);
    loop {
        let rows = ledger.sessions_after(ms(0), last.as_ref(), 2).await.unwrap();
        let Some(row) = rows.last() else { break };
        last = Some(row.clone());
        walked.extend(rows.into_iter().map(|row| row.session.as_str().to_owned()));
    }
    assert_eq!(walked, ["s1", "s2", "s4", "s3"]);
    let since = ledger.sessions_after(ms(20), None, 9).await.unwrap();
    assert_eq!(since.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["s2", "s4", "s3"]);
}

pub(crate) async fn the_newest_sessions_come_first(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, at) in [("s2", 20), ("s1", 10), ("s3", 30)] {
        ledger.append(open(session, at, 0)).await.unwrap();
    }
    ledger.append(busy(step("s1", 1, 40, vec![note("x")]))).await.unwrap();
    let rows = ledger.sessions(2).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["s3", "s2"]);
    let oldest = ledger.sessions(9).await.unwrap().pop().unwrap();
    assert_eq!((oldest.opened, oldest.updated, oldest.events, oldest.open_calls), (ms(10), ms(40), 2, 1));
    assert_eq!((oldest.principal.as_str(), oldest.door.as_str()), ("local", "mcp"));
}

pub(crate) async fn a_sweep_drops_what_is_over_and_nothing_else(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    b.heartbeat(ms(0)).await.unwrap();
    let settle = |name: &str, until| ClaimChange::Settle {
        name: name.into(),
        call: "c1".into(),
        state: ClaimState::Complete,
        until: Some(ms(until)),
    };
    let claims = vec![take("n1", "c1"), settle("n1", 50), take("n2", "c1"), settle("n2", 60), take("n3", "c1")];
    let ended = Append {
        claims,
        answers: vec![answer("c1", 50), answer("c2", 60)],
        arguments: vec![arguments("c1")],
        ..step("s1", 0, 20, vec![opened("s1"), received("c1")])
    };
    a.append(ended).await.unwrap();
    let open = OpenWork { calls: 1, due: None };
    let still_open = step("s2", 0, 20, vec![opened("s2"), received("c3")]);
    b.append(Append { arguments: vec![arguments("c3")], open, ..still_open }).await.unwrap();

    assert_eq!(a.sweep(ms(50), 9).await.unwrap(), 3, "an answer, a claim, the arguments of a call that is over");
    assert_eq!(a.sweep(ms(50), 9).await.unwrap(), 0);
    assert_eq!(a.answer(&"c1".into()).await.unwrap(), None);
    assert!(a.answer(&"c2".into()).await.unwrap().is_some());
    assert_eq!(holder(&*a, "n1", 0).await, None);
    assert!(holder(&*a, "n2", 0).await.is_some() && holder(&*a, "n3", 0).await.is_some());
    assert!(a.arguments(&CallId::from("c3")).await.unwrap().is_some());
    assert_eq!(a.sweep(ms(LEASE_MS), 9).await.unwrap(), 3, "an answer, a claim, the dead node without open calls");
    assert_eq!(length(&*a, "s1").await, 2);
}

pub(crate) async fn the_secret_is_one_for_all_nodes(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    assert_eq!(a.secret(), b.secret());
    assert_ne!(a.secret(), [0; 32]);
}
