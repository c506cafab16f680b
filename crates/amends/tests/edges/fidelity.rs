//! Bytes: what passes through comes out as it went in, but for what is documented.

use serde_json::value::RawValue;

use crate::pipe::{MODERN, Pipe, head, result};
use crate::servers::{contracts, python, serve, shop, words};
use crate::support::http::post_raw;
use crate::support::{Place, eventually};

const HAND_MADE: [&str; 8] = ["numbers", "escapes", "duplicates", "nulls", "deep", "big", "strange", "meta"];

/// The result without what we add to its `_meta`, all other bytes as they are.
fn without_ours(result: &str) -> String {
    const OURS: [&str; 2] = [r#""amends/envelope":"#, r#""amends/receipt":"#];
    let start = result.find(OURS[0]).unwrap_or_else(|| panic!("nothing of ours: {:.300}", result));
    let mut end = start;
    for name in OURS {
        let rest = &result[end..];
        let rest = rest.strip_prefix(',').unwrap_or(rest);
        let value = rest.strip_prefix(name).unwrap_or_else(|| panic!("no {name}"));
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
        values.next().expect("a value").expect("JSON");
        end = result.len() - value.len() + values.byte_offset();
    }
    let (before, after) = (&result[..start], &result[end..]);
    match before.strip_suffix(r#""_meta":{"#) {
        // All of it was ours.
        Some(before) => format!("{}{}", before.strip_suffix(',').unwrap_or(before), &after[1..]),
        None => format!("{}{after}", before.strip_suffix(',').unwrap_or(before)),
    }
}

#[test]
fn a_result_of_the_shop_comes_out_byte_for_byte_through_wrap_and_http() {
    let place = Place::new();
    let server = shop(&place, &[]);
    let arguments = r#"{"order":"ord_7"}"#;
    let mut direct = Pipe::start(&words(&server));
    direct.greet();
    let id = direct.begin("get_order", arguments);
    let original = direct.answer(id);
    let original = result(&original);
    assert!(original.contains(r#""x-shop":{"shelf":7,"weight":1.0}"#), "{original}");
    let mut wrapped = Pipe::wrap(&place, &[], &words(&server));
    wrapped.greet();
    let id = wrapped.begin("get_order", arguments);
    assert_eq!(without_ours(result(&wrapped.answer(id))), original);
    let gateway = place.up("");
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"get_order","arguments":{arguments}}}}}"#
    );
    let (status, answer) = post_raw(&gateway.address, "/mcp", &[], request.as_bytes());
    let answer = String::from_utf8(answer).expect("UTF-8");
    assert_eq!((status, head(&answer).id.map(RawValue::get)), (200, Some(r#""a""#)));
    assert_eq!(without_ours(result(&answer)), original);
    // A stateless agent in front of a stateful upstream gets its era's stamp and nothing else.
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_order","arguments":{arguments},"_meta":{{{MODERN}}}}}}}"#
    );
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "get_order")];
    let (_, answer) = post_raw(&gateway.address, "/mcp", &headers, request.as_bytes());
    let answer = String::from_utf8(answer).expect("UTF-8");
    let stamped = without_ours(result(&answer));
    assert_eq!(stamped.replace(r#","resultType":"complete""#, ""), original);
    assert_ne!(stamped, original);
}

#[test]
fn hand_written_results_come_out_byte_for_byte_through_a_wrap() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut direct = Pipe::start(&words(&server));
    direct.greet();
    let mut wrapped = Pipe::wrap(&place, &[], &words(&server));
    wrapped.greet();
    for tool in HAND_MADE {
        let (id, other) = (direct.begin(tool, "{}"), wrapped.begin(tool, "{}"));
        let (original, passed) = (direct.answer(id), wrapped.answer(other));
        assert_eq!(without_ours(result(&passed)), result(&original), "{tool}");
    }
}

#[test]
fn hand_written_results_come_out_byte_for_byte_over_http() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut direct = Pipe::start(&words(&server));
    direct.greet();
    let gateway = serve(&place, &format!("command = {server:?}"), "");
    eventually("the tools are served", || gateway.call("meta", "{}").0 == 200);
    for tool in HAND_MADE {
        let id = direct.begin(tool, "{}");
        let original = direct.answer(id);
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
        let (_, answer) = post_raw(&gateway.address, "/mcp", &[], request.as_bytes());
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert_eq!(without_ours(result(&answer)), result(&original), "{tool}");
        let (status, envelope) = post_raw(&gateway.address, &format!("/call/{tool}"), &[], b"{}");
        let envelope = String::from_utf8(envelope).expect("UTF-8");
        assert_eq!(status, 200, "{tool}: {envelope:.300}");
        for bytes in ["10000000000000000000001", "1e5", "0.10"].iter().filter(|_| tool == "numbers") {
            assert!(envelope.contains(bytes), "the plain door keeps {bytes}: {envelope}");
        }
    }
}

#[test]
fn arguments_reach_the_server_byte_for_byte() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    let arguments =
        r#"{ "n" : 1.0,"e":1e5,"big":10000000000000000000001,"dup":1,"dup":2,"esc":"\u00e9é\/","null":null}"#;
    let params =
        format!(r#"{{"x":1.0, "name":"echo","arguments":{arguments},"_meta":{{"traceparent":"00-1","z":1.0}}}}"#);
    let id = pipe.ask("tools/call", &params);
    let answer: serde_json::Value = serde_json::from_str(&pipe.answer(id)).expect("JSON");
    let line = answer["result"]["content"][0]["text"].as_str().expect("the line as it arrived");
    let (arrived, left_ms) = without_deadline(head(line).params.expect("params").get());
    assert_eq!(arrived, params);
    assert!((1..=50_000).contains(&left_ms), "{line}");
}

#[test]
fn the_time_that_is_left_reaches_the_server_and_is_no_more_than_an_attempt_may_take() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let gateway = serve(&place, &format!("command = {server:?}\ntimeout = \"30s\""), "");
    eventually("the tools are served", || gateway.call("meta", "{}").0 == 200);
    for (meta, most) in [("", 30_000), (r#""amends/deadline":20000"#, 20_000), (r#""amends/deadline":90000"#, 30_000)] {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{most}}},"_meta":{{{meta}}}}}}}"#
        );
        let (_, answer) = post_raw(&gateway.address, "/mcp", &[], request.as_bytes());
        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        let line = answer["result"]["content"][0]["text"].as_str().expect("the line as it arrived");
        let (_, left_ms) = without_deadline(head(line).params.expect("params").get());
        assert!((1..=most).contains(&left_ms), "{left_ms} of {most}: {line}");
    }
}

#[test]
fn what_cannot_finish_is_not_begun() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let gateway = serve(&place, &format!("command = {server:?}"), "");
    eventually("the tools are served", || gateway.call("meta", "{}").0 == 200);
    let request =
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"amends/deadline":20}}}"#;
    let (_, answer) = post_raw(&gateway.address, "/mcp", &[], request);
    let answer = String::from_utf8(answer).expect("UTF-8");
    assert!(answer.contains("retry_later") && answer.contains("not_sent"), "{answer}");
    let log = std::fs::read_to_string(place.path("server.log")).expect("the server's log");
    assert!(!log.contains(r#""name":"echo""#), "{log}");
}

/// What arrived without the time that is left, which is ours to say, and that time.
fn without_deadline(params: &str) -> (String, u64) {
    const OURS: &str = r#""amends/deadline":"#;
    let start = params.find(OURS).unwrap_or_else(|| panic!("no time is left: {params}"));
    let digits: String = params[start + OURS.len()..].chars().take_while(char::is_ascii_digit).collect();
    let before = params[..start].strip_suffix(',').unwrap_or(&params[..start]);
    (format!("{before}{}", &params[start + OURS.len() + digits.len()..]), digits.parse().expect("a number"))
}

#[test]
fn the_list_of_tools_passes_a_wrap_byte_for_byte() {
    let place = Place::new();
    for server in [python(&place, "hand.py", &[]), shop(&place, &[])] {
        let mut direct = Pipe::start(&words(&server));
        direct.greet();
        let mut wrapped = Pipe::wrap(&place, &[], &words(&server));
        let greeting = wrapped.greet();
        assert!(greeting.contains(r#""serverInfo":{"name":""#) && !greeting.contains("amends\""), "{greeting}");
        for params in ["{}", &format!(r#"{{"_meta":{{{MODERN}}}}}"#)] {
            let (id, other) = (direct.ask("tools/list", params), wrapped.ask("tools/list", params));
            let (original, passed) = (direct.answer(id), wrapped.answer(other));
            assert_eq!(result(&passed), result(&original));
        }
    }
}

#[test]
fn the_list_of_tools_over_http_keeps_every_entry_byte_for_byte() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut direct = Pipe::start(&words(&server));
    direct.greet();
    let id = direct.ask("tools/list", "{}");
    let original = direct.answer(id);
    let gateway = serve(&place, &format!("command = {server:?}"), contracts());
    eventually("the tools are served", || gateway.call("meta", "{}").0 == 200);
    let (_, answer) =
        post_raw(&gateway.address, "/mcp", &[], br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    let answer = String::from_utf8(answer).expect("UTF-8");
    let entry = r#"{"name":"numbers","inputSchema":{"type":"object","x-order":[1.0,1e5]},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"icons":[],"x-\u00e9":"\u00e9 é","_meta":{"vendor/n":1.0}}"#;
    assert!(original.contains(entry), "{original}");
    assert!(answer.contains(entry), "{answer}");
}
