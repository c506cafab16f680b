//! A cancel from every kind of client to every kind of server: the server hears it in the words of its own era.

use serde_json::{Value, json};

use crate::pairings::{command, listening, words};
use crate::support::client::{Client, Sdk};
use crate::support::served::serve_tools;
use crate::support::{AMENDS, Place, eventually};
use crate::traffic::Era;

const SLOW: &str = "\n[tools.slow]\neffect = \"read\"\n";
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const SDKS: [Sdk; 2] = [Sdk::Python, Sdk::TypeScript];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
}

/// Cancels a call that would never end, and looks where that was noticed.
fn cancels(place: &Place, client: &mut Client, server: (Era, Transport), who: &str) {
    let n = client.begin(json!({ "op": "call", "tool": "slow", "args": { "n": 1 } }));
    let log = || {
        let text = std::fs::read_to_string(place.path("through.log")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    let calls = || log().into_iter().filter(|line| line["method"] == "tools/call").collect::<Vec<_>>();
    eventually(&format!("{who}: the call arrives"), || !calls().is_empty());
    assert_eq!(client.run(json!({ "op": "cancel", "call": n }))["ok"], true, "{who}");
    assert_eq!(client.finish(n)["error"]["type"], "cancelled", "{who}");
    let id = calls()[0]["id"].clone();
    let told =
        || log().iter().any(|line| line["method"] == "notifications/cancelled" && line["params"]["requestId"] == id);
    let closed = || log().iter().any(|line| line["closed"] == id);
    if server == (Era::Modern, Transport::Http) {
        eventually(&format!("{who}: the connection of the call is closed"), closed);
        assert!(!told(), "{who}: over HTTP, closing the stream is the cancel");
    } else {
        eventually(&format!("{who}: the server is told"), told);
    }
    // Nothing is left open, the one call was sent once, and its end says how it ended.
    place.settled();
    assert_eq!(calls().len(), 1, "{who}");
    let ends = place.events_named("call_ended");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("cancelled")), "{who}: {ends:?}");
    assert_eq!(place.events_named("cancel_requested").len(), 1, "{who}");
    // The client can go on.
    let next = client.call("numbers", json!({ "n": 1 }));
    assert_eq!(next["result"]["structuredContent"]["one"], 1.0, "{who}: {next}");
}

/// Every client over HTTP, in front of a server of that era and transport.
fn over_http(server: (Era, Transport)) {
    for sdk in SDKS {
        for era in ERAS {
            let place = Place::new();
            let running = (server.1 == Transport::Http).then(|| listening(&place, "through.log", server.0));
            let upstream = match &running {
                Some(running) => format!("url = {:?}{SLOW}", running.url),
                None => format!("command = {:?}{SLOW}", command(&place, "through.log", server.0, "--stdio")),
            };
            let gateway = serve_tools(&place, &upstream, "");
            let mut client = Client::http(sdk, Some(era.name()), &gateway.mcp());
            cancels(&place, &mut client, server, &format!("{sdk:?} {era:?} to {server:?}"));
        }
    }
}

#[test]
fn a_cancel_over_http_reaches_a_stateful_child_process() {
    over_http((Era::Legacy, Transport::Stdio));
}

#[test]
fn a_cancel_over_http_reaches_a_stateless_child_process() {
    over_http((Era::Modern, Transport::Stdio));
}

#[test]
fn a_cancel_over_http_reaches_a_stateful_server_over_http() {
    over_http((Era::Legacy, Transport::Http));
}

#[test]
fn a_cancel_over_http_reaches_a_stateless_server_over_http() {
    over_http((Era::Modern, Transport::Http));
}

/// Every client over stdio, in front of a wrapped server, with the eras paired by `pairs`.
fn wrapped(pairs: impl Fn(Era, Era) -> bool) {
    for era in ERAS {
        for server_era in ERAS.into_iter().filter(|server| pairs(era, *server)) {
            for sdk in SDKS {
                let place = Place::new();
                let (ledger, config) = (place.ledger(), place.write("wrap.toml", SLOW).display().to_string());
                let server = command(&place, "through.log", server_era, "--stdio");
                let mut wrapped = vec![AMENDS, "wrap", "--ledger", &ledger, "--config", &config, "--"];
                wrapped.extend(words(&server));
                let mut client = Client::stdio(sdk, Some(era.name()), &wrapped);
                let who = format!("{sdk:?} {era:?} to {server_era:?}, wrapped");
                cancels(&place, &mut client, (server_era, Transport::Stdio), &who);
            }
        }
    }
}

#[test]
fn a_cancel_over_stdio_reaches_a_wrapped_server_of_the_same_era() {
    wrapped(|client, server| client == server);
}

#[test]
fn a_cancel_over_stdio_reaches_a_wrapped_server_of_the_other_era() {
    wrapped(|client, server| client != server);
}
