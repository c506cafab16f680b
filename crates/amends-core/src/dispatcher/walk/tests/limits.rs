//! How long a walk may go on, and how far.

use super::*;

/// A machine that runs another one.
fn nested(outer: Value, inner: Value) -> World {
    World::new(json!({
        "house": { "initial": "plan", "terminal": ["built"], "limits": outer, "actions": {
            "draw": { "from": ["plan"], "to": "plan" },
            "build": { "from": ["plan"], "to": "raw", "machine": "wall" },
            "paint": { "from": ["raw"], "to": "built" },
        }},
        "wall": { "initial": "low", "terminal": ["high"], "limits": inner, "actions": {
            "lay": { "from": ["low"], "to": "low" },
            "top": { "from": ["low"], "to": "high" },
        }},
    }))
}

fn legal(world: &World) -> Vec<String> {
    let walk = world.dispatcher.walk().unwrap();
    let frame = walk.frames.last().unwrap();
    let at = crate::machine::Position {
        state: frame.state.clone(),
        fields: Default::default(),
        seq: frame.moves,
        taken: frame.taken.clone(),
    };
    walk.moves(&at, world.now).into_iter().map(|legal| legal.name.to_string()).collect()
}

#[test]
fn a_machine_within_another_has_its_own_time_from_when_it_is_entered() {
    let mut world = nested(json!({ "loops": 9 }), json!({ "time": "1m", "loops": 9 }));
    world.now = world.now + 120_000;
    world.wish("build");
    let entered = world.now;
    world.now = entered + 59_999;
    let in_time = world.wish("lay");
    assert_eq!(world.kind(&in_time), "none");
    world.now = entered + 60_000;
    let late = world.wish_with("lay", "late", None);
    assert_eq!(world.kind(&late), "invalid_transition");
    assert!(world.message(&late).contains("`wall` has gone on for the 60000 ms"), "{}", world.message(&late));
    assert!(legal(&world).is_empty());
}

#[test]
fn the_time_of_a_machine_is_its_bound_while_another_runs_within_it() {
    let mut world = nested(json!({ "time": "1m", "loops": 9 }), json!({ "loops": 9 }));
    world.wish("build");
    world.wish("lay");
    world.now = Timestamp::from_ms(BEGAN_MS) + 60_000;
    let late = world.wish_with("top", "late", None);
    assert_eq!(world.kind(&late), "invalid_transition");
    assert!(world.message(&late).contains("the walk has gone on for the 60000 ms"));
}

#[test]
fn steps_are_counted_in_all_also_those_of_a_machine_within() {
    let mut world = nested(json!({ "steps": 4, "loops": 9 }), json!({ "loops": 9 }));
    for (action, inputs) in [("build", "1"), ("lay", "1"), ("lay", "2")] {
        let taken = world.wish_with(action, inputs, None);
        assert_eq!(world.kind(&taken), "none");
    }
    assert_eq!(legal(&world), ["lay", "top"]);
    world.wish_with("lay", "3", None);
    let over = world.wish_with("lay", "4", None);
    assert_eq!(world.kind(&over), "invalid_transition");
    assert!(world.message(&over).contains("`steps` of `house`"), "{}", world.message(&over));
    assert!(legal(&world).is_empty());
}

#[test]
fn what_was_spent_in_a_machine_within_stays_spent_after_it() {
    let mut world = nested(json!({ "steps": 3, "loops": 9 }), json!({ "loops": 9 }));
    for action in ["build", "lay", "top"] {
        let taken = world.wish(action);
        assert_eq!(world.kind(&taken), "none");
    }
    let over = world.wish("paint");
    assert_eq!(world.kind(&over), "invalid_transition");
    assert_eq!(world.message(&over), "`paint` cannot be taken: `steps` is bounded to 3", "it was never taken before");
}

#[test]
fn a_fork_has_the_time_that_was_left() {
    let mut world = nested(json!({ "time": "1m", "loops": 9 }), json!({ "time": "30s", "loops": 9 }));
    world.now = world.now + 20_000;
    world.wish("build");
    world.now = world.now + 10_000;
    world.wish("lay");
    let walk = world.dispatcher.walk().unwrap();
    assert_eq!(walk.spent_ms, [30_000, 10_000]);
    let fork = fork_of(&walk);
    let definition = world.trace.iter().find_map(|event| match &event.fact {
        Fact::WalkBegan { beginning } => Some(beginning.definition.clone()),
        _ => None,
    });
    let beginning = Beginning {
        machine: "house".into(),
        definition: definition.unwrap(),
        hash: "h".into(),
        from: Some(fork),
        fields: payload(),
    };
    let mut forked = World::begin(beginning);
    assert_eq!(forked.dispatcher.walk().unwrap().ends, Some(forked.now + 20_000));
    forked.now = forked.now + 20_001;
    let late = forked.wish("lay");
    assert_eq!(forked.kind(&late), "invalid_transition");
}

#[test]
fn what_failed_for_now_is_not_taken_earlier_in_a_walk_that_begins_again_or_elsewhere() {
    let spec = || {
        json!({ "order": {
            "initial": "created", "terminal": ["paid"],
            "actions": {
                "pay": { "from": ["created"], "to": "paid", "tool": "charge_card", "resolution": "retry_later", "later": "1m" },
            },
        }})
    };
    let mut world = World::new(spec());
    world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    let from = Some(fork_of(&world.dispatcher.walk().unwrap()));
    world.reset("reset_1");
    let soon = world.wish("pay");
    assert_eq!(world.kind(&soon), "retry_later");

    let definition = machines(spec());
    let (machine, hash) = ("order".into(), "h".into());
    let mut forked = World::begin(Beginning { machine, definition, hash, from, fields: payload() });
    let soon = forked.wish("pay");
    assert_eq!(forked.kind(&soon), "retry_later");
    forked.now = forked.now + 60_000;
    forked.wish("pay");
    forked.done();
    assert_eq!(forked.state().as_str(), "paid");
}

#[test]
fn a_call_of_a_stage_that_failed_was_a_turn_all_the_same() {
    let mut world = World::new(json!({ "look": {
        "initial": "asked", "terminal": ["looked"],
        "actions": { "search": { "from": ["asked"], "to": "looked", "allowed": ["charge_card"], "turns": 2 } },
    }}));
    world.wish("search");
    world.wish_with("charge_card", "one", None);
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    // Of one that may have been done nobody knows yet: it is a turn when it was made.
    world.wish_with("charge_card", "two", None);
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    assert_eq!(world.standing(), Standing::InDoubt(&"charge_card".into()));
    let asked = |question: &&Question| question.interaction.subject == Subject::Doubt;
    let question = world.dispatcher.state.questions.values().find(asked).expect("a person is asked");
    let interaction = question.interaction.id.clone();
    let choice = choice::HAPPENED.into();
    let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction, answer: Box::new(answer) });
    let two = world.wish_with("charge_card", "two", None);
    assert_eq!(world.kind(&two), "none");
    assert_eq!(legal(&world), ["complete"]);
    let three = world.wish_with("charge_card", "three", None);
    assert_eq!(world.kind(&three), "invalid_transition");
    assert!(world.message(&three).contains("`turns` is bounded to 2"), "{}", world.message(&three));
}

#[test]
fn a_call_of_a_stage_that_was_stopped_was_a_turn_all_the_same() {
    let mut world = World::new(json!({ "look": {
        "initial": "asked", "terminal": ["looked"],
        "actions": { "search": { "from": ["asked"], "to": "looked", "allowed": ["charge_card"], "turns": 2 } },
    }}));
    world.of_effect(EffectKind::Read, true);
    world.wish("search");
    for inputs in ["one", "two"] {
        let stopped = world.wish_with("charge_card", inputs, None);
        world.put(Input::Cancel { call: stopped.clone(), reason: CancelReason::Asked });
        assert_eq!(world.kind(&stopped), "tool_cancelled");
    }
    assert_eq!(legal(&world), ["complete"]);
}

/// An order that has ten seconds in all.
fn hasty(pay: Value) -> World {
    let mut action = json!({ "from": ["created"], "to": "paid", "tool": "charge_card" });
    for (key, value) in pay.as_object().unwrap() {
        action[key] = value.clone();
    }
    let actions = json!({ "pay": action, "leave": { "from": ["created"], "to": "left" } });
    World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid", "left"], "limits": { "time": "10s" }, "actions": actions,
    }}))
}

#[test]
fn an_action_has_no_more_time_than_its_walk() {
    let mut world = hasty(json!({ "timeout": "4s" }));
    world.now = world.now + 8_000;
    let pay = world.wish("pay");
    let sent = world.sent.last().expect("it is sent").clone();
    world.ticks();
    assert_eq!(world.now, Timestamp::from_ms(BEGAN_MS) + 10_000);
    let error = world.answer(&pay).error().unwrap();
    assert_eq!((error.kind, error.certainty, error.timeout_ms), ("action_timeout", Certainty::InDoubt, Some(2_000)));
    let words = "`pay` was not done within 2000 ms, all that was left of the 10000 ms that `order` may take;";
    assert!(error.message.starts_with(words), "{}", error.message);

    // What began in time is gone on with once it is settled, however late that is.
    let other = world.wish("leave");
    assert_eq!(world.kind(&other), "in_flight");
    world.put(Input::Result { attempt: sent, report: Box::new(Report::success(Some(payload()))) });
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    world.now = world.now + 5_000;
    let again = world.wish("pay");
    assert_eq!((world.kind(&again), world.state().as_str()), ("none", "paid"));
}

#[test]
fn what_was_certainly_not_done_when_the_time_of_its_walk_is_over_leaves_nothing_to_take() {
    let mut world = hasty(json!({ "retry": { "max_attempts": 5, "initial": "3s" } }));
    world.of_effect(EffectKind::Read, true);
    let pay = world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.ticks();
    assert_eq!(world.kind(&pay), "action_timeout", "the next try is cut short");
    assert!(world.now <= Timestamp::from_ms(BEGAN_MS) + 10_000, "{:?}", world.now);
    assert_eq!(world.answer(&pay).error().unwrap().timeout_ms, Some(10_000));
    assert_eq!(legal(&world), Vec::<String>::new());
    let late = world.wish("leave");
    assert_eq!(world.kind(&late), "invalid_transition");
}

#[test]
fn people_take_nothing_of_the_time_of_a_walk_or_of_its_action() {
    let mut world = hasty(json!({ "timeout": "4s", "queue": "till" }));
    let pay = world.wish("pay");
    let asked = world.dispatcher.state.questions.keys().next().expect("a person is asked").clone();
    world.now = world.now + 3_000;
    let answer =
        PersonAnswer { choice: choice::APPROVE.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: asked, answer: Box::new(answer) });
    world.ticks();
    assert_eq!(world.now, Timestamp::from_ms(BEGAN_MS) + 7_000);
    let error = world.answer(&pay).error().unwrap();
    assert!(error.message.starts_with("`pay` was not done within 4000 ms; it may"), "{}", error.message);
    assert_eq!(error.timeout_ms, Some(4_000), "as was declared, without people's time");
    assert_eq!(world.dispatcher.walk().unwrap().ends, Some(Timestamp::from_ms(BEGAN_MS) + 13_000));
}

#[test]
fn whoever_is_asked_about_what_a_walk_did_before_it_began_again_gives_it_no_time() {
    let mut world = hasty(json!({}));
    world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    let asked = world.dispatcher.state.questions.keys().next().expect("a person is asked").clone();
    while world.dispatcher.deadline().is_some() {
        world.now = world.dispatcher.deadline().unwrap().at;
        world.put(Input::Tick);
    }
    assert_eq!(world.standing(), Standing::Unknown(&"pay".into()));
    world.reset("reset_1");
    let ends = world.dispatcher.walk().unwrap().ends;
    assert_eq!(ends, Some(world.now + 10_000));
    world.now = world.now + 9_000;
    let choice = choice::HAPPENED.into();
    let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: asked, answer: Box::new(answer) });
    assert_eq!(world.dispatcher.walk().unwrap().ends, ends);
}
