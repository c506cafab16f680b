//! `GET /mcp`: what a stateful client hears of upstreams' own accord, as a stream of events.

use std::sync::Arc;
use std::time::Duration;

use amends_core::Principal;
use amends_wire::mcp::{Era, http as headers};
use amends_wire::message;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use super::body::Body;
use super::{Door, plain_text};
use crate::hub::Reader;

/// How long a stream is silent at most; a line that says nothing keeps it open, and finds out whether somebody listens.
pub(super) const SILENT_MAX: Duration = Duration::from_secs(15);
/// What is written then.
pub(super) const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// Opens the stream of a session. It takes the place of the one before, and goes on after the event the client saw last.
pub(super) fn open(door: &Arc<Door>, who: &Principal, request: &Request<Incoming>) -> Response<Body> {
    let Some(id) = session(request) else { return not_allowed() };
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if !header("accept").is_some_and(|accept| accept.contains("text/event-stream") || accept.contains("*/*")) {
        return plain_text(StatusCode::NOT_ACCEPTABLE, "this is a stream of events");
    }
    let Some(client) = door.sessions.find(door, who, id) else {
        return plain_text(StatusCode::NOT_FOUND, "there is no such session");
    };
    let reader = client.mailbox().reader(header("last-event-id"));
    let (events, body) = Body::events();
    tokio::spawn(write(reader, events));
    streamed(body)
}

/// The session that a request names, unless it belongs to the era without sessions.
pub(super) fn session(request: &Request<Incoming>) -> Option<&str> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let modern = header(headers::VERSION_HEADER).is_some_and(|version| Era::of_version(version) == Era::Modern);
    header(headers::SESSION_HEADER).filter(|_| !modern)
}

/// Only posting is allowed without a session.
pub(super) fn not_allowed() -> Response<Body> {
    let mut response = plain_text(StatusCode::METHOD_NOT_ALLOWED, "MCP messages are posted here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// A response that is a stream of events.
pub(super) fn streamed(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// One message as an event.
pub(super) fn event(id: Option<&str>, message: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: message\ndata: {}\n\n", message::one_line(message)))
}

async fn write(mut reader: Reader, events: mpsc::Sender<Bytes>) {
    // Said at once: some clients take a stream for open only when its first bytes come.
    let mut next = Some(STILL_HERE);
    loop {
        if let Some(bytes) = next.take() {
            tokio::select! {
                biased;
                sent = events.send(bytes) => if sent.is_err() {
                    return;
                },
                lost = reader.overrun() => return overran(lost.0),
            }
        }
        tokio::select! {
            read = reader.next() => match read {
                Ok(Some((id, line))) => next = Some(event(Some(&id), &line)),
                Ok(None) => return,
                Err(lost) => return overran(lost.0),
            },
            () = tokio::time::sleep(SILENT_MAX) => next = Some(STILL_HERE),
            () = events.closed() => return,
        }
    }
}

fn overran(lost: u64) {
    tracing::warn!(lost, "a client does not read its stream, which is closed");
}
