//! Sessions that go, and sessions that come whole from another ledger.

use amends_core::dispatcher::retire::RetireReason;
use amends_core::{ClaimChange, ClaimState, Dispatcher, Fact, ReversalChange, ReversalState};
use amends_ledger::{Append, Closing, Error, Ledger, MemoryLedger, OpenWork, StoredUndo, Trace};

use crate::common::{
    LEASE_MS, Store, answer, arguments, holder, letter, ms, node, note, open, question, received, step, take, verified,
};

/// A step that retires a session of so many events.
pub(crate) fn retiring(session: &str, events: u64, at: u64) -> Append {
    let fact = Fact::SessionRetired {
        session: session.into(),
        principal: "local".into(),
        door: "mcp".into(),
        events,
        reason: RetireReason::Retention,
    };
    Append { retires: true, ..step(session, events, at, vec![fact]) }
}

pub(crate) async fn a_retired_session_keeps_its_last_event_and_its_chain(store: impl Store) {
    let ledger = store.join(node("a"));
    let before = ledger.append(open("s", 5, 3)).await.unwrap();
    let after = ledger.append(retiring("s", 4, 9)).await.unwrap();
    assert_eq!(after.seq, 5);
    let trace = ledger.trace(&"s".into()).await.unwrap().unwrap();
    assert_eq!((trace.cut, trace.events.len()), (4, 1));
    assert_eq!(trace.cut_link, Some(before.head));
    assert_eq!(trace.events[0].hash, after.head);
    let restored = Dispatcher::restore(trace.events.iter().map(|stored| &stored.event), |_| None).unwrap();
    assert!(restored.is_retired());
    let row = ledger.sessions(9).await.unwrap().remove(0);
    assert_eq!((row.events, row.cut, row.opened, row.updated), (5, 4, ms(5), ms(9)));
    assert!(verified(&*ledger).await.unwrap().is_consistent());
}

pub(crate) async fn what_belongs_to_a_retired_session_goes_with_it(store: impl Store) {
    let ledger = store.join(node("a"));
    let undo = StoredUndo {
        token: "t".into(),
        place: "shop".into(),
        principal: "local".into(),
        tool: "cancel".into(),
        arguments: "{}".into(),
    };
    let done =
        ClaimChange::Settle { name: "n".into(), call: "c".into(), state: ClaimState::Complete, until: Some(ms(900)) };
    let full = Append {
        answers: vec![answer("c", 99)],
        arguments: vec![arguments("c")],
        claims: vec![take("n", "c"), done],
        asks: vec![question("q", "s", 50)],
        closes: vec![("q".into(), Closing::Answered)],
        reversals: vec![
            ReversalChange::Mint { token: "t".into(), call: "c".into() },
            ReversalChange::Arm { token: "t".into(), until: ms(8) },
        ],
        undo: vec![undo],
        ..step("s", 1, 6, vec![received("c")])
    };
    ledger.append(open("s", 5, 0)).await.unwrap();
    ledger.append(full).await.unwrap();
    ledger.append(Append { answers: vec![answer("d", 99)], ..step_of("other", "d") }).await.unwrap();
    let posted =
        ledger.post(amends_ledger::Letter { session: Some("s".into()), ..letter(None, "x") }, ms(6)).await.unwrap();
    ledger.reply_letter(posted, serde_json::json!({}), ms(7)).await.unwrap();

    ledger.append(retiring("s", 2, 9)).await.unwrap();
    assert_eq!(ledger.answer(&"c".into()).await.unwrap(), None);
    assert_eq!(ledger.arguments(&"c".into()).await.unwrap(), None);
    assert_eq!(ledger.interaction(&"q".into()).await.unwrap(), None);
    assert_eq!(ledger.letter(posted).await.unwrap(), None);
    let token = ledger.reversal(&"t".into()).await.unwrap().unwrap();
    assert_eq!((token.state, token.undo), (ReversalState::Armed, None));
    // A repeat must still find that there was such a call.
    assert_eq!(holder(&*ledger, "n", 10).await.as_deref(), Some("c"));
    assert_eq!(ledger.session_of(&"c".into()).await.unwrap(), Some("s".into()));
    assert_eq!(ledger.answer(&"d".into()).await.unwrap(), Some(answer("d", 99)));
    assert!(verified(&*ledger).await.unwrap().is_consistent());
}

fn step_of(session: &str, call: &str) -> Append {
    let mut append = open(session, 5, 0);
    append.events.extend(step(session, 1, 5, vec![received(call)]).events);
    append
}

pub(crate) async fn a_retirement_must_say_so_and_leave_nothing_open(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(open("s", 5, 0)).await.unwrap();
    let silent = Append { retires: true, ..step("s", 1, 9, vec![note("x")]) };
    let unmeant = Append { retires: false, ..retiring("s", 1, 9) };
    let busy = Append { open: OpenWork { calls: 1, due: None }, ..retiring("s", 1, 9) };
    let due = Append { open: OpenWork { calls: 0, due: Some(ms(99)) }, ..retiring("s", 1, 9) };
    for refused in [silent, unmeant, busy, due] {
        assert!(matches!(ledger.append(refused).await, Err(Error::Corrupt { .. })));
    }
    assert_eq!(ledger.trace(&"s".into()).await.unwrap().unwrap().events.len(), 1);
}

pub(crate) async fn nothing_follows_a_retirement_that_lost_its_lease(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    a.append(open("s", 5, 0)).await.unwrap();
    let lease = b.take(&"s".into(), ms(LEASE_MS + 1)).await.unwrap().unwrap();
    b.append(Append { epoch: lease.epoch, ..retiring("s", 1, 9) }).await.unwrap();
    assert!(matches!(a.append(step("s", 1, 10, vec![note("x")])).await, Err(Error::Fenced { .. })));
    let late = Append { epoch: lease.epoch, ..step("s", 1, 10, vec![note("x")]) };
    assert!(matches!(b.append(late).await, Err(Error::Conflict { expected: 1, actual: 2 })));
}

pub(crate) async fn sessions_are_walked_from_the_oldest_on(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, at) in [("s4", 20), ("s2", 10), ("s3", 20), ("s1", 10), ("s0", 30)] {
        ledger.append(open(session, at, 0)).await.unwrap();
    }
    let mut walked = Vec::new();
    let mut last = None;
    loop {
        let page = ledger.sessions_after(ms(0), last.as_ref(), 2).await.unwrap();
        let Some(row) = page.last() else { break };
        walked.extend(page.iter().map(|row| row.session.to_string()));
        last = Some(row.clone());
    }
    assert_eq!(walked, ["s1", "s2", "s3", "s4", "s0"]);
    let later = ledger.sessions_after(ms(20), None, 2).await.unwrap();
    assert_eq!(later.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["s3", "s4"]);
    assert!(ledger.sessions_after(ms(31), None, 9).await.unwrap().is_empty());
}

pub(crate) async fn both(ledger: &dyn Ledger, session: &str) -> (amends_ledger::SessionRow, Trace) {
    let rows = ledger.sessions(9).await.unwrap();
    let row = rows.into_iter().find(|row| row.session.as_str() == session).unwrap();
    (row, ledger.trace(&session.into()).await.unwrap().unwrap())
}

pub(crate) async fn a_session_comes_whole_into_another_ledger(store: impl Store) {
    let from = MemoryLedger::new(node("elsewhere"));
    from.append(step_of("s", "c")).await.unwrap();
    let (row, trace) = both(&from, "s").await;
    let ledger = store.join(node("a"));
    assert!(ledger.import(row.clone(), trace.clone()).await.unwrap());
    assert!(!ledger.import(row.clone(), trace.clone()).await.unwrap());
    assert_eq!(both(&*ledger, "s").await, (row, trace));
    assert_eq!(ledger.session_of(&"c".into()).await.unwrap(), Some("s".into()));
    assert!(verified(&*ledger).await.unwrap().is_consistent());
    // It leaves nothing to do, and whoever wants it can have it.
    assert!(ledger.orphans(ms(9_000), 9).await.unwrap().is_empty());
    assert_eq!(ledger.take(&"s".into(), ms(9)).await.unwrap().unwrap().seq, 2);
}

pub(crate) async fn a_retired_session_comes_whole_too(store: impl Store) {
    let from = MemoryLedger::new(node("elsewhere"));
    from.append(open("s", 5, 2)).await.unwrap();
    from.append(retiring("s", 3, 9)).await.unwrap();
    let (row, trace) = both(&from, "s").await;
    let ledger = store.join(node("a"));
    assert!(ledger.import(row.clone(), trace.clone()).await.unwrap());
    assert_eq!(both(&*ledger, "s").await, (row, trace));
    assert!(verified(&*ledger).await.unwrap().is_consistent());
}

pub(crate) async fn what_does_not_fit_together_is_not_taken_in(store: impl Store) {
    let from = MemoryLedger::new(node("elsewhere"));
    from.append(open("s", 5, 3)).await.unwrap();
    let (row, trace) = both(&from, "s").await;
    let ledger = store.join(node("a"));
    let mut damaged = Vec::new();
    let mut touch = |change: &dyn Fn(&mut amends_ledger::SessionRow, &mut Trace)| {
        let (mut row, mut trace) = (row.clone(), trace.clone());
        change(&mut row, &mut trace);
        damaged.push((row, trace));
    };
    touch(&|row, _| row.session = "other".into());
    touch(&|row, _| row.principal = "other".into());
    touch(&|row, _| row.events = 3);
    touch(&|row, _| row.opened = ms(4));
    touch(&|row, trace| (row.cut, trace.cut) = (1, 1));
    touch(&|_, trace| drop(trace.events.pop()));
    touch(&|_, trace| drop(trace.events.remove(1)));
    touch(&|_, trace| trace.events.swap(1, 2));
    touch(&|_, trace| trace.events[2].event.at = ms(6));
    touch(&|_, trace| trace.events[3].hash = trace.events[2].hash.clone());
    touch(&|_, trace| trace.events[3].hash = "zz".into());
    touch(&|_, trace| trace.cut_link = Some(trace.events[2].hash.clone()));
    touch(&|_, trace| trace.events.clear());
    for (row, trace) in damaged {
        let refused = ledger.import(row, trace).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    }
    assert!(ledger.sessions(9).await.unwrap().is_empty());
}
