//! What is done once more, and what is not.

use super::*;

fn siblings() -> Value {
    json!({ "fan": {
        "initial": "a", "terminal": ["b"],
        "actions": { "both": {
            "from": ["a"], "to": "b", "retry": { "max_attempts": 2, "initial": "1s" },
            "parallel": { "one": { "tool": "charge_card" }, "two": { "tool": "charge_card" } },
        } },
    }})
}

#[test]
fn a_call_that_no_move_waits_for_is_not_made() {
    let mut world = World::new(siblings());
    let taking = world.taking("m", "both");
    let wishes = |step: Step| -> Vec<LegWish> {
        let wish = |effect| if let Effect::Begin(wish) = effect { Some(*wish) } else { None };
        step.effects.into_iter().filter_map(wish).collect()
    };
    let handle = |world: &mut World, input| world.dispatcher.handle(world.now, &Gates::default(), input);
    let first = wishes(handle(&mut world, Input::Move(Box::new(taking)))).remove(0);
    let leg = |world: &World, id: &str, wish: &LegWish| Input::Call(Box::new(world.leg(id.into(), wish.clone())));
    let (once, twice) = (leg(&world, "c1", &first), leg(&world, "c2", &first));
    let second = wishes(handle(&mut world, once)).remove(0);
    assert_eq!((first.leg.name.as_str(), second.leg.name.as_str()), ("one", "two"));
    let ignored = handle(&mut world, twice);
    assert!(matches!(ignored.events[0].fact, Fact::Ignored { .. }), "{ignored:?}");
    // After a wish to stop, nothing new is begun, though the driver was asked to before.
    let _stopped = handle(&mut world, Input::Cancel { call: "m".into(), reason: CancelReason::Asked });
    let late = leg(&world, "c3", &second);
    let ignored = handle(&mut world, late);
    assert!(matches!(ignored.events[0].fact, Fact::Ignored { .. }), "{ignored:?}");
}

#[test]
fn a_tick_that_is_not_due_wants_nothing_done() {
    let mut world = World::new(order());
    let taking = world.taking("m", "take_order");
    let wished = world.dispatcher.handle(world.now, &Gates::default(), Input::Move(Box::new(taking)));
    assert!(matches!(wished.effects[..], [Effect::Weigh { .. }]));
    let before = world.dispatcher.clone();
    let step = world.dispatcher.handle(world.now + 1, &Gates::default(), Input::Tick);
    assert_eq!(step, Step::default());
    assert_eq!(world.dispatcher, before);
}

#[test]
fn what_was_done_of_a_try_that_failed_is_not_done_again_in_the_next() {
    let mut world = World::new(siblings());
    world.wish("both");
    let first = world.keys.clone();
    assert_eq!(first.len(), 2);
    world.result(failed(Code::InputInvalid, Certainty::NotProcessed));
    world.done();
    world.ticks();
    assert_eq!(world.keys[2..], first, "the calls of the next try find what was done by their keys");
}

#[test]
fn a_repeat_of_an_open_move_joins_it_though_it_counts_the_moves() {
    let mut world = World::new(order());
    world.wish("take_order");
    let first = world.wish_with("pay", "{}", Some(1));
    let again = world.wish_with("pay", "{}", Some(1));
    assert_eq!(world.joined, [(again, first)]);
}

#[test]
fn a_wish_to_begin_again_that_is_repeated_begins_again_once() {
    let mut world = World::new(order());
    let reset = |world: &mut World, id: &str, key: Option<&str>| {
        let key = key.map(|key| crate::call::CallKey(key.into()));
        let taking = Taking { key, reset: true, ..world.taking(id, "reset") };
        world.put(Input::Move(Box::new(taking)));
    };
    reset(&mut world, "r1", Some("k"));
    world.wish("take_order");
    reset(&mut world, "r2", Some("k"));
    assert_eq!(world.joined, [(CallId::from("r2"), CallId::from("r1"))]);
    assert_eq!(world.state().as_str(), "ordered");
    // Without a key, it is a repeat only while nothing else was done since.
    reset(&mut world, "r3", None);
    reset(&mut world, "r4", None);
    assert_eq!(world.joined[1..], [(CallId::from("r4"), CallId::from("r3"))]);
    world.wish_with("take_order", "other", None);
    reset(&mut world, "r5", None);
    assert_eq!((world.count("walk_reset"), world.state().as_str()), (3, "created"));
}

#[test]
fn once_nobody_settles_a_doubt_the_same_wish_goes_on_by_its_key() {
    let mut world = World::new(order());
    let contract = Contract { declared: false, ..world.rules.contract.clone() };
    let playbook = Playbook::parse(&PlaybookSpec::default(), &contract).unwrap();
    world.rules = Arc::new(Rules { contract, playbook });
    world.wish("take_order");
    let pay = world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    assert_eq!(world.answer(&pay).error().unwrap().certainty, Certainty::InDoubt);
    assert_eq!(world.dispatcher.open_questions() + world.dispatcher.open_calls(), 0, "nobody settles it");
    let other = world.wish_with("pay", "other", None);
    assert_eq!(world.kind(&other), "in_flight");
    world.wish("pay");
    assert_eq!(world.keys[0], world.keys[1], "its call finds the one before by its key");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn once_nobody_settles_a_doubt_the_walk_may_begin_again() {
    let mut world = World::new(order());
    let contract = Contract { declared: false, ..world.rules.contract.clone() };
    let playbook = Playbook::parse(&PlaybookSpec::default(), &contract).unwrap();
    world.rules = Arc::new(Rules { contract, playbook });
    world.wish("take_order");
    world.wish("pay");
    let reset = |world: &World, id| Taking { reset: true, ..world.taking(id, "reset") };
    let early = reset(&world, "early");
    world.put(Input::Move(Box::new(early)));
    assert_eq!(world.kind(&"early".into()), "in_flight", "it is being done");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    let late = reset(&world, "late");
    world.put(Input::Move(Box::new(late)));
    assert_eq!((world.state().as_str(), world.standing()), ("created", Standing::Free));
}

#[test]
fn a_key_is_known_again_after_the_walk_began_anew() {
    let mut world = World::new(order());
    let keyed =
        |world: &World, id| Taking { key: Some(crate::call::CallKey("k".into())), ..world.taking(id, "take_order") };
    let first = keyed(&world, "first");
    world.put(Input::Move(Box::new(first)));
    let reset = Taking { reset: true, ..world.taking("reset", "reset") };
    world.put(Input::Move(Box::new(reset)));
    let again = keyed(&world, "again");
    world.put(Input::Move(Box::new(again)));
    assert_eq!(world.joined, [(CallId::from("again"), CallId::from("first"))]);
    assert_eq!(world.state().as_str(), "created");
    world.wish_with("take_order", "", None);
    assert_eq!(world.state().as_str(), "ordered", "without a key, it is another wish");
}

fn judged(retry: Value, resolution: Value) -> Value {
    let later = if resolution.is_null() { Value::Null } else { json!("1m") };
    json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "assert": "'ok'", "retry": retry,
            "resolution": resolution, "later": later,
        }},
    }})
}

#[test]
fn what_was_not_well_done_is_done_again_for_whoever_was_told_so() {
    let mut world = World::new(judged(Value::Null, Value::Null));
    let pay = world.wish("pay");
    world.says = vec![Weighed::Fail];
    world.done();
    assert_eq!(world.kind(&pay), "action_error");
    // Whoever lost the answer asks again, and nothing is done a second time.
    let repeat = world.wish("pay");
    assert_eq!(world.joined, [(repeat, pay.clone())]);
    assert_eq!(world.count("attempt_started"), 1);
    world.put(Input::Delivery { call: pay });
    world.wish("pay");
    assert_ne!(world.keys[0], world.keys[1], "it is another intention by now");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn a_key_names_one_try_until_its_answer_arrived() {
    let mut world = World::new(judged(Value::Null, Value::Null));
    let keyed = |world: &World, id| Taking { key: Some(crate::call::CallKey("k".into())), ..world.taking(id, "pay") };
    let first = keyed(&world, "first");
    world.put(Input::Move(Box::new(first)));
    world.says = vec![Weighed::Fail];
    world.done();
    let lost = keyed(&world, "lost");
    world.put(Input::Move(Box::new(lost)));
    assert_eq!(world.joined, [(CallId::from("lost"), CallId::from("first"))]);
    world.put(Input::Delivery { call: "first".into() });
    let again = keyed(&world, "again");
    world.put(Input::Move(Box::new(again)));
    world.done();
    assert_eq!((world.state().as_str(), world.keys.len()), ("paid", 2));
}

#[test]
fn what_is_to_be_tried_later_is_tried_then_and_every_try_is_a_new_one() {
    let retry = json!({ "max_attempts": 2, "backoff": "fixed", "initial": "1s" });
    let mut world = World::new(judged(retry, json!("retry_later")));
    for _ in 0..2 {
        let pay = world.wish("pay");
        world.says = vec![Weighed::Retry];
        world.done();
        world.now = world.dispatcher.deadline().unwrap().at;
        world.put(Input::Tick);
        world.says = vec![Weighed::Retry];
        world.done();
        assert_eq!(world.kind(&pay), "retry_later");
        world.put(Input::Delivery { call: pay });
        world.now = world.now + 60_000;
    }
    let mut keys = world.keys.clone();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), world.count("attempt_started")), (4, 4));
}

#[test]
fn what_only_read_and_was_not_well_done_is_read_again_at_once() {
    let mut world = World::new(judged(Value::Null, Value::Null));
    world.of_effect(EffectKind::Read, true);
    world.wish("pay");
    world.says = vec![Weighed::Fail];
    world.done();
    world.wish("pay");
    assert!(world.joined.is_empty());
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn what_is_in_doubt_is_not_another_intention() {
    let mut world = World::new(judged(Value::Null, Value::Null));
    world.of_effect(EffectKind::Write, false);
    world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    world.wish("pay");
    assert_eq!(world.keys[0], world.keys[1]);
}

#[test]
fn a_wish_meets_the_equal_one_while_its_agent_may_not_know_what_became_of_it() {
    let mut world = World::new(order());
    world.wish("take_order");
    let equal = |world: &World, key: Option<&str>, inputs: &str| {
        let (fingerprint, key) = (Digest::new(format!("pay{inputs}")), key.map(|key| crate::call::CallKey(key.into())));
        let taking = Taking { fingerprint, key, ..world.taking("other", "pay") };
        world.dispatcher.meets(&taking, world.now)
    };
    assert_eq!(equal(&world, None, "{}"), None);
    let pay = world.wish("pay");
    assert_eq!(equal(&world, None, "{}"), Some(Met::Open(pay.clone())));
    assert_eq!(equal(&world, None, "{\"n\":1}"), None, "other inputs are another wish");
    assert_eq!(equal(&world, Some("fresh"), "{}"), None, "and so is another key");
    let mut doubtful = World::new(order());
    doubtful.wish("take_order");
    doubtful.wish("pay");
    doubtful.result(failed(Code::NetworkTimeout, Certainty::InDoubt));
    assert_eq!(equal(&doubtful, None, "{}"), Some(Met::Unsettled));
    world.done();
    assert_eq!(equal(&world, None, "{}"), Some(Met::Made(pay.clone())));
    world.put(Input::Delivery { call: pay });
    assert_eq!(equal(&world, None, "{}"), None, "its agent has the answer");
}
