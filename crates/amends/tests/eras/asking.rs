//! The server that asks, in front of which these tests put a gateway.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually, http, served};

/// A server that asks something of its client, in a process of its own.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command of that server on its standard input and output.
pub(crate) fn command(place: &Place, era: &str) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/eras/servers/asks.py");
    let done = place.path("done.jsonl").display().to_string();
    vec!["python3".to_owned(), script.display().to_string(), era.to_owned(), done]
}

impl Server {
    /// The same behind an address.
    pub(crate) fn http(place: &Place, era: &str) -> Self {
        let port_file = place.path("port");
        let words = command(place, era);
        let child = Command::new(&words[0])
            .args(&words[1..])
            .arg("--http")
            .arg(&port_file)
            .stdin(Stdio::null())
            .spawn()
            .expect("python3 starts");
        let mut server = Self { child, url: String::new() };
        eventually("the server listens", || {
            let port = std::fs::read_to_string(&port_file).unwrap_or_default();
            server.url = format!("http://127.0.0.1:{port}/mcp");
            !port.is_empty()
        });
        server
    }
}

/// What was done at the server: each call with what it was given.
pub(crate) fn done(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path("done.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of the server")).collect()
}

/// A gateway in front of that upstream, once it serves its tools.
pub(crate) fn serve(place: &Place, upstream: &str, more: &str) -> Gateway {
    let gateway = served::serve(place, upstream, more);
    eventually("the tools are served", || {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let (_, listed) = http::post(&gateway.address, "/mcp", &[], list.as_bytes());
        listed["result"]["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "book"))
    });
    gateway
}

/// How an upstream is reached that is a command.
pub(crate) fn by_command(words: &[String]) -> String {
    format!("command = {}", serde_json::to_string(words).expect("words are JSON"))
}

/// How an upstream is reached that has an address.
pub(crate) fn by_url(server: &Server) -> String {
    format!("url = \"{}\"", server.url)
}

/// One raw `tools/call` of the stateless era on a connection of its own: the status and the message.
pub(crate) fn call_alone(gateway: &Gateway, params: &Value) -> (u16, Value) {
    let headers = headers(params);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    http::post(&gateway.address, "/mcp", &headers, message(params).as_bytes())
}

/// The headers that such a call demands.
pub(crate) fn headers(params: &Value) -> Vec<(&'static str, String)> {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", "tools/call".to_owned()), ("mcp-name", name)]
}

/// Such a call as a message.
pub(crate) fn message(params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
}

/// The parameters of such a call, by a client that declares all there is.
pub(crate) fn params(tool: &str, arguments: &Value) -> Value {
    params_of(tool, arguments, &json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }))
}

/// The same by a client that declares those capabilities.
pub(crate) fn params_of(tool: &str, arguments: &Value, capabilities: &Value) -> Value {
    json!({
        "name": tool,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "0" },
        },
    })
}

/// The same call once more, with these answers and that state.
pub(crate) fn again(params: &Value, asked: &Value, answers: &Value) -> Value {
    let mut params = params.clone();
    params["inputResponses"] = answers.clone();
    params["requestState"] = asked["result"]["requestState"].clone();
    params
}

/// The name of the only question in an answer.
pub(crate) fn only_key(asked: &Value) -> String {
    let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    assert_eq!(requests.len(), 1, "{asked}");
    requests.keys().next().expect("there is one").clone()
}

/// How many events of that kind the ledger holds.
pub(crate) fn events(place: &Place, kind: &str) -> u64 {
    let Ok(ledger) =
        rusqlite::Connection::open_with_flags(place.path("amends.db"), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
    else {
        return 0;
    };
    let _ = ledger.busy_timeout(std::time::Duration::from_secs(10));
    let count = ledger.query_row("SELECT count(*) FROM events WHERE kind = ?1", [kind], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as u64)
}
