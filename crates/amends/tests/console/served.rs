//! A gateway whose API takes a token.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::parse;
use crate::support::{AMENDS, Gateway, Place, eventually};

pub(crate) const TOKEN: &str = "tok_of_an_operator";

const MACHINE: &str = r#"
[tools.get_order]
effect = "read"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
reverse = { tool = "cancel_refund", args = { id = "result.id" }, within = "24h" }

[tools.charge_card]
effect = "write"
timeout = "1s"

[machines.refund]
initial = "asked"
terminal = ["paid"]

[machines.refund.actions.look_up]
from = ["asked"]
to = "known"
tool = "get_order"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.refund.actions.pay_back]
from = ["known"]
to = "paid"
tool = "issue_refund"
args = { order = "state.order", amount = "inputs.amount" }
"#;

/// A gateway over that ledger, with a shop that loses the answers to charges.
pub(crate) fn serve(place: &Place, ledger: &str) -> Gateway {
    let faults = "[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\nrepeat = true\n";
    let faults = place.write("faults.toml", faults).display().to_string();
    let book = place.path("book.db").display().to_string();
    let command = [AMENDS, "shop", "--book", &book, "--faults", &faults];
    let token = place.write("token", &format!("{TOKEN}\n"));
    let proposals = place.path("proposals");
    let text = format!(
        "[ledger]\nurl = \"{ledger}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n\
         [console]\ntoken = {{ file = {token:?} }}\nproposals = {proposals:?}\n\
         [upstreams.shop]\ncommand = {command:?}\nprefix = \"\"\n{MACHINE}"
    );
    let config = place.write("serve.toml", &text);
    let mut serve = Command::new(AMENDS);
    serve.arg("serve").arg("--config").arg(config);
    let gateway = Gateway::listening(serve);
    eventually("the shop's tools are served", || {
        gateway.call("get_order", r#"{"order":"ord_ready"}"#).1["status"] == "success"
    });
    gateway
}

/// The same with something of everything: reads, a write in doubt with its question, a walk, a checkpoint.
pub(crate) fn serve_history(place: &Place) -> (Gateway, History) {
    let gateway = serve(place, &place.ledger());
    gateway.call("get_order", r#"{"order":"ord_1"}"#);
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    let question = charge["error"]["interaction"].as_str().expect("a question").to_owned();
    let (_, step) = gateway.call("step", r#"{"action":"look_up","inputs":{"order":"ord_1"}}"#);
    let walk = step["data"]["session"].as_str().unwrap_or_else(|| panic!("{step}")).to_owned();
    let (_, calls) = ask(&gateway, "GET", "/api/calls?tool=charge_card", None);
    let text = |name: &str| calls["items"][0][name].as_str().unwrap_or_else(|| panic!("{calls}")).to_owned();
    let history = History { question, walk, call: text("call"), session: text("session") };
    let (status, signed) = ask(&gateway, "POST", "/api/checkpoints", Some(json!({})));
    assert_eq!(status, 200, "{signed}");
    (gateway, history)
}

/// What there is to ask for.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) question: String,
    pub(crate) walk: String,
    pub(crate) call: String,
    pub(crate) session: String,
}

/// Asks the API with the token: the status and the JSON.
pub(crate) fn ask(gateway: &Gateway, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let (status, _, said) = ask_with(gateway, method, path, &[("authorization", &format!("Bearer {TOKEN}"))], body);
    (status, serde_json::from_slice(&said).unwrap_or(Value::Null))
}

/// Asks with those headers: the status, the head and the body as they came.
pub(crate) fn ask_with(
    gateway: &Gateway,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> (u16, String, Vec<u8>) {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    ask_raw(gateway, method, path, headers, &body)
}

/// The same with a body that need not be JSON.
pub(crate) fn ask_raw(
    gateway: &Gateway,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
        gateway.address,
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    let (status, said) = parse(&answer);
    (status, String::from_utf8_lossy(&answer[..end]).into_owned(), said)
}
