//! What cannot be run: an HTTP error with an envelope, before anything begins.

use serde_json::{Value, json};

use crate::agent::{Agent, asked, outcome, statuses};
use crate::support::{Place, http};

#[test]
fn bad_input_is_an_http_error_with_an_envelope() {
    let place = Place::new();
    let gateway = place.up("");
    let input = |more: Value| {
        let mut input = json!({ "threadId": "t", "runId": "r", "messages": [] });
        for (name, value) in more.as_object().expect("an object") {
            input[name] = value.clone();
        }
        input.to_string().into_bytes()
    };
    let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
    let calls = json!({ "amends": { "calls": [{ "tool": "get_order", "args": {} }] } });
    let waiting = json!({ "amends": { "steps": [{ "id": "1", "name": "get_order", "args": "{}", "status": "waiting" }],
                                      "waiting": { "asked": [{ "interrupt": "int_1" }] } } });
    let unknown = json!([{ "interruptId": "int_1", "status": "resolved", "payload": {} }]);
    for (body, status, kind) in [
        (b"".to_vec(), 422, "invalid_argument"),
        (b"\xff\xfe".to_vec(), 422, "invalid_argument"),
        (b"{\"threadId\":".to_vec(), 422, "invalid_argument"),
        (deep, 413, "too_large"),
        (vec![b' '; 5 << 20], 413, "too_large"),
        (input(json!({})), 422, "invalid_argument"),
        (input(json!({ "threadId": 7, "forwardedProps": calls })), 422, "invalid_argument"),
        (input(json!({ "messages": "none", "forwardedProps": calls })), 422, "invalid_argument"),
        (input(json!({ "state": [1], "forwardedProps": calls })), 422, "invalid_argument"),
        (input(json!({ "forwardedProps": { "amends": { "call": [] } } })), 422, "invalid_argument"),
        (input(json!({ "forwardedProps": { "amends": { "machine": "nothing" } } })), 422, "validation_failed"),
        (input(json!({ "state": waiting, "forwardedProps": calls })), 422, "invalid_argument"),
        (input(json!({ "state": waiting, "resume": unknown })), 404, "unknown_name"),
        (input(json!({ "resume": unknown })), 422, "invalid_argument"),
    ] {
        let (said, envelope) = http::post(&gateway.address, "/agui", &[], &body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert_eq!((said, &envelope["error"]["kind"]), (status, &json!(kind)), "{shown}: {envelope:#}");
        assert_eq!(envelope["status"], "refused");
    }
    let (status, _) = http::parse(&get(&gateway.address, "/agui"));
    assert_eq!(status, 405);
    place.settled();
}

#[test]
fn arguments_that_are_no_object_are_refused_in_the_run() {
    let place = Place::new();
    let gateway = place.up("");
    let mut agent = Agent::of(&gateway);
    for args in [json!([1]), json!("x"), json!(7)] {
        let went = agent.calls(&args.to_string(), json!([{ "tool": "get_order", "args": args }]));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed"]), "{went:#}");
    }
}

#[test]
fn an_interrupt_is_answered_by_whom_it_was_told_and_with_what_it_asks() {
    let place = Place::new();
    let text = "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n[queues.finance]\nrequester = true\n\
                [auth.tokens.ada]\nsecret = { file = \"ada\" }\n[auth.tokens.bob]\nsecret = { file = \"bob\" }\n";
    for name in ["ada", "bob"] {
        place.write(name, &format!("token-of-{name}-which-is-long-enough"));
    }
    let config = place.write("who.toml", text).display().to_string();
    let gateway = crate::support::Gateway::listening(place.up_command("", &["--config", &config]));
    let (status, _) = http::post(&gateway.address, "/agui", &[], b"{}");
    assert_eq!(status, 401);
    let mut ada = Agent::with_token(&gateway, Some("token-of-ada-which-is-long-enough"));
    let mut bob = Agent::with_token(&gateway, Some("token-of-bob-which-is-long-enough"));
    let charge = json!([{ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } }]);
    crate::support::eventually("the shop's tools are served", || {
        outcome_of(&ada.calls("ready", json!([{ "tool": "get_order", "args": { "order": "ord_1" } }]))) == "done"
    });
    let went = ada.calls("t", charge);
    let id = asked(&went);
    let resume = |payload: Value| json!([{ "interruptId": id, "status": "resolved", "payload": payload }]);
    // Another's interrupt is unknown, whatever is carried.
    let other =
        bob.run(json!({ "thread": "t", "state": went["state"], "resume": resume(json!({ "approved": true })) }));
    assert_eq!(
        (&other["status"], &other["refused"]["error"]["kind"]),
        (&json!(404), &json!("unknown_name")),
        "{other:#}"
    );
    for odd in [json!({ "choice": "happened" }), json!({ "approved": "yes" }), json!({ "editedArgs": { "amount": 1 } })]
    {
        let refused = ada.run(json!({ "thread": "t", "resume": resume(odd) }));
        assert_eq!(
            (&refused["status"], &refused["refused"]["error"]["kind"]),
            (&json!(422), &json!("invalid_argument")),
            "{refused:#}"
        );
    }
    assert_eq!(place.requests("charge_card"), 0);
    let went = ada.run(json!({ "thread": "t", "resume": resume(json!({ "approved": true })) }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!(place.effects("charge_card"), 1);
}

fn outcome_of(went: &Value) -> String {
    statuses(went).first().map(|status| (*status).to_owned()).unwrap_or_default()
}

pub(crate) fn get(address: &str, path: &str) -> Vec<u8> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}
