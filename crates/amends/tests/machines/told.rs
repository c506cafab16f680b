//! What agents and operators are told of moves is what became of them.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually, http};
use crate::till::{self, holds, lets_go, look, queue, serve, step, take, tools};

/// A sale that is paid with what the agent says, or with what stands in the fields.
const SALE: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid"]
fields = { order = "o1" }
limits = { loops = 9 }

[machines.sale.actions.look_around]
from = ["open"]
to = "open"

[machines.sale.actions.pay]
from = ["open"]
to = "paid"
tool = "take"
args = { order = "has(inputs.order) ? inputs.order : 'o2'" }
input = { type = "object", properties = { order = { type = "string" }, tip = { type = "integer" } } }

[machines.sale.actions.settle]
from = ["open"]
to = "paid"
tool = "take"
args = { order = "state.order" }
"#;

#[test]
fn what_failed_for_what_it_was_given_is_not_offered_again_with_less() {
    let place = Place::new();
    let gateway = serve(&place, SALE);
    let invalid = json!({ "status": 422, "code": "invalid", "title": "no such order", "detail": "o1" });
    till::says(&place, "take", "o1", &json!({ "error": invalid }));
    let failed = step(&gateway, json!({ "action": "pay", "inputs": { "order": "o1" } }));
    let walk = failed["session"].clone();
    let template = &failed["error"]["recovery"]["template"];
    assert_eq!(template["args"], json!({ "action": "pay", "session": walk }), "{failed}");
    assert_eq!(template["missing"], json!(["inputs.order", "inputs.tip"]), "{failed}");
    let failed = take(&gateway, &walk, "settle");
    let recovery = &failed["error"]["recovery"];
    assert_eq!((&recovery["call"]["tool"], recovery.get("template")), (&json!("walk"), None), "{failed}");
}

#[test]
fn while_a_person_is_asked_about_a_move_it_is_theirs_to_act() {
    let place = Place::new();
    let asks = SALE.replace(
        "tool = \"take\"\nargs = { order = \"state",
        "queue = \"desk\"\ntool = \"take\"\nargs = { order = \"state",
    );
    let gateway = serve(&place, &format!("[people]\nhold = \"200ms\"\n{asks}"));
    let walk = step(&gateway, json!({ "action": "look_around" }))["data"]["session"].clone();
    let asked = take(&gateway, &walk, "settle");
    assert_eq!(asked["error"]["kind"], "awaiting_person", "{asked}");
    let other = take(&gateway, &walk, "look_around");
    let told = ["kind", "who_must_act", "retryable"].map(|name| &other["error"][name]);
    assert_eq!(told, [&json!("in_flight"), &json!("person"), &json!(false)], "{other}");
    assert_eq!(other["error"].get("retry_after_ms"), None, "{other}");
}

#[test]
fn whoever_asks_too_often_is_told_so_whatever_is_asked() {
    let place = Place::new();
    let hasty = format!("[limits]\nrate = {{ per_second = 0.001, burst = 1 }}\n{SALE}");
    let gateway = till::serve_at_once(&place, "timeout = \"20s\"", &hasty);
    let walk = step(&gateway, json!({ "action": "look_around" }))["data"]["session"].clone();
    assert!(walk.is_string(), "the first is taken");
    let of_walk = json!({ "session": walk });
    for (tool, args) in [
        ("reset", of_walk.clone()),
        ("fork", of_walk.clone()),
        ("step", json!({ "action": "look_around", "session": walk })),
        ("step", json!({ "action": "look_arround", "session": walk })),
        ("step", json!({ "action": "pay", "inputs": { "order": 5 }, "session": walk })),
    ] {
        let no = gateway.call(tool, &args.to_string()).1;
        assert_eq!(no["error"]["kind"], "rate_limited", "{tool} {args}: {no}");
        assert!(no["error"]["retry_after_ms"].as_u64().is_some_and(|wait_ms| wait_ms > 0), "{no}");
    }
    let cancel = gateway.call("cancel", &of_walk.to_string()).1;
    assert_ne!(cancel["error"]["kind"], "rate_limited", "{cancel}");
    assert_eq!(look(&gateway, &walk, "next")["seq"], 1);
    assert_eq!(place.events_named("walk_began").len(), 1);
}

/// Two things that are done at the same time.
const BOTH: &str = r#"
[machines.both]
initial = "open"
terminal = ["over"]

[machines.both.actions.both]
from = ["open"]
to = "over"
timeout = "1s"
parallel = { a = { tool = "put" }, b = { tool = "lend" } }
writes = { b = "result.b == null ? 'nothing' : result.b.id" }
"#;

#[test]
fn what_was_done_at_the_same_time_and_gave_nothing_is_null() {
    for restarts in [false, true] {
        let place = Place::new();
        let mut gateway = serve(&place, BOTH);
        holds(&place, "lend");
        let late = step(&gateway, json!({ "action": "both" }));
        assert_eq!(late["error"]["kind"], "action_timeout", "{late}");
        let walk = late["session"].clone();
        eventually("a person is asked", || !queue(&place).is_empty());
        let doubt = queue(&place)[0]["id"].as_str().expect("a question has an id").to_owned();
        let (code, said) = place.amends(&["answer", &doubt, "happened", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        eventually("it is settled", || look(&gateway, &walk, "next")["waits"]["done"] == true);
        if restarts {
            gateway.kill();
            gateway = serve(&place, BOTH);
        }
        let both = take(&gateway, &walk, "both");
        assert_eq!(both["data"]["state"]["fields"]["b"], "nothing", "{both}");
        let result = &both["data"]["result"];
        assert_eq!((&result["a"]["id"], result.get("b")), (&json!("put_1"), Some(&Value::Null)), "{both}");
        assert_eq!(tools(&place).len(), 2, "each is done once");
    }
}

#[test]
fn what_failed_and_is_passed_over_has_nothing_to_show_though_it_was_done() {
    let place = Place::new();
    let skips = BOTH.replace(
        "parallel = { a = { tool = \"put\" }, b = { tool = \"lend\" } }",
        "tool = \"put\"\nassert = \"result.id == 'good' ? 'ok' : 'fail'\"\nresolution = \"skip\"",
    );
    let gateway = serve(
        &place,
        &skips.replace("result.b == null ? 'nothing' : result.b.id", "result == null ? 'nothing' : result.id"),
    );
    let skipped = step(&gateway, json!({ "action": "both" }));
    let told = &skipped["data"];
    assert_eq!(
        (&told["state"]["fields"]["b"], &told["skipped"]["done"]),
        (&json!("nothing"), &json!(["act"])),
        "{skipped}"
    );
    assert_eq!(told.get("result").filter(|result| !result.is_null()), None, "{skipped}");
}

#[test]
fn a_move_that_waits_for_a_person_says_that_a_call_beside_may_have_happened() {
    let place = Place::new();
    let asks = BOTH.replace("tool = \"put\"", "tool = \"give\"").replace("timeout = \"1s\"", "timeout = \"20s\"");
    let people = "[people]\nhold = \"300ms\"\n[tools.give]\neffect = \"write\"\napproval = \"desk\"\n";
    let gateway = serve(&place, &format!("{people}{asks}"));
    holds(&place, "lend");
    let asked = step(&gateway, json!({ "action": "both" }));
    let error = &asked["error"];
    assert_eq!((&error["kind"], &error["certainty"]), (&json!("awaiting_person"), &json!("in_doubt")), "{asked}");
    assert_eq!(error["safe_to_repeat"], false, "{asked}");
    assert!(error["message"].to_string().contains("whether `b` happened is not known yet"), "{asked}");
    lets_go(&place, "lend");
    let walk = asked["session"].clone();
    eventually("it is known", || take(&gateway, &walk, "both")["error"]["safe_to_repeat"] == true);
}

/// What is counted of retries.
fn retries(gateway: &Gateway) -> Vec<String> {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address)
        .expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let text = String::from_utf8(http::parse(&answer).1).expect("text");
    text.lines().filter(|line| line.starts_with("amends_retries_total")).map(str::to_owned).collect()
}

#[test]
fn what_a_move_tries_again_is_counted_once() {
    let place = Place::new();
    let tries = "tool = \"put\"\nassert = \"result.id == 'good' ? 'ok' : 'retry'\"\nretry = { max_attempts = 3, initial = \"10ms\" }";
    let tries = BOTH.replace("parallel = { a = { tool = \"put\" }, b = { tool = \"lend\" } }", tries);
    let gateway = serve(&place, &tries.replace("result.b == null ? 'nothing' : result.b.id", "result.id"));
    let failed = step(&gateway, json!({ "action": "both" }));
    assert_eq!((&failed["error"]["kind"], tools(&place).len()), (&json!("action_error"), 3), "{failed}");
    let (code, trace) = place.amends(&["trace", failed["session"].as_str().expect("a handle")]);
    assert!(code == 0 && trace.contains("retries  2"), "{trace}");
    let counted = retries(&gateway);
    assert!(counted.len() == 1 && counted[0].ends_with("} 2") && !counted[0].contains("unknown"), "{counted:?}");
}
