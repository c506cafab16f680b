//! One trace from the agent through two gateways to the shop.

use std::path::PathBuf;
use std::process::Command;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};

use crate::collector::{Collector, attributes};
use crate::metrics::scrape;
use crate::support::authority::Authority;
use crate::support::http::post;
use crate::support::{AMENDS, Gateway, Place, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const AGENT: &str = "b7ad6b7169203331";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The gateway before the shop. What it sends there is written down.
fn near(place: &Place, faults: &str, collector: Option<&str>) -> Gateway {
    Gateway::start(near_command(place, faults, collector))
}

fn near_command(place: &Place, faults: &str, collector: Option<&str>) -> Command {
    let tee = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/seen/servers/tee.py").display().to_string();
    let text = |name: &str| place.path(name).display().to_string();
    place.write("faults.toml", faults);
    let (sent, book, script) = (text("sent.jsonl"), text("book.db"), text("faults.toml"));
    let shop = ["python3", &tee, &sent, AMENDS, "shop", "--book", &book, "--faults", &script];
    let config = format!(
        "[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n\
         [upstreams.shop]\nprefix = \"\"\ncommand = {shop:?}\n[tools.get_order]\neffect = \"read\"\n",
        place.ledger()
    );
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(place.write("near.toml", &config));
    if let Some(collector) = collector {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}")).env("OTEL_SERVICE_NAME", "near");
    }
    command
}

/// The `_meta` with which that tool was last called at the shop.
fn last_meta(place: &Place, tool: &str) -> Value {
    let sent = std::fs::read_to_string(place.path("sent.jsonl")).expect("what was sent");
    let messages = sent.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut calls = messages.filter(|message| message["params"]["name"] == tool);
    calls.next().expect("it was called")["params"]["_meta"].clone()
}

/// A gateway before that one. What it knows of the tools, it is told.
fn far(place: &Place, near: &Gateway, collector: &str) -> Gateway {
    let config = format!(
        "[ledger]\nurl = \"sqlite:{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n[telemetry]\notlp = \"http://{collector}/\"\n\
         [upstreams.near]\nprefix = \"\"\nurl = \"{}\"\n[tools.get_order]\neffect = \"read\"\n",
        place.path("far.db").display(),
        near.mcp()
    );
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(place.write("far.toml", &config)).env("OTEL_SERVICE_NAME", "far");
    Gateway::start(command)
}

/// The spans of one trace, by service.
fn of_trace(collector: &Collector, trace: &str) -> Vec<(String, Span)> {
    collector.spans().into_iter().filter(|(_, span)| hex(&span.trace_id) == trace).collect()
}

fn one<'a>(spans: &'a [(String, Span)], service: &str, kind: SpanKind) -> &'a Span {
    let mut found = spans.iter().filter(|(name, span)| name == service && span.kind == kind as i32);
    let span = &found.next().unwrap_or_else(|| panic!("no {kind:?} span of {service}: {spans:?}")).1;
    assert!(found.next().is_none(), "more than one {kind:?} span of {service}: {spans:?}");
    span
}

#[test]
fn one_trace_leads_from_the_agent_through_two_gateways_to_the_shop() {
    let (place, collector) = (Place::new(), Collector::start());
    let near = near(&place, "", Some(&collector.address));
    let far = far(&place, &near, &collector.address);
    let params = json!({
        "name": "charge_card",
        "arguments": { "order": "ord_secret_7", "amount": 5 },
        "_meta": { "traceparent": format!("00-{TRACE}-{AGENT}-01"), "tracestate": "vendor=1", "baggage": "who=ann" },
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (_, answer) = post(&far.address, "/mcp", &[], request.to_string().as_bytes());
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    eventually("all spans have arrived", || of_trace(&collector, TRACE).len() >= 4);

    let spans = of_trace(&collector, TRACE);
    assert_eq!(spans.len(), 4, "{spans:?}");
    let (far_call, far_attempt) = (one(&spans, "far", SpanKind::Server), one(&spans, "far", SpanKind::Client));
    let (near_call, near_attempt) = (one(&spans, "near", SpanKind::Server), one(&spans, "near", SpanKind::Client));
    assert_eq!(hex(&far_call.parent_span_id), AGENT);
    for (child, parent) in [(far_attempt, far_call), (near_call, far_attempt), (near_attempt, near_call)] {
        assert_eq!(child.parent_span_id, parent.span_id, "{child:?} of {parent:?}");
        assert!(child.start_time_unix_nano >= parent.start_time_unix_nano);
    }
    for span in [far_call, far_attempt, near_call, near_attempt] {
        assert_eq!((span.name.as_str(), span.trace_state.as_str()), ("tools/call charge_card", "vendor=1"));
        let said = attributes(&span.attributes);
        assert_eq!(said["mcp.method.name"], "tools/call");
        assert_eq!(said["gen_ai.tool.name"], "charge_card");
        assert_eq!(said["amends.certainty"], "processed");
        assert!(span.status.is_none(), "{span:?}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.start_time_unix_nano > 0);
    }
    assert_eq!(attributes(&near_call.attributes)["amends.outcome"], "succeeded");
    let session = &attributes(&near_call.attributes)["mcp.session.id"];
    assert_eq!(place.amends(&["trace", session]).0, 0, "a span leads to its trace in the ledger");
    // What the shop was told is what the near gateway's attempt says of itself.
    let told = format!("00-{TRACE}-{}-01", hex(&near_attempt.span_id));
    let seen = last_meta(&place, "charge_card");
    assert_eq!((seen["traceparent"].as_str(), seen["tracestate"].as_str()), (Some(told.as_str()), Some("vendor=1")));
    assert_eq!(seen["baggage"], "who=ann", "{seen}");
    let raw = String::from_utf8_lossy(&collector.raw()).into_owned();
    assert!(!raw.contains("ord_secret_7"), "arguments are in no span");
}

#[test]
fn failures_and_what_was_done_about_them_are_in_the_trace() {
    let (place, collector) = (Place::new(), Collector::start());
    let faults = "[[fault]]\ntool = \"get_order\"\nwhen = { order = \"ord_1\" }\nattempts = [\"status_503\", \"ok\"]\n";
    let gateway = near(&place, faults, Some(&collector.address));
    // The header names the trace where the message does not.
    let parent = format!("00-{TRACE}-{AGENT}-01");
    let (_, found) = gateway.call_with("get_order", &[("traceparent", &parent)], r#"{"order":"ord_1"}"#);
    assert_eq!(found["outcome"], "succeeded_after_compensation", "{found}");
    gateway.call_with("get_order", &[("traceparent", &parent)], r#"{"order":7}"#);
    eventually("all spans have arrived", || of_trace(&collector, TRACE).len() >= 4);
    let spans = of_trace(&collector, TRACE);
    let kinds = |kind: SpanKind| spans.iter().filter(move |(_, span)| span.kind == kind as i32).map(|(_, span)| span);
    let failed: Vec<_> = kinds(SpanKind::Client).filter(|span| span.status.is_some()).collect();
    assert_eq!((failed.len(), kinds(SpanKind::Client).count()), (1, 2), "{spans:?}");
    let said = attributes(&failed[0].attributes);
    assert_eq!((said["amends.failure.code"].as_str(), said["amends.attempt"].as_str()), ("Provider5xx", "1"));
    assert!(said.contains_key("error.type"), "{said:?}");

    let calls: Vec<_> = kinds(SpanKind::Server).collect();
    assert_eq!(calls.len(), 2, "{spans:?}");
    assert!(calls.iter().all(|span| hex(&span.parent_span_id) == AGENT), "{spans:?}");
    let done = calls.iter().find(|span| span.status.is_none()).expect("one went well");
    let judged = done.events.iter().find(|event| event.name == "amends.failure_judged").expect("a verdict");
    let judged = attributes(&judged.attributes);
    assert_eq!(judged["amends.verdict"], "server_error_5xx", "{judged:?}");
    assert_eq!(judged["amends.compensation"], "retry_with_backoff", "{judged:?}");
    let refused = calls.iter().find(|span| span.status.is_some()).expect("one was refused");
    assert_eq!(refused.status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(attributes(&refused.attributes)["amends.error.kind"], "invalid_argument");
    assert!(attributes(&refused.attributes).contains_key("error.type"));
    assert!(scrape(&gateway)["amends_spans_total{became=\"exported\"}"] >= 4.0);
}

#[test]
fn a_call_that_is_settled_after_a_crash_stays_in_its_trace() {
    let (place, collector) = (Place::new(), Collector::start());
    let mut command = near_command(&place, "", Some(&collector.address));
    command.env("AMENDS_CRASH_AT", "after_result");
    let mut gateway = Gateway::start(command);
    let parent = format!("00-{TRACE}-{AGENT}-01");
    gateway.call_with("charge_card", &[("traceparent", &parent)], r#"{"order":"ord_1","amount":5}"#);
    gateway.ended();
    let told = last_meta(&place, "charge_card")["traceparent"].as_str().expect("the shop was told").to_owned();

    let _again = near(&place, "", Some(&collector.address));
    eventually("the call's spans have arrived", || of_trace(&collector, TRACE).len() >= 2);
    let spans = of_trace(&collector, TRACE);
    let (call, attempt) = (one(&spans, "near", SpanKind::Server), one(&spans, "near", SpanKind::Client));
    assert_eq!(hex(&call.parent_span_id), AGENT, "{spans:?}");
    assert_eq!(attempt.parent_span_id, call.span_id, "{spans:?}");
    assert_eq!(told, format!("00-{TRACE}-{}-01", hex(&attempt.span_id)), "what the shop was told still holds");
    assert_eq!(attributes(&attempt.attributes)["amends.certainty"], "in_doubt");
    assert_eq!(place.effects("charge_card"), 1);
}

#[test]
fn a_trace_that_is_not_sampled_is_passed_on_and_not_exported() {
    let (place, collector) = (Place::new(), Collector::start());
    let gateway = near(&place, "", Some(&collector.address));
    let parent = format!("00-{TRACE}-{AGENT}-00");
    gateway.call_with("charge_card", &[("traceparent", &parent)], r#"{"order":"ord_1","amount":5}"#);
    gateway.call("get_order", r#"{"order":"ord_after"}"#);
    eventually("later spans have arrived", || collector.spans().len() >= 4);
    assert_eq!(of_trace(&collector, TRACE).len(), 0);
    let seen = last_meta(&place, "charge_card");
    let told = seen["traceparent"].as_str().unwrap_or_default();
    assert!(told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-00") && !told.contains(AGENT), "{seen}");
}

#[test]
fn a_collector_that_is_away_holds_nothing_up_and_without_one_nothing_is_touched() {
    let place = Place::new();
    let away = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
    let gateway = near(&place, "", Some(&away.to_string()));
    for n in 0..20 {
        let (_, done) = gateway.call("charge_card", &format!(r#"{{"order":"ord_{n}","amount":5}}"#));
        assert_eq!(done["status"], "success", "{done}");
    }
    drop(gateway);

    let plain = Place::new();
    let gateway = near(&plain, "", None);
    let meta = json!({ "traceparent": format!("00-{TRACE}-{AGENT}-01") });
    let params = json!({ "name": "charge_card", "arguments": { "order": "ord_1", "amount": 5 }, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    post(
        &gateway.address,
        "/mcp",
        &[("traceparent", "00-11111111111111111111111111111111-2222222222222222-01")],
        request.to_string().as_bytes(),
    );
    assert_eq!(last_meta(&plain, "charge_card")["traceparent"], meta["traceparent"]);
}

#[test]
fn spans_go_over_tls_to_whoever_is_the_one_and_to_nobody_else() {
    let (ours, other) = (Authority::new("Ours"), Authority::new("Another"));
    let place = Place::new();
    place.write("ca.pem", &ours.pem());
    let trusted = Collector::start_tls(ours.server("localhost", 2999));
    let strange = Collector::start_tls(other.server("localhost", 2999));
    let start = |collector: &Collector| {
        let port = collector.address.rsplit_once(':').expect("a port").1;
        let mut command = near_command(&place, "", None);
        let config = std::fs::read_to_string(place.path("near.toml")).expect("a file");
        let telemetry = format!("[telemetry]\notlp = \"https://localhost:{port}\"\nca = \"ca.pem\"\n");
        place.write("near.toml", &format!("{config}{telemetry}"));
        command.env("OTEL_SERVICE_NAME", "near");
        Gateway::start(command)
    };
    let gateway = start(&trusted);
    gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    eventually("the spans have arrived", || trusted.spans().len() >= 2);
    assert!(trusted.spans().iter().all(|(service, _)| service == "near"));
    drop(gateway);
    let gateway = start(&strange);
    let (_, done) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(done["status"], "success", "it holds nobody up: {done}");
    eventually("they are given up", || {
        scrape(&gateway).get("amends_spans_total{became=\"lost\"}").is_some_and(|lost| *lost >= 2.0)
    });
    assert!(strange.spans().is_empty() && strange.raw().is_empty());
}

#[test]
fn the_headers_of_a_plain_call_go_on_as_they_are_where_nothing_is_exported() {
    let place = Place::new();
    let gateway = near(&place, "", None);
    let parent = format!("00-{TRACE}-{AGENT}-01");
    let headers = [("traceparent", parent.as_str()), ("tracestate", "vendor=1")];
    gateway.call_with("charge_card", &headers, r#"{"order":"ord_1","amount":5}"#);
    let seen = last_meta(&place, "charge_card");
    assert_eq!((&seen["traceparent"], &seen["tracestate"]), (&json!(parent), &json!("vendor=1")), "{seen}");
    // What is no parent has no state either.
    let headers = [("traceparent", "00-nonsense"), ("tracestate", "vendor=1")];
    gateway.call_with("charge_card", &headers, r#"{"order":"ord_2","amount":5}"#);
    let seen = last_meta(&place, "charge_card");
    assert!(seen.get("traceparent").is_none() && seen.get("tracestate").is_none(), "{seen}");
}
