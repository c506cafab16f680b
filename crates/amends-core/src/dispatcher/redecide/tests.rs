use std::sync::Arc;

use super::*;
use crate::attempt::{Payload, Purpose, Report};
use crate::call::CallKey;
use crate::certainty::Certainty;
use crate::contract::{Contract, EffectKind};
use crate::failure::Failure;
use crate::id::{AttemptId, CallId};
use crate::outcome::Outcome;
use crate::playbook::{Playbook, PlaybookSpec, RuleSpec};
use crate::registry::Code;

const CALL: &str = "c1";

fn rules(compensation: &str, backoff_ms: Option<Vec<u64>>, timeout_ms: u64) -> Arc<Rules> {
    let contract = Contract { effect: EffectKind::Read, ..Contract::undeclared(timeout_ms, 60_000, 0) };
    let rule = RuleSpec { compensation: compensation.into(), backoff_ms, jitter_percent: None, queue: None };
    let spec = PlaybookSpec::from([("server_error_5xx".to_owned(), rule)]);
    Arc::new(Rules { playbook: Playbook::parse(&spec, &contract).unwrap(), contract })
}

fn ladder(waits: &[u64]) -> Arc<Rules> {
    rules("retry_with_backoff", Some(waits.to_vec()), 5_000)
}

/// A read that fails once after 100 ms, is sent again, and is answered after 300 ms.
fn recorded() -> Vec<Event> {
    let rules = ladder(&[500]);
    let mut dispatcher = Dispatcher::open("s".into(), 7, "local".into(), "mcp");
    let call = Call {
        id: CALL.into(),
        tool: "get_order".into(),
        upstream: "shop".into(),
        rules_hash: "rules".into(),
        arguments: Payload { digest: "a".into(), size: 2 },
        principal: "local".into(),
        deadline: Timestamp::from_ms(1_000_000) + rules.contract.deadline_ms,
        key: None::<CallKey>,
        claims: Vec::new(),
        effect_key: String::new(),
        repeat_of: None,
        evidence: Vec::new(),
        reversal: None,
        redeems: None,
        view: None,
        leg: None,
        rules,
    };
    let failed = Report::answered(Failure::of(Code::Provider5xx), Certainty::NotProcessed, None);
    let mut events = Vec::new();
    let mut take = |dispatcher: &mut Dispatcher, at: u64, input| {
        events.extend(dispatcher.handle(Timestamp::from_ms(at), &Gates::default(), input).events);
    };
    let result = |n, report| Input::Result { attempt: AttemptId { call: CALL.into(), n }, report: Box::new(report) };
    take(&mut dispatcher, 1_000_000, Input::Call(Box::new(call)));
    take(&mut dispatcher, 1_000_100, result(1, failed));
    let due = dispatcher.deadline().unwrap().at.ms();
    take(&mut dispatcher, due, Input::Tick);
    take(&mut dispatcher, due + 300, result(2, Report::success(None)));
    assert_eq!(dispatcher.open_calls(), 0);
    events
}

fn under(rules: &Arc<Rules>) -> (Rerun, CallPath) {
    let events = recorded();
    let had = ladder(&[500]);
    let done = rerun(&events, |received, at| Some(call_under(received, at, &had, rules.clone()))).unwrap();
    let path = paths(&done.events).remove(&CallId::from(CALL)).unwrap();
    (done, path)
}

#[test]
fn its_own_rules_decide_it_the_same() {
    let (rerun, path) = under(&ladder(&[500]));
    assert_eq!(rerun.difference, None);
    assert_eq!(rerun.events, recorded());
    assert_eq!((path.sends, path.judged.len()), (2, 1));
}

#[test]
fn an_attempt_that_is_still_made_gets_its_recorded_answer_as_long_after_its_start() {
    let (rerun, path) = under(&ladder(&[5_000]));
    let difference = rerun.difference.unwrap();
    assert!(matches!(difference.recorded.unwrap().fact, Fact::WaitBegan { .. }));
    assert!(matches!(difference.decided.unwrap().fact, Fact::WaitBegan { .. }));
    assert!(rerun.beyond.is_empty());
    assert_eq!(path.end, Some(CallEnd::Ended(Outcome::SucceededAfterCompensation, Certainty::Processed)));
    let waited = path.told_after_ms.unwrap();
    assert!((100 + 4_000 + 300..=100 + 6_000 + 300).contains(&waited), "{waited}");
}

#[test]
fn a_rule_that_gives_up_ends_it_where_it_was_sent_again() {
    let (rerun, path) = under(&rules("surface", None, 5_000));
    assert!(rerun.beyond.is_empty());
    assert!(matches!(path.end, Some(CallEnd::Ended(Outcome::Exhausted, _))), "{path:?}");
    assert_eq!(path.sends, 1);
}

#[test]
fn an_answer_that_came_later_than_it_is_now_waited_for_is_late() {
    let (rerun, path) = under(&rules("retry_with_backoff", Some(vec![500]), 150));
    // The second answer took 300 ms; its attempt is over after 150, and the next send was never recorded.
    assert_eq!(rerun.beyond.get(&CallId::from(CALL)), Some(&Beyond::Attempt(Purpose::Act)));
    assert!(path.judged.len() > 1, "{path:?}");
    assert!(rerun.events.iter().any(|event| matches!(event.fact, Fact::AttemptTimedOut { .. })));
}

#[test]
fn a_person_who_was_never_asked_is_beyond_what_was_recorded() {
    let asks = rules("escalate_to_human", None, 5_000);
    let mut declared = (*asks).clone();
    declared.contract.declared = true;
    let (rerun, path) = under(&Arc::new(declared));
    assert_eq!(rerun.beyond.get(&CallId::from(CALL)), Some(&Beyond::Question));
    assert_eq!(path.asked, 1);
}

#[test]
fn a_trace_that_lost_its_rules_or_its_beginning_cannot_be_decided() {
    let events = recorded();
    assert!(matches!(rerun(&events, |_, _| None), Err(TraceError::RulesMissing { .. })));
    assert_eq!(whole(&events), Ok(()));
    assert_eq!(whole(&events[1..]), Err(NotComparable::Cut));
    assert_eq!(whole(&[]), Err(NotComparable::Empty));
}

#[test]
fn a_step_that_stops_short_of_what_was_recorded_differs() {
    let mut events = recorded();
    let last = events.last().unwrap().clone();
    events.push(Event { seq: last.seq + 1, ..last });
    let had = ladder(&[500]);
    let done = rerun(&events, |received, _| Some(call_of(received, had.clone()))).unwrap();
    assert_eq!(done.difference.unwrap().decided, None);
}

/// The same trace, begun by that decider, with its one wait a second longer than anybody would decide today.
fn waiting_longer(decider: Decider) -> Vec<Event> {
    let mut events = recorded();
    let mut moved = 0;
    for event in &mut events {
        event.at = event.at + moved;
        match &mut event.fact {
            Fact::SessionOpened { decider: by, .. } => *by = decider,
            Fact::WaitBegan { until, .. } => {
                *until = *until + 1_000;
                moved = 1_000;
            }
            _ => {}
        }
    }
    events
}

fn again(events: &[Event]) -> Result<Option<Difference>, TraceError> {
    redecide(events, |_| Some(ladder(&[500])))
}

#[test]
fn what_an_older_program_decided_otherwise_is_told_from_what_nobody_decided() {
    let mut same = recorded();
    if let Fact::SessionOpened { decider, .. } = &mut same[0].fact {
        *decider = Decider::FIRST;
    }
    assert_eq!(again(&same), Ok(None), "it decided the same");
    let older = again(&waiting_longer(Decider::FIRST)).unwrap().expect("it decided otherwise");
    assert!(
        older.is_older() && matches!(older.recorded, Some(Event { fact: Fact::WaitBegan { .. }, .. })),
        "{older:?}"
    );
    let today = again(&waiting_longer(Decider::THIS)).unwrap().expect("nobody decides so");
    assert!(!today.is_older());
}

#[test]
fn whoever_decided_it_each_event_follows_from_those_before_it() {
    let mut events = waiting_longer(Decider::FIRST);
    let ended = events.iter().rposition(|event| matches!(event.fact, Fact::AttemptEnded { .. })).unwrap();
    if let Fact::AttemptEnded { attempt, .. } = &mut events[ended].fact {
        attempt.n = 9;
    }
    assert!(matches!(again(&events), Err(TraceError::Illegal { .. })), "{:?}", again(&events));
}

#[test]
fn what_this_program_took_up_of_an_older_ones_session_is_decided_again() {
    let rules = ladder(&[500]);
    let mut events = waiting_longer(Decider::FIRST);
    events.truncate(events.iter().rposition(|event| matches!(event.fact, Fact::AttemptEnded { .. })).unwrap());
    let mut dispatcher = Dispatcher::restore(&events, |_| Some(rules.clone())).unwrap();
    let at = events.last().unwrap().at + 10;
    events.extend(dispatcher.handle(at, &Gates::default(), Input::Resume).events);
    assert!(again(&events).unwrap().expect("the wait").is_older());
    let end = events.iter().position(|event| matches!(event.fact, Fact::CallEnded { .. })).expect("it is cancelled");
    if let Fact::CallEnded { outcome, .. } = &mut events[end].fact {
        *outcome = Outcome::Succeeded;
    }
    assert!(!again(&events).unwrap().expect("nobody decides so").is_older());
}

#[test]
fn what_a_newer_program_decided_is_not_decided_again() {
    let mut events = recorded();
    if let Fact::SessionOpened { decider, .. } = &mut events[0].fact {
        *decider = serde_json::from_str("99").unwrap();
    }
    assert_eq!(again(&events), Err(TraceError::NewerDecider { seq: 1 }));
}
