//! Claims: who gets them, who keeps them, when they end.

use amends_core::claim::ClaimKind;
use amends_core::{ClaimChange, ClaimState};
use amends_ledger::{Append, Error};

use crate::common::{
    Store, answer, arguments, claiming, held, holder, length, ms, node, note, step, take, take_as, verified,
};

pub(crate) async fn a_held_claim_fails_the_whole_step(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(claiming("s1", 20, vec![take("n", "c1")])).await.unwrap();
    let second = Append {
        answers: vec![answer("c2", 99)],
        arguments: vec![arguments("c2")],
        ..claiming("s2", 21, vec![take("free", "c2"), take("n", "c2")])
    };
    let Err(Error::Held(found)) = ledger.append(second).await else { panic!("it was not held") };
    assert_eq!(Some(*found.clone()), held(&*ledger, "n", 21).await);
    assert_eq!((found.call.as_str(), found.session.as_str()), ("c1", "s1"));
    assert_eq!((found.state, found.since), (ClaimState::InFlight, ms(10)));
    assert_eq!((found.fingerprint.as_str(), found.effect_key.as_str()), ("fp-c1", "key-c1"));
    assert_eq!(length(&*ledger, "s2").await, 0);
    assert_eq!(holder(&*ledger, "free", 21).await, None);
    assert_eq!(ledger.answer(&"c2".into()).await.unwrap(), None);
    assert_eq!(ledger.arguments(&"c2".into()).await.unwrap(), None);
    ledger.append(claiming("s3", 22, vec![take("n", "c1")])).await.expect("its holder may take it again");
}

pub(crate) async fn a_claim_is_settled_and_released_only_by_its_holder(store: impl Store) {
    let ledger = store.join(node("a"));
    let settle = |call: &str, state, until| ClaimChange::Settle { name: "n".into(), call: call.into(), state, until };
    let release = |call: &str| ClaimChange::Release { name: "n".into(), call: call.into() };
    let with = |seq, claims| Append { claims, ..step("s", seq, 20, vec![note("x")]) };
    ledger.append(claiming("s", 20, vec![take("n", "c1")])).await.unwrap();
    ledger.append(with(1, vec![settle("c2", ClaimState::Complete, None), release("c2")])).await.unwrap();
    assert_eq!(held(&*ledger, "n", 20).await.unwrap().state, ClaimState::InFlight);
    ledger.append(with(2, vec![settle("c1", ClaimState::InDoubt, None)])).await.unwrap();
    assert_eq!(held(&*ledger, "n", u64::MAX >> 12).await.unwrap().state, ClaimState::InDoubt);
    ledger.append(with(3, vec![settle("c1", ClaimState::Complete, Some(ms(50)))])).await.unwrap();
    assert_eq!(held(&*ledger, "n", 49).await.unwrap().state, ClaimState::Complete);
    assert_eq!(held(&*ledger, "n", 50).await, None);
    ledger.append(with(4, vec![release("c1"), release("c1")])).await.unwrap();
    assert_eq!(holder(&*ledger, "n", 20).await, None);
}

pub(crate) async fn an_expired_claim_counts_as_free(store: impl Store) {
    let ledger = store.join(node("a"));
    let until = Some(ms(50));
    let settle = ClaimChange::Settle { name: "n".into(), call: "c1".into(), state: ClaimState::Complete, until };
    ledger.append(claiming("s1", 20, vec![take("n", "c1"), settle])).await.unwrap();
    assert!(matches!(ledger.append(claiming("s2", 49, vec![take("n", "c2")])).await, Err(Error::Held(_))));
    ledger.append(claiming("s2", 50, vec![take("n", "c2")])).await.unwrap();
    assert_eq!(holder(&*ledger, "n", 99).await.as_deref(), Some("c2"));
}

pub(crate) async fn a_claim_that_needs_not_be_free_is_left_alone(store: impl Store) {
    let ledger = store.join(node("a"));
    let if_free = |call| take_as(ClaimKind::ArgumentsIfFree, "n", call, None);
    ledger.append(claiming("s1", 20, vec![if_free("c1")])).await.unwrap();
    ledger.append(claiming("s2", 21, vec![if_free("c2"), take("own", "c2")])).await.unwrap();
    assert_eq!(holder(&*ledger, "n", 22).await.as_deref(), Some("c1"));
    assert_eq!(holder(&*ledger, "own", 22).await.as_deref(), Some("c2"));
}

pub(crate) async fn a_claim_is_taken_over_only_from_the_named_holder(store: impl Store) {
    let ledger = store.join(node("a"));
    let over = |call, holder| take_as(ClaimKind::Key, "n", call, Some(holder));
    ledger.append(claiming("s1", 20, vec![take("n", "c1")])).await.unwrap();
    let Err(Error::Held(found)) = ledger.append(claiming("s2", 21, vec![over("c2", "c0")])).await else {
        panic!("it was taken from another one")
    };
    assert_eq!(found.call.as_str(), "c1");
    ledger.append(claiming("s2", 21, vec![over("c2", "c1")])).await.unwrap();
    let found = held(&*ledger, "n", 22).await.unwrap();
    assert_eq!((found.call.as_str(), found.session.as_str(), found.since), ("c2", "s2", ms(10)));
    assert!(matches!(ledger.append(claiming("s3", 21, vec![over("c3", "c1")])).await, Err(Error::Held(_))));
}

pub(crate) async fn one_step_may_change_a_claim_twice(store: impl Store) {
    let ledger = store.join(node("a"));
    let release = ClaimChange::Release { name: "n".into(), call: "c1".into() };
    ledger.append(claiming("s1", 20, vec![take("n", "c1"), release, take("n", "c2")])).await.unwrap();
    assert_eq!(holder(&*ledger, "n", 22).await.as_deref(), Some("c2"));
    let twice = claiming("s2", 20, vec![take("m", "c3"), take("m", "c4")]);
    assert!(matches!(ledger.append(twice).await, Err(Error::Held(_))));
    assert_eq!(holder(&*ledger, "m", 22).await, None);
}

pub(crate) async fn of_two_nodes_one_gets_the_claim(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    for round in 0..20 {
        let name = format!("n{round}");
        let one = a.append(claiming(&format!("a{round}"), 20, vec![take(&name, "a")]));
        let other = b.append(claiming(&format!("b{round}"), 20, vec![take(&name, "b")]));
        let (one, other) = tokio::join!(one, other);
        let winner = holder(&*a, &name, 20).await.unwrap();
        let (won, lost) = if winner == "a" { (one, other) } else { (other, one) };
        assert!(won.is_ok());
        assert!(matches!(lost, Err(Error::Held(found)) if found.call.as_str() == winner));
    }
    assert!(verified(&*b).await.unwrap().is_consistent());
}

pub(crate) async fn a_yes_is_granted_by_its_holder_and_spent_once(store: impl Store) {
    let ledger = store.join(node("a"));
    let grant = |call: &str| ClaimChange::Grant {
        name: "n".into(),
        call: call.into(),
        basis: "as it was".into(),
        until: Some(ms(50)),
    };
    ledger.append(claiming("s1", 20, vec![take("n", "c1"), grant("c2")])).await.unwrap();
    assert_eq!(held(&*ledger, "n", 20).await.unwrap().state, ClaimState::InFlight);
    assert_eq!(ledger.grants(ms(20), 9).await.unwrap(), []);
    assert!(!ledger.revoke(&"n".into()).await.unwrap());
    let granting = Append { claims: vec![grant("c1")], ..step("s1", 1, 21, vec![note("x")]) };
    ledger.append(granting).await.unwrap();
    let found = held(&*ledger, "n", 21).await.unwrap();
    assert_eq!((found.state, found.effect_key.as_str()), (ClaimState::Granted, "as it was"));
    let granted = ledger.grants(ms(21), 9).await.unwrap();
    assert_eq!((granted.len(), granted[0].until), (1, Some(ms(50))));
    assert_eq!(ledger.grants(ms(50), 9).await.unwrap(), []);
    let spend = |call| take_as(ClaimKind::Arguments, "n", call, Some("c1"));
    ledger.append(claiming("s2", 22, vec![spend("c2")])).await.unwrap();
    assert!(matches!(ledger.append(claiming("s3", 23, vec![spend("c3")])).await, Err(Error::Held(_))));
    assert_eq!(ledger.grants(ms(23), 9).await.unwrap(), []);
}

pub(crate) async fn a_yes_for_good_stands_in_the_way_of_asking_until_it_is_taken_back(store: impl Store) {
    let ledger = store.join(node("a"));
    let absent = || ClaimChange::Absent { name: "always".into() };
    let grant =
        |call: &str| ClaimChange::Grant { name: "always".into(), call: call.into(), basis: String::new(), until: None };
    ledger.append(claiming("s1", 20, vec![absent()])).await.unwrap();
    let forever = |call| vec![take_as(ClaimKind::Grant, "always", call, None), grant(call)];
    ledger.append(claiming("s2", 21, forever("c2"))).await.unwrap();
    ledger.append(claiming("s3", 22, forever("c3"))).await.expect("what is said last counts");
    let Err(Error::Held(found)) = ledger.append(claiming("s4", 23, vec![absent(), take("n", "c4")])).await else {
        panic!("it is not there")
    };
    assert_eq!((found.state, found.call.as_str()), (ClaimState::Granted, "c3"));
    assert_eq!(holder(&*ledger, "n", 23).await, None);
    assert!(ledger.revoke(&"always".into()).await.unwrap());
    assert!(!ledger.revoke(&"always".into()).await.unwrap());
    ledger.append(claiming("s4", 24, vec![absent()])).await.unwrap();
}
