//! Reversal tokens: single use, whoever tries.

use amends_core::{CallId, Digest, ReversalChange, ReversalState};
use amends_ledger::{Append, Error, Ledger, ReversalRow, StoredUndo};

use crate::common::{Store, answer, claiming, holder, length, ms, node, note, open, question, step, take};

fn mint(token: &str, call: &str) -> ReversalChange {
    ReversalChange::Mint { token: token.into(), call: call.into() }
}

fn arm(token: &str, until: u64) -> ReversalChange {
    ReversalChange::Arm { token: token.into(), until: ms(until) }
}

fn redeem(token: &str, by: &str) -> ReversalChange {
    ReversalChange::Redeem { token: token.into(), by: by.into(), over: None }
}

fn rearm(token: &str, by: &str) -> ReversalChange {
    ReversalChange::Rearm { token: token.into(), by: by.into() }
}

fn spend(token: &str, by: &str) -> ReversalChange {
    ReversalChange::Spend { token: token.into(), by: by.into() }
}

fn void(token: &str) -> ReversalChange {
    ReversalChange::Void { token: token.into() }
}

fn undo(token: &str) -> StoredUndo {
    StoredUndo {
        token: token.into(),
        place: "shop at home".into(),
        principal: "local".into(),
        tool: "refund".into(),
        arguments: bytes::Bytes::from_static(b"{\"order\":1}"),
    }
}

/// A step that opens a session and does that to the tokens.
fn changing(session: &str, reversals: Vec<ReversalChange>) -> Append {
    Append { reversals, ..open(session, 20, 0) }
}

/// A session `s` whose call `c` left an armed token.
async fn with_armed(ledger: &dyn Ledger, token: &str) {
    let armed = Append { undo: vec![undo(token)], ..changing("s", vec![mint(token, "c"), arm(token, 99)]) };
    ledger.append(armed).await.unwrap();
}

async fn found(ledger: &dyn Ledger, token: &str) -> ReversalRow {
    ledger.reversal(&Digest::from(token)).await.unwrap().unwrap()
}

async fn stands(ledger: &dyn Ledger, token: &str) -> (ReversalState, Option<String>) {
    let row = found(ledger, token).await;
    (row.state, row.by.map(|by| by.to_string()))
}

fn spent(token: &str, state: Option<ReversalState>) -> Error {
    Error::Spent { token: token.into(), state }
}

pub(crate) async fn a_token_is_minted_armed_and_spent(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.append(changing("s", vec![mint("t", "c")])).await.unwrap();
    let minted = ReversalRow {
        token: "t".into(),
        session: "s".into(),
        call: "c".into(),
        state: ReversalState::Minted,
        minted: ms(20),
        until: None,
        by: None,
        undo: None,
    };
    assert_eq!(found(&*b, "t").await, minted);
    let armed = Append { reversals: vec![arm("t", 99)], undo: vec![undo("t")], ..step("s", 1, 30, vec![note("x")]) };
    a.append(armed).await.unwrap();
    let row = ReversalRow { state: ReversalState::Armed, until: Some(ms(99)), undo: Some(undo("t")), ..minted };
    assert_eq!(found(&*b, "t").await, row);
    b.append(changing("other", vec![redeem("t", "r")])).await.unwrap();
    let row = ReversalRow { state: ReversalState::Redeeming, by: Some(CallId::from("r")), ..row };
    assert_eq!(found(&*a, "t").await, row);
    let done = Append { reversals: vec![spend("t", "r")], ..step("other", 1, 40, vec![note("x")]) };
    b.append(done).await.unwrap();
    assert_eq!(found(&*a, "t").await, ReversalRow { state: ReversalState::Redeemed, undo: None, ..row });
    assert_eq!(a.reversal(&"nothing".into()).await.unwrap(), None);
}

pub(crate) async fn a_call_goes_on_with_the_token_of_the_one_it_repeats(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    with_armed(&*a, "t").await;
    a.append(changing("first", vec![redeem("t", "r1")])).await.unwrap();
    let over =
        |by: &str, over: &str| ReversalChange::Redeem { token: "t".into(), by: by.into(), over: Some(over.into()) };
    let stranger = changing("second", vec![over("r3", "r2")]);
    assert_eq!(b.append(stranger).await, Err(spent("t", Some(ReversalState::Redeeming))));
    b.append(changing("second", vec![over("r2", "r1")])).await.unwrap();
    assert_eq!(stands(&*a, "t").await, (ReversalState::Redeeming, Some("r2".into())));
    let late = Append { reversals: vec![rearm("t", "r1")], ..step("first", 1, 30, vec![note("x")]) };
    a.append(late).await.unwrap();
    assert_eq!(stands(&*a, "t").await, (ReversalState::Redeeming, Some("r2".into())), "the first has no say any more");
    b.append(Append { reversals: vec![spend("t", "r2")], ..step("second", 1, 40, vec![note("x")]) }).await.unwrap();
    let after = changing("third", vec![over("r3", "r2")]);
    assert_eq!(a.append(after).await, Err(spent("t", Some(ReversalState::Redeemed))));
}

pub(crate) async fn two_calls_cannot_redeem_one_token(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    with_armed(&*a, "t").await;
    a.append(changing("first", vec![redeem("t", "r1")])).await.unwrap();
    let second = Append {
        claims: vec![take("n", "r2")],
        answers: vec![answer("r2", 99)],
        asks: vec![question("q", "second", 40)],
        ..changing("second", vec![mint("new", "r2"), redeem("t", "r2")])
    };
    assert_eq!(b.append(second).await, Err(spent("t", Some(ReversalState::Redeeming))));
    assert_eq!(length(&*b, "second").await, 0);
    assert_eq!(holder(&*b, "n", 20).await, None);
    assert_eq!(b.answer(&"r2".into()).await.unwrap(), None);
    assert_eq!(b.interaction(&"q".into()).await.unwrap(), None);
    assert_eq!(b.reversal(&"new".into()).await.unwrap(), None);
    assert_eq!(stands(&*b, "t").await, (ReversalState::Redeeming, Some("r1".into())));
    let again = Append { reversals: vec![redeem("t", "r1")], ..step("first", 1, 30, vec![note("x")]) };
    a.append(again).await.expect("the call that redeems it may say so again");
    let one_step = changing("third", vec![redeem("t", "r1"), redeem("t", "r3")]);
    assert_eq!(b.append(one_step).await, Err(spent("t", Some(ReversalState::Redeeming))));
}

pub(crate) async fn a_token_is_redeemed_again_after_it_was_rearmed(store: impl Store) {
    let ledger = store.join(node("a"));
    with_armed(&*ledger, "t").await;
    ledger.append(changing("first", vec![redeem("t", "r1")])).await.unwrap();
    let by = |seq, change| Append { reversals: vec![change], ..step("first", seq, 30, vec![note("x")]) };
    ledger.append(by(1, rearm("t", "stranger"))).await.unwrap();
    assert_eq!(stands(&*ledger, "t").await, (ReversalState::Redeeming, Some("r1".into())));
    ledger.append(by(2, rearm("t", "r1"))).await.unwrap();
    assert_eq!(stands(&*ledger, "t").await, (ReversalState::Armed, None));
    assert_eq!(found(&*ledger, "t").await.undo, Some(undo("t")), "it still says how");
    ledger.append(changing("second", vec![redeem("t", "r2")])).await.unwrap();
    assert_eq!(stands(&*ledger, "t").await, (ReversalState::Redeeming, Some("r2".into())));
    ledger.append(by(3, rearm("t", "r1"))).await.unwrap();
    assert_eq!(stands(&*ledger, "t").await, (ReversalState::Redeeming, Some("r2".into())));
}

pub(crate) async fn only_an_armed_token_is_redeemed(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(changing("s", vec![mint("minted", "c"), mint("void", "c"), void("void")])).await.unwrap();
    let fates = [("nothing", None), ("minted", Some(ReversalState::Minted)), ("void", Some(ReversalState::Void))];
    for (token, state) in fates {
        assert_eq!(ledger.append(changing("r", vec![redeem(token, "r")])).await, Err(spent(token, state)));
    }
    assert_eq!(length(&*ledger, "r").await, 0);
    let sent_again = Append { reversals: vec![mint("void", "c")], ..step("s", 1, 30, vec![note("x")]) };
    ledger.append(sent_again).await.unwrap();
    assert_eq!(stands(&*ledger, "void").await, (ReversalState::Minted, None));
}

pub(crate) async fn a_change_to_an_unknown_token_is_left_alone(store: impl Store) {
    let ledger = store.join(node("a"));
    let changes = vec![arm("t", 99), void("t"), rearm("t", "r"), spend("t", "r")];
    ledger.append(Append { undo: vec![undo("t")], ..changing("s", changes) }).await.unwrap();
    assert_eq!(ledger.reversal(&"t".into()).await.unwrap(), None);
    let unarmed = Append { undo: vec![undo("t")], ..changing("u", vec![mint("t", "c")]) };
    assert!(matches!(ledger.append(unarmed).await, Err(Error::Corrupt { .. })));
    assert_eq!(ledger.reversal(&"t".into()).await.unwrap(), None);
}

pub(crate) async fn a_token_that_was_redeemed_stays_so(store: impl Store) {
    let ledger = store.join(node("a"));
    with_armed(&*ledger, "t").await;
    let changes = vec![
        redeem("t", "r"),
        arm("t", 200),
        spend("t", "r"),
        mint("t", "c"),
        arm("t", 200),
        rearm("t", "r"),
        spend("t", "other"),
        void("t"),
    ];
    ledger.append(changing("r", changes)).await.unwrap();
    assert_eq!(stands(&*ledger, "t").await, (ReversalState::Redeemed, Some("r".into())));
    let once_more = changing("again", vec![redeem("t", "r")]);
    assert_eq!(ledger.append(once_more).await, Err(spent("t", Some(ReversalState::Redeemed))));
}

pub(crate) async fn what_nobody_can_undo_is_forgotten(store: impl Store) {
    let ledger = store.join(node("a"));
    let tokens = ["voided", "early", "late", "redeeming"];
    let mut changes: Vec<_> = tokens.iter().map(|token| mint(token, "c")).collect();
    changes.extend([arm("voided", 50), arm("early", 50), arm("late", 60), arm("redeeming", 50)]);
    changes.extend([void("voided"), redeem("redeeming", "r")]);
    let undo = tokens.map(undo).to_vec();
    ledger.append(Append { undo, ..changing("s", changes) }).await.unwrap();
    assert_eq!(found(&*ledger, "voided").await.undo, None);
    assert_eq!(ledger.sweep(ms(49), 9).await.unwrap(), 0);
    assert_eq!(ledger.sweep(ms(50), 9).await.unwrap(), 1);
    assert_eq!(ledger.sweep(ms(50), 9).await.unwrap(), 0);
    let early = found(&*ledger, "early").await;
    assert_eq!((early.state, early.until, early.undo), (ReversalState::Armed, Some(ms(50)), None));
    assert!(found(&*ledger, "late").await.undo.is_some() && found(&*ledger, "redeeming").await.undo.is_some());
}

pub(crate) async fn the_token_minted_last_comes_first(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(changing("s", vec![mint("z", "c1"), mint("a", "c2")])).await.unwrap();
    ledger.append(changing("other", vec![mint("b", "c3")])).await.unwrap();
    let more = Append { reversals: vec![mint("m", "c4"), arm("z", 99)], ..step("s", 1, 30, vec![note("x")]) };
    ledger.append(more).await.unwrap();
    let rows = ledger.reversals_of(&"s".into()).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.token.as_str()).collect::<Vec<_>>(), ["m", "a", "z"]);
    assert_eq!(ledger.reversals_of(&"nobody".into()).await.unwrap(), []);
    let conflict = claiming("s", 20, vec![take("n", "c1")]);
    assert!(ledger.append(Append { reversals: vec![void("z")], ..conflict }).await.is_err());
    assert_eq!(found(&*ledger, "z").await.state, ReversalState::Armed);
}
