//! The desk: where MCP messages are understood, whatever carried them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer::{Answer, PAGE, ToolResult};
use super::book::{self, Note};
use super::catalog;
use super::clerk::Clerk;
use super::era::{self, Era};
use super::rpc::{self, Code, Id, Message, Rejection};
use super::tool::Tool;
use super::visit::Visit;

/// How long an agent may keep what does not change while the shop runs.
const CATALOG_TTL_MS: u64 = 60_000;

/// Understands messages and hands tool calls to the clerk.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    clerk: Arc<Clerk>,
}

/// What a message asks of its transport.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Send this line.
    Reply(String),
    /// Serve this call and send its answer.
    Call(Box<Call>),
    /// Stop the call with this id.
    Cancel(Id),
    /// Nothing is to be done.
    Nothing,
}

/// A tool call that is in the book, with what its answer needs.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) visit: Visit,
    pub(crate) progress_token: Option<Value>,
    pub(crate) caller: Caller,
}

/// Whom an answer goes to, and in which shape.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) id: Id,
    era: Era,
}

impl Caller {
    /// The answer as one line, or none for silence.
    pub(crate) fn line(&self, answer: Answer) -> Option<String> {
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Fault(problem) => ToolResult::problem(&problem),
            Answer::Silence => return None,
            Answer::Garbage => return Some(PAGE.to_owned()),
            Answer::Broken(cause) => {
                let id = Some(self.id.clone());
                return Some(Rejection::new(id, Code::InternalError, cause).line());
            }
        };
        Some(rpc::reply(&self.id, &result.stamped(self.era)))
    }
}

impl Desk {
    pub(crate) fn new(clerk: Arc<Clerk>) -> Desk {
        Desk { clerk }
    }

    /// Understands one message. A tool call is in the book when this returns.
    pub(crate) fn receive(&self, message: Message) -> Result<Errand, Rejection> {
        match message {
            Message::Request { id, method, params } => self.request(id, &method, &params),
            Message::Notification { method, params } => Ok(notified(&method, &params)),
            Message::Answer => Ok(Errand::Nothing),
        }
    }

    fn request(&self, id: Id, method: &str, params: &Value) -> Result<Errand, Rejection> {
        let era = Era::of(params).map_err(|requested| {
            let complaint = "the shop does not speak this version";
            Rejection::new(Some(id.clone()), Code::UnsupportedProtocolVersion, complaint)
                .with_data(json!({ "supported": era::supported(), "requested": requested }))
        })?;
        let result = match (method, era) {
            ("tools/call", era) => return self.call(Caller { id, era }, params),
            ("tools/list", Era::Legacy) => json!({ "tools": catalog::tools() }),
            ("tools/list", Era::Modern) => cacheable(json!({ "tools": catalog::tools() })),
            ("server/discover", _) => cacheable(json!({
                "supportedVersions": era::supported(),
                "capabilities": capabilities(),
                "serverInfo": identity(),
                // This revision of MCP looks for the identity here.
                "_meta": { "io.modelcontextprotocol/serverInfo": identity() },
            })),
            ("initialize", Era::Legacy) => {
                let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
                    let complaint = "`protocolVersion` is not a string";
                    return Err(Rejection::new(Some(id), Code::InvalidParams, complaint));
                };
                json!({
                    "protocolVersion": era::negotiated(asked),
                    "capabilities": capabilities(),
                    "serverInfo": identity(),
                })
            }
            ("ping", Era::Legacy) => json!({}),
            (unknown, _) => {
                let complaint = format!("there is no method `{unknown}`");
                return Err(Rejection::new(Some(id), Code::MethodNotFound, complaint));
            }
        };
        Ok(Errand::Reply(rpc::reply(&id, &result)))
    }

    fn call(&self, caller: Caller, params: &Value) -> Result<Errand, Rejection> {
        let invalid = |complaint: String| Rejection::new(Some(caller.id.clone()), Code::InvalidParams, complaint);
        let broken = |cause: book::Error| {
            let complaint = format!("the book failed: {cause}");
            Rejection::new(Some(caller.id.clone()), Code::InternalError, complaint)
        };
        let Some(name) = params.get("name").and_then(Value::as_str) else {
            return Err(invalid("`name` is not a string".to_owned()));
        };
        let none = Map::new();
        let arguments = match params.get("arguments") {
            None => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid("`arguments` is not an object".to_owned())),
        };
        let Some(tool) = Tool::named(name) else {
            let words = Value::Object(arguments.clone()).to_string();
            let book = &self.clerk.book;
            book.arrive(name, &words, None, Note::UnknownTool).map_err(broken)?;
            return Err(invalid(format!("there is no tool `{name}`")));
        };
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let visit = Visit::begin(&self.clerk, tool, arguments).map_err(broken)?;
        let progress_token = token.and_then(Id::parse).map(|token| json!(token));
        Ok(Errand::Call(Box::new(Call { visit, progress_token, caller })))
    }
}

fn notified(method: &str, params: &Value) -> Errand {
    match (method, params.get("requestId").and_then(Id::parse)) {
        ("notifications/cancelled", Some(id)) => Errand::Cancel(id),
        _ => Errand::Nothing,
    }
}

fn identity() -> Value {
    json!({ "name": "amends-shop", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

/// A modern result that may be kept for a while, by anybody.
fn cacheable(mut result: Value) -> Value {
    result["resultType"] = Value::from("complete");
    result["ttlMs"] = Value::from(CATALOG_TTL_MS);
    result["cacheScope"] = Value::from("public");
    result
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::book::Book;
    use super::super::script::Script;
    use super::*;

    fn ask(method: &str, params: Value) -> Value {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let book = Book::open(&folder.path().join("shop.db")).expect("the book opens");
        let clerk = Clerk::new(book, Script::default(), Duration::ZERO);
        let desk = Desk::new(Arc::new(clerk));
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let message = rpc::parse(message.to_string().as_bytes()).expect("it is sound");
        let line = match desk.receive(message) {
            Ok(Errand::Reply(line)) => line,
            Err(rejection) => rejection.line(),
            other => panic!("{other:?}"),
        };
        serde_json::from_str(&line).expect("replies are JSON")
    }

    fn modern() -> Value {
        json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } })
    }

    #[test]
    fn a_legacy_agent_is_greeted_in_its_own_version() {
        let reply = ask("initialize", json!({ "protocolVersion": "2025-06-18" }));
        assert_eq!(reply["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(reply["result"]["serverInfo"]["name"], "amends-shop");
        assert_eq!(reply["result"]["capabilities"], json!({ "tools": {} }));
        assert_eq!(ask("ping", json!({}))["result"], json!({}));
        let list = ask("tools/list", json!({}));
        assert!(list["result"].get("resultType").is_none());
    }

    #[test]
    fn a_modern_agent_discovers_and_gets_stamped_results() {
        let found = ask("server/discover", modern());
        assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
        for reply in [found, ask("tools/list", modern())] {
            assert_eq!(reply["result"]["resultType"], "complete");
            assert_eq!(reply["result"]["cacheScope"], "public");
            assert!(reply["result"]["ttlMs"].is_u64());
        }
        assert_eq!(ask("ping", modern())["error"]["code"], -32601);
    }

    #[test]
    fn what_the_shop_does_not_know_is_a_json_rpc_error() {
        assert_eq!(ask("prompts/list", json!({}))["error"]["code"], -32601);
        let unknown = ask("tools/call", json!({ "name": "fly" }));
        assert_eq!(unknown["error"]["code"], -32602);
        let wrong = ask("tools/call", json!({ "name": "get_order", "arguments": 3 }));
        assert_eq!(wrong["error"]["code"], -32602);
        let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2031-01-01" } });
        assert_eq!(ask("tools/list", meta)["error"]["code"], -32022);
    }
}
