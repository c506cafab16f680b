//! JSON-RPC 2.0 messages kept as bytes: what we do not interpret, we do not parse.

use std::borrow::Cow;

use serde_json::value::RawValue;
use thiserror::Error;

use crate::object::{Object, is_array, is_null, is_object, quoted, string};
use crate::scan::is_id;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method does not take these parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// The other side failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// A JSON-RPC message whose parts are slices of the text it was read from.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// Something is asked for, and an answer is expected.
    Request {
        /// What the answer will be told by: a string or a number.
        id: &'a RawValue,
        /// What is asked for.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// Something is told, and no answer is expected.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request that was done.
    Success {
        /// The request's id.
        id: &'a RawValue,
        /// What it gave.
        result: &'a RawValue,
    },
    /// The answer to a request that failed.
    Failure {
        /// The request's id, where the other side could read it.
        id: Option<&'a RawValue>,
        /// What went wrong.
        error: RpcError<'a>,
    },
}

/// The error of a JSON-RPC answer.
#[derive(Clone, Debug)]
pub struct RpcError<'a> {
    /// Its number.
    pub code: i64,
    /// Its text.
    pub message: Cow<'a, str>,
    /// What it carries.
    pub data: Option<&'a RawValue>,
}

/// Why a text is not a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It cannot be read.
    #[error("the message is not JSON")]
    NotJson,
    /// It is an array.
    #[error("batches are not accepted; send one message at a time")]
    Batch,
    /// It is something else than an object.
    #[error("a message is a JSON object")]
    NotAnObject,
    /// It does not say that it is JSON-RPC 2.0.
    #[error("`jsonrpc` must be \"2.0\"")]
    BadVersion,
    /// Its id cannot be answered by.
    #[error("`id` must be a string or a number of at most 256 bytes")]
    BadId,
    /// Its method is not a string.
    #[error("`method` must be a string")]
    BadMethod,
    /// Its parameters are neither an object nor an array.
    #[error("`params` must be an object")]
    BadParams,
    /// Its error does not have the shape of one.
    #[error("`error` must be an object with a number `code` and a string `message`")]
    BadError,
    /// It asks and answers at once.
    #[error("a message is a request or an answer, not both, and an answer has either `result` or `error`")]
    Ambiguous,
    /// It neither asks nor answers.
    #[error("a message has a `method`, a `result` or an `error`")]
    Neither,
}

impl Malformed {
    /// The JSON-RPC code for it.
    pub const fn code(self) -> i64 {
        match self {
            Self::NotJson => PARSE_ERROR,
            Self::Batch
            | Self::NotAnObject
            | Self::BadVersion
            | Self::BadId
            | Self::BadMethod
            | Self::BadParams
            | Self::BadError
            | Self::Ambiguous
            | Self::Neither => INVALID_REQUEST,
        }
    }
}

impl<'a> Message<'a> {
    /// Reads one message. Members it does not know are left alone; where a name repeats, the last counts.
    ///
    /// ```
    /// use amends_wire::Message;
    ///
    /// let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":1.0}}"#;
    /// let Ok(Message::Request { id, method, params }) = Message::parse(text) else { panic!() };
    /// assert_eq!((id.get(), &*method, params.unwrap().get()), ("1", "tools/call", r#"{"n":1.0}"#));
    /// ```
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let Some(object) = Object::parse(text) else {
            return Err(match serde_json::from_str::<&RawValue>(text) {
                Ok(raw) if is_array(raw) => Malformed::Batch,
                Ok(raw) if !is_object(raw) => Malformed::NotAnObject,
                _ => Malformed::NotJson,
            });
        };
        if object.string("jsonrpc").as_deref() != Some("2.0") {
            return Err(Malformed::BadVersion);
        }
        let id = object.get("id");
        if id.is_some_and(|id| !is_id(id) && !is_null(id)) {
            return Err(Malformed::BadId);
        }
        let answers = (object.get("result"), object.get("error"));
        match (object.get("method"), answers) {
            (Some(method), (None, None)) => {
                let method = string(method).ok_or(Malformed::BadMethod)?;
                let params = object.get("params").filter(|params| !is_null(params));
                if params.is_some_and(|params| !is_object(params) && !is_array(params)) {
                    return Err(Malformed::BadParams);
                }
                match id {
                    None => Ok(Self::Notification { method, params }),
                    Some(id) if is_null(id) => Err(Malformed::BadId),
                    Some(id) => Ok(Self::Request { id, method, params }),
                }
            }
            (None, (Some(result), None)) => {
                let id = id.filter(|id| !is_null(id)).ok_or(Malformed::BadId)?;
                Ok(Self::Success { id, result })
            }
            (None, (None, Some(error))) => {
                let error = RpcError::parse(error).ok_or(Malformed::BadError)?;
                Ok(Self::Failure { id: id.filter(|id| !is_null(id)), error })
            }
            (None, (None, None)) => Err(Malformed::Neither),
            (Some(_), _) | (None, (Some(_), Some(_))) => Err(Malformed::Ambiguous),
        }
    }
}

impl<'a> RpcError<'a> {
    /// Reads the `error` of an answer.
    pub fn parse(raw: &'a RawValue) -> Option<Self> {
        let object = Object::parse(raw.get())?;
        Some(Self {
            code: serde_json::from_str(object.get("code")?.get()).ok()?,
            message: object.string("message")?,
            data: object.get("data"),
        })
    }
}

/// Writes a request; `id` and `params` go in as they are.
pub fn request(id: &str, method: &str, params: Option<&str>) -> String {
    let method = quoted(method);
    match params {
        Some(params) => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
        }
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
    }
}

/// Writes a notification; `params` goes in as it is.
pub fn notification(method: &str, params: Option<&str>) -> String {
    let method = quoted(method);
    match params {
        Some(params) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
    }
}

/// Writes the answer to a request that was done; `id` and `result` go in as they are.
pub fn success(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Writes the answer to a request that failed; `id` and `data` go in as they are, and no id becomes `null`.
pub fn failure(id: Option<&str>, code: i64, message: &str, data: Option<&str>) -> String {
    let (id, message) = (id.unwrap_or("null"), quoted(message));
    match data {
        Some(data) => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message},"data":{data}}}}}"#)
        }
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#),
    }
}

/// The JSON text on one line, as stdio wants it. Line breaks in valid JSON stand only between its parts.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) { Cow::Owned(text.replace(['\n', '\r'], " ")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn malformed(text: &str) -> Malformed {
        Message::parse(text).expect_err(text)
    }

    #[test]
    fn each_shape_is_told_from_the_others() {
        let parse = |text| Message::parse(text).unwrap();
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#), Message::Request { params: None, .. }));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","method":"m","params":{}}"#), Message::Notification { .. }));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Message::Success { .. }));
        let failed = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1.0]}}"#;
        let Message::Failure { id: None, error } = parse(failed) else { panic!() };
        assert_eq!((error.code, &*error.message, error.data.unwrap().get()), (-32700, "no", "[1.0]"));
    }

    #[test]
    fn what_is_not_a_message_says_why() {
        assert_eq!(malformed("{\"jsonrpc\""), Malformed::NotJson);
        assert_eq!(malformed("<html>"), Malformed::NotJson);
        assert_eq!(malformed("[]"), Malformed::Batch);
        assert_eq!(malformed("3"), Malformed::NotAnObject);
        assert_eq!(malformed("{}"), Malformed::BadVersion);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#), Malformed::BadId);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), Malformed::BadId);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","result":1}"#), Malformed::BadId);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), Malformed::BadMethod);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":3}"#), Malformed::BadParams);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#), Malformed::BadError);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#), Malformed::Ambiguous);
        assert_eq!(malformed(r#"{"jsonrpc":"2.0","id":1}"#), Malformed::Neither);
    }

    #[test]
    fn what_is_written_is_read_back_with_its_parts_untouched() {
        let text = request("\"x\"", "tools/\"call", Some("{\"n\": 1.0}"));
        let Ok(Message::Request { id, method, params }) = Message::parse(&text) else { panic!() };
        assert_eq!((id.get(), &*method, params.unwrap().get()), ("\"x\"", "tools/\"call", "{\"n\": 1.0}"));
        for text in [
            notification("n", None),
            notification("n", Some("{}")),
            success("1", "{}"),
            failure(None, -1, "no \"way\"", None),
            failure(Some("1"), -1, "no", Some("{}")),
        ] {
            Message::parse(&text).unwrap();
        }
        assert_eq!(one_line("{\n\"a\":1\r\n}"), "{ \"a\":1  }");
    }
}
