//! What makes a call of a move the same intention as an earlier one.

use super::*;

fn shop() -> Value {
    json!({ "shop": {
        "initial": "open", "terminal": ["shut"], "limits": { "loops": 9 },
        "actions": {
            "look": { "from": ["open"], "to": "open" },
            "pay": { "from": ["open"], "to": "open", "tool": "charge_card" },
            "visit": { "from": ["open"], "to": "open", "machine": "till" },
            "close": { "from": ["open"], "to": "shut" },
        },
    }, "till": {
        "initial": "ready", "terminal": ["left"],
        "actions": {
            "pay": { "from": ["ready"], "to": "left", "tool": "charge_card" },
            "leave": { "from": ["ready"], "to": "left" },
        },
    }})
}

fn refused(world: &mut World) {
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
}

#[test]
fn what_came_to_nothing_is_the_same_intention_whatever_else_is_done_meanwhile() {
    let mut world = World::new(shop());
    world.wish("pay");
    refused(&mut world);
    world.wish("look");
    world.wish_with("look", "again", None);
    world.wish("pay");
    assert_eq!(world.keys[0], world.keys[1], "it was not made yet");
    world.done();
    world.wish_with("pay", "{}", Some(3));
    assert_ne!(world.keys[1], world.keys[2], "it was made, and is wanted once more");
    refused(&mut world);
    world.reset("reset_1");
    world.wish("pay");
    assert!(!world.keys[..3].contains(&world.keys[3]), "the walk began again");
}

#[test]
fn another_visit_to_a_machine_is_another_intention() {
    let mut world = World::new(shop());
    world.wish("visit");
    world.wish("pay");
    refused(&mut world);
    world.wish("leave");
    world.wish_with("visit", "again", None);
    world.wish("pay");
    assert_ne!(world.keys[0], world.keys[1]);
    refused(&mut world);
    world.wish("pay");
    assert_eq!(world.keys[1], world.keys[2]);
}

#[test]
fn what_is_to_be_done_again_is_so_after_other_moves_too() {
    let mut spec = shop();
    spec["shop"]["actions"]["pay"]["assert"] = json!("result.well");
    let mut world = World::new(spec);
    let pay = world.wish("pay");
    world.says = vec![Weighed::Fail];
    world.done();
    assert!(matches!(world.answer(&pay).body, Body::Error { .. }));
    world.put(Input::Delivery { call: pay });
    world.wish("look");
    world.wish("pay");
    assert_ne!(world.keys[0], world.keys[1], "it is known not to help");
    world.done();
    assert_eq!(world.count("attempt_started"), 2);
}

/// How the claims of calls ended that were not given up, and for how many days they are kept; nothing where that is for good.
fn kept(world: &World) -> Vec<(ClaimState, Option<u64>)> {
    let settled = world.claims.iter().filter_map(|change| match change {
        ClaimChange::Settle { state, until, .. } => Some((*state, *until)),
        _ => None,
    });
    let days = |until: Timestamp| until.since_ms(world.now) / (24 * 60 * 60 * 1000);
    settled.map(|(state, until)| (state, until.map(days))).collect()
}

#[test]
fn what_a_move_did_is_known_for_a_month_whether_it_was_made_or_not() {
    let mut spec = shop();
    let two = json!({ "a": { "tool": "charge_card" }, "b": { "tool": "charge_card" } });
    spec["shop"]["actions"]["both"] = json!({ "from": ["open"], "to": "open", "parallel": two });
    let mut world = World::new(spec);
    world.wish("pay");
    world.done();
    assert_eq!(kept(&world), [(ClaimState::Complete, Some(30))]);
    world.claims.clear();
    world.wish_with("pay", "again", None);
    world.result(failed(Code::OutputMalformed, Certainty::Processed));
    assert_eq!(kept(&world), [(ClaimState::Complete, Some(30))], "it was done, and says nothing of use");
    world.claims.clear();
    world.wish("both");
    world.done();
    refused(&mut world);
    assert_eq!(kept(&world), [(ClaimState::Complete, Some(30))]);
}

#[test]
fn what_a_person_says_was_done_beside_what_failed_is_known_as_long() {
    let mut spec = shop();
    let two = json!({ "a": { "tool": "charge_card" }, "b": { "tool": "charge_card" } });
    spec["shop"]["actions"]["both"] = json!({ "from": ["open"], "to": "open", "parallel": two });
    let mut world = World::new(spec);
    world.wish("both");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    refused(&mut world);
    let doubts = |question: &&Question| question.interaction.subject == Subject::Doubt;
    let asked = world.dispatcher.state.questions.values().find(doubts).expect("a person is asked");
    let (interaction, choice) = (asked.interaction.id.clone(), choice::HAPPENED.into());
    let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
    world.claims.clear();
    world.put(Input::Answer { interaction, answer: Box::new(answer) });
    assert_eq!(kept(&world), [(ClaimState::Complete, Some(30))]);
}

#[test]
fn a_move_in_doubt_of_which_nothing_is_declared_is_not_forgotten() {
    for report in [
        failed(Code::Provider5xx, Certainty::InDoubt),
        Report::silent(Failure::of(Code::ConnectionLost), Certainty::InDoubt),
    ] {
        let mut world = World::new(shop());
        world.of_effect(EffectKind::Write, false);
        world.wish("pay");
        world.result(report);
        assert_eq!(world.standing(), Standing::Unknown(&"pay".into()));
        assert_eq!(kept(&world), [(ClaimState::InDoubt, None)]);
    }
}
