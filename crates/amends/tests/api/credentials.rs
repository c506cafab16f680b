//! What an upstream is shown, and what nobody else ever sees of it.

use crate::serve;
use crate::server::{Api, DOCUMENT};
use crate::support::http::post;
use crate::support::{AMENDS, Place, eventually};

#[test]
fn credentials_and_context_reach_the_api_and_are_recorded_nowhere() {
    let (place, api) = (Place::new(), Api::start());
    place.write("shop.yaml", DOCUMENT);
    place.write("tenant", "t3nant-s3cret\n");
    let config = format!(
        "[upstreams.shop]\nopenapi = \"shop.yaml\"\nbase_url = \"http://{}/v1\"\nprefix = \"\"\n\
         deadline_header = \"X-Time-Left\"\nheaders = {{ x-tenant = {{ file = \"tenant\" }} }}\n\
         credentials = {{ token = {{ env = \"SHOP_TOKEN\" }} }}\n",
        api.address
    );
    let gateway = serve(&place, &config, &[("SHOP_TOKEN", "tok-s3cret")]);
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    let message = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "getOrder", "arguments": { "order": "traced" },
        "_meta": { "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b\nc",
                   "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                   "io.modelcontextprotocol/clientCapabilities": {} } } });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "getOrder")];
    let (status, read) = post(&gateway.address, "/mcp", &headers, message.to_string().as_bytes());
    assert_eq!(status, 200, "{read}");
    let seen = &api.seen("GET", "traced")[0];
    assert_eq!(seen.header("authorization"), Some("Bearer tok-s3cret"));
    assert_eq!(seen.header("x-tenant"), Some("t3nant-s3cret"));
    assert!(seen.header("traceparent").is_some_and(|parent| parent.starts_with("00-0af7651916cd43dd")), "{seen:?}");
    assert_eq!(seen.header("tracestate"), None, "what is no header is not made one");
    let left: u64 = seen.header("x-time-left").and_then(|left| left.parse().ok()).expect("the time that is left");
    assert!(left > 0 && left <= 10_000, "{left}");
    gateway.call("charge", r#"{"order":"503","amount":5}"#);
    place.settled();
    let trace: String = place.events().iter().map(ToString::to_string).collect();
    assert!(trace.contains("getOrder") && !trace.contains("s3cret"), "a credential is on the trace");
    let ledger = std::fs::read(place.path("amends.db")).expect("the ledger");
    assert!(!ledger.windows(6).any(|bytes| bytes == b"s3cret"), "a credential is in the ledger");
}

#[test]
fn a_credential_that_is_not_there_is_named_at_the_start_and_never_shown() {
    let place = Place::new();
    place.write("shop.yaml", DOCUMENT);
    let refused = |lines: &str, environment: &[(&str, &str)]| {
        let text = format!(
            "[ledger]\nurl = \"memory:\"\n[listen]\nhttp = \"127.0.0.1:0\"\n[upstreams.shop]\nopenapi = \"shop.yaml\"\n\
             base_url = \"https://127.0.0.1:1\"\n{lines}\n"
        );
        let config = place.write("amends.toml", &text);
        let output = std::process::Command::new(AMENDS)
            .args(["serve", "--config"])
            .arg(config)
            .env_remove("SHOP_TOKEN")
            .envs(environment.iter().copied())
            .output()
            .expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let token = "credentials = { token = { env = \"SHOP_TOKEN\" } }";
    let unset = refused(token, &[]);
    assert!(unset.contains("upstreams.shop") && unset.contains("SHOP_TOKEN"), "{unset}");
    let broken = refused(token, &[("SHOP_TOKEN", "two\nl1nes")]);
    assert!(broken.contains("SHOP_TOKEN") && !broken.contains("l1nes"), "{broken}");
    let missing = refused("ca = \"none.pem\"", &[]);
    assert!(missing.contains("none.pem"), "{missing}");
    let unknown = refused("credentials = { tokn = { env = \"SHOP_TOKEN\" } }", &[]);
    assert!(unknown.contains("no security scheme `tokn`"), "{unknown}");
    let framed = refused("headers = { Host = { env = \"SHOP_TOKEN\" } }", &[]);
    assert!(framed.contains("not the operator's to set"), "{framed}");
}
