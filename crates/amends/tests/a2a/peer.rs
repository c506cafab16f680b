//! The A2A SDK's client, and its agents.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::http;

/// The client of the A2A SDK. It is ended by its id when dropped.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A program in Python that has the A2A SDK.
pub(crate) fn python(script: PathBuf) -> Command {
    let mut command = Command::new(root().join("target/clients/a2a/bin/python"));
    command.arg(script);
    command
}

impl Client {
    /// A client of the gateway at that address.
    pub(crate) fn of(address: &str, options: &Value) -> Self {
        let mut child = python(root().join("tests/clients/python/a2a_client.py"))
            .arg(format!("http://{address}"))
            .arg(options.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client starts; tests/clients/setup.sh installs what it needs");
        let (input, output) = (child.stdin.take().expect("its input"), child.stdout.take().expect("its output"));
        Self { child, input, output: BufReader::new(output) }
    }

    /// One operation, answered.
    pub(crate) fn ask(&mut self, op: &str, params: Value) -> Value {
        self.begin(op, params);
        self.answer()
    }

    /// One operation, not waited for.
    pub(crate) fn begin(&mut self, op: &str, params: Value) {
        writeln!(self.input, "{}", json!({ "op": op, "params": params })).expect("the client listens");
    }

    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the client answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// Sends a message with a call; its task.
    pub(crate) fn call(&mut self, id: &str, tool: &str, args: Value) -> Value {
        let events = self.ask("send", call(id, tool, args));
        events[0]["task"].clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message that calls a tool.
pub(crate) fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "data": { "tool": tool, "args": args } }] } })
}

/// A JSON-RPC request as it is, in 1.0 unless another version is named.
pub(crate) fn rpc(address: &str, version: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    http::post(address, "/a2a", &[("a2a-version", version)], body.as_bytes()).1
}

/// The card, as anybody gets it.
pub(crate) fn card(address: &str) -> Value {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let ask = format!("GET /.well-known/agent-card.json HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).expect("it hears");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let (status, body) = http::parse(&answer);
    assert_eq!(status, 200);
    serde_json::from_slice(&body).expect("a card is JSON")
}
