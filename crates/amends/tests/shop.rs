//! The demo shop as a process, spoken to over standard input and over HTTP.

#[path = "shop/process.rs"]
mod process;

use std::io::Read;

use serde_json::{Value, json};

use process::{HttpShop, PATIENCE, Shop, book, rows, tool_call, until};

#[test]
fn a_crash_after_the_effect_keeps_the_effect_and_the_count() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let faults = ["--fault", "issue_refund=crash_after,crash_before,ok"];
    let refund = json!({"order": "ord_1", "amount": 5, "idempotency_key": "k"});
    for _ in 0..2 {
        let mut shop = Shop::start(folder.path(), &faults);
        shop.call(1, "issue_refund", &refund);
        assert_eq!(shop.exit_code(), Some(70));
    }
    let mut shop = Shop::start(folder.path(), &faults);
    shop.call(1, "issue_refund", &refund);
    let answer = shop.next();
    assert_eq!(answer["result"]["structuredContent"]["id"], "re_000001");
    assert_eq!(shop.leave(), Some(0));
    let book = book(folder.path());
    assert_eq!(book["counts"], json!({"issue_refund": 1}));
    let faults: Vec<_> = rows(&book, "requests").map(|row| &row["fault"]).collect();
    assert_eq!(faults, [&json!("crash_after"), &json!("crash_before"), &Value::Null]);
}

#[test]
fn a_key_is_one_refund_and_a_charge_is_always_another() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shop = Shop::start(folder.path(), &["--demo"]);
    let refund = json!({"order": "ord_lost", "amount": 5, "idempotency_key": "k"});
    shop.call(1, "issue_refund", &refund);
    shop.call(2, "issue_refund", &refund);
    let answer = shop.next();
    assert_eq!(answer["id"], 2, "the first answer is lost");
    let charge = json!({"order": "ord_7", "amount": 1.5});
    shop.call(3, "charge_card", &charge);
    shop.call(4, "charge_card", &charge);
    let ids: Vec<_> = shop.answers(2).map(|answer| answer["id"].clone()).collect();
    assert!(ids.contains(&json!(3)) && ids.contains(&json!(4)));
    assert_eq!(shop.leave(), Some(0));
    let book = book(folder.path());
    assert_eq!(book["counts"], json!({"issue_refund": 1, "charge_card": 2}));
    assert!(rows(&book, "requests").all(|row| row["note"] == ""));
}

#[test]
fn a_slow_call_blocks_nobody_and_reports_every_step_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shop = Shop::start(folder.path(), &[]);
    let params = json!({
        "name": "slow_report",
        "arguments": {"steps": 3, "step_ms": 500},
        "_meta": {"progressToken": "t"},
    });
    shop.request(1, "tools/call", &params);
    shop.call(2, "get_order", &json!({"order": "ord_1"}));
    let quick = shop.next();
    assert_eq!(quick["id"], 2);
    assert_eq!(quick["result"]["x-shop"], json!({"shelf": 7, "weight": 1.0}));
    for step in 1..=3 {
        let progress = shop.next();
        assert_eq!(progress["method"], "notifications/progress");
        let expected = json!({"progressToken": "t", "progress": step, "total": 3});
        assert_eq!(progress["params"], expected);
    }
    let slow = shop.next();
    assert_eq!(slow["result"]["structuredContent"], json!({"steps": 3}));
}

#[test]
fn a_cancelled_call_stops_and_is_noted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shop = Shop::start(folder.path(), &["--fault", "send_email=lose_response"]);
    shop.call(1, "slow_report", &json!({"steps": 100, "step_ms": 1000}));
    shop.call(2, "send_email", &json!({"to": "a@example.com", "subject": "hello"}));
    shop.request(3, "ping", &json!({}));
    assert_eq!(shop.next()["id"], 3, "the calls are in the book");
    until(|| rows(&book(folder.path()), "effects").count() == 1);
    for id in [1, 2, 99] {
        shop.send(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id},
        }));
    }
    until(|| rows(&book(folder.path()), "requests").all(|row| row["note"] == "cancelled"));
    shop.request(4, "ping", &json!({}));
    let answer = json!({"jsonrpc": "2.0", "id": 4, "result": {}});
    assert_eq!(shop.next(), answer, "nothing else is answered");
}

#[test]
fn nonsense_is_answered_with_errors_and_the_shop_lives_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shop = Shop::start(folder.path(), &[]);
    for (line, code) in [
        ("{", -32700),
        ("\u{7f}\u{0}", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"fly"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fly"}}"#, -32602),
    ] {
        shop.line(line);
        assert_eq!(shop.next()["error"]["code"], code, "{line}");
    }
    shop.line(&"x".repeat(5 * 1024 * 1024));
    assert_eq!(shop.next()["error"]["code"], -32600);
    shop.call(2, "get_order", &json!({"order": 7}));
    assert_eq!(shop.next()["result"]["structuredContent"]["status"], 422);
    assert_eq!(shop.leave(), Some(0));
}

#[test]
fn garbage_is_a_line_that_is_not_json() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shop = Shop::start(folder.path(), &["--fault", "charge_card=garbage"]);
    shop.call(1, "charge_card", &json!({"order": "ord_1", "amount": 5}));
    let line = shop.lines.recv_timeout(PATIENCE).expect("a line");
    assert!(line.starts_with("<!DOCTYPE html>"));
}

#[test]
fn over_http_a_lost_answer_breaks_the_connection_and_errors_are_statuses() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shop =
        HttpShop::start(folder.path(), &["--http-faults", "--fault", "charge_card=lose_response,rate_limited,ok"]);
    let charge = tool_call("charge_card", &json!({"order": "ord_1", "amount": 5}));
    assert_eq!(shop.post(&charge), "");
    let limited = shop.post(&charge);
    assert!(limited.starts_with("HTTP/1.1 429"), "{limited}");
    assert!(limited.contains("retry-after: 1\r\n"), "{limited}");
    assert!(limited.contains("application/problem+json"), "{limited}");
    let charged = shop.post(&charge);
    assert!(charged.contains(r#""id":"ch_000002""#), "{charged}");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert!(shop.post(&note).starts_with("HTTP/1.1 202"));
    assert!(shop.exchange("GET", "").starts_with("HTTP/1.1 405"));
    assert!(shop.exchange("POST", "{").starts_with("HTTP/1.1 400"));
    assert_eq!(book(folder.path())["counts"], json!({"charge_card": 2}));
}

#[test]
fn over_http_progress_is_a_stream_of_events() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shop = HttpShop::start(folder.path(), &[]);
    let mut report = tool_call("slow_report", &json!({"steps": 50, "step_ms": 0}));
    report["params"]["_meta"] = json!({
        "progressToken": 9,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    });
    let stream = shop.post(&report);
    assert!(stream.contains("content-type: text/event-stream"), "{stream}");
    let events: Vec<Value> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("events are JSON"))
        .collect();
    let steps: Vec<_> = events[..50].iter().map(|event| event["params"]["progress"].as_u64()).collect();
    assert_eq!(steps, (1..=50).map(Some).collect::<Vec<_>>());
    assert_eq!(events.len(), 51);
    assert_eq!(events[50]["result"]["resultType"], "complete");
}

#[test]
fn over_http_hanging_up_cancels_a_call_but_not_a_late_effect() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let faults = ["--fault", "charge_card=late_effect", "--late-ms", "600"];
    let shop = HttpShop::start(folder.path(), &faults);
    let slow = json!({"steps": 100, "step_ms": 1000});
    let mut streamed = tool_call("slow_report", &json!({"steps": 100, "step_ms": 100}));
    streamed["params"]["_meta"] = json!({"progressToken": 1});
    let calls = [
        shop.begin(&tool_call("slow_report", &slow)),
        shop.begin(&streamed),
        shop.begin(&tool_call("charge_card", &json!({"order": "ord_1", "amount": 5}))),
    ];
    until(|| rows(&book(folder.path()), "requests").count() == 3);
    let mut first = [0; 8];
    (&calls[1]).read_exact(&mut first).expect("the stream has begun");
    drop(calls);
    until(|| rows(&book(folder.path()), "requests").all(|row| row["note"] == "cancelled"));
    until(|| rows(&book(folder.path()), "effects").count() == 1);
}

#[test]
fn many_processes_share_one_book() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let faults = ["--fault", "charge_card=ok,ok,status_500"];
    let mut shops: Vec<_> = (0..4).map(|_| Shop::start(folder.path(), &faults)).collect();
    for shop in &mut shops {
        for id in 0..5 {
            shop.call(id, "charge_card", &json!({"order": "ord_1", "amount": 5}));
        }
    }
    let answers: Vec<Value> = shops.iter().flat_map(|shop| shop.answers(5).collect::<Vec<_>>()).collect();
    let failed = answers.iter().filter(|answer| answer["result"]["isError"] == true);
    assert_eq!(failed.count(), 1);
    assert_eq!(book(folder.path())["counts"], json!({"charge_card": 19}));
}
