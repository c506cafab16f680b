//! Walks of which something was undone: they say so, and so do their forks.

use serde_json::{Value, json};

use crate::support::{Place, eventually};
use crate::till::{self, forbidden, look, serve, step, take};

/// Something is put into the till, and then something is taken that may fail.
const PUT: &str = r#"
[machines.deposit]
initial = "open"
terminal = ["over"]

[machines.deposit.actions.put]
from = ["open"]
to = "full"
tool = "put"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.deposit.actions.take]
from = ["full"]
to = "over"
tool = "take"
args = { order = "state.order" }
resolution = "abort_workflow"

[machines.deposit.actions.leave]
from = ["full"]
to = "over"
"#;

fn put(gateway: &crate::support::Gateway, place: &Place, order: &str) -> Value {
    till::says(place, "put", order, &json!({ "result": { "id": "p_1" } }));
    let put = step(gateway, json!({ "action": "put", "inputs": { "order": order } }));
    assert_eq!(put["data"]["state"]["name"], "full", "{put}");
    put["data"]["session"].clone()
}

#[test]
fn a_walk_that_an_operator_unwound_says_so_and_so_does_its_fork() {
    let place = Place::new();
    let gateway = serve(&place, PUT);
    let walk = put(&gateway, &place, "o1");
    let fork = gateway.call("fork", &json!({ "session": walk }).to_string()).1;
    assert_eq!(fork["data"]["result"].get("warning"), None, "{fork}");
    let (code, said) = place.amends(&["unwind", walk.as_str().expect("a handle"), "--json"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(till::tools(&place), ["put", "undo"], "{said}");
    let next = look(&gateway, &walk, "next");
    assert_eq!(next["waits"], json!({ "for": "undone", "undone": 1 }), "{next}");
    assert!(next["next_hint"].as_str().is_some_and(|hint| hint.contains("was undone since")), "{next}");
    let (_, outside) = place.amends(&["walk", walk.as_str().expect("a handle")]);
    assert!(outside.contains("was undone since"), "{outside}");
    let fork = gateway.call("fork", &json!({ "session": walk }).to_string()).1;
    assert_eq!(fork["data"]["result"]["undone"], 1, "{fork}");
    let warning = fork["data"]["result"]["warning"].as_str().unwrap_or_else(|| panic!("{fork}"));
    assert!(warning.contains("what the fields tell of that is not so any more"), "{warning}");
    let left = take(&gateway, &walk, "leave");
    assert_eq!(left["data"]["waits"]["for"], "undone", "{left}");
    let (_, reset) = gateway.call("reset", &json!({ "session": walk }).to_string());
    assert_eq!(reset["data"].get("waits"), None, "it begins anew: {reset}");
}

#[test]
fn the_fork_of_a_walk_that_was_given_up_says_what_was_undone() {
    let place = Place::new();
    let gateway = serve(&place, PUT);
    let walk = put(&gateway, &place, "o2");
    till::says(&place, "take", "o2", &forbidden());
    let failed = take(&gateway, &walk, "take");
    assert_eq!(failed["error"]["kind"], "action_error", "{failed}");
    eventually("it is undone", || look(&gateway, &walk, "next")["waits"]["undone"] == 1);
    let fork = gateway.call("fork", &json!({ "session": walk, "seq": 1 }).to_string()).1;
    let told = &fork["data"]["result"];
    assert_eq!((&told["given_up"], &told["undone"]), (&json!("1 undone"), &json!(1)), "{fork}");
    assert!(told["warning"].as_str().is_some_and(|words| words.contains("was undone since")), "{fork}");
    let before = gateway.call("fork", &json!({ "session": walk, "seq": 0 }).to_string()).1;
    assert_eq!(before["data"]["result"].get("undone"), None, "nothing had been done by then: {before}");
}
