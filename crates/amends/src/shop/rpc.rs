//! JSON-RPC: messages in, replies and rejections out.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Messages longer than this are refused.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A message that is sound JSON-RPC.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to something the shop never asked.
    Answer,
}

/// The id of a request: a string or a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Id(Value);

impl Id {
    /// Reads an id; other JSON is none.
    pub(crate) fn parse(value: &Value) -> Option<Id> {
        (value.is_string() || value.is_number()).then(|| Id(value.clone()))
    }

    /// The id as a key in which `1` and `"1"` differ.
    pub(crate) fn key(&self) -> String {
        self.0.to_string()
    }
}

/// The error codes the shop uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    InternalError,
    HeaderMismatch,
    UnsupportedProtocolVersion,
}

impl Code {
    fn number(self) -> i32 {
        match self {
            Code::ParseError => -32700,
            Code::InvalidRequest => -32600,
            Code::MethodNotFound => -32601,
            Code::InvalidParams => -32602,
            Code::InternalError => -32603,
            Code::HeaderMismatch => -32020,
            Code::UnsupportedProtocolVersion => -32022,
        }
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejection {
    /// The request's id, where it could be read.
    id: Option<Id>,
    pub(crate) code: Code,
    message: String,
    data: Option<Box<Value>>,
}

impl Rejection {
    pub(crate) fn new(id: Option<Id>, code: Code, message: impl Into<String>) -> Rejection {
        Rejection { id, code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(mut self, data: Value) -> Rejection {
        self.data = Some(Box::new(data));
        self
    }

    /// The error as one line of JSON.
    pub(crate) fn line(&self) -> String {
        let mut error = json!({ "code": self.code.number(), "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = (**data).clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error }).to_string()
    }
}

/// The reply to a request as one line of JSON.
pub(crate) fn reply(id: &Id, result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Reply<'a, R> {
        jsonrpc: &'static str,
        id: &'a Id,
        result: &'a R,
    }
    let reply = Reply { jsonrpc: "2.0", id, result };
    serde_json::to_string(&reply).expect("results are plain data with string keys")
}

/// Reads one message.
pub(crate) fn parse(bytes: &[u8]) -> Result<Message, Rejection> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|cause| Rejection::new(None, Code::ParseError, format!("not JSON: {cause}")))?;
    let Value::Object(mut message) = value else {
        let complaint = "a message is one JSON object";
        return Err(Rejection::new(None, Code::InvalidRequest, complaint));
    };
    let id = message.get("id").and_then(Id::parse);
    let invalid = |complaint: &str| Rejection::new(id.clone(), Code::InvalidRequest, complaint.to_owned());
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` is not \"2.0\""));
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(invalid("`method` is not a string")),
        None if message.contains_key("result") || message.contains_key("error") => {
            return Ok(Message::Answer);
        }
        None => return Err(invalid("`method` is missing")),
    };
    let params = message.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
    if !params.is_object() {
        let complaint = "`params` is not an object";
        return Err(Rejection::new(id, Code::InvalidParams, complaint));
    }
    match (id, message.contains_key("id")) {
        (Some(id), _) => Ok(Message::Request { id, method, params }),
        (None, false) => Ok(Message::Notification { method, params }),
        (None, true) => Err(Rejection::new(None, Code::InvalidRequest, "`id` is neither a string nor a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_rpc_is_rejected_with_the_right_code() {
        let cases = [
            (r#"{"jsonrpc":"#, Code::ParseError),
            ("\u{0}", Code::ParseError),
            ("[]", Code::InvalidRequest),
            ("7", Code::InvalidRequest),
            (r#"{"id":1,"method":"ping"}"#, Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1}"#, Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Code::InvalidParams),
        ];
        for (text, code) in cases {
            let rejection = parse(text.as_bytes()).expect_err("it is not sound");
            assert_eq!(rejection.code, code, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let read = |text: &str| parse(text.as_bytes()).expect("it is sound");
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), Message::Request { .. }));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            Message::Notification { .. }
        ));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Answer);
    }
}
