//! Actions that are more than one thing: another machine within, and calls at the same time.

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::{Gateway, Place, eventually};
use crate::till::{SALE, done, forbidden, look, says, serve, step, take, tools};

/// A trip that runs the sale, and may run it again.
fn trip() -> String {
    let trip = r#"
[machines.trip]
initial = "planned"
terminal = ["over", "dropped"]

[machines.trip.actions.settle]
from = ["planned"]
to = [{ when = "result.state == 'paid'", state = "over" }, { state = "planned" }]
machine = "sale"
times = 3
writes = { how = "result.state", charge = "has(result.fields.charge) ? result.fields.charge : ''" }

[machines.trip.actions.drop]
from = ["planned"]
to = "dropped"
"#;
    format!("{}{trip}", SALE.replace("1500ms", "20s"))
}

/// Where a walk is: the machine and its state.
fn place_of(answer: &Value) -> (Value, Value) {
    let state = if answer["data"].is_object() { &answer["data"]["state"] } else { &answer["state"] };
    (state["machine"].clone(), state["name"].clone())
}

fn enters(gateway: &Gateway, session: Option<&Value>) -> Value {
    let mut args = json!({ "action": "settle" });
    match session {
        Some(session) => args["session"] = session.clone(),
        None => args["machine"] = json!("trip"),
    }
    let entered = step(gateway, args);
    assert_eq!(place_of(&entered), (json!("sale"), json!("open")), "{entered}");
    assert_legal(&entered["data"], &["leave", "name"]);
    let session = entered["data"]["session"].clone();
    let named = step(gateway, json!({ "action": "name", "inputs": { "order": "o1" }, "session": session }));
    assert_eq!(named["status"], "success", "{named}");
    session
}

#[test]
fn a_machine_within_another_fails_and_succeeds_and_the_other_goes_on_by_how_it_ended() {
    let place = Place::new();
    let mut gateway = serve(&place, &trip());
    says(&place, "take", "o1", &forbidden());
    let session = enters(&gateway, None);

    let failed = take(&gateway, &session, "pay");
    assert_eq!(
        (&failed["error"]["kind"], &failed["error"]["code"]),
        (&json!("action_error"), &json!("Forbidden")),
        "{failed}"
    );
    assert_eq!(place_of(&failed), (json!("sale"), json!("named")), "what fails within stays within: {failed}");
    assert_legal(&failed, &["leave", "pay"]);
    let outer = take(&gateway, &session, "drop");
    assert_refused(&outer, "unknown_action", &["leave", "pay"]);
    let words = outer["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("`drop` is an action of `trip`, which goes on when `sale` is over"), "{words}");
    assert_eq!(look(&gateway, &session, "state")["frames"].as_array().map(Vec::len), Some(2));

    let left = take(&gateway, &session, "leave");
    assert_eq!(place_of(&left), (json!("trip"), json!("planned")), "it ended without a payment: {left}");
    assert_eq!(left["data"]["state"]["fields"], json!({ "how": "left", "charge": "" }), "{left}");
    assert_legal(&left["data"], &["drop", "settle"]);

    // It is taken up within the other machine, too.
    enters(&gateway, Some(&session));
    gateway.kill();
    says(&place, "take", "o1", &json!({ "result": { "id": "t_2" } }));
    let gateway = serve(&place, &trip());
    let paid = take(&gateway, &session, "pay");
    assert_eq!(place_of(&paid), (json!("trip"), json!("over")), "{paid}");
    assert_eq!(paid["data"]["state"]["fields"], json!({ "how": "paid", "charge": "t_2" }), "{paid}");
    assert_legal(&paid["data"], &[]);
    assert_eq!(done(&place).len(), 2, "each payment was sent once");
    place.settled();
}

/// Two calls at the same time.
fn both(timeout: &str) -> String {
    format!(
        r#"
[machines.fan]
initial = "a"
terminal = ["b", "left"]

[machines.fan.actions.both]
from = ["a"]
to = "b"
parallel = {{ one = {{ tool = "put", args = {{ order = "'p1'" }} }}, two = {{ tool = "take", args = {{ order = "'p2'" }} }} }}
timeout = "{timeout}"
writes = {{ one = "result.one.id", two = "result.two.id" }}

[machines.fan.actions.leave]
from = ["a"]
to = "left"
"#
    )
}

/// What the walk wrote, once both were done, and how often each was sent.
fn joined(place: &Place, gateway: &Gateway, session: &Value, takes: usize) {
    let made = take(gateway, session, "both");
    assert_eq!((&made["status"], &made["data"]["state"]["name"]), (&json!("success"), &json!("b")), "{made}");
    assert_eq!(made["data"]["state"]["fields"], json!({ "one": "put_1", "two": "t_2" }), "{made}");
    assert_eq!(made["data"]["result"]["two"]["id"], "t_2", "{made}");
    let tools = tools(place);
    let count = |name: &str| tools.iter().filter(|tool| *tool == name).count();
    assert_eq!((count("put"), count("take")), (1, takes), "what was done is not done again: {tools:?}");
    place.settled();
}

#[test]
fn of_calls_at_once_of_which_one_fails_the_other_is_told_as_done_and_not_done_again() {
    let place = Place::new();
    let gateway = serve(&place, &both("20s"));
    says(&place, "take", "p2", &json!([forbidden(), { "result": { "id": "t_2" } }]));
    let failed = step(&gateway, json!({ "action": "both" }));
    let told = (&failed["error"]["kind"], &failed["error"]["code"], &failed["error"]["certainty"]);
    assert_eq!(told, (&json!("action_error"), &json!("Forbidden"), &json!("processed")), "{failed}");
    let words = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("`both` failed in `two`"), "{words}");
    assert!(words.contains("`one` was done, and is not done again where the same is taken again"), "{words}");
    assert_eq!((&failed["state"]["name"], &failed["seq"]), (&json!("a"), &json!(0)), "all of it or nothing: {failed}");
    assert_legal(&failed, &["both", "leave"]);
    joined(&place, &gateway, &failed["session"], 2);
}

#[test]
fn of_calls_at_once_of_which_one_is_late_both_are_joined_when_it_comes() {
    let place = Place::new();
    let gateway = serve(&place, &both("1500ms"));
    let late = step(&gateway, json!({ "action": "both" }));
    let told = (&late["error"]["kind"], &late["error"]["certainty"]);
    assert_eq!(told, (&json!("action_timeout"), &json!("in_doubt")), "{late}");
    assert_legal(&late, &[]);
    let session = late["session"].clone();
    assert_refused(&take(&gateway, &session, "leave"), "in_flight", &[]);
    says(&place, "take", "p2", &json!({ "result": { "id": "t_2" } }));
    eventually("it is settled", || look(&gateway, &session, "next")["waits"]["done"] == true);
    assert_refused(&take(&gateway, &session, "leave"), "in_flight", &["both"]);
    joined(&place, &gateway, &session, 1);
}
