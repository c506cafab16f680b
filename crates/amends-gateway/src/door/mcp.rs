//! What the MCP doors share: a call with its progress, and its answer as a message.

mod own;
mod progress;

use amends_core::{Refusal, RefusalKind};
use amends_wire::mcp::{ClientTraits, reply};
use amends_wire::message;
use serde_json::value::RawValue;

pub use own::{discover, initialize, reverse_entry, tools_list};
pub use progress::ProgressRelay;

use crate::driver::{Answered, Form};

/// An answer as a JSON-RPC message to the request of that id.
pub fn render(id: &str, answered: &Answered, traits: ClientTraits) -> String {
    let receipt = answered.receipt.as_ref();
    match &answered.rendered.form {
        Form::Forward { result, envelope } => {
            let result = String::from_utf8_lossy(result);
            message::success(id, &reply::forward(&result, envelope, receipt, traits))
        }
        Form::Envelope { envelope, payload } => {
            if let Some((code, text, data)) = reply::protocol_error(envelope) {
                return message::failure(Some(id), code, &text, Some(&with_receipt(&data, answered)));
            }
            let result = reply::envelope(envelope, payload.as_deref(), receipt, traits, answered.declares_output);
            message::success(id, &result)
        }
        Form::Stored { json } => {
            message::success(id, &reply::recorded(json, receipt, traits, answered.declares_output))
        }
    }
}

/// An answer as a JSON-RPC error, for a message that could not even be read as a call.
pub fn render_protocol_error(id: Option<&str>, code: i64, answered: &Answered) -> String {
    let envelope: Box<RawValue> = match &answered.rendered.form {
        Form::Envelope { envelope, payload } => envelope.to_json(payload.as_deref()),
        Form::Forward { envelope, .. } => envelope.to_json(None),
        Form::Stored { json } => json.clone(),
    };
    let said = match &answered.rendered.form {
        Form::Envelope { envelope, .. } => envelope.error().map(|error| error.message.clone()),
        Form::Forward { .. } | Form::Stored { .. } => None,
    };
    message::failure(
        id,
        code,
        said.as_deref().unwrap_or("the message was refused"),
        Some(&with_receipt(&envelope, answered)),
    )
}

fn with_receipt(envelope: &RawValue, answered: &Answered) -> String {
    answered.receipt.as_ref().map_or_else(|| envelope.get().to_owned(), |receipt| receipt.beside(envelope))
}

/// The refusal of a message that is too large or too deep, or cannot be read.
pub fn unreadable(kind: RefusalKind, message: impl Into<String>) -> Refusal {
    Refusal::of(kind, message)
}
