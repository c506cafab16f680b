//! HTTP upstreams that break the rules, or the line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::resident_mb;
use crate::servers::{contracts, serve};
use crate::support::{AMENDS, Gateway, Place, eventually};

/// An MCP server over HTTP of which each tool breaks in its own way.
struct Web {
    address: SocketAddr,
    calls: Arc<AtomicU64>,
}

const TOOLS: [&str; 16] = [
    "ok",
    "reset",
    "reset_in_body",
    "cut_body",
    "html_200",
    "html_500",
    "not_found",
    "limited",
    "limits",
    "silent",
    "endless",
    "endless_event",
    "wrong_id",
    "empty",
    "redirect",
    "huge_event",
];

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let calls = Arc::new(AtomicU64::new(0));
        let counted = calls.clone();
        // It lives as long as the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = counted.clone();
                std::thread::spawn(move || serve_one(stream, &counted));
            }
        });
        Self { address, calls }
    }

    fn gateway(&self, place: &Place) -> Gateway {
        let upstream = format!("url = \"http://{}/mcp\"\ntimeout = \"1s\"\ndeadline = \"20s\"", self.address);
        let gateway =
            serve(place, &upstream, "[tools.ok]\neffect = \"read\"\n\n[tools.limited_read]\neffect = \"read\"\n");
        eventually("the tools are served", || gateway.call("ok", "{}").0 == 200);
        gateway
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

fn serve_one(mut stream: TcpStream, calls: &AtomicU64) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
                length = given.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        if !answer(&mut stream, &message, calls) {
            return;
        }
    }
}

/// Answers one message, and says whether the connection goes on.
fn answer(stream: &mut TcpStream, message: &Value, calls: &AtomicU64) -> bool {
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap_or("") {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                                "serverInfo": { "name": "web", "version": "1" } }),
        "tools/list" => {
            let entry = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
            json!({ "tools": TOOLS.iter().map(entry).collect::<Vec<_>>() })
        }
        "tools/call" => {
            let tool = message["params"]["name"].as_str().unwrap_or("");
            if tool != "ok" {
                calls.fetch_add(1, Ordering::SeqCst);
            }
            return misbehave(stream, id, tool);
        }
        _ => return write(stream, "202 Accepted", "", b""),
    };
    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    write(stream, "200 OK", "content-type: application/json\r\n", text.as_bytes())
}

fn write(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_ok()
}

fn misbehave(stream: &mut TcpStream, id: &Value, tool: &str) -> bool {
    const JSON: &str = "content-type: application/json\r\n";
    const HTML: &str = "content-type: text/html\r\n";
    const PAGE: &[u8] = b"<!DOCTYPE html><html><body>Bad Gateway</body></html>";
    let good = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }).to_string();
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    match tool {
        "ok" => write(stream, "200 OK", JSON, good.as_bytes()),
        "reset" => false,
        "reset_in_body" | "cut_body" => {
            let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n", good.len());
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&good.as_bytes()[..good.len() / 2]));
            false
        }
        "html_200" => write(stream, "200 OK", HTML, PAGE),
        "html_500" => write(stream, "500 Internal Server Error", HTML, PAGE),
        "not_found" => write(stream, "404 Not Found", HTML, PAGE),
        "limited" => write(stream, "429 Too Many Requests", "retry-after: 7\r\n", b""),
        "limits" => write(stream, "429 Too Many Requests", "ratelimit: \"default\";r=0;t=9\r\n", b""),
        "empty" => write(stream, "200 OK", JSON, b""),
        "redirect" => write(stream, "307 Temporary Redirect", "location: http://169.254.169.254/\r\n", b""),
        "wrong_id" => {
            let wrong = json!({ "jsonrpc": "2.0", "id": "other", "result": { "content": [] } }).to_string();
            write(stream, "200 OK", JSON, wrong.as_bytes())
        }
        "silent" => {
            let mut rest = [0; 1];
            // Until the other side gives up.
            let _ = stream.read(&mut rest);
            false
        }
        "endless" => {
            let _ = stream.write_all(events.as_bytes());
            let note =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"still here"}}"#;
            // Until the other side gives up.
            while chunk(stream, format!("event: message\ndata: {note}\n\n").as_bytes()) {
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        }
        "endless_event" => {
            let _ = stream.write_all(events.as_bytes());
            let part = vec![b'x'; 64 * 1024];
            let mut go_on = chunk(stream, b"data: ");
            while go_on {
                go_on = chunk(stream, &part);
            }
            false
        }
        "huge_event" => {
            let _ = stream.write_all(events.as_bytes());
            let text = "x".repeat(24 << 20);
            let result =
                json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } });
            let whole = format!("data: {result}\n\n");
            whole.as_bytes().chunks(16 * 1024).all(|part| chunk(stream, part)) && stream.write_all(b"0\r\n\r\n").is_ok()
        }
        other => panic!("there is no tool {other}"),
    }
}

fn chunk(stream: &mut TcpStream, data: &[u8]) -> bool {
    let head = format!("{:x}\r\n", data.len());
    let wrote = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(data));
    wrote.and_then(|()| stream.write_all(b"\r\n")).is_ok()
}

fn failed(gateway: &Gateway, tool: &str) -> Value {
    let (status, envelope) = gateway.call(tool, "{}");
    assert!(status >= 400, "{tool}: {status} {envelope}");
    assert_eq!(envelope["status"], "error", "{tool}: {envelope}");
    assert_eq!(envelope["attempts"].as_array().map(Vec::len), Some(1), "a write is sent once: {tool}: {envelope}");
    envelope["error"].clone()
}

#[test]
fn a_broken_line_leaves_a_write_in_doubt_and_is_never_sent_again() {
    let place = Place::new();
    let web = Web::start();
    let gateway = web.gateway(&place);
    for (n, (tool, code)) in
        [("reset", "ConnectionLost"), ("reset_in_body", "ConnectionLost"), ("cut_body", "ConnectionLost")]
            .iter()
            .enumerate()
    {
        let error = failed(&gateway, tool);
        assert_eq!((&error["code"], &error["certainty"]), (&json!(code), &json!("in_doubt")), "{tool}: {error}");
        assert_eq!(error["safe_to_repeat"], false);
        assert_eq!(web.calls(), n as u64 + 1);
        assert_eq!(gateway.call("ok", "{}").0, 200);
    }
    place.settled();
}

#[test]
fn what_is_no_answer_of_the_protocol_is_judged_by_its_status() {
    let place = Place::new();
    let web = Web::start();
    let gateway = web.gateway(&place);
    for (tool, code, certainty) in [
        ("html_200", "OutputMalformed", "in_doubt"),
        ("empty", "OutputMalformed", "in_doubt"),
        ("wrong_id", "OutputMalformed", "in_doubt"),
        ("html_500", "Provider5xx", "in_doubt"),
        ("limited", "RateLimited", "in_doubt"),
        ("limits", "RateLimited", "in_doubt"),
    ] {
        let error = failed(&gateway, tool);
        match tool {
            "limited" => assert_eq!(error["retry_after_ms"], 7000, "{error}"),
            "limits" => assert_eq!(error["retry_after_ms"], 9000, "{error}"),
            _ => {}
        }
        assert_eq!((&error["code"], &error["certainty"]), (&json!(code), &json!(certainty)), "{tool}: {error}");
        assert_eq!(error["safe_to_repeat"], false, "{tool}: {error}");
    }
    for tool in ["not_found", "redirect"] {
        let error = failed(&gateway, tool);
        assert_ne!(error["certainty"], "processed", "{tool}: {error}");
    }
    assert_eq!(web.calls(), 8);
    assert_eq!(gateway.call("ok", "{}").0, 200);
    place.settled();
}

#[test]
fn a_deadline_holds_for_answers_that_never_come_or_never_end() {
    let place = Place::new();
    let web = Web::start();
    let gateway = web.gateway(&place);
    for tool in ["silent", "endless"] {
        let began = Instant::now();
        let error = failed(&gateway, tool);
        assert_eq!((&error["code"], &error["certainty"]), (&json!("NetworkTimeout"), &json!("in_doubt")), "{error}");
        assert!(began.elapsed() < Duration::from_secs(8), "{tool}: {:?}", began.elapsed());
    }
    assert_eq!(gateway.call("ok", "{}").0, 200);
    place.settled();
}

#[test]
fn events_are_bounded_and_large_ones_are_read_in_good_time() {
    let place = Place::new();
    let web = Web::start();
    let upstream = format!("url = \"http://{}/mcp\"\ntimeout = \"30s\"\ndeadline = \"40s\"", web.address);
    let gateway = serve(&place, &upstream, "[tools.ok]\neffect = \"read\"\n");
    eventually("the tools are served", || gateway.call("ok", "{}").0 == 200);
    let before = resident_mb(gateway.id());
    let error = failed(&gateway, "endless_event");
    assert_eq!(error["safe_to_repeat"], false, "{error}");
    assert_eq!(error["code"], "OutputMalformed", "it is over its bound long before its time: {error}");
    let after = resident_mb(gateway.id());
    assert!(after < before + 150, "{before} MB before and {after} MB after");
    let (status, done) = gateway.call("huge_event", "{}");
    assert_eq!(status, 200, "{:.300}", done.to_string());
    place.settled();
}

#[test]
fn an_upstream_that_is_not_there_is_refused_unsent_and_found_when_it_comes() {
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let upstream = format!("url = \"http://127.0.0.1:{port}/mcp\"\ntimeout = \"1s\"\ndeadline = \"20s\"");
    let gateway = serve(&place, &upstream, contracts());
    let (_, refused) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refused["error"]["kind"], "index_not_ready", "{refused}");
    let mut shop = Shop::start(&place, &format!("127.0.0.1:{port}"), &[]);
    eventually("it is found", || gateway.call("get_order", r#"{"order":"ord_1"}"#).0 == 200);
    shop.end();
    // Its tools are known now; nothing can be sent, and the agent hears that nothing was.
    let (_, failed) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(failed["error"]["code"], "ConnectRefused", "{failed}");
    assert_eq!(failed["error"]["certainty"], "not_sent", "{failed}");
    assert_eq!(place.requests("charge_card"), 0);
    let _shop = Shop::start(&place, &format!("127.0.0.1:{port}"), &[]);
    let (status, charged) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(status, 200, "a new session with the new process: {charged}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn http_statuses_of_the_shop_are_judged_like_its_results() {
    let place = Place::new();
    let faults = [
        "--http-faults",
        "--fault",
        "charge_card@ord_500=status_500",
        "--fault",
        "charge_card@ord_429=rate_limited",
        "--fault",
        "charge_card@ord_403=forbidden",
        "--fault",
        "charge_card@ord_lost=lose_response",
        "--fault",
        "charge_card@ord_page=garbage",
        "--fault",
        "get_order@ord_503=status_503",
        "--fault",
        "get_order@ord_429=rate_limited",
        "--fault",
        "issue_refund@ord_lost=lose_response",
    ];
    let shop = Shop::start(&place, "127.0.0.1:0", &faults);
    let upstream = format!("url = \"http://{}/mcp\"\ntimeout = \"2s\"\ndeadline = \"20s\"", shop.address);
    let gateway = serve(&place, &upstream, contracts());
    eventually("the tools are served", || gateway.call("get_order", r#"{"order":"ord_1"}"#).0 == 200);
    for (order, code, certainty) in [
        ("ord_500", "Provider5xx", "in_doubt"),
        ("ord_429", "RateLimited", "in_doubt"),
        ("ord_403", "Forbidden", "not_processed"),
        ("ord_lost", "ConnectionLost", "in_doubt"),
        ("ord_page", "OutputMalformed", "in_doubt"),
    ] {
        let (_, failed) = gateway.call("charge_card", &format!(r#"{{"order":"{order}","amount":5}}"#));
        let error = &failed["error"];
        assert_eq!((&error["code"], &error["certainty"]), (&json!(code), &json!(certainty)), "{order}: {failed}");
        assert_eq!(place.requests_on("charge_card", order), 1, "{order}");
    }
    for order in ["ord_503", "ord_429"] {
        let (status, read) = gateway.call("get_order", &format!(r#"{{"order":"{order}"}}"#));
        assert_eq!((status, &read["outcome"]), (200, &json!("succeeded_after_compensation")), "{order}: {read}");
        let arrived = place.arrivals_on("get_order", order);
        assert!(arrived.len() == 2 && arrived[1] - arrived[0] >= 1000, "Retry-After is kept: {arrived:?}");
    }
    let (status, refund) = gateway.call("issue_refund", r#"{"order":"ord_lost","amount":5}"#);
    assert_eq!((status, &refund["outcome"]), (200, &json!("succeeded_after_compensation")), "{refund}");
    assert_eq!(place.effects("issue_refund"), 1);
    place.settled();
}

/// The shop over HTTP; it is killed by its id when dropped.
struct Shop {
    child: Child,
    address: String,
}

impl Shop {
    fn start(place: &Place, address: &str, flags: &[&str]) -> Self {
        let mut child = Command::new(AMENDS)
            .args(["shop", "--http", address, "--book"])
            .arg(place.path("book.db"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shop starts");
        let stderr = child.stderr.take().expect("its standard error");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = lines
            .by_ref()
            .find_map(|line| {
                let rest = line.split("http://").nth(1)?;
                rest.split(['/', ' ']).next().map(str::to_owned)
            })
            .expect("the shop says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.end();
    }
}
