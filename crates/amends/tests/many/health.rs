//! `GET /health`.

use crate::place::{declared, health, listening, raw};
use crate::support::{Place, eventually};

#[test]
fn health_says_how_each_upstream_is() {
    let place = Place::new();
    let gone = "command = [\"/nonexistent/server\"]".to_owned();
    let gateway = listening(&place, &[("a", declared(&raw("a", &[]))), ("gone", gone)], "");
    eventually("it is known how they are", || {
        let health = health(&gateway);
        health["upstreams"]["a"]["state"] == "ready" && health["upstreams"]["gone"]["state"] == "down"
    });
    let said = health(&gateway);
    assert_eq!(said["status"], "degraded", "{said}");
    assert_eq!(said["ledger"]["recording"], true, "{said}");
    assert_eq!(said["upstreams"]["a"]["era"], "stateful", "{said}");
    assert!(said["upstreams"]["gone"]["reason"].is_string(), "{said}");
    eventually("its tools are counted", || health(&gateway)["upstreams"]["a"]["tools"] == 5);
}
