//! Somebody spoken to line by line: a wrapped server, the shop, anything on standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::{AMENDS, PATIENCE, Place};

/// A process that speaks JSON-RPC in lines; it is killed by its id when dropped.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    deaf: Arc<AtomicBool>,
    /// What was said meanwhile that nobody waited for, in order.
    pub(crate) others: Vec<String>,
    next: u64,
}

/// As much of a message as tells whom it is for.
#[derive(Debug, Deserialize)]
pub(crate) struct Head<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<String>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

/// Reads as much of a message as tells whom it is for, however deep the rest of it is.
pub(crate) fn head(line: &str) -> Head<'_> {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", start_of(line)))
}

/// The result of an answer, as it was written.
pub(crate) fn result(line: &str) -> &str {
    head(line).result.unwrap_or_else(|| panic!("no result: {}", start_of(line))).get()
}

fn start_of(line: &str) -> String {
    line.chars().take(500).collect()
}

impl Pipe {
    /// Starts a command.
    pub(crate) fn start(command: &[&str]) -> Self {
        let (program, arguments) = command.split_first().expect("a command");
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output");
        let (sender, lines) = channel();
        let deaf = Arc::new(AtomicBool::new(false));
        let pausing = deaf.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
                while pausing.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        Self { child, input, lines, deaf, others: Vec::new(), next: 1 }
    }

    /// Starts `amends wrap` over that place's ledger with those flags around a server.
    pub(crate) fn wrap(place: &Place, flags: &[&str], server: &[&str]) -> Self {
        let ledger = place.ledger();
        let mut command = vec![AMENDS, "wrap", "--ledger", &ledger];
        command.extend(flags);
        command.push("--");
        command.extend(server);
        Self::start(&command)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line as it is.
    pub(crate) fn line(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("it is open");
        let wrote = input.write_all(line.as_ref()).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush());
        wrote.expect("it takes lines");
    }

    /// Sends a request with parameters as they are written, and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> u64 {
        let id = self.next;
        self.next += 1;
        self.line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        id
    }

    /// Begins a tool call with arguments as they are written, and gives its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &str) -> u64 {
        self.ask("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
    }

    /// The next line of any kind.
    pub(crate) fn next(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing"),
            Err(RecvTimeoutError::Disconnected) => panic!("it ended"),
        }
    }

    /// Stops reading what it says, or goes on with it.
    pub(crate) fn be_deaf(&self, deaf: bool) {
        self.deaf.store(deaf, Ordering::Relaxed);
    }

    /// Waits for the answer to the request of that id, as it is written; what else is said is kept in `others`.
    pub(crate) fn answer_to(&mut self, id: &str) -> String {
        let answers = |line: &String| {
            let head = head(line);
            head.method.is_none() && head.id.map_or("null", RawValue::get) == id
        };
        if let Some(at) = self.others.iter().position(answers) {
            return self.others.remove(at);
        }
        loop {
            let line = self.next();
            if answers(&line) {
                return line;
            }
            self.others.push(line);
        }
    }

    /// Waits for the answer to a request of ours.
    pub(crate) fn answer(&mut self, id: u64) -> String {
        self.answer_to(&id.to_string())
    }

    /// One tool call from its beginning to its end, as JSON.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> Value {
        let id = self.begin(tool, arguments);
        serde_json::from_str(&self.answer(id)).expect("JSON")
    }

    /// Greets it in the stateful way, and gives its answer.
    pub(crate) fn greet(&mut self) -> String {
        let id = self.ask("initialize", GREETING);
        let greeting = self.answer(id);
        self.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        greeting
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The greeting of a client that can do everything, with an odd number to recognise it by.
pub(crate) const GREETING: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"roots":{"listChanged":true},"elicitation":{}},"clientInfo":{"name":"edges","version":"1.0"},"x":1.0}"#;

/// What a stateless request carries, without the braces.
pub(crate) const MODERN: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"edges","version":"1.0"}"#;

/// The envelope of a tool's answer.
pub(crate) fn envelope(answer: &Value) -> &Value {
    match answer["result"]["_meta"].get("amends/envelope") {
        Some(envelope) => envelope,
        None => &answer["error"]["data"],
    }
}
