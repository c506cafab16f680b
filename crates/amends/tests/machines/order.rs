//! The machine of these tests: an order at the demo shop, and how it is served.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::{AMENDS, Gateway, Place, eventually};

/// An order from the first word to the last.
pub(crate) const ORDER: &str = r#"
[tools.get_order]
effect = "read"

[tools.charge_card]
effect = "write"

[machines.order]
description = "An order and its payment."
initial = "created"
terminal = ["fulfilled", "dropped"]

[machines.order.actions.take_order]
description = "Writes the order down."
from = ["created"]
to = "ordered"
input = { type = "object", properties = { item = { type = "string" }, order = { type = "string" } }, required = ["item", "order"], additionalProperties = false }
guard = "inputs.item != 'tea'"
writes = { item = "inputs.item", order = "inputs.order" }

[machines.order.actions.pay]
from = ["ordered"]
to = "paid"
tool = "charge_card"
args = { order = "state.order", amount = "inputs.amount" }
input = { type = "object", properties = { amount = { type = "number", exclusiveMinimum = 0 } }, required = ["amount"], additionalProperties = false }
timeout = "3s"
writes = { charge = "result.id" }

[machines.order.actions.hand_over]
from = ["paid"]
to = "fulfilled"

[machines.order.actions.drop_order]
from = ["created", "ordered"]
to = "dropped"
"#;

/// Charges that go wrong, by their orders.
pub(crate) const FAULTS: &str = r#"
[[fault]]
tool = "charge_card"
when = { order = "ord_lost" }
attempts = ["lose_response"]
repeat = true

[[fault]]
tool = "charge_card"
when = { order = "ord_forbidden" }
attempts = ["forbidden"]
repeat = true

[[fault]]
tool = "charge_card"
when = { order = "ord_slow" }
attempts = ["late"]
repeat = true

[[fault]]
tool = "issue_refund"
when = { order = "ord_slow" }
attempts = ["late"]
late_ms = 3000

[[fault]]
tool = "cancel_refund"
when = { id = "re_000002" }
attempts = ["forbidden"]
repeat = true
"#;

/// The shop as an upstream declares it.
pub(crate) fn shop(place: &Place) -> String {
    let faults = place.write("faults.toml", FAULTS);
    let command = [
        AMENDS.to_owned(),
        "shop".into(),
        "--book".into(),
        place.path("book.db").display().to_string(),
        "--faults".into(),
        faults.display().to_string(),
    ];
    format!("command = {command:?}\nprefix = \"\"\ntimeout = \"20s\"\ndeadline = \"30s\"\n")
}

/// A gateway before the shop, with that machine.
pub(crate) fn serve(place: &Place, machine: &str) -> Gateway {
    serve_with(place, "", machine)
}

/// The same with more said of the upstream.
pub(crate) fn serve_with(place: &Place, upstream: &str, machine: &str) -> Gateway {
    let config = place.write("serve.toml", &config(place, upstream, machine));
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    // A test that wants a slow disk writes so into this file.
    command.env("AMENDS_SLOW_DISK_MS", place.path("slow"));
    let gateway = Gateway::listening(command);
    eventually("the shop's tools are served", || {
        gateway.call("get_order", r#"{"order":"ord_ready"}"#).1["status"] == "success"
    });
    gateway
}

/// What such a gateway is served with.
fn config(place: &Place, upstream: &str, machine: &str) -> String {
    format!(
        "[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n[upstreams.shop]\n{}{upstream}\n{machine}\n",
        place.ledger(),
        shop(place)
    )
}

/// Has a gateway serve that machine from now on.
pub(crate) fn declare(place: &Place, gateway: &Gateway, machine: &str) {
    let reloads = || crate::bare::health(gateway)["config"]["reloads"].as_u64().expect("a number");
    let before = reloads();
    let beside = place.write("serve.new", &config(place, "", machine));
    std::fs::rename(beside, place.path("serve.toml")).expect("a file");
    let told = Command::new("kill").args(["-HUP", &gateway.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
    eventually("the configuration is read anew", || reloads() > before);
}

/// The machine with a tool for each action.
pub(crate) fn in_tools() -> String {
    ORDER.replace("initial = \"created\"", "initial = \"created\"\nmode = \"tools\"")
}

/// How an agent takes actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// With one tool for all.
    Step,
    /// With a tool for each.
    Tools,
}

/// An agent in a walk. Where it names the walk, it does so with the handle that the first answer gave.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) client: Client,
    pub(crate) mode: Mode,
    names: bool,
    pub(crate) session: Option<String>,
}

impl Agent {
    pub(crate) fn new(client: Client, mode: Mode, names: bool) -> Self {
        Self { client, mode, names, session: None }
    }

    /// The tool and the arguments that take an action.
    pub(crate) fn asks(&self, action: &str, inputs: Value, more: Value) -> (String, Value) {
        let mut args = more;
        if let Some(session) = self.session.as_ref().filter(|_| self.names) {
            args["session"] = json!(session);
        }
        match self.mode {
            Mode::Step => {
                args["action"] = json!(action);
                args["inputs"] = inputs;
                ("step".to_owned(), args)
            }
            Mode::Tools => {
                for (name, value) in inputs.as_object().cloned().unwrap_or_default() {
                    args[name] = value;
                }
                (action.to_owned(), args)
            }
        }
    }

    /// Takes an action; the whole result.
    pub(crate) fn takes_with(&mut self, action: &str, inputs: Value, more: Value, meta: Value) -> Value {
        let (tool, args) = self.asks(action, inputs, more);
        self.calls_with(&tool, args, meta)
    }

    /// Takes an action; the structured answer.
    pub(crate) fn takes(&mut self, action: &str, inputs: Value) -> Value {
        self.takes_with(action, inputs, json!({}), Value::Null)["structuredContent"].clone()
    }

    /// Calls a tool; the structured answer.
    pub(crate) fn calls(&mut self, tool: &str, args: Value) -> Value {
        self.calls_with(tool, args, Value::Null)["structuredContent"].clone()
    }

    pub(crate) fn calls_with(&mut self, tool: &str, args: Value, meta: Value) -> Value {
        let mut operation = json!({ "op": "call", "tool": tool, "args": args, "timeout_ms": 90_000 });
        if !meta.is_null() {
            operation["meta"] = meta;
        }
        let answer = self.client.run(operation);
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
        let body = &answer["result"]["structuredContent"];
        let session = body["data"]["session"].as_str().or(body["session"].as_str());
        if let (Some(session), None) = (session, &self.session) {
            self.session = Some(session.to_owned());
        }
        answer["result"].clone()
    }

    /// The walk's handle.
    pub(crate) fn handle(&self) -> String {
        self.session.clone().expect("a walk has begun")
    }
}

/// A refusal says why, and what may be done instead.
pub(crate) fn assert_refused(answer: &Value, kind: &str, legal: &[&str]) {
    assert_eq!((&answer["status"], &answer["error"]["kind"]), (&json!("refused"), &json!(kind)), "{answer}");
    assert_eq!(answer["error"]["certainty"], "not_sent", "{answer}");
    assert_legal(answer, legal);
}

/// What may be done now is named, with the schema of each.
pub(crate) fn assert_legal(answer: &Value, legal: &[&str]) {
    assert_eq!(answer["valid_next_actions"], json!(legal), "{answer}");
    let schemas = answer["next_action_schemas"].as_object().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(schemas.keys().collect::<Vec<_>>(), legal, "{answer}");
    let hint = answer["next_hint"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(legal.iter().all(|action| hint.contains(action)), "{hint}");
}
