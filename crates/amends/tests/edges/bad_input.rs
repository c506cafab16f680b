//! Bad input: each piece gets a typed answer with its id, is recorded, and leaves the next good call alone.

use serde_json::{Value, json};

use crate::pipe::{Pipe, envelope};
use crate::process::resident_mb;
use crate::servers::{events, shop, words, wrapped_shop};
use crate::support::http::{post, send};
use crate::support::{Place, eventually};

const HUNDRED_MB: usize = 100 << 20;

/// A message that is wrong, and what is said to it.
struct Bad {
    what: &'static str,
    message: Vec<u8>,
    id: Value,
    /// The JSON-RPC code; nothing where it is a tool's result.
    code: Option<i64>,
    kind: &'static str,
}

fn bad(what: &'static str, message: impl Into<Vec<u8>>, id: Value, code: i64, kind: &'static str) -> Bad {
    Bad { what, message: message.into(), id, code: Some(code), kind }
}

/// A call with wrong parameters: refused as a result of the tool.
fn call(what: &'static str, params: &str, kind: &'static str) -> Bad {
    let message = format!(r#"{{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{params}}}"#);
    Bad { what, message: message.into_bytes(), id: json!("c"), code: None, kind }
}

fn with_arguments(what: &'static str, tool: &str, arguments: &str) -> Bad {
    call(what, &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#), "invalid_argument")
}

fn with_meta(what: &'static str, meta: &str) -> Bad {
    let arguments = r#"{"order":"ord_1","amount":5}"#;
    let params = format!(r#"{{"name":"charge_card","arguments":{arguments},"_meta":{meta}}}"#);
    call(what, &params, "invalid_argument")
}

fn wrong_calls() -> Vec<Bad> {
    let long = "n".repeat(1 << 20);
    let mut unknown = call("an unknown tool", r#"{"name":"get_ordr","arguments":{}}"#, "unknown_name");
    unknown.code = Some(-32602);
    vec![
        with_arguments("a wrong type", "charge_card", r#"{"order":5,"amount":"five"}"#),
        with_arguments("a missing argument", "charge_card", r#"{"order":"ord_1"}"#),
        with_arguments("an unknown argument", "charge_card", r#"{"order":"ord_1","amount":5,"amuont":6}"#),
        with_arguments("a wrong type for a read", "get_order", r#"{"order":null}"#),
        with_arguments("a number beyond its bounds", "slow_report", r#"{"steps":99999999999999999999999}"#),
        with_arguments("a number beyond all range", "charge_card", r#"{"order":"ord_1","amount":1e400}"#),
        with_arguments("half a surrogate", "charge_card", r#"{"order":"\ud800","amount":5}"#),
        with_arguments("arguments that are a list", "charge_card", "[1]"),
        with_arguments("arguments that are a string", "charge_card", r#""{\"order\":\"ord_1\"}""#),
        with_arguments("arguments twice", "charge_card", r#"{},"arguments":{"order":"ord_1","amount":5}"#),
        with_arguments("an argument twice", "charge_card", r#"{"order":"ord_1","amount":5000,"amount":5}"#),
        with_arguments(
            "an argument with a name of a megabyte twice",
            "charge_card",
            &format!(r#"{{"{long}":1,"{long}":2}}"#),
        ),
        with_arguments("an argument twice for a read", "get_order", r#"{"order":"ord_1","order":"ord_2"}"#),
        call("a name that is no string", r#"{"name":7}"#, "malformed_name"),
        call("no name", r#"{"arguments":{}}"#, "malformed_name"),
        call("an empty name", r#"{"name":""}"#, "malformed_name"),
        call("a name with a zero byte", r#"{"name":"get_order\u0000"}"#, "malformed_name"),
        call("a name of a megabyte", &format!(r#"{{"name":"{long}"}}"#), "malformed_name"),
        call("params that are a list", "[]", "malformed_name"),
        call("no params", "null", "malformed_name"),
        with_meta("meta that is a number", "7"),
        with_meta("meta that is a list", "[]"),
        with_meta("a key that is a number", r#"{"amends/key":7}"#),
        with_meta("a key that is an object", r#"{"amends/key":{}}"#),
        with_meta("an empty key", r#"{"amends/key":""}"#),
        with_meta("a key that is null", r#"{"amends/key":null}"#),
        with_meta("a long key", &format!(r#"{{"amends/key":"{}"}}"#, "k".repeat(300))),
        with_meta("a token that is an object", r#"{"progressToken":{}}"#),
        with_meta("a deadline that is a word", r#"{"amends/deadline":"soon"}"#),
        with_meta("a session that is a path", r#"{"amends/session":7}"#),
        unknown,
    ]
}

fn wrong_messages() -> Vec<Bad> {
    let truncated = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"charge_card","argum"#;
    let nested = "[".repeat(10_000) + &"]".repeat(10_000);
    let mut not_utf8 = br#"{"jsonrpc":"2.0","id":"u","method":"tools/call","params":{"name":""#.to_vec();
    not_utf8.extend(b"\xff\xfe\"}}");
    let deep = |order: bool| {
        let params = format!(r#""params":{{"name":"get_order","arguments":{{"order":{nested}}}}}"#);
        let head = r#""jsonrpc":"2.0","id":"d","method":"tools/call""#;
        if order { format!("{{{head},{params}}}") } else { format!("{{{params},{head}}}") }
    };
    let invalid = "invalid_argument";
    vec![
        bad("truncated JSON", truncated, json!(7), -32700, invalid),
        bad("not JSON", "get_order please", Value::Null, -32700, invalid),
        bad("not UTF-8", not_utf8, json!("u"), -32700, invalid),
        bad("zero bytes", b"{\"jsonrpc\":\"2.0\",\"id\":3,\0\0}".to_vec(), json!(3), -32700, invalid),
        bad("10,000 levels", deep(true), json!("d"), -32600, "too_large"),
        bad("10,000 levels before the id", deep(false), json!("d"), -32600, "too_large"),
        bad("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null, -32600, invalid),
        bad("a string", r#""hello""#, Value::Null, -32600, invalid),
        bad("another version", r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, json!(4), -32600, invalid),
        bad("a method that is no string", r#"{"jsonrpc":"2.0","id":5,"method":7}"#, json!(5), -32600, invalid),
        bad(
            "params that are a word",
            r#"{"jsonrpc":"2.0","id":6,"method":"m","params":"x"}"#,
            json!(6),
            -32600,
            invalid,
        ),
        bad("an id that is an object", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null, -32600, invalid),
        bad("neither method nor result", r#"{"jsonrpc":"2.0","id":8}"#, json!(8), -32600, invalid),
    ]
}

fn assert_typed(bad: &Bad, answer: &Value) {
    let what = bad.what;
    assert_eq!(answer["jsonrpc"], "2.0", "{what}: {answer}");
    assert_eq!(answer["id"], bad.id, "{what}: {answer}");
    let refused = match bad.code {
        Some(code) => {
            assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|words| !words.is_empty()), "{what}: {answer}");
            &answer["error"]["data"]
        }
        None => {
            assert_eq!(answer["result"]["isError"], true, "{what}: {answer}");
            assert!(answer["result"]["content"][0]["text"].is_string(), "{what}: {answer}");
            &answer["result"]["_meta"]["amends/envelope"]
        }
    };
    assert_eq!(refused["status"], "refused", "{what}: {answer}");
    assert_eq!(refused["error"]["kind"], bad.kind, "{what}: {answer}");
    assert_eq!(refused["error"]["certainty"], "not_sent", "{what}: {answer}");
    assert!(answer.to_string().len() < 20_000, "{what}: an answer of {} bytes", answer.to_string().len());
}

#[test]
fn bad_messages_over_http_get_typed_answers_and_are_recorded() {
    let place = Place::new();
    let gateway = place.up("");
    let before = events(&place, "call_refused");
    let mut refused = 0;
    for bad in wrong_calls() {
        let (status, answer) = post(&gateway.address, "/mcp", &[], &bad.message);
        assert_eq!(status, 200, "{}: {answer}", bad.what);
        assert_typed(&bad, &answer);
        refused += 1;
    }
    let empty = bad("nothing", "", Value::Null, -32700, "invalid_argument");
    for bad in wrong_messages().into_iter().chain([empty]) {
        let (status, answer) = post(&gateway.address, "/mcp", &[], &bad.message);
        assert_eq!(status, 400, "{}: {answer}", bad.what);
        assert_typed(&bad, &answer);
        refused += 1;
    }
    eventually("every refusal is recorded", || events(&place, "call_refused") == before + refused);
    assert_eq!(place.requests("charge_card"), 0, "nothing of it was sent");
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200);
    place.settled();
}

#[test]
fn bad_messages_over_stdio_get_typed_answers_and_are_recorded() {
    let place = Place::new();
    let config = wrapped_shop(&place);
    let server = shop(&place, &[]);
    let mut pipe = Pipe::wrap(&place, &["--config", &config], &words(&server));
    pipe.greet();
    let mut refused = 0;
    for bad in wrong_calls().into_iter().chain(wrong_messages()) {
        pipe.line(&bad.message);
        let answer = serde_json::from_str(&pipe.next()).expect("JSON");
        assert_typed(&bad, &answer);
        refused += 1;
    }
    eventually("every refusal is recorded", || events(&place, "call_refused") == refused);
    assert_eq!(place.requests("charge_card"), 0, "nothing of it was sent");
    let order = pipe.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(envelope(&order)["status"], "success", "{order}");
    place.settled();
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_name_and_wrong_arguments_with_the_field() {
    let place = Place::new();
    let gateway = place.up("");
    let ask = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        post(&gateway.address, "/mcp", &[], message.to_string().as_bytes()).1
    };
    let unknown = ask("chrage_card", json!({}));
    assert_eq!(unknown["error"]["data"]["error"]["recovery"]["fuzzy_matches"][0], "charge_card", "{unknown}");
    assert!(unknown["error"]["data"]["_meta"]["amends/receipt"]["trace"].is_string(), "{unknown}");
    let wrong = ask("charge_card", json!({ "order": "ord_1", "amount": "5", "amuont": 5 }));
    let error = &wrong["result"]["_meta"]["amends/envelope"]["error"];
    let fields: Vec<&str> =
        error["details"].as_array().into_iter().flatten().filter_map(|fault| fault["field"].as_str()).collect();
    assert!(fields.contains(&"amount") && fields.contains(&"amuont"), "{wrong}");
    assert!(wrong["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("amount")), "{wrong}");
}

#[test]
fn bad_bodies_at_the_plain_door_get_typed_envelopes_and_are_recorded() {
    let place = Place::new();
    let gateway = place.up("");
    let before = events(&place, "call_refused");
    let nested = "[".repeat(10_000);
    let cases: [(&str, &str, &[u8], u16, &str); 14] = [
        ("a wrong type", "charge_card", br#"{"order":5,"amount":5}"#, 422, "invalid_argument"),
        ("a missing argument", "charge_card", b"{}", 422, "invalid_argument"),
        ("nothing at all", "charge_card", b"", 422, "invalid_argument"),
        ("an unknown argument", "get_order", br#"{"order":"ord_1","x":1}"#, 422, "invalid_argument"),
        ("a list", "charge_card", b"[]", 422, "invalid_argument"),
        ("a string", "charge_card", br#""x""#, 422, "invalid_argument"),
        ("truncated JSON", "charge_card", br#"{"order":"ord_1","amo"#, 422, "invalid_argument"),
        ("two values", "charge_card", br#"{"order":"ord_1","amount":5}{}"#, 422, "invalid_argument"),
        ("not UTF-8", "charge_card", b"{\"order\":\"\xff\"}", 422, "invalid_argument"),
        ("zero bytes", "charge_card", b"\0\0\0", 422, "invalid_argument"),
        ("beyond all range", "charge_card", br#"{"order":"ord_1","amount":1e400}"#, 422, "invalid_argument"),
        ("an argument twice", "charge_card", br#"{"amount":5,"order":"ord_1","amount":9}"#, 422, "invalid_argument"),
        ("10,000 levels", "charge_card", nested.as_bytes(), 413, "too_large"),
        ("an unknown tool", "chrage_card", b"{}", 404, "unknown_name"),
    ];
    for (what, tool, body, status, kind) in &cases {
        let (given, answer) = post(&gateway.address, &format!("/call/{tool}"), &[], body);
        assert_eq!(answer["status"], "refused", "{what}: {answer}");
        assert_eq!(answer["error"]["kind"], *kind, "{what}: {answer}");
        assert_eq!(given, *status, "{what}: {answer}");
    }
    for key in ["", "k\tk", &"k".repeat(300)] {
        let headers = [("idempotency-key", key)];
        let body = br#"{"order":"ord_1","amount":5}"#;
        let (status, answer) = post(&gateway.address, "/call/charge_card", &headers, body);
        assert_eq!((status, &answer["error"]["kind"]), (422, &json!("invalid_argument")), "{key:?}: {answer}");
    }
    let refused = cases.len() as u64 + 3;
    eventually("every refusal is recorded", || events(&place, "call_refused") == before + refused);
    assert_eq!(place.requests("charge_card"), 0);
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200);
    place.settled();
}

/// A hundred megabytes in one string, with the id at either end.
fn hundred_mb(id_first: bool) -> Vec<u8> {
    let padding = "x".repeat(HUNDRED_MB);
    let head = r#""jsonrpc":"2.0","id":"big","method":"tools/call""#;
    let params = format!(r#""params":{{"name":"get_order","arguments":{{"order":"{padding}"}}}}"#);
    if id_first { format!("{{{head},{params}}}") } else { format!("{{{params},{head}}}") }.into_bytes()
}

#[test]
fn a_body_of_a_hundred_megabytes_is_refused_within_bounded_memory() {
    let place = Place::new();
    let gateway = place.up("");
    let before = (resident_mb(gateway.id()), events(&place, "call_refused"));
    let (first, last) = (hundred_mb(true), hundred_mb(false));
    for body in [&first, &last] {
        let (status, answer) = post(&gateway.address, "/mcp", &[], body);
        assert_eq!((status, &answer["error"]["code"], &answer["id"]), (413, &json!(-32600), &json!("big")), "{answer}");
        assert_eq!(answer["error"]["data"]["error"]["kind"], "too_large");
        let (status, answer) = post(&gateway.address, "/call/get_order", &[], body);
        assert_eq!((status, &answer["error"]["kind"]), (413, &json!("too_large")), "{answer}");
    }
    let after = resident_mb(gateway.id());
    assert!(after < before.0 + 60, "{} MB before and {after} MB after", before.0);
    eventually("each is recorded", || events(&place, "call_refused") == before.1 + 4);
    // A body that breaks off leaves nothing behind.
    drop(send(&gateway.address, "/mcp", &[], &first[..1 << 20]));
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200);
    place.settled();
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_within_bounded_memory() {
    let place = Place::new();
    let config = wrapped_shop(&place);
    let server = shop(&place, &[]);
    let mut pipe = Pipe::wrap(&place, &["--config", &config], &words(&server));
    pipe.greet();
    pipe.call("get_order", r#"{"order":"ord_1"}"#);
    let before = resident_mb(pipe.id());
    for id_first in [true, false] {
        pipe.line(hundred_mb(id_first));
        let answer: Value = serde_json::from_str(&pipe.next()).expect("JSON");
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("big")), "{answer}");
        assert_eq!(answer["error"]["data"]["error"]["kind"], "too_large");
    }
    let after = resident_mb(pipe.id());
    assert!(after < before + 60, "{before} MB before and {after} MB after");
    let order = pipe.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(envelope(&order)["status"], "success", "{order}");
    eventually("each is recorded", || events(&place, "call_refused") == 2);
    place.settled();
}
