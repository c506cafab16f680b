//! Real MCP clients: the Python SDK and both TypeScript ones, driven through `tests/clients`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::root;

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    Python,
    TypeScript,
    TypeScriptV1,
}

/// A client process that speaks the drivers' protocol.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    early: Vec<Value>,
}

impl Client {
    /// A client of a gateway's HTTP door. `era` is `auto`, `legacy` or `modern`, where the SDK lets one choose.
    pub fn http(sdk: Sdk, era: Option<&str>, url: &str) -> Self {
        Self::start(sdk, era, &["--http", url])
    }

    /// The same, with a header on every request.
    pub fn http_with_header(sdk: Sdk, era: &str, header: &str, url: &str) -> Self {
        Self::start(sdk, Some(era), &["--header", header, "--http", url])
    }

    /// The same, which answers what it is asked with those results, by method.
    pub fn http_with_inputs(sdk: Sdk, era: &str, inputs: &Value, url: &str) -> Self {
        Self::start(sdk, Some(era), &["--inputs", &inputs.to_string(), "--http", url])
    }

    /// A client that starts that command and speaks over its standard input and output.
    pub fn stdio(sdk: Sdk, era: Option<&str>, command: &[&str]) -> Self {
        let mut arguments = vec!["--stdio", "--"];
        arguments.extend(command);
        Self::start(sdk, era, &arguments)
    }

    /// The same, which answers what it is asked with those results, by method.
    pub fn stdio_with_inputs(sdk: Sdk, era: &str, inputs: &Value, command: &[&str]) -> Self {
        let inputs = inputs.to_string();
        let mut arguments = vec!["--inputs", &inputs, "--stdio", "--"];
        arguments.extend(command);
        Self::start(sdk, Some(era), &arguments)
    }

    fn start(sdk: Sdk, era: Option<&str>, arguments: &[&str]) -> Self {
        let root = root();
        let clients = root.join("tests/clients");
        let mut command = match sdk {
            Sdk::Python => {
                let mut command = Command::new(root.join("target/clients/venv/bin/python"));
                command.arg(clients.join("python/client.py"));
                command
            }
            Sdk::TypeScript | Sdk::TypeScriptV1 => {
                let folder = if sdk == Sdk::TypeScript { "typescript" } else { "typescript-v1" };
                let mut command = Command::new("node");
                command.arg(clients.join(folder).join("client.mjs"));
                command
            }
        };
        if let Some(era) = era {
            command.args(["--era", era]);
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client starts; tests/clients/setup.sh installs it");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output, next: 1, early: Vec::new() }
    }

    /// Begins an operation and gives its number.
    pub fn begin(&mut self, mut operation: Value) -> u64 {
        let n = self.next;
        self.next += 1;
        operation["n"] = json!(n);
        let input = self.input.as_mut().expect("the client is open");
        writeln!(input, "{operation}").and_then(|()| input.flush()).expect("the client takes operations");
        n
    }

    /// Begins a tool call and gives its number.
    pub fn begin_call(&mut self, tool: &str, args: Value) -> u64 {
        self.begin(json!({ "op": "call", "tool": tool, "args": args, "timeout_ms": 90_000 }))
    }

    /// Waits for what came of the operation of that number.
    pub fn finish(&mut self, n: u64) -> Value {
        if let Some(at) = self.early.iter().position(|line| line["n"] == n) {
            return self.early.remove(at);
        }
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("the client answers");
            assert!(read > 0, "the client ended before it answered operation {n}");
            let value: Value = serde_json::from_str(&line).expect("the client speaks JSON");
            assert!(value.get("fatal").is_none(), "{value}");
            if value["n"] == n {
                return value;
            }
            self.early.push(value);
        }
    }

    /// One tool call from its beginning to its end.
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        let n = self.begin_call(tool, args);
        self.finish(n)
    }

    /// One operation from its beginning to its end.
    pub fn run(&mut self, operation: Value) -> Value {
        let n = self.begin(operation);
        self.finish(n)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closing its input lets it end by itself; then it is ended by its id.
        self.input = None;
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The envelope of a result, wherever this client finds it.
pub fn envelope(answer: &Value) -> Value {
    let result = &answer["result"];
    match result["_meta"].get("amends/envelope") {
        Some(envelope) => envelope.clone(),
        None => result["structuredContent"].clone(),
    }
}
