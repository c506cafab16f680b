//! Two gateways on one PostgreSQL: what is said at one of them of a run at the other.

use serde_json::{Value, json};

use crate::agent::{Agent, envelope, interrupt, outcome, results, statuses};
use crate::chain::clerk;
use crate::postgres_server::{Cluster, Database};
use crate::support::{Gateway, Place, eventually, http, served};

/// A folder and the database of its ledger, which ends with this.
fn site() -> (Place, Database) {
    let database = Cluster::shared().database();
    (Place::with_ledger(database.url()), database)
}

fn stop(gateway: &Gateway, body: &Value) -> u16 {
    http::post(&gateway.address, "/agui/stop", &[], body.to_string().as_bytes()).0
}

fn report() -> Value {
    json!({ "tool": "slow_report", "args": { "steps": 1000, "step_ms": 60 } })
}

#[test]
fn a_run_is_stopped_at_whichever_gateway_that_is_asked() {
    let (place, _database) = site();
    let up = || place.up_patient("");
    let (runs, other) = (up(), up());
    let mut agent = Agent::of(&runs);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": [report(), report()] } }));
    eventually("the report is asked for", || place.requests("slow_report") == 1);
    // Nobody runs these, wherever it is asked.
    assert_eq!(stop(&other, &json!({ "threadId": "u" })), 404);
    assert_eq!(stop(&other, &json!({ "threadId": "t", "runId": "another" })), 404);
    assert_eq!(stop(&other, &json!({ "threadId": "t" })), 202);
    let went = agent.finish(n);
    assert_eq!((outcome(&went), statuses(&went)), ("cancelled", vec!["cancelled", "pending"]), "{went:#}");
    assert_eq!(envelope(results(&went)[0])["error"]["code"], "ToolCancelled", "{went:#}");
    eventually("the shop hears of it", || place.cancelled("slow_report") == 1);
    // A wish that came for a run that was over does not stop the next one.
    assert_eq!(stop(&other, &json!({ "threadId": "t" })), 404);
    let went = agent.calls("t", json!([{ "tool": "get_order", "args": { "order": "ord_1" } }]));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    place.settled();
}

/// A run that waits for an answer at the first gateway, and is answered at the second: its agent works on.
fn answered_elsewhere(place: &Place, folder: &Place, first: &Gateway, second: &Gateway) -> (Agent, u64) {
    let mut agent = Agent::of(first);
    let went = agent.calls("t", json!([{ "tool": "clerk", "args": { "data": { "do": "ask" } } }]));
    let asks = interrupt(&went);
    let entry =
        json!({ "interruptId": asks["id"], "status": "resolved", "payload": { "seat": "12a", "bags": 1, "wait": 50 } });
    let mut agent = Agent::of(second);
    let n = agent.begin(json!({ "thread": "t", "state": went["state"], "resume": [entry] }));
    eventually("the agent works", || notes(folder).iter().any(|line| line == "works"));
    assert_eq!(place.open_calls(), 1);
    (agent, n)
}

fn notes(folder: &Place) -> Vec<String> {
    let book = std::fs::read_to_string(folder.path("clerk.txt")).unwrap_or_default();
    book.lines().map(str::to_owned).collect()
}

#[test]
fn a_call_that_went_on_from_another_gateway_is_stopped_where_it_waits() {
    // Its client is gone; it is stopped where its stream is; it is stopped where the call is.
    for way in ["gone", "stopped there", "stopped here"] {
        let ((place, _database), folder) = (site(), Place::new());
        let clerk = clerk(&folder, "http://127.0.0.1:9/mcp", None, &[]);
        let upstream = format!("a2a = \"{}\"", clerk.url);
        let (first, second) = (served::serve_tools(&place, &upstream, ""), served::serve_tools(&place, &upstream, ""));
        let (mut agent, n) = answered_elsewhere(&place, &folder, &first, &second);
        if way == "gone" {
            drop(agent);
        } else {
            let asked = if way == "stopped there" { &second } else { &first };
            assert_eq!(stop(asked, &json!({ "threadId": "t" })), 202, "{way}");
            let went = agent.finish(n);
            assert_eq!((outcome(&went), statuses(&went)), ("cancelled", vec!["cancelled"]), "{way}: {went:#}");
        }
        eventually("the agent is told", || notes(&folder).iter().any(|line| line == "cancelled"));
        place.settled();
        let asked: Vec<Value> = place.events_named("cancel_requested").iter().map(|it| it["reason"].clone()).collect();
        assert_eq!(asked, [json!("asked")], "{way}");
        assert_eq!(notes(&folder).iter().filter(|line| *line == "worked").count(), 0, "{way}");
    }
}
