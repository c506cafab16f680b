//! One request to an agent: a card fetched, a method called, a stream heard.

use std::time::{Duration, Instant};

use amends_wire::a2a::agent::Method;
use amends_wire::a2a::{Version, version};
use amends_wire::message::{self, Message};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method as Verb, Request, Uri};
use serde_json::Value;

use super::{Known, Shared};
use crate::upstream::exchange::{Fault, RpcFault};
use crate::upstream::http::pool::{Departure, Pool, Sent};
use crate::upstream::sse::Events;

/// How long a request may take that only looks.
pub(super) const WITHIN: Duration = Duration::from_secs(15);
/// How much of a body that is no answer is kept.
const STRANGE_BODY_MAX: usize = 16 * 1024;
const VERSION: HeaderName = HeaderName::from_static(version::HEADER);

/// What came of a request.
#[derive(Debug)]
pub(super) enum Heard {
    /// A result.
    Result(Value),
    /// An error in the protocol.
    Error(RpcFault),
    /// A stream, which has not ended.
    Stream(Box<Stream>),
}

/// A stream of what an agent says of a task.
#[derive(Debug)]
pub(super) struct Stream {
    sent: Sent,
    events: Events,
    waiting: std::collections::VecDeque<Vec<u8>>,
    bytes_max: usize,
}

impl Stream {
    /// What is said next; nothing once the stream ended or broke.
    pub(super) async fn next(&mut self) -> Option<Result<Value, RpcFault>> {
        // Ends: the stream does, or something is said that can be read.
        loop {
            while let Some(event) = self.waiting.pop_front() {
                if let Some(said) = std::str::from_utf8(&event).ok().and_then(read) {
                    return Some(said);
                }
            }
            let frame = self.sent.response.body_mut().frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.waiting.extend(self.events.feed(data));
            }
            if self.events.waiting() > self.bytes_max {
                return None;
            }
        }
    }
}

/// What a JSON-RPC answer says.
fn read(text: &str) -> Option<Result<Value, RpcFault>> {
    match Message::parse(text).ok()? {
        Message::Success { result, .. } => Some(Ok(serde_json::from_str(result.get()).ok()?)),
        Message::Failure { error, .. } => Some(Err(RpcFault {
            code: error.code,
            message: error.message.into_owned(),
            data: error.data.map(|data| data.get().to_owned()),
        })),
        Message::Request { .. } | Message::Notification { .. } => None,
    }
}

/// Fetches the card; it says why where that failed.
pub(super) async fn fetch(shared: &Shared, within: Duration, bytes_max: usize) -> Result<String, String> {
    let mut request = request(shared, &shared.card, Bytes::new()).ok_or("its address cannot be asked")?;
    *request.method_mut() = Verb::GET;
    request.headers_mut().remove(CONTENT_TYPE);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let work = async {
        let sent = shared.door.send(request, Instant::now() + within, &Departure::default()).await;
        let mut sent = sent.map_err(|fault| fault.to_string())?;
        let status = sent.response.status();
        let body = collect(&mut sent, bytes_max).await.map_err(|fault| fault.to_string())?;
        shared.door.keep(sent.connection);
        match status.is_success() {
            true => String::from_utf8(body).map_err(|_| "its card is not UTF-8".to_owned()),
            false => Err(format!("its card was answered with HTTP status {}", status.as_u16())),
        }
    };
    tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err("its card did not come in time".into()))
}

/// Calls a method.
pub(super) async fn call(
    shared: &Shared,
    known: &Known,
    method: Method,
    params: &str,
    send_by: Instant,
    departure: &Departure,
) -> Result<Heard, Fault> {
    let speaks = known.agent.speaks;
    let id = shared.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
    let body = message::request(&id, method.name(speaks), Some(params));
    let mut request = request(shared, &known.uri, Bytes::from(body)).ok_or(Fault::NotWritten)?;
    let accept = match method {
        Method::Stream | Method::Subscribe => "text/event-stream, application/json",
        Method::Send | Method::Get | Method::Cancel => "application/json",
    };
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
    if speaks == Version::V1 {
        request.headers_mut().insert(VERSION, HeaderValue::from_static(version::CURRENT));
    }
    let sent = known.pool.send(request, send_by, departure).await?;
    heard(sent, shared.limits.answer_bytes, &known.pool).await
}

async fn heard(mut sent: Sent, bytes_max: usize, pool: &Pool) -> Result<Heard, Fault> {
    let header = |name| sent.response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (status, content_type, retry_after) = (sent.response.status(), header(CONTENT_TYPE), header(RETRY_AFTER));
    if status.is_success() && content_type.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream")) {
        let (events, waiting) = (Events::default(), std::collections::VecDeque::new());
        return Ok(Heard::Stream(Box::new(Stream { sent, events, waiting, bytes_max })));
    }
    let body = collect(&mut sent, bytes_max).await?;
    pool.keep(sent.connection);
    let text = String::from_utf8_lossy(&body);
    match read(&text) {
        Some(Ok(result)) => return Ok(Heard::Result(result)),
        Some(Err(error)) => return Ok(Heard::Error(error)),
        None => {}
    }
    let start: String = text.chars().take(STRANGE_BODY_MAX / 4).collect();
    match status.is_success() {
        true => Err(Fault::Unreadable { start }),
        false => Err(Fault::HttpStatus { status: status.as_u16(), retry_after, content_type, body: start }),
    }
}

async fn collect(sent: &mut Sent, bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let mut body: Vec<u8> = Vec::new();
    while let Some(frame) = sent.response.body_mut().frame().await {
        let frame = frame.map_err(|_| Fault::Lost)?;
        if let Some(data) = frame.data_ref() {
            if body.len() + data.len() > bytes_max {
                return Err(Fault::TooLarge);
            }
            body.extend_from_slice(data);
        }
    }
    Ok(body)
}

fn request(shared: &Shared, uri: &Uri, body: Bytes) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Verb::POST;
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(uri.authority()?.as_str()).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, credential) in &shared.headers {
        let mut value = HeaderValue::from_str(&credential.shown()).ok()?;
        value.set_sensitive(true);
        headers.insert(name.clone(), value);
    }
    Some(request)
}
