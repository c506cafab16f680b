//! A gateway over several servers, and a client that speaks bare MCP over HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::{post_raw, send};
use crate::support::{AMENDS, Gateway, PATIENCE, Place, eventually};

/// The command of a server with some of everything.
pub(crate) fn raw(name: &str, flags: &[&str]) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/many/servers/raw.py");
    let mut command = vec!["python3".to_owned(), script.display().to_string(), name.to_owned()];
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    command
}

/// A server over HTTP, killed by its id when dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) port: u16,
}

impl HttpServer {
    pub(crate) fn start(place: &Place, name: &str, era: &str, port: u16) -> Self {
        Self::start_with(place, name, era, port, &[])
    }

    pub(crate) fn start_with(place: &Place, name: &str, era: &str, port: u16, flags: &[&str]) -> Self {
        let file = place.path(&format!("{name}.port"));
        let _ = std::fs::remove_file(&file);
        let (path, wanted) = (file.display().to_string(), port.to_string());
        let mut command = raw(name, &[flags, &["--era", era, "--http", &path]].concat());
        if port > 0 {
            command.push(wanted);
        }
        let child = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).spawn().expect("python3");
        let mut server = Self { child, port: 0 };
        eventually("the server listens", || {
            server.port = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            server.port > 0
        });
        server
    }

    pub(crate) fn declared(&self) -> String {
        format!("url = \"http://127.0.0.1:{}/mcp\"", self.port)
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The command of a server, as an upstream declares it.
pub(crate) fn declared(command: &[String]) -> String {
    format!("command = {command:?}")
}

/// Starts `amends serve` over those upstreams, and waits until their tools are served.
pub(crate) fn serve(place: &Place, upstreams: &[(&str, String)], more: &str) -> Gateway {
    let gateway = listening(place, upstreams, more);
    eventually("all are listed", || {
        let health = health(&gateway);
        upstreams.iter().all(|(name, _)| health["upstreams"][name]["listed"] == true)
    });
    gateway
}

/// The same without waiting for the upstreams.
pub(crate) fn listening(place: &Place, upstreams: &[(&str, String)], more: &str) -> Gateway {
    let mut text = format!("[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n", place.ledger());
    for (name, declared) in upstreams {
        text.push_str(&format!("[upstreams.{name}]\n{declared}\n"));
    }
    let config = place.write("serve.toml", &format!("{text}\n{more}\n"));
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    Gateway::listening(command)
}

/// What `GET /health` says.
pub(crate) fn health(gateway: &Gateway) -> Value {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    let head = format!("GET /health HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
    stream.write_all(head.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    serde_json::from_slice(&crate::support::http::parse(&answer).1).unwrap_or(Value::Null)
}

/// A client that speaks bare MCP.
#[derive(Debug)]
pub(crate) struct Bare {
    address: String,
    pub(crate) session: Option<String>,
}

impl Bare {
    /// A client with a session.
    pub(crate) fn stateful(gateway: &Gateway) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bare", "version": "1" } } });
        let mut stream = send(&gateway.address, "/mcp", &[], body.to_string().as_bytes());
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        let head = String::from_utf8_lossy(&answer).to_lowercase();
        let session = head.split("mcp-session-id: ").nth(1).and_then(|rest| rest.split_whitespace().next());
        Self { address: gateway.address.clone(), session: Some(session.expect("a session").to_owned()) }
    }

    /// A client without one.
    pub(crate) fn stateless(gateway: &Gateway) -> Self {
        Self { address: gateway.address.clone(), session: None }
    }

    /// The message of a request in this client's era, and its headers.
    fn request(&self, id: u64, method: &str, mut params: Value) -> (String, Vec<(String, String)>) {
        let mut headers = vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())];
        match &self.session {
            Some(session) => headers.push(("mcp-session-id".into(), session.clone())),
            None => {
                headers.push(("mcp-protocol-version".into(), "2026-07-28".into()));
                headers.push(("mcp-method".into(), method.into()));
                for (of, field) in [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")] {
                    if of == method {
                        headers.push(("mcp-name".into(), params[field].as_str().unwrap_or("").into()));
                    }
                }
                params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
                let can = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].take();
                params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                    if can.is_null() { json!({}) } else { can };
            }
        }
        (json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(), headers)
    }

    /// Asks, and gives the status and the body as it came.
    pub(crate) fn raw(&self, method: &str, params: Value) -> (u16, String) {
        let (body, headers) = self.request(7, method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (status, answer) = post_raw(&self.address, "/mcp", &headers, body.as_bytes());
        (status, String::from_utf8(answer).expect("UTF-8"))
    }

    /// Asks, and gives the status and the answer.
    pub(crate) fn ask(&self, method: &str, params: Value) -> (u16, Value) {
        let (status, text) = self.raw(method, params);
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Asks for what must work.
    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        let (status, answer) = self.ask(method, params);
        assert_eq!(status, 200, "{method}: {answer}");
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for what must work, with what it is about in its header.
    pub(crate) fn named(&self, method: &str, name: &str, params: Value) -> Value {
        let (body, mut headers) = self.request(7, method, params);
        headers.push(("mcp-name".into(), name.into()));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (status, answer) = post_raw(&self.address, "/mcp", &headers, body.as_bytes());
        let answer: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
        assert!(status == 200 && answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for what must not, and gives the status and the code.
    pub(crate) fn error(&self, method: &str, params: Value) -> (u16, i64) {
        let (status, answer) = self.ask(method, params);
        (status, answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}")))
    }

    /// Calls a tool.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// All entries of a list, over all its pages: what they are known by.
    pub(crate) fn list(&self, method: &str, member: &str, key: &str) -> Vec<String> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let params = cursor.map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
            let page = self.result(method, params);
            let entries = page[member].as_array().expect("a list").iter();
            all.extend(entries.map(|entry| entry[key].as_str().expect("a key").to_owned()));
            cursor = page.get("nextCursor").cloned();
            if cursor.is_none() {
                return all;
            }
        }
    }

    /// Listens to what the gateway says of its own accord, after that event where one is named.
    pub(crate) fn hears(&self, after: Option<&str>) -> Heard {
        let session = self.session.as_deref().expect("a session");
        let after = after.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n{after}\r\n",
            self.address
        );
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.write_all(head.as_bytes()).expect("a request");
        Heard::of(stream)
    }

    /// Begins a request whose answer is a stream.
    pub(crate) fn listens(&self, id: u64, method: &str, params: Value) -> Heard {
        let (body, headers) = self.request(id, method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Heard::of(send(&self.address, "/mcp", &headers, body.as_bytes()))
    }
}

/// What comes on a stream of events.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) stream: TcpStream,
    lines: mpsc::Receiver<String>,
    /// The id of the event that was read last.
    pub(crate) last_id: Option<String>,
}

impl Heard {
    /// Reads a stream, once its first bytes are there.
    fn of(stream: TcpStream) -> Self {
        let reading = stream.try_clone().expect("the same stream");
        reading.set_read_timeout(None).expect("no timeout");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reading).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let heard = Self { stream, lines, last_id: None };
        loop {
            let line = heard.lines.recv_timeout(PATIENCE).expect("the stream begins");
            assert!(!line.starts_with("HTTP/1.1") || line.contains("200"), "{line}");
            if line.trim().is_empty() {
                return heard;
            }
        }
    }

    /// The next message, and the event's id where it has one.
    pub(crate) fn next(&mut self) -> Value {
        self.within(PATIENCE).expect("a message")
    }

    /// The next message, if one comes in that time.
    pub(crate) fn within(&mut self, time: Duration) -> Option<Value> {
        loop {
            let line = self.lines.recv_timeout(time).ok()?;
            if let Some(id) = line.strip_prefix("id: ") {
                self.last_id = Some(id.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// Waits for a message of that method, and gives all that came up to it.
    pub(crate) fn until(&mut self, method: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let message = self.next();
            let found = message["method"] == method;
            seen.push(message);
            if found {
                return seen;
            }
        }
    }

    /// Waits until the stream is over.
    pub(crate) fn ends(&mut self) {
        // The last of the chunks is empty; the connection may be kept for other requests.
        while self.lines.recv_timeout(PATIENCE).is_ok_and(|line| line.trim() != "0") {}
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
