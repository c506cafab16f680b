//! Questions to people, their answers, and the sessions that have to act on them.

use amends_core::interaction::{Grounds, InteractionKind, choice};
use amends_core::{Interaction, InteractionId, SessionId};
use amends_ledger::{AnswerFate, Append, Closing, Error, Ledger, OpenWork, Posting, QueueFilter, QueueState};

use crate::common::{
    LEASE_MS, Store, arguments, asking, busy, claiming, length, ms, node, note, open, opened, question, received, said,
    step, take,
};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A step of a session that is at its first event, and closes that question.
fn closing(session: &str, id: &str, closing: Closing) -> Append {
    Append { closes: vec![(id.into(), closing)], ..step(session, 1, 50, vec![note("closed")]) }
}

async fn listed(ledger: &dyn Ledger, queue: Option<&str>, all: bool) -> Vec<String> {
    let filter = QueueFilter { queue: queue.map(str::to_owned), tenant: None, all };
    let entries = ledger.queue(&filter, 9).await.unwrap();
    entries.iter().map(|entry| entry.interaction.id.to_string()).collect()
}

async fn state(ledger: &dyn Ledger, id: &str) -> QueueState {
    ledger.interaction(&id.into()).await.unwrap().unwrap().state
}

async fn answer(ledger: &dyn Ledger, id: &str, choice: &str, by: &str, at: u64) -> AnswerFate {
    ledger.answer_interaction(&id.into(), said(choice, by, at)).await.unwrap()
}

fn names(ids: Vec<SessionId>) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

pub(crate) async fn open_questions_are_listed_with_the_one_that_is_due_first_in_front(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    let elsewhere = Interaction { queue: "refunds".into(), ..question("q3", "s", 20) };
    a.append(asking("s", vec![question("q1", "s", 30), question("q2", "s", 10), elsewhere])).await.unwrap();
    a.append(asking("t", vec![question("q4", "t", 10)])).await.unwrap();
    assert_eq!(listed(&*b, None, false).await, ["q2", "q4", "q3", "q1"]);
    assert_eq!(listed(&*b, Some("payments"), false).await, ["q2", "q4", "q1"]);
    assert_eq!(listed(&*b, Some("nothing"), false).await, [""; 0]);
    assert_eq!(b.queue(&QueueFilter::default(), 1).await.unwrap().len(), 1);

    assert_eq!(answer(&*b, "q1", choice::HAPPENED, "ann", 20).await, AnswerFate::Taken);
    a.append(closing("t", "q4", Closing::Withdrawn)).await.unwrap();
    assert_eq!(listed(&*b, None, false).await, ["q2", "q3"]);
    assert_eq!(listed(&*b, Some("payments"), true).await, ["q2", "q4", "q1"]);
    let states = [state(&*a, "q1").await, state(&*a, "q2").await, state(&*a, "q4").await];
    assert_eq!(states, [QueueState::Answered, QueueState::Open, QueueState::Closed(Closing::Withdrawn)]);
    assert_eq!(a.interaction(&"q2".into()).await.unwrap().unwrap().interaction, question("q2", "s", 10));
    assert_eq!(a.interaction(&"nothing".into()).await.unwrap(), None);
}

pub(crate) async fn the_first_answer_wins_and_a_late_one_is_told_so(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.append(asking("s", vec![question("q", "s", 90)])).await.unwrap();
    let id = InteractionId::from("q");
    let (ann, bob) = (said(choice::HAPPENED, "ann", 20), said(choice::DID_NOT_HAPPEN, "bob", 21));
    let both = [a.answer_interaction(&id, ann.clone()), b.answer_interaction(&id, bob.clone())];
    let [to_ann, to_bob] = both;
    let (to_ann, to_bob) = tokio::join!(to_ann, to_bob);
    let fates = [(to_ann.unwrap(), &ann), (to_bob.unwrap(), &bob)];
    let taken: Vec<_> = fates.iter().filter(|(fate, _)| *fate == AnswerFate::Taken).map(|(_, said)| *said).collect();
    let [first] = taken[..] else { panic!("{fates:?}") };
    let late = AnswerFate::Late { choice: first.choice.clone(), by: first.by.clone(), at: first.at };
    assert!(fates.iter().any(|(fate, _)| *fate == late), "{fates:?}");

    assert_eq!(a.interaction(&id).await.unwrap().unwrap().answer.as_ref(), Some(first));
    assert_eq!(b.answered(9).await.unwrap(), [("s".into(), id.clone(), first.clone())]);
    assert_eq!(b.answered(0).await.unwrap(), []);
    a.append(closing("s", "q", Closing::Answered)).await.unwrap();
    assert_eq!(b.answered(9).await.unwrap(), []);
    assert_eq!(answer(&*b, "q", choice::HAPPENED, "eve", 60).await, late, "the one that counted is told ever after");
    assert_eq!(state(&*b, "q").await, QueueState::Closed(Closing::Answered));
}

pub(crate) async fn only_an_option_can_be_answered(store: impl Store) {
    let ledger = store.join(node("a"));
    let free = Interaction { kind: InteractionKind::Ask, options: Vec::new(), ..question("free", "s", 90) };
    let none = Interaction { options: Vec::new(), ..question("none", "s", 90) };
    ledger.append(asking("s", vec![question("q", "s", 90), free, none])).await.unwrap();
    let options = vec![choice::HAPPENED.to_owned(), choice::DID_NOT_HAPPEN.to_owned()];
    assert_eq!(answer(&*ledger, "q", "perhaps", "ann", 20).await, AnswerFate::NotAnOption { options });
    assert_eq!(state(&*ledger, "q").await, QueueState::Open);
    assert_eq!(answer(&*ledger, "q", choice::HAPPENED, "ann", 21).await, AnswerFate::Taken);
    assert_eq!(answer(&*ledger, "free", "perhaps", "ann", 22).await, AnswerFate::Taken);
    assert_eq!(answer(&*ledger, "none", "", "ann", 22).await, AnswerFate::NotAnOption { options: Vec::new() });
    assert_eq!(answer(&*ledger, "nothing", choice::HAPPENED, "ann", 23).await, AnswerFate::Unknown);
}

pub(crate) async fn a_question_that_is_over_takes_no_answer(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, why) in [("s", Closing::Lapsed), ("t", Closing::Withdrawn), ("u", Closing::Answered)] {
        ledger.append(asking(session, vec![question(session, session, 40)])).await.unwrap();
        ledger.append(closing(session, session, why)).await.unwrap();
        assert_eq!(answer(&*ledger, session, choice::HAPPENED, "ann", 60).await, AnswerFate::Closed(why));
        assert_eq!(ledger.interaction(&session.into()).await.unwrap().unwrap().answer, None);
    }
    ledger.append(asking("v", vec![question("v", "v", 40)])).await.unwrap();
    assert_eq!(answer(&*ledger, "v", choice::HAPPENED, "ann", 45).await, AnswerFate::Taken);
    let answered = Error::Answered { interaction: "v".into(), answer: Box::new(said(choice::HAPPENED, "ann", 45)) };
    assert_eq!(ledger.append(closing("v", "v", Closing::Lapsed)).await, Err(answered), "ann was told that it counts");
    assert_eq!((state(&*ledger, "v").await, length(&*ledger, "v").await), (QueueState::Answered, 1));
    ledger.append(closing("v", "v", Closing::Withdrawn)).await.unwrap();
    let fate = answer(&*ledger, "v", choice::HAPPENED, "bob", 60).await;
    assert_eq!(fate, AnswerFate::Closed(Closing::Withdrawn), "nobody is told that an answer counts which did not");
}

pub(crate) async fn only_its_own_session_closes_a_question_and_once(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(asking("s", vec![question("q", "s", 40)])).await.unwrap();
    ledger.append(open("t", 5, 0)).await.unwrap();
    ledger.append(closing("t", "q", Closing::Withdrawn)).await.unwrap();
    assert_eq!(state(&*ledger, "q").await, QueueState::Open);
    ledger.append(closing("s", "q", Closing::Lapsed)).await.unwrap();
    let again = Append {
        asks: vec![question("q", "s", 99)],
        closes: vec![("q".into(), Closing::Answered), ("nothing".into(), Closing::Answered)],
        ..step("s", 2, 60, vec![note("x")])
    };
    ledger.append(again).await.unwrap();
    assert_eq!(state(&*ledger, "q").await, QueueState::Closed(Closing::Lapsed));
}

pub(crate) async fn a_refused_step_asks_and_closes_nothing(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(claiming("other", 5, vec![take("n", "c1")])).await.unwrap();
    ledger.append(asking("s", vec![question("q", "s", 40)])).await.unwrap();
    let refused = Append {
        asks: vec![question("q2", "s", 40)],
        claims: vec![take("n", "c2")],
        ..closing("s", "q", Closing::Withdrawn)
    };
    assert!(matches!(ledger.append(refused).await, Err(Error::Held(_))));
    assert_eq!(listed(&*ledger, None, true).await, ["q"]);
    assert_eq!(state(&*ledger, "q").await, QueueState::Open);
    let of_another = asking("t", vec![question("q3", "s", 40)]);
    assert!(matches!(ledger.append(of_another).await, Err(Error::Corrupt { .. })));
    assert_eq!(length(&*ledger, "t").await, 0);
}

pub(crate) async fn an_answer_wakes_a_session_that_nobody_drives(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    b.heartbeat(ms(500)).await.unwrap();
    for (ledger, session) in [(&a, "a1"), (&b, "b1")] {
        ledger.append(asking(session, vec![question(session, session, 90_000)])).await.unwrap();
    }
    ledger_with_call(&*a, "a2").await;
    assert_eq!(a.due(ms(100), 9).await.unwrap(), []);
    assert_eq!(names(b.orphans(ms(LEASE_MS), 9).await.unwrap()), ["a2"], "an open question alone is nothing to do");
    for question in ["a1", "b1", "a2"] {
        assert_eq!(answer(&*b, question, choice::HAPPENED, "ann", 100).await, AnswerFate::Taken);
    }
    assert_eq!(names(a.due(ms(100), 9).await.unwrap()), ["a1"], "the driver of an open call sees it by itself");
    assert_eq!(names(b.due(ms(100), 9).await.unwrap()), ["b1"]);
    assert_eq!(b.orphans(ms(100), 9).await.unwrap(), []);
    assert_eq!(names(b.due(ms(LEASE_MS), 9).await.unwrap()), ["a1", "b1"]);
    assert_eq!(b.due(ms(LEASE_MS), 1).await.unwrap().len(), 1);
    let mut orphans = names(b.orphans(ms(LEASE_MS), 9).await.unwrap());
    orphans.sort();
    assert_eq!(orphans, ["a1", "a2"]);
    assert_eq!(b.orphans(ms(LEASE_MS), 1).await.unwrap().len(), 1);

    a.append(closing("a1", "a1", Closing::Answered)).await.unwrap();
    assert_eq!(names(b.due(ms(LEASE_MS), 9).await.unwrap()), ["b1"]);
    assert_eq!(names(b.orphans(ms(LEASE_MS), 9).await.unwrap()), ["a2"]);
}

/// A session with a question and an open call.
async fn ledger_with_call(ledger: &dyn Ledger, session: &str) {
    ledger.append(busy(asking(session, vec![question(session, session, 90_000)]))).await.unwrap();
}

pub(crate) async fn a_deadline_that_has_passed_wakes_a_session_that_nobody_drives(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.heartbeat(ms(0)).await.unwrap();
    let waits = |session: &str, due| Append {
        open: OpenWork { calls: 0, due: Some(ms(due)) },
        ..asking(session, vec![question(session, session, due)])
    };
    a.append(waits("early", 600)).await.unwrap();
    a.append(waits("late", 2_000)).await.unwrap();
    assert_eq!(a.due(ms(599), 9).await.unwrap(), []);
    assert_eq!(names(a.due(ms(600), 9).await.unwrap()), ["early"]);
    assert_eq!(b.due(ms(600), 9).await.unwrap(), [], "its node lives");
    assert_eq!(b.orphans(ms(600), 9).await.unwrap(), [], "its node lives");
    assert_eq!(names(b.due(ms(LEASE_MS), 9).await.unwrap()), ["early"]);
    assert_eq!(names(b.orphans(ms(LEASE_MS), 9).await.unwrap()), ["early"]);
    assert_eq!(names(b.orphans(ms(2_000), 9).await.unwrap()), ["early", "late"]);
    a.append(closing("early", "early", Closing::Lapsed)).await.unwrap();
    assert_eq!(names(b.orphans(ms(2_000), 9).await.unwrap()), ["late"]);
    b.take(&"late".into(), ms(2_000)).await.unwrap().unwrap();
    assert_eq!(b.orphans(ms(2_000), 9).await.unwrap(), []);
    assert_eq!(names(b.due(ms(2_000), 9).await.unwrap()), ["late"]);
}

pub(crate) async fn closed_questions_are_kept_for_a_month(store: impl Store) {
    let ledger = store.join(node("a"));
    let first = Append {
        arguments: vec![arguments("c")],
        asks: vec![question("q", "s", 40), question("other", "s", 40)],
        ..step("s", 0, 5, vec![opened("s"), received("c")])
    };
    ledger.append(first).await.unwrap();
    assert_eq!(ledger.sweep(ms(99 * DAY_MS), 9).await.unwrap(), 0, "a question may need the arguments of its call");
    let close =
        |seq, id: &str| Append { closes: vec![(id.into(), Closing::Lapsed)], ..step("s", seq, 50, vec![note("x")]) };
    ledger.append(close(2, "q")).await.unwrap();
    assert_eq!(ledger.sweep(ms(50 + 30 * DAY_MS - 1), 9).await.unwrap(), 0);
    assert_eq!(ledger.sweep(ms(50 + 30 * DAY_MS), 9).await.unwrap(), 1);
    assert_eq!(ledger.interaction(&"q".into()).await.unwrap(), None);
    assert_eq!(listed(&*ledger, None, true).await, ["other"]);
    ledger.append(close(3, "other")).await.unwrap();
    assert_eq!(ledger.sweep(ms(60), 9).await.unwrap(), 1, "the arguments");
}

pub(crate) async fn a_barred_name_can_say_no_and_not_yes(store: impl Store) {
    let ledger = store.join(node("a"));
    let grounds = Grounds {
        arguments: "aa".into(),
        evidence: Vec::new(),
        persons: 2,
        said_yes: 1,
        barred: vec!["ada".into(), "agent".into()],
        policy: String::new(),
        form: None,
        sign_in: None,
    };
    let options = vec![choice::APPROVE.into(), choice::APPROVE_ARGUMENTS.into(), choice::DENY.into()];
    let kind = InteractionKind::Approve;
    let asked = |id: &str| Interaction {
        kind,
        options: options.clone(),
        grounds: Some(Box::new(grounds.clone())),
        ..question(id, "s", 90)
    };
    ledger.append(asking("s", vec![asked("q1"), asked("q2")])).await.unwrap();
    for (by, choice) in [("ada", choice::APPROVE), ("agent", choice::APPROVE_ARGUMENTS)] {
        let fate = ledger.answer_interaction(&"q1".into(), said(choice, by, 10)).await.unwrap();
        assert_eq!(fate, AnswerFate::Barred);
    }
    let fate = ledger.answer_interaction(&"q1".into(), said(choice::APPROVE, "bob", 11)).await.unwrap();
    assert_eq!(fate, AnswerFate::Taken);
    let fate = ledger.answer_interaction(&"q2".into(), said(choice::DENY, "agent", 11)).await.unwrap();
    assert_eq!(fate, AnswerFate::Taken);
}

pub(crate) async fn a_question_is_posted_by_one_node_at_a_time_and_not_again_once_it_was_taken(store: impl Store) {
    let (a, b) = (store.join(node("a")), store.join(node("b")));
    a.append(asking("s", vec![question("q1", "s", 30), question("q2", "s", 30)])).await.unwrap();
    async fn posting(ledger: &dyn Ledger, id: &str, posting: Posting, now: u64) -> bool {
        ledger.posting(&id.into(), posting, ms(now)).await.unwrap()
    }
    let until = |at: u64| Posting::Begun { until: ms(at) };
    assert!(!posting(&*a, "none", until(20), 10).await && !posting(&*a, "none", Posting::Done, 10).await);
    assert!(posting(&*a, "q1", until(20), 10).await);
    assert!(!posting(&*b, "q1", until(25), 15).await, "another posts it");
    assert!(posting(&*a, "q1", until(30), 15).await, "it may try again");
    assert!(!posting(&*b, "q1", until(40), 29).await);
    assert!(posting(&*b, "q1", until(40), 30).await, "its time is over");
    assert!(!posting(&*a, "q1", until(50), 31).await);
    assert!(posting(&*b, "q1", Posting::Done, 32).await);
    for ledger in [&a, &b] {
        assert!(!posting(&**ledger, "q1", until(90), 80).await && !posting(&**ledger, "q1", Posting::Done, 80).await);
    }
    assert!(posting(&*b, "q2", until(90), 80).await, "each for itself");
    a.append(closing("s", "q2", Closing::Withdrawn)).await.unwrap();
    assert!(!posting(&*b, "q2", until(99), 80).await, "it is over");
}
