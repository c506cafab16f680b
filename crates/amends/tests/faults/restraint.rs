//! What keeps an upstream in trouble from being called more: breakers, the retry budget, rates and queues.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::more_faults;
use crate::support::http::post;
use crate::support::{AMENDS, Gateway, Place, eventually};

/// A shop over HTTP, so that it can be away while the gateway stays. It is killed by its id when dropped.
struct Shop {
    child: Child,
    address: String,
}

impl Shop {
    fn start(place: &Place, address: &str) -> Self {
        let mut child = Command::new(AMENDS)
            .args(["shop", "--http", address, "--book"])
            .arg(place.path("book.db"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shop starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines().map_while(Result::ok);
        let line = lines.next().expect("it says where it listens");
        let address = line.strip_prefix("shop listening on http://").and_then(|rest| rest.strip_suffix("/mcp"));
        // Whatever else it says must be read, or it would block one day.
        thread::spawn(move || lines.for_each(drop));
        Self { address: address.expect("an address").to_owned(), child }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway in front of a shop under `[upstreams.shop]` settings of the test's own.
fn up(place: &Place, faults: &str, upstream: &str, more: &str) -> Gateway {
    let config = format!("[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\n{upstream}\n\n{more}\n");
    let config = place.write("amends.toml", &config).display().to_string();
    place.up_with(faults, &["--config", &config])
}

#[test]
fn a_dead_upstream_is_left_alone_at_once_and_called_again_when_it_is_back() {
    let place = Place::new();
    let shop = Shop::start(&place, "127.0.0.1:0");
    let address = shop.address.clone();
    let config = format!(
        "[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n\
         [upstreams.shop]\nprefix = \"\"\nurl = \"http://{address}/mcp\"\n\
         breaker = {{ failures = 2, cool_down = \"2s\", cool_down_max = \"2s\" }}\n\
         [tools.get_order]\neffect = \"read\"\n",
        place.ledger()
    );
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(place.write("serve.toml", &config));
    let gateway = Gateway::start(command);
    drop(shop);

    // The second failure opens the breaker, and the ladder ends there.
    let (_, ended) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(ended["error"]["code"], "ConnectRefused", "{ended}");
    assert_eq!(ended["error"]["kind"], "retry_later", "{ended}");
    assert_eq!(ended["attempts"].as_array().map(Vec::len), Some(2), "{ended}");

    // A write is no probe: it is refused as long as no read was answered.
    let charge = r#"{"order":"ord_1","amount":5}"#;
    let (status, refused) = gateway.call("charge_card", charge);
    assert_eq!((status, refused["status"].as_str()), (503, Some("refused")), "{refused}");
    assert_eq!(refused["error"]["kind"], "breaker_open", "{refused}");
    assert_eq!(refused["error"]["certainty"], "not_sent", "{refused}");
    assert!(refused["error"]["retry_after_ms"].as_u64().is_some_and(|ms| ms <= 2000), "{refused}");

    let _back = Shop::start(&place, &address);
    eventually("the shop is called again", || gateway.call("charge_card", charge).1["status"] == "success");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
    let judged = place.events_named("failure_judged");
    assert!(judged.iter().any(|event| event["held_back"] == "breaker"), "{judged:?}");
    let charged = |event: &&Value| event["tool"] == "charge_card";
    assert_eq!(place.events_named("attempt_started").iter().filter(charged).count(), 1);
}

#[test]
fn a_tool_that_always_fails_is_left_alone_and_the_others_are_not() {
    let place = Place::new();
    let faults = more_faults("issue_refund", "ord_1", &["status_500"], "repeat = true");
    let gateway = up(&place, &faults, "breaker = { failures = 2, cool_down = \"60s\" }", "");
    let refund =
        |key: &str| gateway.call_with("issue_refund", &[("idempotency-key", key)], r#"{"order":"ord_1","amount":5}"#);
    let (_, ended) = refund("a");
    assert_eq!(ended["error"]["code"], "Provider5xx", "{ended}");
    let (_, refused) = refund("b");
    assert_eq!(refused["error"]["kind"], "breaker_open", "{refused}");
    let (_, charged) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(charged["status"], "success", "{charged}");
    place.settled();
}

#[test]
fn a_repeat_of_what_was_done_finds_its_answer_though_the_tool_is_left_alone() {
    let place = Place::new();
    let faults = more_faults("issue_refund", "ord_1", &["status_500"], "repeat = true");
    let gateway = up(&place, &faults, "breaker = { failures = 2, cool_down = \"60s\" }", "");
    let refund = |key: &str, order: &str| {
        let body = format!("{{\"order\":\"{order}\",\"amount\":5}}");
        gateway.call_with("issue_refund", &[("idempotency-key", key)], &body).1
    };
    let first = refund("done", "ord_2");
    assert_eq!(first["status"], "success", "{first}");
    assert_eq!(refund("a", "ord_1")["error"]["code"], "Provider5xx");
    let refused = refund("b", "ord_2");
    assert_eq!(refused["error"]["kind"], "breaker_open", "{refused}");
    let again = refund("done", "ord_2");
    assert_eq!((again["status"].as_str(), again["replayed"].as_bool()), (Some("success"), Some(true)), "{again}");
    assert_eq!(again["data"], first["data"]);
    assert_eq!((place.effects_on("issue_refund", "ord_2"), place.requests_on("issue_refund", "ord_2")), (1, 1));
    place.settled();
}

#[test]
fn a_tool_that_never_answers_is_left_alone() {
    let place = Place::new();
    let faults = more_faults("get_order", "ord_mute", &["lose_request"], "repeat = true");
    let upstream = "timeout = \"1s\"\nbreaker = { failures = 2, cool_down = \"60s\" }";
    let gateway = up(&place, &faults, upstream, "");
    let (_, ended) = gateway.call("get_order", r#"{"order":"ord_mute"}"#);
    assert_eq!(ended["error"]["code"], "NetworkTimeout", "{ended}");
    let sent = place.requests_on("get_order", "ord_mute");
    assert!(sent >= 2, "{ended}");
    let (_, refused) = gateway.call("get_order", r#"{"order":"ord_mute"}"#);
    assert_eq!(refused["error"]["kind"], "breaker_open", "{refused}");
    assert_eq!(place.requests_on("get_order", "ord_mute"), sent);
    place.settled();
}

#[test]
fn an_agent_without_patience_opens_nothing() {
    let place = Place::new();
    let faults = more_faults("get_order", "ord_mute", &["lose_request"], "repeat = true");
    let gateway = up(&place, &faults, "timeout = \"20s\"\nbreaker = { failures = 1 }", "");
    let params = r#"{"name":"get_order","arguments":{"order":"ord_mute"},"_meta":{"amends/deadline":300}}"#;
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    for _ in 0..3 {
        let (_, answer) = post(&gateway.address, "/mcp", &[], request.as_bytes());
        assert!(answer.to_string().contains("NetworkTimeout"), "{answer}");
    }
    let (_, found) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(found["status"], "success", "{found}");
    assert_eq!(place.requests_on("get_order", "ord_mute"), 3);
    place.settled();
}

#[test]
fn a_storm_of_noes_opens_nothing() {
    let place = Place::new();
    let kinds = ["unprocessable", "forbidden", "precondition"];
    let faults = more_faults("get_order", "ord_no", &kinds, "repeat = true");
    let gateway = up(&place, &faults, "breaker = { failures = 1 }\nretry_budget = { tokens = 1 }", "");
    for n in 0..30 {
        let (_, said_no) = gateway.call("get_order", r#"{"order":"ord_no"}"#);
        assert_eq!(said_no["status"], "error", "{n}: {said_no}");
        let (_, invalid) = gateway.call("get_order", r#"{"order":7}"#);
        assert_eq!(invalid["error"]["kind"], "invalid_argument", "{n}: {invalid}");
    }
    let (_, found) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(found["status"], "success", "{found}");
    assert_eq!(place.requests_on("get_order", "ord_no"), 30);
    place.settled();
}

#[test]
fn many_failing_reads_do_not_multiply_by_their_ladder() {
    const READS: usize = 24;
    let place = Place::new();
    let faults = more_faults("get_order", "ord_down", &["status_503"], "repeat = true\nretry_after = 1");
    let gateway = up(&place, &faults, "breaker = { failures = 32 }", "");
    let calls: Vec<_> = (0..READS).map(|_| begin(&gateway, "ord_down")).collect();
    for call in calls {
        let answer = call.join().expect("a call");
        assert_eq!(answer["error"]["code"], "Provider5xx", "{answer}");
    }
    // Four failures leave more than half of ten tokens; whatever fails after that is not sent again.
    let sent = place.requests_on("get_order", "ord_down");
    assert!((READS..=READS + 4).contains(&sent), "{sent} requests for {READS} calls");
    place.settled();
    let judged = place.events_named("failure_judged");
    assert!(judged.iter().any(|event| event["held_back"] == "budget"), "{judged:?}");
}

#[test]
fn who_calls_too_often_is_told_when_to_come_back() {
    let place = Place::new();
    // The first call is the one that sees that the shop is there.
    let gateway = up(&place, "", "", "[limits]\nrate = { per_second = 0.001, burst = 3 }");
    for _ in 0..2 {
        assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).1["status"], "success");
    }
    let (status, refused) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!((status, refused["error"]["kind"].as_str()), (429, Some("rate_limited")), "{refused}");
    let wait = refused["error"]["retry_after_ms"].as_u64();
    assert!(wait.is_some_and(|ms| (1..=1_000_000).contains(&ms)), "{refused}");
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

#[test]
fn a_call_beyond_the_queue_is_refused_and_the_others_are_answered() {
    let place = Place::new();
    let faults = more_faults("get_order", "ord_slow", &["late"], "late_ms = 5000");
    let upstream = "timeout = \"40s\"\ndeadline = \"55s\"\nconcurrency = 1\nqueue = 1";
    let gateway = up(&place, &faults, upstream, "");
    let slow = begin(&gateway, "ord_slow");
    eventually("the slow one is at the shop", || place.requests_on("get_order", "ord_slow") == 1);
    let others = [begin(&gateway, "ord_1"), begin(&gateway, "ord_2")].map(|call| call.join().expect("a call"));
    let refused: Vec<&Value> = others.iter().filter(|answer| answer["status"] == "refused").collect();
    assert_eq!(refused.len(), 1, "{others:?}");
    assert_eq!(refused[0]["error"]["kind"], "rate_limited", "{others:?}");
    assert!(refused[0]["error"]["retry_after_ms"].is_u64(), "{others:?}");
    assert_eq!(others.iter().filter(|answer| answer["status"] == "success").count(), 1, "{others:?}");
    assert_eq!(slow.join().expect("a call")["status"], "success");
    place.settled();
}

/// A read of that order in a thread of its own; it gives the envelope.
fn begin(gateway: &Gateway, order: &str) -> thread::JoinHandle<Value> {
    let (address, body) = (gateway.address.clone(), format!(r#"{{"order":"{order}"}}"#));
    thread::spawn(move || post(&address, "/call/get_order", &[], body.as_bytes()).1)
}
