//! `POST /call/{tool}`: a call as plain HTTP, answered by the envelope with a fitting status.

use std::sync::Arc;

use amends_core::{Principal, RefusalKind};
use amends_wire::mcp::classify::structured;
use amends_wire::mcp::{Dialect, ToolCall};
use amends_wire::object::Object;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use serde_json::value::RawValue;

use super::body::{Bad, Body, Read, read};
use super::connection::Connection;
use super::{Door, json, plain_text};
use crate::door::mcp;
use crate::door::waiting::Waiting;
use crate::door::walk::{self, Asker, Came, Stray};
use crate::driver::{Answered, Form, Listener, Wish};
use crate::telemetry::Named;

/// Takes one call and answers it with its envelope.
pub(super) async fn call(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    tool: &str,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let meta = meta(&parts.headers);
    let limits = door.gateway.config().limits;
    let session = door.gateway.open_session(who.clone(), "http");
    let refused = |kind, words: String| {
        session.call(
            Wish::Unreadable { requested: tool.to_owned(), refusal: Box::new(mcp::unreadable(kind, words)) },
            Listener::of_the_answer(),
        )
    };
    let mut instead = None;
    let handle = match read(body, limits.body_bytes, limits.depth).await {
        Read::Gone => return plain_text(StatusCode::BAD_REQUEST, "the body broke off"),
        Read::Bad { why, scanned } => {
            instead = walk::instead(&door.gateway, who, None, tool, scanned.session.as_deref()).await;
            match why {
                Bad::TooLarge => {
                    refused(RefusalKind::TooLarge, format!("the body is larger than {} bytes", limits.body_bytes))
                }
                Bad::TooDeep => {
                    refused(RefusalKind::TooLarge, format!("the body nests deeper than {} levels", limits.depth))
                }
                Bad::NotUtf8 => refused(RefusalKind::InvalidArgument, "the body is not UTF-8".to_owned()),
            }
        }
        Read::Text(text) => {
            let text = if text.trim().is_empty() { "{}".to_owned() } else { text };
            match serde_json::from_str::<&RawValue>(&text) {
                Err(error) => {
                    instead = walk::instead(&door.gateway, who, None, tool, None).await;
                    refused(RefusalKind::InvalidArgument, format!("the body is not JSON: {error}"))
                }
                Ok(arguments) => {
                    let name = serde_json::Value::String(tool.to_owned()).to_string();
                    let meta = meta.map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
                    let params = format!(r#"{{"name":{name},"arguments":{}{meta}}}"#, arguments.get());
                    match serde_json::from_str::<&RawValue>(&params).map(|raw| ToolCall::parse(Some(raw))) {
                        Ok(Ok(call)) => match walk::wanted(&door.gateway, &call) {
                            Some(wanted) => {
                                let (gateway, session) = (&door.gateway, &session);
                                let asker = Asker { gateway, principal: who, door: "http", session, own: None };
                                match walk::call(&asker, &call, wanted, Listener::of_the_answer()).await {
                                    Came::Handed(handle, moved) => {
                                        instead = moved;
                                        handle
                                    }
                                    Came::Answered(answered) => return respond(&answered, gateway.config().dialect),
                                }
                            }
                            None => {
                                let (gateway, session) = (&door.gateway, &session);
                                let asker = Asker { gateway, principal: who, door: "http", session, own: None };
                                match walk::stray(&asker, &call, Listener::of_the_answer()).await {
                                    Stray::Passes(listener, moved) => {
                                        instead = moved;
                                        session.call(Wish::Call { params: &params, call: &call }, listener)
                                    }
                                    Stray::Came(Came::Handed(handle, moved)) => {
                                        instead = moved;
                                        handle
                                    }
                                    Stray::Came(Came::Answered(answered)) => {
                                        return respond(&answered, gateway.config().dialect);
                                    }
                                }
                            }
                        },
                        Ok(Err(error)) => {
                            instead = walk::instead(&door.gateway, who, None, tool, None).await;
                            refused(error.kind(), error.to_string())
                        }
                        Err(error) => refused(RefusalKind::InvalidArgument, error.to_string()),
                    }
                }
            }
        }
    };
    let mut waiting = Waiting::new(handle);
    let mut answered = walk::dressed(&door.gateway, waiting.answer().await, instead);
    let session = waiting.session();
    connection.answers(answered.delivery.take().map(|delivery| delivery.keeping(session)));
    respond(&answered, door.gateway.config().dialect)
}

/// What the headers say that goes on with the call, as an MCP client would say it: its key, and the trace it belongs to.
fn meta(headers: &HeaderMap) -> Option<String> {
    let mut meta = serde_json::Map::new();
    if let Some(key) = headers.get("idempotency-key") {
        let key = String::from_utf8_lossy(key.as_bytes()).into_owned();
        meta.insert(amends_wire::mcp::call::KEY.to_owned(), key.into());
    }
    if let Some(named) = Named::by(headers) {
        meta.extend(named.members().map(|(name, text)| (name.to_owned(), text.into())));
    }
    (!meta.is_empty()).then(|| serde_json::Value::Object(meta).to_string())
}

/// An answer as JSON, with the status that fits it.
pub(super) fn respond(answered: &Answered, dialect: Dialect) -> Response<Body> {
    let (text, error) = match &answered.rendered.form {
        Form::Forward { result, envelope } => {
            let result = String::from_utf8_lossy(result);
            (envelope.to_json(data_of(&result).as_deref()), None)
        }
        Form::Envelope { envelope, payload } => (envelope.to_json(payload.as_deref()), envelope.error().cloned()),
        Form::Moved(told) => {
            let told = answered.rendered.as_told(told);
            (told.written().whole.clone(), told.envelope.error().cloned())
        }
        Form::Stored { json } => (json.clone(), None),
        // Nobody is asked through this door.
        Form::Asked { .. } => (RawValue::NULL.to_owned(), None),
    };
    let status = match (&answered.rendered.form, &error) {
        (Form::Stored { json }, _) => stored_status(json),
        (_, Some(error)) => match error.kind {
            "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        },
        (_, None) => StatusCode::OK,
    };
    let mut response = json(status, dialect.render(&text).get().to_owned());
    if let Some(after) = error.and_then(|error| error.retry_after_ms) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.div_ceil(1000)));
    }
    if let Some(receipt) = &answered.receipt {
        let unrecorded = receipt.unrecorded.map(|kind| kind.as_str());
        let values = [
            ("amends-trace", Some(receipt.trace.as_str())),
            ("amends-receipt", receipt.hash.as_deref()),
            ("amends-unrecorded", unrecorded),
        ];
        for (name, value) in values {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    response
}

fn stored_status(json: &RawValue) -> StatusCode {
    let value: serde_json::Value = serde_json::from_str(json.get()).unwrap_or_default();
    let code = value["error"]["code"].as_str().and_then(amends_core::Code::parse);
    code.map_or(StatusCode::OK, |code| StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::OK))
}

/// What a result holds, as it was written: its structured content, or its text where that is JSON, or all of it.
fn data_of(result: &str) -> Option<Box<RawValue>> {
    let held = Object::parse(result).and_then(|object| object.get("structuredContent"));
    match held.filter(|held| held.get() != "null") {
        Some(held) => Some(held.to_owned()),
        None => structured(result)
            .and_then(|value| serde_json::value::to_raw_value(&value).ok())
            .or_else(|| RawValue::from_string(result.to_owned()).ok()),
    }
}
