//! A gateway that wants to know who calls, whose log is kept, and a client that shows everything that came back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{AMENDS, Place, eventually};

/// The token of `ada`, and that of `bob`.
pub(crate) const ADA: &str = "ada-t0ken-0123456789abcdef";
pub(crate) const BOB: &str = "bob-t0ken-0123456789abcdef";

/// What governs the shop.
pub(crate) const SHOP: &str = include_str!("../../src/cli/demo.toml");

/// A gateway. It is killed by its id when dropped.
pub(crate) struct House {
    pub(crate) place: Place,
    pub(crate) address: String,
    child: Child,
    log: PathBuf,
}

/// An answer, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (named, value) = line.split_once(':')?;
            named.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The sections of two tokens, whose secrets are written beside the configuration.
pub(crate) fn two_tokens(place: &Place) -> String {
    place.write("ada.token", ADA);
    place.write("bob.token", BOB);
    "[auth.tokens.ada]\nsecret = { file = \"ada.token\" }\n[auth.tokens.bob]\nsecret = { file = \"bob.token\" }\n"
        .to_owned()
}

impl House {
    /// `amends up --demo` with that configuration, once it listens.
    pub(crate) fn up(place: Place, config: &str, faults: &str) -> Self {
        let config = place.write("amends.toml", config).display().to_string();
        let command = place.up_command(faults, &["--config", &config]);
        Self::start(place, command)
    }

    /// The demo's rules and two tokens, once the shop is served.
    pub(crate) fn of_two(more: &str, faults: &str) -> Self {
        let place = Place::new();
        let config = format!("{SHOP}\n{}\n{more}\n", two_tokens(&place));
        let house = Self::up(place, &config, faults);
        house.served(ADA);
        house
    }

    /// `amends serve` with that configuration, which gets a ledger and a port, once it listens.
    pub(crate) fn serve(place: Place, config: &str) -> Self {
        let text = format!("[ledger]\nurl = {:?}\n[listen]\nhttp = \"127.0.0.1:0\"\n{config}\n", place.ledger());
        let config = place.write("amends.toml", &text);
        let mut command = Command::new(AMENDS);
        command.args(["serve", "--config"]).arg(config);
        Self::start(place, command)
    }

    /// Kills `amends serve` and starts it once more.
    pub(crate) fn serve_again(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut command = Command::new(AMENDS);
        command.args(["serve", "--config"]).arg(self.place.path("amends.toml"));
        self.child = spawn(&mut command, &self.log);
        self.came_up();
    }

    fn start(place: Place, mut command: Command) -> Self {
        let log = place.path("log");
        let child = spawn(&mut command, &log);
        let mut house = Self { place, address: String::new(), child, log };
        house.came_up();
        house
    }

    fn came_up(&mut self) {
        eventually("it listens", || {
            assert!(matches!(self.child.try_wait(), Ok(None)), "{}", self.log());
            let log = self.log();
            let found = log.lines().find_map(|line| line.strip_prefix("amends listens on http://")?.split(';').next());
            self.address = found.unwrap_or_default().to_owned();
            !self.address.is_empty()
        });
    }

    /// Waits until the shop's tools are served to whoever shows that.
    pub(crate) fn served(&self, token: &str) {
        eventually("the shop's tools are served", || {
            self.call(token, "get_order", r#"{"order":"ord_ready"}"#).body["status"] == "success"
        });
    }

    /// What it wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        ask(&self.address, method, path, headers, body)
    }

    /// A call through the plain door.
    pub(crate) fn call(&self, token: &str, tool: &str, arguments: &str) -> Answer {
        self.call_with(token, tool, &[], arguments)
    }

    pub(crate) fn call_with(&self, token: &str, tool: &str, headers: &[(&str, &str)], arguments: &str) -> Answer {
        let shown = format!("Bearer {token}");
        let mut all = vec![("authorization", shown.as_str())];
        all.extend(headers);
        self.ask("POST", &format!("/call/{tool}"), &all, arguments)
    }

    /// A message to `/mcp`.
    pub(crate) fn mcp(&self, token: &str, headers: &[(&str, &str)], method: &str, params: Value) -> Answer {
        let shown = format!("Bearer {token}");
        let mut all = vec![("authorization", shown.as_str()), ("accept", "application/json, text/event-stream")];
        all.extend(headers);
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.ask("POST", "/mcp", &all, &message.to_string())
    }

    /// A message of the stateless era.
    pub(crate) fn alone(&self, token: &str, method: &str, name: &str, mut params: Value) -> Answer {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        if params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_null() {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        self.mcp(token, &headers, method, params)
    }

    /// What a `subscriptions/listen` with those parameters gives, one message after the other.
    pub(crate) fn listens(&self, token: &str, params: &Value) -> impl Iterator<Item = Value> + use<> {
        let mut params = params.clone();
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        let method = "subscriptions/listen";
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string();
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        let stream = crate::support::http::send(&self.address, "/mcp", &headers, body.as_bytes());
        stream.set_read_timeout(Some(crate::support::PATIENCE)).expect("a timeout");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("data: ").map(|data| serde_json::from_str(data).expect("JSON")))
    }

    /// A session of the stateful era: its id.
    pub(crate) fn greet(&self, token: &str) -> String {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bare", "version": "1" } });
        let answer = self.mcp(token, &[], "initialize", params);
        answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }

    /// Whether a text is anywhere in what the gateway keeps or says: the ledger, what lies beside it, the log.
    pub(crate) fn keeps(&self, text: &str) -> Option<String> {
        let folder = self.log.parent().expect("the log is in a folder");
        for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !(name.starts_with("amends.db") || name == "log") {
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                return Some(name);
            }
        }
        None
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
            eprintln!("{}", lines.join("\n"));
        }
    }
}

fn spawn(command: &mut Command, log: &std::path::Path) -> Child {
    let file = std::fs::File::create(log).expect("a file for the log");
    let command = command.env("AMENDS_LOG", "trace").stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    command.spawn().expect("it starts")
}

/// Sends a request on a connection of its own and reads its answer to the end.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let (status, body) = crate::support::http::parse(&answer);
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    let text = String::from_utf8_lossy(&body).into_owned();
    // What came as a stream of events holds the message in its data.
    let message = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    let value = serde_json::from_str(message).unwrap_or(Value::Null);
    Answer { status, head: String::from_utf8_lossy(&answer[..end]).into_owned(), body: value, text }
}
