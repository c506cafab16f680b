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
