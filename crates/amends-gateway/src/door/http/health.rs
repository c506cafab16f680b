//! `GET /health`: how the gateway and each of its upstreams are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use amends_wire::mcp::Era;
use amends_wire::mcp::lists::Kind;
use hyper::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::body::Body;
use super::{Door, json as respond};
use crate::clock;
use crate::upstream::{Health, Upstream};

/// How everything is. The status is 200 while the ledger records: an upstream that is away takes nobody else with it.
pub(super) fn report(door: &Arc<Door>) -> Response<Body> {
    let gateway = &door.gateway;
    let recording = gateway.recording.load(Ordering::Relaxed);
    let listing = gateway.catalogue.now();
    let mut upstreams = Map::new();
    let mut all_ready = true;
    for upstream in gateway.upstreams().values() {
        let mut state = of(upstream);
        all_ready &= state["state"] == "ready";
        state["tools"] = json!(listing.tools().filter(|tool| tool.upstream.name == upstream.name).count());
        state["listed"] = json!(listing.has(&upstream.name, Kind::Tools));
        upstreams.insert(upstream.name.to_string(), state);
    }
    let status = match (recording, all_ready) {
        (false, _) => "failing",
        (true, false) => "degraded",
        (true, true) => "ok",
    };
    let code = if recording { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let (reloads, refused) = (gateway.reloads.load(Ordering::Relaxed), gateway.refused.load(Ordering::Relaxed));
    let config = json!({ "reloads": reloads, "refused": refused });
    let ledger = json!({ "recording": recording });
    let body = json!({ "status": status, "ledger": ledger, "config": config, "upstreams": upstreams });
    respond(code, body.to_string())
}

/// How one upstream is.
pub(super) fn of(upstream: &Upstream) -> Value {
    let mut state = match upstream.state() {
        Health::Starting => json!({ "state": "starting" }),
        Health::Ready { era, .. } => {
            let era = if era == Era::Modern { "stateless" } else { "stateful" };
            json!({ "state": "ready", "era": era })
        }
        Health::Down { reason } => json!({ "state": "down", "reason": reason }),
    };
    if state["state"] != "ready" {
        let words = upstream.last_words();
        if !words.is_empty() {
            state["stderr"] = json!(words);
        }
    }
    if let Some(until) = upstream.restraint.open_until(clock::now()) {
        state["breaker"] = json!({ "retry_after_ms": until.since_ms(clock::now()) });
    }
    state
}
