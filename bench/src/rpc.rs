//! The JSON-RPC envelope, read and written without touching what is inside.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The protocol version that the callers and the echo agree on.
pub(crate) const VERSION: &str = "2025-11-25";

/// A request or a notification.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

/// An answer. An error passes as it came.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer<'a> {
    pub(crate) id: u64,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// The parameters of a tool call.
#[derive(Debug, Deserialize)]
pub(crate) struct Call<'a> {
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
}

impl Request<'_> {
    /// The same request under another id.
    pub(crate) fn renumbered(&self, id: u64) -> String {
        match self.params {
            Some(params) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{}}}"#, self.method, params.get())
            }
            None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}"}}"#, self.method),
        }
    }
}

impl Answer<'_> {
    /// The same answer under the id of whoever asked.
    pub(crate) fn renumbered(&self, id: &str) -> String {
        match (self.result, self.error) {
            (Some(result), _) => success(id, result.get()),
            (None, error) => {
                let error = error.map_or("null", RawValue::get);
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
            }
        }
    }
}

/// A result as a message.
pub(crate) fn success(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_changes_on_the_way_there_and_back() {
        let request: Request<'_> =
            serde_json::from_str(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x": 1.0}}"#).unwrap();
        assert_eq!(request.renumbered(7), r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x": 1.0}}"#);
        let answer: Answer<'_> = serde_json::from_str(r#"{"jsonrpc":"2.0","id":7,"result":{"y": 2e0}}"#).unwrap();
        assert_eq!(answer.renumbered("\"a\""), r#"{"jsonrpc":"2.0","id":"a","result":{"y": 2e0}}"#);
    }
}
