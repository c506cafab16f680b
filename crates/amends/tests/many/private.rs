//! Private data in what is no tool's result.

use serde_json::json;

use crate::place::{Bare, HttpServer, declared, raw, serve};
use crate::support::Place;

#[test]
fn a_card_in_a_resource_is_masked_in_every_pairing() {
    let place = Place::new();
    let servers = [HttpServer::start(&place, "old", "legacy", 0), HttpServer::start(&place, "new", "modern", 0)];
    let upstreams = [
        ("piped", declared(&raw("piped", &[]))),
        ("alone", declared(&raw("alone", &["--era", "modern"]))),
        ("old", servers[0].declared()),
        ("new", servers[1].declared()),
    ];
    let gateway = serve(&place, &upstreams, "");
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        for name in ["piped", "alone", "old", "new"] {
            let read = client.result("resources/read", json!({ "uri": format!("private://{name}") }));
            let text = read["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
            assert_eq!(text, "paid with [redacted:payment_card], and n is 1.0", "{name}");
        }
    }
}

#[test]
fn a_resource_that_holds_what_is_refused_is_withheld() {
    let place = Place::new();
    let upstreams = [("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &["--era", "modern"])))];
    let gateway = serve(&place, &upstreams, "[pii]\nresults = { payment_card = \"refuse\" }\n");
    let client = Bare::stateless(&gateway);
    for name in ["a", "b"] {
        let read = client.result("resources/read", json!({ "uri": format!("private://{name}") }));
        assert_eq!(read["contents"], json!([]), "{name}: {read}");
        let plain = client.result("resources/read", json!({ "uri": format!("{name}://one") }));
        assert_eq!(plain["contents"][0]["text"], format!("{name}://one of {name}"), "{plain}");
    }
}
