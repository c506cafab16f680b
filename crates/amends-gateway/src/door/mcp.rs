//! What the MCP doors share: who asks, what is asked, and what is answered. A door only frames bytes.

mod call;
mod client;
mod forward;
mod listen;
mod logging;
mod methods;
mod outbox;
mod own;
mod progress;
mod rounds;
mod tasks;
mod waiting;
mod walk;
mod wrapped;

use std::pin::Pin;
use std::sync::Arc;

use amends_core::{Refusal, RefusalKind};
use amends_wire::mcp::{ClientTraits, Era, reply};
use amends_wire::message;
use serde_json::value::RawValue;

pub use call::refuse;
pub use client::{Client, Running, Said};
pub use outbox::{Out, Outbox, Question};
pub use progress::ProgressRelay;
pub use tasks::Begun;
pub use wrapped::Wrapped;

use crate::driver::{Answered, Delivery, Form, MoveTold};

/// A request of a client, as it was read.
#[derive(Debug)]
pub struct Asked {
    /// Its id, as it was written.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its parameters, as they were written.
    pub params: Option<Box<RawValue>>,
}

impl Asked {
    /// Its parameters as text.
    pub fn text(&self) -> Option<&str> {
        self.params.as_deref().map(RawValue::get)
    }

    /// The era it says it belongs to, where it says so.
    pub fn era(&self) -> Option<Era> {
        Era::detect(&self.method, self.params.as_deref())
    }
}

/// The answer to a request, ready to be written.
#[derive(Debug)]
pub struct Answer {
    /// The whole message.
    pub message: String,
    /// The code of the error it is, where it is one of the protocol's.
    pub code: Option<i64>,
    /// Whom to tell when it has arrived, where that matters.
    pub delivery: Option<Delivery>,
    /// The task that it tells of.
    pub begun: Option<Box<Begun>>,
}

impl Answer {
    /// The answer that a request was done.
    pub fn result(asked: &Asked, result: &str) -> Self {
        Self { message: message::success(&asked.id, result), code: None, delivery: None, begun: None }
    }

    /// The answer that it was not.
    pub fn error(asked: &Asked, code: i64, text: &str, data: Option<&str>) -> Self {
        Self {
            message: message::failure(Some(&asked.id), code, text, data),
            code: Some(code),
            delivery: None,
            begun: None,
        }
    }
}

/// A request that is being answered. It gives nothing where the client said that it wants no answer any more. Dropped before
/// that, it takes the client for gone.
pub type Answering = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// Answers a request. What goes to the client before the answer goes through the outbox.
///
/// Whatever must keep the order of the requests happens before this returns.
pub fn handle(client: Arc<Client>, asked: Asked, outbox: Outbox) -> Answering {
    let running = client.runs(&asked.id);
    match (asked.method.as_str(), client.wrapped()) {
        ("tools/call", _) => Box::pin(call::call(client, asked, outbox, running)),
        (_, Some(_)) => wrapped::pass(client, asked, outbox, running),
        (_, None) => Box::pin(methods::answer(client, asked, outbox, running)),
    }
}

/// An answer as a JSON-RPC message to the request of that id, and its code where it is an error of the protocol's own.
pub fn render(id: &str, answered: &Answered, traits: ClientTraits) -> (String, Option<i64>) {
    let receipt = answered.receipt.as_ref();
    match &answered.rendered.form {
        Form::Forward { result, envelope } => {
            let result = String::from_utf8_lossy(result);
            (message::success(id, &reply::forward(&result, envelope, receipt, traits)), None)
        }
        Form::Envelope { envelope, payload } => {
            if let Some((code, text, data)) = reply::protocol_error(envelope) {
                let data = with_receipt(&data, answered);
                return (message::failure(Some(id), code, &text, Some(&data)), Some(code));
            }
            let result = reply::envelope(envelope, payload.as_deref(), receipt, traits, answered.declares_output);
            (message::success(id, &result), None)
        }
        Form::Moved(told) => {
            let told = answered.rendered.as_told(told);
            let MoveTold { envelope, moved, names, .. } = &*told;
            if let Some((code, text, data)) = reply::moved_error(envelope, moved, names) {
                let data = with_receipt(&data, answered);
                return (message::failure(Some(id), code, &text, Some(&data)), Some(code));
            }
            let result = reply::moved(envelope, moved, names, told.written(), receipt, traits);
            (message::success(id, &result), None)
        }
        Form::Stored { json } => {
            (message::success(id, &reply::recorded(json, receipt, traits, answered.declares_output)), None)
        }
        Form::Asked { result } => (message::success(id, &String::from_utf8_lossy(result)), None),
    }
}

/// An answer as a JSON-RPC error, for a message that could not even be read as a call.
pub fn render_protocol_error(id: Option<&str>, code: i64, answered: &Answered) -> String {
    let envelope: Box<RawValue> = match &answered.rendered.form {
        Form::Envelope { envelope, payload } => envelope.to_json(payload.as_deref()),
        Form::Forward { envelope, .. } => envelope.to_json(None),
        Form::Moved(told) => told.written().whole.clone(),
        Form::Stored { json } => json.clone(),
        Form::Asked { .. } => RawValue::NULL.to_owned(),
    };
    let said = match &answered.rendered.form {
        Form::Envelope { envelope, .. } => envelope.error().map(|error| error.message.clone()),
        Form::Moved(told) => told.envelope.error().map(|error| error.message.clone()),
        Form::Forward { .. } | Form::Stored { .. } | Form::Asked { .. } => None,
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
