//! The JSON-RPC binding.

use std::sync::Arc;

use amends_core::Principal;
use amends_wire::a2a::{Refused, Trouble, Version};
use amends_wire::message::{self, Message};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Method as Verb, Request, Response, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::super::body::Body;
use super::super::connection::Connection;
use super::super::stream::{SILENT_MAX, STILL_HERE, streamed};
use super::super::{Door, json, plain_text};
use super::methods::{Answer, Method};
use super::{Asker, is_json, named_version, spoken, text_of};

/// Takes one request.
pub(super) async fn handle(
    door: &Arc<Door>,
    _connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    if request.method() != Verb::POST {
        return plain_text(StatusCode::METHOD_NOT_ALLOWED, "A2A messages are posted here");
    }
    let refuse = |refused: &Refused, id: Option<&str>| json(StatusCode::OK, refused.rpc(Some(id.unwrap_or("null"))));
    let (is_json, named) = (is_json(&request), named_version(door, &request));
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    // Also what is refused is read, so that the connection can be used again.
    let text = text_of(request.into_body(), door.gateway.config().limits).await;
    if let Err(refused) = is_json {
        return refuse(&refused, None);
    }
    let text = match text {
        Ok(text) => text,
        Err((refused, id)) => return refuse(&refused, id.as_deref()),
    };
    let (id, method, params) = match Message::parse(&text) {
        Ok(Message::Request { id, method, params }) => (id.get().to_owned(), method, params),
        Ok(_) => return refuse(&Refused::of(Trouble::InvalidRequest, "this is no request"), None),
        Err(error) => {
            let trouble =
                if serde_json::from_str::<&RawValue>(&text).is_ok() { Trouble::InvalidRequest } else { Trouble::Parse };
            return refuse(&Refused::of(trouble, error.to_string()), None);
        }
    };
    // Who names no version speaks the one that has such a method.
    let version = named.and_then(|named| match named {
        Some(version) => Ok(version),
        None => spoken(door, Version::of_method(&method), "0.3"),
    });
    let version = match version {
        Ok(version) => version,
        Err(refused) => return refuse(&refused, Some(&id)),
    };
    let Some(method) = Method::find(&method, version) else {
        return refuse(&Refused::of(Trouble::MethodNotFound, "there is no such method"), Some(&id));
    };
    let empty = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
    let params = params.unwrap_or(&empty);
    if !params.get().starts_with('{') {
        return refuse(&Refused::of(Trouble::InvalidParams, "`params` is not an object"), Some(&id));
    }
    let asker = Asker { door, who, version, ends_asking: version == Version::V03 };
    match asker.ask(method, params, &host).await {
        Ok(Answer::Value(value)) => json(StatusCode::OK, message::success(&id, &value)),
        Ok(Answer::Stream(events)) => {
            let wrap = move |event: &str| message::success(&id, event);
            stream(events, wrap)
        }
        Err(refused) => refuse(&refused, Some(&id)),
    }
}

/// A response that says one event after the other, and now and then that it is still there.
pub(super) fn stream(
    mut events: mpsc::Receiver<String>,
    wrap: impl Fn(&str) -> String + Send + 'static,
) -> Response<Body> {
    let (to, body) = Body::events();
    tokio::spawn(async move {
        loop {
            let next = tokio::select! {
                event = events.recv() => match event {
                    Some(event) => Bytes::from(format!("data: {}\n\n", message::one_line(&wrap(&event)))),
                    None => return,
                },
                () = tokio::time::sleep(SILENT_MAX) => STILL_HERE,
                () = to.closed() => return,
            };
            if to.send(next).await.is_err() {
                return;
            }
        }
    });
    streamed(body)
}
