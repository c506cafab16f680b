//! A walk that is given up says what is undone of it and what stays.

use super::*;
use crate::id::InteractionId;
use crate::walk::Left;

fn exchange() -> Value {
    json!({ "order": {
        "initial": "created", "terminal": ["done"], "limits": { "loops": 9 },
        "actions": {
            "look": { "from": ["created"], "to": "created" },
            "pay": { "from": ["created"], "to": "paid", "tool": "charge_card" },
            "send": { "from": ["paid"], "to": "sent", "tool": "charge_card" },
            "end": { "from": ["sent"], "to": "done", "tool": "charge_card", "resolution": "abort_workflow" },
        },
    }})
}

/// Pays for good, sends what can be taken back, and fails at the end.
fn given_up() -> (World, CallId) {
    let mut world = World::new(exchange());
    world.wish("pay");
    world.done();
    world.undoable = true;
    world.wish("send");
    world.done();
    world.undoable = false;
    let end = world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    (world, end)
}

fn resets(world: &mut World, id: &str) {
    let reset = Taking { reset: true, ..world.taking(id, "reset") };
    world.put(Input::Move(Box::new(reset)));
}

fn told(world: &World) -> String {
    world.dispatcher.walk().unwrap().given_up.expect("it was given up").words()
}

/// What people are told of it.
fn notices(world: &World) -> Vec<(InteractionId, String)> {
    let asked = world.dispatcher.state.questions.iter().filter(|(id, _)| id.as_str().contains("_undo"));
    asked.map(|(id, asked)| (id.clone(), asked.interaction.question.clone())).collect()
}

/// What a person hears of it.
fn heard(world: &World) -> Option<String> {
    notices(world).pop().map(|(_, question)| question)
}

#[test]
fn what_was_done_before_and_cannot_be_undone_is_told_at_once() {
    let (world, end) = given_up();
    assert!(world.unwound);
    let error = world.answer(&end).error().unwrap();
    let words = "nothing was done, and the walk is given up: 1 being undone, 1 cannot be undone (`charge_card`)";
    assert!(error.message.ends_with(words), "{}", error.message);
    assert!(!error.retryable);
    assert_eq!(told(&world), "1 being undone, 1 cannot be undone (`charge_card`)");
}

#[test]
fn a_person_hears_of_what_stays_though_every_undoing_went_well() {
    let (mut world, end) = given_up();
    world.put(Input::Unwound { of: end, undone: 1, failed: Vec::new(), doubtful: Vec::new() });
    let unwound = world.trace.iter().find_map(|event| match &event.fact {
        Fact::WalkUnwound { left, undone, failed, .. } => Some((left.clone(), *undone, failed.len())),
        _ => None,
    });
    let (left, undone, failed) = unwound.expect("it is undone");
    assert_eq!((left.len(), undone, failed), (1, 1, 0));
    let Left { call, tool } = &left[0];
    assert_eq!(tool.as_str(), "charge_card");
    let question = heard(&world).expect("a person hears of it");
    assert!(question.contains("1 undone, and 1 could not be undone") && question.contains(call.as_str()), "{question}");
    let again = world.wish_with("end", "again", None);
    let message = &world.answer(&again).error().unwrap().message;
    assert!(message.contains("given up: 1 undone, 1 cannot be undone (`charge_card`)"), "{message}");
}

#[test]
fn what_failed_to_be_undone_is_named_by_its_tool_and_nobody_is_asked_where_nothing_stays() {
    let (mut world, end) = given_up();
    let token = world.trace.iter().find_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } => received.reversal.as_ref().map(|_| received.call.clone()),
        _ => None,
    });
    world.put(Input::Unwound { of: end, undone: 0, failed: token.into_iter().collect(), doubtful: Vec::new() });
    assert_eq!(told(&world), "0 undone, 2 cannot be undone (`charge_card`)");

    let mut world = World::new(exchange());
    world.undoable = true;
    for action in ["pay", "send"] {
        world.wish(action);
        world.done();
    }
    let end = world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.put(Input::Unwound { of: end, undone: 2, failed: Vec::new(), doubtful: Vec::new() });
    assert_eq!(told(&world), "2 undone");
    assert_eq!(heard(&world), None);
}

#[test]
fn what_was_told_of_is_not_told_of_again_when_the_walk_began_anew() {
    let (mut world, end) = given_up();
    world.put(Input::Unwound { of: end, undone: 1, failed: Vec::new(), doubtful: Vec::new() });
    resets(&mut world, "reset_1");
    assert!(world.dispatcher.walk().unwrap().given_up.is_none());
    world.now = world.now + 1;
    world.undoable = true;
    for action in ["pay", "send"] {
        world.wish_with(action, "anew", None);
        world.done();
    }
    let end = world.wish_with("end", "anew", None);
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(told(&world), "2 being undone");
    world.put(Input::Unwound { of: end, undone: 2, failed: Vec::new(), doubtful: Vec::new() });
    assert_eq!(told(&world), "2 undone");
}

#[test]
fn what_was_done_before_the_walk_began_again_stays() {
    let mut world = World::new(exchange());
    world.undoable = true;
    for action in ["pay", "send", "end"] {
        world.wish(action);
        world.done();
    }
    let done = world.now;
    // Also where the clock has not moved on.
    resets(&mut world, "reset_1");
    world.now = world.now + 1;
    world.wish_with("pay", "anew", None);
    world.done();
    let sent = world.now;
    world.wish_with("send", "anew", None);
    world.done();
    world.wish_with("end", "anew", None);
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(told(&world), "2 being undone");
    assert!(world.undoes_since > done && world.undoes_since <= sent, "{:?}", world.undoes_since);
    world.undoes_since = Timestamp::default();
    let mut resumed = world.dispatcher.clone();
    let step = resumed.handle(world.now + 1, &Gates::default(), Input::Resume);
    let again = step.effects.iter().find_map(|effect| match effect {
        Effect::Unwind { since, .. } => Some(*since),
        _ => None,
    });
    assert!(again.is_some_and(|since| since > done && since <= sent), "{again:?}");
}

#[test]
fn what_only_reads_does_not_stay() {
    let mut world = World::new(exchange());
    world.rules = Arc::new(Rules {
        contract: Contract { effect: EffectKind::Read, ..rules().contract.clone() },
        playbook: rules().playbook.clone(),
    });
    for action in ["pay", "send"] {
        world.wish(action);
        world.done();
    }
    let end = world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert!(world.answer(&end).error().unwrap().message.ends_with("the walk is given up: 0 being undone"));
}

#[test]
fn what_was_found_out_late_and_cannot_be_undone_any_more_is_told() {
    let mut world = World::new(exchange());
    world.of_effect(EffectKind::Write, true);
    world.undoable = true;
    world.wish("pay");
    let paying = world.sent.last().expect("it is sent").clone();
    world.ticks();
    world.put(Input::Result { attempt: paying, report: Box::new(Report::success(Some(payload()))) });
    assert_eq!(world.count("reversal_voided"), 1);
    goes_on_and_is_given_up(&mut world);
    assert_eq!(told(&world), "0 being undone, 2 cannot be undone (`charge_card`)");
}

#[test]
fn what_was_found_out_late_with_how_it_is_undone_is_undone() {
    let mut world = World::new(exchange());
    world.of_effect(EffectKind::Write, true);
    world.undoable = true;
    world.wish("pay");
    let paying = world.sent.last().expect("it is sent").clone();
    world.ticks();
    let undo = Some(Box::new(Undo { tool: "refund".into(), within_ms: 1_000 }));
    let report = Report { undo, ..Report::success(Some(payload())) };
    world.put(Input::Result { attempt: paying.clone(), report: Box::new(report.clone()) });
    assert_eq!((world.count("reversal_armed"), world.count("reversal_voided")), (1, 0));
    let note = world.replies.iter().rfind(|reply| reply.call == paying.call).and_then(|reply| match &reply.answer {
        Answer::Forward { envelope, .. } => envelope.reversal.clone(),
        _ => None,
    });
    assert_eq!(note.map(|note| (note.tool, note.until)), Some(("refund".into(), world.now + 1_000)));
    world.put(Input::Result { attempt: paying, report: Box::new(report) });
    assert_eq!(world.count("reversal_armed"), 1, "once");
    goes_on_and_is_given_up(&mut world);
    assert_eq!(told(&world), "1 being undone, 1 cannot be undone (`charge_card`)");
}

/// What was paid is gone on with, what is sent cannot be undone, and the end fails.
fn goes_on_and_is_given_up(world: &mut World) {
    world.wish("pay");
    world.undoable = false;
    world.wish("send");
    world.done();
    world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
}

#[test]
fn what_cleared_up_after_a_move_is_not_undone() {
    let mut spec = exchange();
    spec["order"]["actions"]["pay"]["exit"] = json!([{ "tool": "charge_card", "as": "unlock" }]);
    let mut world = World::new(spec);
    world.undoable = true;
    world.wish("pay");
    world.done();
    world.done();
    world.wish("send");
    world.done();
    world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(told(&world), "2 being undone");
    assert_eq!(world.count("reversal_minted"), 3, "`pay`, `send` and `end`");
}

/// Two that can be undone, of which one was not when the walk was given up.
fn half_undone() -> (World, CallId, Vec<CallId>) {
    let mut world = World::new(exchange());
    world.undoable = true;
    for action in ["pay", "send"] {
        world.wish(action);
        world.done();
    }
    let tokened = |event: &Event| match &event.fact {
        Fact::CallReceived { received, .. } => received.reversal.as_ref().map(|_| received.call.clone()),
        _ => None,
    };
    let calls = world.trace.iter().filter_map(tokened).collect();
    let end = world.wish("end");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    (world, end, calls)
}

#[test]
fn what_is_undone_late_is_told_as_undone() {
    let (mut world, end, calls) = half_undone();
    assert_eq!(world.dispatcher.undone_late(&calls), None, "it is being undone");
    world.put(Input::Unwound { of: end.clone(), undone: 0, failed: calls.clone(), doubtful: Vec::new() });
    assert_eq!(told(&world), "0 undone, 2 cannot be undone (`charge_card`)");
    let first = heard(&world).expect("a person hears of it");
    assert!(first.contains("2 could not be undone"), "{first}");
    assert_eq!(world.dispatcher.undone_late(&["call_77".into()]), None);

    let late = world.dispatcher.undone_late(&calls[1..]).expect("one was undone");
    world.put(late);
    assert_eq!(told(&world), "1 undone, 1 cannot be undone (`charge_card`)");
    assert_eq!(notices(&world).len(), 1, "what was said before is taken back");
    let question = heard(&world).expect("one stays");
    assert!(question.contains("1 undone, and 1 could not be undone") && question.contains(calls[0].as_str()));
    assert_eq!(world.dispatcher.undone_late(&calls[1..]), None, "that is known");

    world.put(world.dispatcher.undone_late(&calls).expect("the other one too"));
    assert_eq!(told(&world), "2 undone");
    assert_eq!(heard(&world), None, "nothing stays");
    let again = world.wish_with("end", "again", None);
    assert!(world.message(&again).contains("given up: 2 undone; reset"), "{}", world.message(&again));

    world.put(Input::Unwound { of: end, undone: 7, failed: Vec::new(), doubtful: Vec::new() });
    assert_eq!(told(&world), "2 undone", "nobody says more than there was");
}

#[test]
fn who_has_seen_what_could_not_be_undone_is_not_told_again() {
    let (mut world, end, calls) = half_undone();
    world.put(Input::Unwound { of: end, undone: 0, failed: calls.clone(), doubtful: Vec::new() });
    let (asked, _) = notices(&world).pop().expect("a person hears of it");
    let choice = choice::SEEN.into();
    let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: asked, answer: Box::new(answer) });
    world.put(world.dispatcher.undone_late(&calls[1..]).expect("one was undone"));
    assert_eq!(told(&world), "1 undone, 1 cannot be undone (`charge_card`)");
    assert_eq!(heard(&world), None);
}

#[test]
fn a_walk_that_began_again_hears_no_more_of_what_is_undone() {
    let (mut world, end, calls) = half_undone();
    world.put(Input::Unwound { of: end.clone(), undone: 0, failed: calls.clone(), doubtful: Vec::new() });
    resets(&mut world, "reset_1");
    assert_eq!(world.dispatcher.undone_late(&calls), None);
    world.put(Input::Unwound { of: end, undone: 2, failed: Vec::new(), doubtful: Vec::new() });
    assert_eq!(world.count("walk_unwound"), 1);
}

#[test]
fn what_may_have_been_undone_is_told_as_in_doubt_until_that_is_known() {
    let (mut world, end, calls) = half_undone();
    world.put(Input::Unwound { of: end, undone: 0, failed: calls.clone(), doubtful: calls[1..].to_vec() });
    let words =
        "0 undone, 1 in doubt, about which a person is asked (`charge_card`), 1 cannot be undone (`charge_card`)";
    assert_eq!(told(&world), words);
    let question = heard(&world).expect("a person hears of it");
    let doubt = format!("of 1 nobody knows whether it was undone: `charge_card` ({})", calls[1]);
    assert!(question.contains(&doubt) && question.contains("1 could not be undone"), "{question}");
    assert_eq!(world.dispatcher.not_undone_late(&calls[0]), None, "that was known");

    let mut undone = world.dispatcher.clone();
    let late = undone.undone_late(&calls[1..]).expect("it was undone");
    // Only what it says of itself is looked at.
    let _ = undone.handle(world.now, &Gates::default(), late);
    assert_eq!(
        undone.walk().and_then(|walk| walk.given_up).map(|given| given.words()),
        Some("1 undone, 1 cannot be undone (`charge_card`)".to_owned())
    );

    world.put(world.dispatcher.not_undone_late(&calls[1]).expect("it was not"));
    assert_eq!(told(&world), "0 undone, 2 cannot be undone (`charge_card`)");
    let question = heard(&world).expect("both stay");
    assert!(question.contains("2 could not be undone") && !question.contains("nobody knows"), "{question}");
    assert_eq!(world.dispatcher.not_undone_late(&calls[1]), None, "that is told once");
}
