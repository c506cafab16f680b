//! What is counted agrees with what is on the ledger.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually, http};

/// Every sample of a scrape: its name and labels, and its value.
pub(crate) type Samples = BTreeMap<String, f64>;

/// One scrape of a gateway's metrics.
pub(crate) fn scrape(gateway: &Gateway) -> Samples {
    let text = get(&gateway.address, "/metrics");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("a sample: {line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("a number: {line}")))
        })
        .collect()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let (status, body) = http::parse(&answer);
    assert_eq!(status, 200);
    String::from_utf8(body).expect("text")
}

/// The counters of one name, by the value of that label.
fn by(samples: &Samples, name: &str, label: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (sample, value) in samples {
        let Some(labels) = sample.strip_prefix(&format!("{name}_total{{")) else { continue };
        let quoted = labels.split(&format!("{label}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        *found.entry(quoted.expect("the label").to_owned()).or_default() += *value as u64;
    }
    found.retain(|_, count| *count > 0);
    found
}

/// How often each value stands under that name in those events.
fn counted<'a>(events: impl Iterator<Item = &'a Value>, name: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for event in events {
        if let Some(value) = event.pointer(name).and_then(Value::as_str) {
            *found.entry(value.to_owned()).or_default() += 1;
        }
    }
    found
}

const FAULTS: &str = r#"
[[fault]]
tool = "get_order"
when = { order = "ord_down" }
attempts = ["status_503", "ok"]

[[fault]]
tool = "issue_refund"
when = { order = "ord_lost" }
attempts = ["lose_response", "ok"]

[[fault]]
tool = "charge_card"
when = { order = "ord_doubt" }
attempts = ["lose_response"]

[[fault]]
tool = "charge_card"
when = { order = "ord_sentence" }
attempts = ["plain_error"]

[[fault]]
tool = "get_order"
when = { order = "ord_no" }
attempts = ["forbidden"]
"#;

#[test]
fn what_is_counted_is_what_is_recorded() {
    let place = Place::new();
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"1s\"\ndeadline = \"20s\"\n";
    let config = place.write("short.toml", config).display().to_string();
    let gateway = place.up_with(FAULTS, &["--config", &config]);
    let refund = r#"{"order":"ord_lost","amount":5}"#;
    for (tool, arguments) in [
        ("get_order", r#"{"order":"ord_down"}"#),
        ("get_order", r#"{"order":"ord_no"}"#),
        ("get_order", r#"{"order":7}"#),
        ("nobody_serves_this", "{}"),
        ("issue_refund", refund),
        ("charge_card", r#"{"order":"ord_doubt","amount":5}"#),
        ("charge_card", r#"{"order":"ord_sentence","amount":5}"#),
        ("charge_card", r#"{"order":"ord_1","amount":5}"#),
        ("amends_reverse", r#"{"token":"rev_unknown"}"#),
    ] {
        gateway.call(tool, arguments);
    }
    gateway.call_with("issue_refund", &[("idempotency-key", "k")], refund);
    gateway.call_with("issue_refund", &[("idempotency-key", "k")], refund);
    let (_, refunded) = gateway.call("issue_refund", r#"{"order":"ord_2","amount":5}"#);
    gateway.call("amends_reverse", &json!({ "token": refunded["reversal"]["token"] }).to_string());
    place.settled();
    answer_one(&place);
    // Deliveries are recorded a moment after the answer.
    let mut samples = Samples::new();
    let mut events = Vec::new();
    eventually("what is counted is what is recorded", || {
        events = place.events();
        samples = scrape(&gateway);
        by(&samples, "amends_events", "event") == counted(events.iter(), "/event")
    });
    let named = |name: &'static str| events.iter().filter(move |event| event["event"] == name);

    let mut outcomes = counted(named("call_ended"), "/outcome");
    let refused = named("call_refused").count() as u64;
    *outcomes.entry("refused".into()).or_default() += refused;
    assert_eq!(by(&samples, "amends_calls_ended", "outcome"), outcomes);
    assert_eq!(by(&samples, "amends_refusals", "kind"), counted(named("call_refused"), "/refusal/kind"));
    assert!(refused >= 3, "{outcomes:?}");

    let mut tools = counted(named("call_received").filter(|event| event["upstream"] != ""), "/tool");
    let unknown = named("call_received").filter(|event| event["upstream"] == "").count() as u64;
    tools.insert("unknown".into(), unknown);
    assert_eq!(by(&samples, "amends_calls", "tool"), tools);
    assert!(unknown >= 1 && !samples.keys().any(|name| name.contains("nobody_serves_this")), "{samples:?}");

    assert_eq!(by(&samples, "amends_verdicts", "verdict"), counted(named("failure_judged"), "/verdict"));
    assert_eq!(by(&samples, "amends_compensations", "compensation"), counted(named("failure_judged"), "/compensation"));
    let again = named("failure_judged").filter(|event| event["retry"].is_u64()).count() as u64;
    assert_eq!(by(&samples, "amends_retries", "upstream").values().sum::<u64>(), again);
    assert!(again >= 2, "{events:?}");
    assert_eq!(by(&samples, "amends_waits", "next"), counted(named("wait_began"), "/next"));
    assert_eq!(by(&samples, "amends_attempts_started", "purpose"), counted(named("attempt_started"), "/purpose"));

    let mut certainties = counted(named("attempt_ended"), "/report/certainty");
    for (certainty, n) in counted(named("attempt_timed_out"), "/certainty") {
        *certainties.entry(certainty).or_default() += n;
    }
    assert_eq!(by(&samples, "amends_attempts_ended", "certainty"), certainties);
    let ends = by(&samples, "amends_attempts_ended", "end");
    assert_eq!(ends.get("timed_out"), Some(&(named("attempt_timed_out").count() as u64)), "{ends:?}");

    let failed = || named("attempt_ended").filter(|event| event["report"]["failure"].is_object());
    assert_eq!(by(&samples, "amends_failures", "code"), counted(failed(), "/report/failure/code"));
    let said = by(&samples, "amends_failures", "said");
    let in_a_result = failed().filter(|event| event["report"]["payload"].is_object()).count() as u64;
    assert_eq!(said.get("tool_error"), Some(&in_a_result), "{said:?}");

    let became = |prefix: &str| {
        let names = events.iter().filter_map(|event| event["event"].as_str()?.strip_prefix(prefix));
        names.fold(BTreeMap::<String, u64>::new(), |mut found, name| {
            *found.entry(name.to_owned()).or_default() += 1;
            found
        })
    };
    let questions = by(&samples, "amends_questions", "became");
    assert_eq!(questions, became("interaction_"));
    assert!(questions["opened"] >= 2 && questions["answered"] == 1, "{questions:?}");
    assert_eq!(samples["amends_questions_open"] as u64, questions["opened"] - 1);
    let reversals = by(&samples, "amends_reversals", "became");
    assert_eq!(reversals, became("reversal_"));
    assert!(reversals["redeemed"] == 1 && reversals["refused"] >= 1, "{reversals:?}");
    let resolved = named("doubt_resolved").count() as u64;
    assert_eq!(by(&samples, "amends_doubts_settled", "by").get("person"), Some(&resolved), "{samples:?}");

    let ended = named("call_ended").count() as u64 + refused;
    let timed: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("amends_call_seconds_count")).map(|(_, n)| n).sum();
    assert_eq!(timed as u64, ended);
    assert!(samples["amends_ledger_commit_seconds_count"] >= 1.0);
    assert_eq!(samples["amends_upstream_up{upstream=\"shop\"}"], 1.0);
    assert_eq!(samples["amends_calls_open"], 0.0);
    assert_eq!(samples["amends_ledger_records"], 1.0);
}

/// Answers a question whether something happened, and waits until that is acted on.
fn answer_one(place: &Place) {
    let (_, queue) = place.amends(&["queue", "--json"]);
    let queue: Value = serde_json::from_str(&queue).expect("JSON");
    let doubts = |asked: &&Value| asked["options"].to_string().contains("\"happened\"");
    let asked = queue["queue"].as_array().into_iter().flatten().find(doubts).expect("a question about a doubt");
    let asked = asked["id"].as_str().expect("an id");
    assert_eq!(place.amends(&["answer", asked, "happened"]).0, 0);
    eventually("the answer is acted on", || place.events_named("doubt_resolved").len() == 1);
}

#[test]
fn an_agent_cannot_grow_the_metrics() {
    let place = Place::new();
    let gateway = place.up("");
    let before = scrape(&gateway).len();
    for n in 0..50 {
        gateway.call(&format!("made_up_{n}"), "{}");
    }
    let after = scrape(&gateway);
    assert!(!after.keys().any(|name| name.contains("made_up")), "{after:?}");
    // The labels of what is unknown, and of the facts that were not there before.
    assert!(after.len() <= before + 40, "{before} samples, then {}", after.len());
}

#[test]
fn an_open_breaker_and_a_spent_budget_are_seen() {
    let place = Place::new();
    let faults =
        "[[fault]]\ntool = \"get_order\"\nwhen = { order = \"ord_1\" }\nattempts = [\"status_500\"]\nrepeat = true\n";
    let config =
        "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\nbreaker = { failures = 2, cool_down = \"60s\" }\n";
    let config = place.write("breaker.toml", config).display().to_string();
    let gateway = place.up_with(faults, &["--config", &config]);
    let before = scrape(&gateway);
    assert_eq!(before["amends_tool_breakers_open{upstream=\"shop\"}"], 0.0);
    gateway.call("get_order", r#"{"order":"ord_1"}"#);
    let mut after = Samples::new();
    // A read is recorded a moment after its answer.
    eventually("the end of the call is counted", || {
        after = scrape(&gateway);
        by(&after, "amends_calls_ended", "outcome").contains_key("exhausted")
    });
    assert_eq!(after["amends_tool_breakers_open{upstream=\"shop\"}"], 1.0);
    assert!(after["amends_retry_budget{upstream=\"shop\"}"] < before["amends_retry_budget{upstream=\"shop\"}"]);
    assert!(by(&after, "amends_held_back", "by").contains_key("breaker"), "{after:?}");
}

/// The status of a `GET /metrics` with those headers.
fn status(gateway: &Gateway, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n", gateway.address);
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    http::parse(&answer).0
}

#[test]
fn the_metrics_are_for_this_machine_or_for_whoever_shows_the_token() {
    let place = Place::new();
    let gateway = place.up("");
    assert_eq!(status(&gateway, ""), 200);
    assert_eq!(status(&gateway, "x-forwarded-for: 192.0.2.1\r\n"), 403);
    drop(gateway);
    place.write("token", "s3cret-t0ken\n");
    let config = place.write("token.toml", "[listen]\nmetrics = { file = \"token\" }\n").display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    assert_eq!(status(&gateway, ""), 401, "also on this machine");
    assert_eq!(status(&gateway, "authorization: Bearer another\r\n"), 401);
    assert_eq!(status(&gateway, "authorization: Bearer s3cret-t0ken\r\n"), 200);
    assert_eq!(status(&gateway, "authorization: Bearer s3cret-t0ken\r\nx-forwarded-for: 192.0.2.1\r\n"), 200);
    // Another token counts at once.
    place.write("token", "another\n");
    assert_eq!(status(&gateway, "authorization: Bearer another\r\n"), 200);
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200, "calls need none");
}
