//! `GET /health`.

use crate::place::{HttpServer, declared, health, listening, raw, serve};
use crate::support::{Place, eventually, http};

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

/// Whether the metrics say that an upstream is up.
fn is_up(gateway: &crate::support::Gateway, name: &str) -> bool {
    let mut stream = std::net::TcpStream::connect(&gateway.address).expect("a connection");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
    std::io::Write::write_all(&mut stream, head.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    let text = String::from_utf8(http::parse(&answer).1).expect("text");
    text.contains(&format!("amends_upstream_up{{upstream=\"{name}\"}} 1\n"))
}

#[test]
fn a_server_that_dies_after_its_greeting_is_down_until_it_is_back_though_nobody_calls_it() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let mut c = HttpServer::start(&place, "c", era, 0);
        let gateway = serve(&place, &[("a", declared(&raw("a", &[]))), ("c", c.declared())], "");
        assert!(is_up(&gateway, "c"));
        c.kill();
        let state = || health(&gateway)["upstreams"]["c"].clone();
        eventually("it is down", || state()["state"] == "down");
        assert!(state()["reason"].is_string(), "{era}: {}", state());
        assert!(!is_up(&gateway, "c") && is_up(&gateway, "a"), "{era}");
        assert_eq!(health(&gateway)["status"], "degraded", "{era}");
        let _back = HttpServer::start(&place, "c", era, c.port);
        eventually("it is back", || state()["state"] == "ready" && is_up(&gateway, "c"));
        assert_eq!(health(&gateway)["status"], "ok", "{era}");
        let era = if era == "modern" { "stateless" } else { "stateful" };
        assert_eq!(state()["era"], era);
    }
}
