//! The shop as a child process, ended when its handle is dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A shop that is spoken to over standard input.
pub(crate) struct Shop {
    child: Child,
    input: Option<ChildStdin>,
    pub(crate) lines: Receiver<String>,
}

impl Shop {
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Shop {
        let mut child =
            command(folder).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shop starts");
        let output = child.stdout.take().expect("the output is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                sender.send(line).ok();
            }
        });
        Shop { input: child.stdin.take(), child, lines }
    }

    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("nobody has left yet");
        writeln!(input, "{line}").expect("the shop listens");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.request(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    pub(crate) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).expect("answers are JSON")
    }

    pub(crate) fn answers(&self, count: usize) -> impl Iterator<Item = Value> {
        (0..count).map(|_| self.next())
    }

    /// Closes standard input and waits for the end, in which nothing more is said.
    pub(crate) fn leave(&mut self) -> Option<i32> {
        self.input = None;
        let code = self.exit_code();
        assert_eq!(self.lines.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        code
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("the shop ends").code()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A shop that is spoken to over HTTP.
pub(crate) struct HttpShop {
    child: Child,
    address: String,
}

impl HttpShop {
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> HttpShop {
        let mut child = command(folder)
            .args(["--http", "127.0.0.1:0"])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shop starts");
        let errors = child.stderr.take().expect("the errors are piped");
        let mut line = String::new();
        BufReader::new(errors).read_line(&mut line).expect("a line");
        let address = line
            .trim_end()
            .strip_prefix("shop listening on http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .expect("the line names the address");
        HttpShop { child, address: address.to_owned() }
    }

    pub(crate) fn post(&self, message: &Value) -> String {
        self.exchange("POST", &message.to_string())
    }

    pub(crate) fn exchange(&self, method: &str, body: &str) -> String {
        let mut response = Vec::new();
        let mut stream = self.open(method, body);
        // A connection the shop broke may end in an error; what came before it is what counts.
        stream.read_to_end(&mut response).ok();
        String::from_utf8_lossy(&response).into_owned()
    }

    pub(crate) fn begin(&self, message: &Value) -> TcpStream {
        self.open("POST", &message.to_string())
    }

    fn open(&self, method: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("the shop listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is above zero");
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("the shop listens");
        stream
    }
}

impl Drop for HttpShop {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn tool_call(tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amends"));
    command.arg("shop").arg("--book").arg(folder.join("shop.db"));
    command
}

pub(crate) fn book(folder: &Path) -> Value {
    let output = command(folder).args(["book", "--json"]).output().expect("the book is printed");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("the book is JSON")
}

pub(crate) fn rows<'a>(book: &'a Value, table: &str) -> impl Iterator<Item = &'a Value> {
    book[table].as_array().expect("a table is a list").iter()
}

/// Waits for something the shop does in its own time.
pub(crate) fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it did not come true");
        std::thread::sleep(Duration::from_millis(20));
    }
}
