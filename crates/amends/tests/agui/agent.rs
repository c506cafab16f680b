//! The client, `tests/agui/agent.mjs`, in a process of its own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Gateway, root};

/// An AG-UI client. It keeps its threads, with their messages and their state, and is ended by its id when dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    sent: u64,
    said: HashMap<u64, Value>,
}

impl Agent {
    pub(crate) fn of(gateway: &Gateway) -> Self {
        Self::with_token(gateway, None)
    }

    pub(crate) fn with_token(gateway: &Gateway, token: Option<&str>) -> Self {
        let mut child = Command::new("node")
            .arg(root().join("tests/agui/agent.mjs"))
            .arg(format!("http://{}/agui", gateway.address))
            .args(token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node runs");
        let to = child.stdin.take().expect("its input");
        let from = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, to, from, sent: 0, said: HashMap::new() }
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self, mut order: Value) -> u64 {
        self.sent += 1;
        order["n"] = json!(self.sent);
        writeln!(self.to, "{order}").expect("the client reads");
        self.sent
    }

    /// Waits for the end of a run.
    pub(crate) fn finish(&mut self, n: u64) -> Value {
        loop {
            if let Some(said) = self.said.remove(&n) {
                return said;
            }
            let mut line = String::new();
            let read = self.from.read_line(&mut line).expect("a line");
            assert!(read > 0, "the client ended; tests/agui/setup.sh installs what it needs");
            let said: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(said["broke"], Value::Null, "{said}");
            assert_eq!(said["faults"], json!([]), "{said:#}");
            self.said.insert(said["n"].as_u64().expect("a number"), said);
        }
    }

    /// Runs something.
    pub(crate) fn run(&mut self, order: Value) -> Value {
        let n = self.begin(order);
        self.finish(n)
    }

    /// Runs calls in a thread.
    pub(crate) fn calls(&mut self, thread: &str, calls: Value) -> Value {
        self.run(json!({ "thread": thread, "amends": { "calls": calls } }))
    }

    /// Takes actions of a machine in a thread.
    pub(crate) fn moves(&mut self, thread: &str, machine: &str, moves: Value) -> Value {
        self.run(json!({ "thread": thread, "amends": { "machine": machine, "moves": moves } }))
    }

    /// Goes on in a thread with that answer to the one interrupt that is open there.
    pub(crate) fn resume(&mut self, thread: &str, interrupt: &str, payload: Value) -> Value {
        let entry = json!({ "interruptId": interrupt, "status": "resolved", "payload": payload });
        self.run(json!({ "thread": thread, "resume": [entry] }))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last event of a run.
pub(crate) fn last(went: &Value) -> &Value {
    went["events"].as_array().and_then(|events| events.last()).unwrap_or_else(|| panic!("nothing was told: {went:#}"))
}

/// How a run that did not fail ended.
pub(crate) fn outcome(went: &Value) -> &str {
    last(went)["outcome"]["type"].as_str().unwrap_or_else(|| panic!("it has no outcome: {went:#}"))
}

/// The results of a run's calls, in their order.
pub(crate) fn results(went: &Value) -> Vec<&Value> {
    let events = went["events"].as_array().expect("events");
    events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect()
}

/// The envelope of a result.
pub(crate) fn envelope(result: &Value) -> &Value {
    &result["metadata"]["amends/envelope"]
}

/// The one interrupt that a run ended with.
pub(crate) fn interrupt(went: &Value) -> Value {
    assert_eq!(outcome(went), "interrupt", "{went:#}");
    let interrupts = last(went)["outcome"]["interrupts"].as_array().expect("interrupts");
    assert_eq!(interrupts.len(), 1, "{went:#}");
    interrupts[0].clone()
}

/// The id of the one interrupt that a run ended with.
pub(crate) fn asked(went: &Value) -> String {
    interrupt(went)["id"].as_str().expect("an id").to_owned()
}

/// How far each step of the plan is that the client carries.
pub(crate) fn statuses(went: &Value) -> Vec<&str> {
    let steps = went["state"]["amends"]["steps"].as_array().unwrap_or_else(|| panic!("no plan: {went:#}"));
    steps.iter().map(|step| step["status"].as_str().expect("a status")).collect()
}
