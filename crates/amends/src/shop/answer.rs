//! An answer: what comes back from a visit, before it becomes JSON-RPC or HTTP.

use serde::Serialize;
use serde_json::{Value, json};

use super::era::Era;
use super::problem::Problem;

/// How a visit ends for the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Result(ToolResult),
    /// An error fault, which is an HTTP status where the shop was asked for that.
    Fault(Problem),
    /// Nothing, ever; over HTTP the connection breaks.
    Silence,
    /// A web page where JSON-RPC was expected.
    Garbage,
    /// The shop itself failed, for example because its disk is full.
    Broken(String),
}

/// The page behind [`Answer::Garbage`], on one line so that it is one message over standard output.
pub(crate) const PAGE: &str = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>\
     <body><h1>Bad Gateway</h1></body></html>";

/// The result of `tools/call`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    content: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// A field no schema knows, so that a gateway can be tested for keeping it as it is.
    #[serde(rename = "x-shop", skip_serializing_if = "Option::is_none")]
    shelf: Option<Shelf>,
}

/// Where an ordered item lies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Shelf {
    shelf: u8,
    /// Serialized as `1.0`, which a careless gateway turns into `1`.
    weight: f64,
}

impl ToolResult {
    pub(crate) fn success(value: Value) -> ToolResult {
        ToolResult { content: text(&value.to_string()), structured_content: Some(value), is_error: None, shelf: None }
    }

    pub(crate) fn problem(problem: &Problem) -> ToolResult {
        ToolResult {
            structured_content: Some(json!(problem)),
            content: text(&problem.sentence()),
            is_error: Some(true),
            shelf: None,
        }
    }

    /// An error without any structure.
    pub(crate) fn plain_error() -> ToolResult {
        ToolResult {
            structured_content: None,
            content: text("Something went wrong."),
            is_error: Some(true),
            shelf: None,
        }
    }

    /// A success that breaks the promise of an `outputSchema`.
    pub(crate) fn misshapen() -> ToolResult {
        ToolResult::success(json!({ "id": 7 }))
    }

    /// A success whose content is not a list.
    pub(crate) fn unlisted() -> ToolResult {
        ToolResult { structured_content: None, content: Value::from("done"), is_error: None, shelf: None }
    }

    /// The same result with a field that no schema knows.
    pub(crate) fn on_a_shelf(mut self) -> ToolResult {
        self.shelf = Some(Shelf { shelf: 7, weight: 1.0 });
        self
    }

    /// The result with what `era` adds to every result.
    pub(crate) fn stamped(self, era: Era) -> impl Serialize {
        #[derive(Serialize)]
        struct Stamped {
            #[serde(flatten)]
            result: ToolResult,
            #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
            result_type: Option<&'static str>,
        }
        Stamped { result: self, result_type: (era == Era::Modern).then_some("complete") }
    }
}

fn text(words: &str) -> Value {
    json!([{ "type": "text", "text": words }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_an_unknown_field_keep_their_spelling() {
        let result = ToolResult::success(json!({ "order": "ord_1" })).on_a_shelf();
        let line = serde_json::to_string(&result.stamped(Era::Modern)).expect("plain data");
        let ending = r#""x-shop":{"shelf":7,"weight":1.0},"resultType":"complete"}"#;
        assert!(line.ends_with(ending), "{line}");
    }
}
