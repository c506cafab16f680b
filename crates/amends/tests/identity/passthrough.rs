//! The token that an agent shows us is ours alone: no upstream, no record, no log and no number ever holds it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{ADA, House, two_tokens};
use crate::issuer::{Issuer, Key};
use crate::support::{Place, eventually};

/// An upstream that answers with everything it was sent, as an API at `/echo` and as an MCP server at `/mcp`.
struct Echo {
    address: String,
    heard: Arc<Mutex<String>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let heard = Arc::new(Mutex::new(String::new()));
        let hears = heard.clone();
        // It lives as long as the test: its thread ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hears = hears.clone();
                std::thread::spawn(move || while answer(&stream, &hears).is_some() {});
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().expect("what was heard").clone()
    }
}

/// Answers one request on a connection; nothing when there is none any more.
fn answer(mut stream: &TcpStream, hears: &Mutex<String>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_lowercase();
    let length = lower.split("content-length:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    hears.lock().expect("what is heard").push_str(&format!("{head}{body}\n"));
    let echo = json!({ "echo": format!("{head}{body}") });
    let reply = if head.starts_with("POST /mcp") { rpc(&body, &echo) } else { Some(echo) };
    let (status, text) = match reply {
        Some(reply) => ("200 OK", reply.to_string()),
        None => ("202 Accepted", String::new()),
    };
    let status = if head.starts_with("GET /mcp") { "405 Method Not Allowed" } else { status };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

fn rpc(body: &str, echo: &Value) -> Option<Value> {
    let asked: Value = serde_json::from_str(body).ok()?;
    let id = asked.get("id")?.clone();
    let result = match asked["method"].as_str()? {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" } }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": echo.to_string() }] }),
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

const DOCUMENT: &str = r#"{
  "openapi": "3.1.0", "info": { "title": "echo", "version": "1" },
  "paths": { "/echo": { "post": { "operationId": "echo",
    "requestBody": { "content": { "application/json": { "schema": { "type": "object", "properties": { "x": { "type": "integer" } } } } } },
    "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": { "type": "object" } } } } } } } }
}"#;

#[test]
fn the_token_of_an_agent_goes_nowhere() {
    let echo = Echo::start();
    let key = Key::p256("k1");
    let issuer = Issuer::start(&[&key]);
    let jwt = key.token(&issuer.claims("carol"));
    let place = Place::new();
    place.write("echo.json", DOCUMENT);
    place.write("own.secret", "our-own-credential-for-the-upstream");
    let config = format!(
        "[upstreams.api]\nopenapi = \"echo.json\"\nbase_url = \"http://{0}\"\n\
         headers = {{ Authorization = {{ file = \"own.secret\", prefix = \"Bearer \" }} }}\n\
         [upstreams.mcp]\nurl = \"http://{0}/mcp\"\n{1}{2}",
        echo.address,
        two_tokens(&place)
            .replace("[auth.tokens.bob]\nsecret = { file = \"bob.token\" }\n", "scopes = [\"call\", \"admin\"]\n"),
        issuer.section("")
    );
    let house = House::serve(place, &config);
    for tool in ["api__echo", "mcp__echo"] {
        eventually("the tool is served", || house.call(ADA, tool, r#"{"x":1}"#).body["status"] == "success");
        for token in [ADA, &jwt] {
            let echoed = house.call(token, tool, r#"{"x":2}"#);
            assert_eq!(echoed.body["status"], "success", "{echoed:?}");
            assert!(echoed.text.contains("host"), "it echoes what it was sent: {echoed:?}");
            let called = house.alone(token, "tools/call", tool, json!({ "name": tool, "arguments": { "x": 3 } }));
            assert_eq!(called.status, 200, "{called:?}");
            let session = house.greet(token);
            let params = json!({ "name": tool, "arguments": { "x": 4 } });
            assert_eq!(house.mcp(token, &[("mcp-session-id", &session)], "tools/call", params).status, 200);
        }
    }
    house.place.settled();
    let metrics = house.ask("GET", "/metrics", &[("authorization", &format!("Bearer {ADA}"))], "");
    assert_eq!(metrics.status, 200, "{metrics:?}");
    let heard = echo.heard();
    assert!(heard.contains("our-own-credential-for-the-upstream"), "what the operator configured is shown");
    let signature = jwt.rsplit('.').next().expect("a signature");
    for secret in [ADA, jwt.as_str(), signature] {
        assert!(!heard.contains(secret), "it reached an upstream");
        assert!(!metrics.text.contains(secret), "it is among the metrics");
        assert_eq!(house.keeps(secret), None, "it is kept");
    }
}
