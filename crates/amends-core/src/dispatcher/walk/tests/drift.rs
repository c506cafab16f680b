//! A walk whose machine is declared otherwise by now.

use super::*;
use crate::walk::Declared;

fn renamed() -> Value {
    let mut spec = order();
    let actions = &mut spec["order"]["actions"];
    actions["take_order"]["to"] = json!("written");
    actions["pay"]["from"] = json!(["written"]);
    spec
}

fn follows(world: &mut World, spec: Value, hash: &str) -> Digest {
    world.put(Input::Migrate { definition: machines(spec), hash: hash.into() });
    world.dispatcher.walk().unwrap().hash.clone()
}

fn ignored(world: &World) -> String {
    match &world.trace.last().unwrap().fact {
        Fact::Ignored { why } => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_walk_follows_only_where_it_is_somewhere_there() {
    let mut world = World::new(order());
    world.wish("take_order");
    assert_eq!(follows(&mut world, renamed(), "h2").as_str(), "h");
    assert!(ignored(&world).contains("`order` has no state `ordered`"), "{}", ignored(&world));
    let mut spec = order();
    spec["order"]["actions"]["forget"] = json!({ "from": ["ordered"], "to": "fulfilled" });
    assert_eq!(follows(&mut world, spec, "h3").as_str(), "h3");
    world.wish("forget");
    assert_eq!(world.state().as_str(), "fulfilled");
}

#[test]
fn a_walk_follows_once_its_move_is_settled() {
    let mut world = World::new(order());
    world.wish("take_order");
    world.wish("pay");
    assert_eq!(follows(&mut world, order(), "h2").as_str(), "h");
    assert!(ignored(&world).contains("once its move is settled"));
    world.ticks();
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
    assert_eq!(follows(&mut world, order(), "h2").as_str(), "h");
    let id = world.dispatcher.state.questions.keys().next().unwrap().clone();
    let (choice, by) = (choice::DID_NOT_HAPPEN.into(), "ann".into());
    let no = PersonAnswer { choice, by, note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: id, answer: Box::new(no) });
    assert_eq!(world.standing(), Standing::Free);
    assert_eq!(follows(&mut world, order(), "h2").as_str(), "h2");
}

#[test]
fn what_waits_for_another_machine_must_still_be_there() {
    let within = |action: &str| {
        json!({
            "house": { "initial": "plan", "terminal": ["built"], "actions": {
                action: { "from": ["plan"], "to": "built", "machine": "wall" },
            }},
            "wall": { "initial": "low", "terminal": ["high"], "actions": { "lay": { "from": ["low"], "to": "high" } } },
        })
    };
    let mut world = World::new(within("build"));
    world.wish("build");
    assert_eq!(follows(&mut world, within("erect"), "h2").as_str(), "h");
    assert!(ignored(&world).contains("`house` has no action `build`"), "{}", ignored(&world));
}

#[test]
fn a_walk_that_begins_again_begins_as_its_machine_is_declared_then() {
    let mut world = World::new(order());
    world.wish("take_order");
    let mut spec = renamed();
    spec["order"]["initial"] = json!("asked");
    spec["order"]["actions"]["take_order"]["from"] = json!(["asked"]);
    let declared = Some(Box::new(Declared { definition: machines(spec), hash: "h2".into() }));
    let reset = Taking { reset: true, ..world.taking("reset_1", "reset") };
    world.put_with(&Gates { declared, ..Gates::default() }, Input::Move(Box::new(reset)));
    assert_eq!((world.state().as_str(), world.kind(&"reset_1".into())), ("asked", "none"));
    assert_eq!(world.dispatcher.walk().unwrap().hash.as_str(), "h2");
    world.wish_with("take_order", "again", None);
    assert_eq!(world.state().as_str(), "written");
}

#[test]
fn a_wish_to_begin_again_that_is_refused_changes_no_declaration() {
    let mut world = World::new(order());
    world.wish("take_order");
    world.wish("pay");
    let declared = Some(Box::new(Declared { definition: machines(renamed()), hash: "h2".into() }));
    let reset = Taking { reset: true, ..world.taking("reset_1", "reset") };
    world.put_with(&Gates { declared, ..Gates::default() }, Input::Move(Box::new(reset)));
    assert_eq!(world.kind(&"reset_1".into()), "in_flight");
    world.done();
    let plain = Taking { reset: true, ..world.taking("reset_2", "reset") };
    world.put(Input::Move(Box::new(plain)));
    assert_eq!((world.state().as_str(), world.dispatcher.walk().unwrap().hash.as_str()), ("created", "h"));
}
