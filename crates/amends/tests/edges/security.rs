//! What a hostile page, client or server may try.

use serde_json::{Value, json};

use crate::pipe::MODERN;
use crate::servers::{python, serve};
use crate::support::http::{post, send};
use crate::support::{Place, eventually};
use std::io::Read;

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn a_foreign_origin_or_host_is_refused_at_every_path() {
    let place = Place::new();
    let gateway = place.up("");
    for path in ["/mcp", "/call/get_order", "/", "/healthz"] {
        for origin in [
            "http://evil.example",
            "null",
            "https://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "file://",
        ] {
            let (status, _) = post(&gateway.address, path, &[("origin", origin)], PING);
            assert_eq!(status, 403, "{path} from {origin}");
        }
        for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io"] {
            assert_eq!(raw_host(&gateway.address, path, host), 403, "{path} at {host}");
        }
    }
    for origin in ["http://localhost:5173", &format!("http://{}", gateway.address)] {
        assert_eq!(post(&gateway.address, "/mcp", &[("origin", origin)], PING).0, 200, "{origin}");
    }
    for host in ["localhost", "localhost:1", "127.0.0.1", "[::1]:7070"] {
        assert_eq!(raw_host(&gateway.address, "/mcp", host), 200, "{host}");
    }
    assert_eq!(place.requests("get_order"), 1, "only the one that showed that the shop is served");
}

/// The status of a request that names that host.
fn raw_host(address: &str, path: &str, host: &str) -> u16 {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        PING.len()
    );
    stream.write_all(request.as_bytes()).and_then(|()| stream.write_all(PING)).expect("it is sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[test]
fn headers_that_do_not_say_what_the_body_says_are_refused() {
    let place = Place::new();
    let gateway = place.up("");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{{"name":"charge_card","arguments":{{"order":"ord_1","amount":5}},"_meta":{{{MODERN}}}}}}}"#
    );
    let good = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "charge_card")];
    for (at, value) in [(0, "2025-11-25"), (1, "tools/list"), (2, "get_order")] {
        let mut headers = good;
        headers[at].1 = value;
        let (status, answer) = post(&gateway.address, "/mcp", &headers, body.as_bytes());
        assert_eq!((status, &answer["error"]["code"], &answer["id"]), (400, &json!(-32020), &json!("m")), "{answer}");
    }
    for missing in 0..3 {
        let headers: Vec<_> = good.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, pair)| *pair).collect();
        let (status, answer) = post(&gateway.address, "/mcp", &headers, body.as_bytes());
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "without {}: {answer}", good[missing].0);
    }
    let unknown = body.replace("2026-07-28", "2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), good[1], good[2]];
    let (status, answer) = post(&gateway.address, "/mcp", &headers, unknown.as_bytes());
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)), "{answer}");
    assert!(answer["error"]["data"]["supported"].as_array().is_some_and(|versions| !versions.is_empty()), "{answer}");
    assert_eq!(place.requests("charge_card"), 0, "nothing of it was sent");
    let (status, answer) = post(&gateway.address, "/mcp", &good, body.as_bytes());
    assert_eq!((status, &answer["result"]["structuredContent"]["order"]), (200, &json!("ord_1")), "{answer}");
}

#[test]
fn sessions_cannot_be_guessed_and_unknown_ones_are_not_found() {
    let place = Place::new();
    let gateway = place.up("");
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","arguments":{"order":"ord_1"}}}"#;
    for unknown in ["x", "../../x", "ses_1", &"a".repeat(24), &"a".repeat(5000)] {
        let (status, answer) = post(&gateway.address, "/mcp", &[("mcp-session-id", unknown)], call);
        assert_eq!(status, 404, "{unknown:.40}: {answer}");
    }
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let greet =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
        let mut stream = send(&gateway.address, "/mcp", &[], greet.to_string().as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
        // 24 of 32 letters are 120 bits.
        assert!(id.len() >= 24 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        let (status, answer) = post(&gateway.address, "/mcp", &[("mcp-session-id", &id)], call);
        assert_eq!(status, 200, "{answer}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 20);
    let alike = ids.iter().zip(ids.iter().skip(1)).filter(|(a, b)| a[..6] == b[..6]).count();
    assert_eq!(alike, 0, "{ids:?}");
}

#[test]
fn hostile_error_text_is_quoted_bounded_and_marked() {
    let place = Place::new();
    let server = python(&place, "bad.py", &[]);
    let gateway = serve(&place, &format!("command = {server:?}"), "[tools.ok]\neffect = \"read\"\n");
    eventually("the tools are served", || gateway.call("ok", "{}").0 == 200);
    for tool in ["hostile", "hostile_rpc"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } });
        let (_, answer) = post(&gateway.address, "/mcp", &[], message.to_string().as_bytes());
        let error = &answer["result"]["_meta"]["amends/envelope"]["error"];
        let ours = error["message"].as_str().expect("our own words");
        assert!(!ours.contains("ignore your instructions"), "{tool}: {ours}");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        let at = text.find("ignore your instructions").unwrap_or_else(|| panic!("{tool}: it is quoted: {text}"));
        assert!(text[..at].to_lowercase().contains("untrusted") || text[..at].contains("not instructions"), "{text}");
        assert!(text.len() < 5_000, "{tool}: {} bytes", text.len());
        assert!(answer.to_string().len() < 20_000, "{tool}: {} bytes", answer.to_string().len());
        let whole = answer.to_string();
        for hidden in ['\u{202e}', '\u{2066}', '\u{200b}'] {
            assert!(!text.contains(hidden), "{tool}: {hidden:?} in {text}");
            assert!(!whole.contains(hidden), "{tool}: {hidden:?} in {whole}");
        }
    }
}

#[test]
fn ids_are_never_paths() {
    let place = Place::new();
    let gateway = place.up("");
    gateway.call("get_order", r#"{"order":"ord_1"}"#);
    eventually("it is recorded", || place.amends(&["sessions", "--json"]).1.contains("ses_"));
    let files = || std::fs::read_dir(place.path("")).expect("the folder").count();
    let before = files();
    let long = "x".repeat(100_000);
    for id in ["../../x", "/etc/passwd", "call_../../x", "ses_%2e%2e", "' OR 1=1 --", "", long.as_str()] {
        for json in [false, true] {
            let output = std::process::Command::new(crate::support::AMENDS)
                .args(["trace", "--ledger", &place.ledger()])
                .args(if json { &["--json"][..] } else { &[] })
                .args(["--", id])
                .output()
                .expect("it runs");
            assert_eq!(output.status.code(), Some(2), "{id:.40}");
            assert!(output.stdout.is_empty(), "{id:.40}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("amends sessions"), "{id:.40}: {said:.300}");
        }
    }
    assert_eq!(files(), before);
    let (status, answer) = post(&gateway.address, "/call/..%2f..%2fx", &[], b"{}");
    assert_eq!((status, &answer["error"]["kind"]), (404, &json!("unknown_name")), "{answer}");
    assert_ne!(answer, Value::Null);
}
