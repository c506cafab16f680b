//! MCP over Streamable HTTP, at `/mcp`.
//!
//! The shop keeps no sessions. Closing the response is how an agent cancels a call; a
//! `notifications/cancelled` is accepted and changes nothing, because without sessions an id does not
//! say whose call it means.

mod events;

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::answer::Answer;
use super::desk::{Call, Caller, Desk, Errand};
use super::era::VERSION_FIELD;
use super::problem::Problem;
use super::progress::Progress;
use super::rpc::{self, Code, Message, Rejection};
use events::Events;

const PATH: &str = "/mcp";

/// Progress that waits for the agent to read it.
const PROGRESS_WAITING_MAX: usize = 16;

type Body = UnsyncBoxBody<Bytes, Hangup>;

/// A call on its way to an answer; dropping it cancels the call.
type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The shop breaks the connection, on cue.
#[derive(Debug)]
pub(crate) struct Hangup;

impl fmt::Display for Hangup {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        output.write_str("the shop hung up")
    }
}

impl std::error::Error for Hangup {}

/// Serves agents on `address` until the process is ended.
pub(crate) async fn serve(desk: Desk, address: SocketAddr, statuses: bool) -> Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on `{address}`"))?;
    eprintln!("shop listening on http://{}{PATH}", listener.local_addr()?);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, desk.clone(), statuses));
            }
            Err(cause) => {
                // Such as too many open files: others may close soon, so wait instead of spinning.
                eprintln!("shop: a connection was not accepted: {cause}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, desk: Desk, statuses: bool) {
    stream.set_nodelay(true).ok();
    let service = service_fn(|request| respond(&desk, statuses, request));
    let connection = hyper::server::conn::http1::Builder::new();
    // Ends with an error whenever either side hangs up, which is what this shop is for.
    connection.serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn respond(desk: &Desk, statuses: bool, request: Request<Incoming>) -> Result<Response<Body>, Hangup> {
    if request.uri().path() != PATH {
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    if request.method() != Method::POST {
        let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
        return Ok(response);
    }
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, rpc::MESSAGE_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(cause) if cause.is::<http_body_util::LengthLimitError>() => {
            return Ok(empty(StatusCode::PAYLOAD_TOO_LARGE));
        }
        Err(_) => return Err(Hangup),
    };
    let message = match rpc::parse(&body) {
        Ok(message) => message,
        Err(rejection) => return Ok(json(StatusCode::BAD_REQUEST, rejection.line())),
    };
    let modern = version(&message).is_some();
    match agreed(message, &head.headers).and_then(|message| desk.receive(message)) {
        Ok(Errand::Reply(line)) => Ok(json(StatusCode::OK, line)),
        Ok(Errand::Call(call)) => answer(*call, statuses).await,
        Ok(Errand::Cancel(_) | Errand::Nothing) => Ok(empty(StatusCode::ACCEPTED)),
        Err(rejection) => Ok(json(status(rejection.code, modern), rejection.line())),
    }
}

/// Serves a call as JSON, or as a stream of events once it reports progress.
async fn answer(call: Call, statuses: bool) -> Result<Response<Body>, Hangup> {
    let Call { visit, progress_token, caller } = call;
    let (messages, mut news) = mpsc::channel(PROGRESS_WAITING_MAX);
    let progress = progress_token.map(|token| Progress::new(token, messages));
    let mut work: Work = Box::pin(async move {
        let answer = visit.serve(progress).await;
        visit.finish();
        answer
    });
    tokio::select! {
        biased;
        Some(first) = news.recv() => Ok(events(Events::new(first, news, work, caller))),
        answer = &mut work => whole(answer, &caller, statuses),
    }
}

/// The answer to a call that reported no progress.
fn whole(answer: Answer, caller: &Caller, statuses: bool) -> Result<Response<Body>, Hangup> {
    match answer {
        Answer::Fault(problem) if statuses => Ok(refusal(&problem)),
        Answer::Garbage => {
            let page = caller.line(Answer::Garbage).ok_or(Hangup)?;
            Ok(typed(StatusCode::OK, "text/html", page))
        }
        answer => {
            let line = caller.line(answer).ok_or(Hangup)?;
            Ok(json(StatusCode::OK, line))
        }
    }
}

/// The version a modern request names.
fn version(message: &Message) -> Option<&str> {
    match message {
        Message::Request { params, .. } => params["_meta"][VERSION_FIELD].as_str(),
        Message::Notification { .. } | Message::Answer => None,
    }
}

/// Refuses a modern request whose headers say something else than its body.
fn agreed(message: Message, headers: &HeaderMap) -> Result<Message, Rejection> {
    let (Some(version), Message::Request { id, method, params }) = (version(&message), &message) else {
        return Ok(message);
    };
    let said = [
        ("mcp-protocol-version", Some(version)),
        ("mcp-method", Some(method.as_str())),
        ("mcp-name", params["name"].as_str()),
    ];
    for (header, body) in said {
        let (Some(given), Some(body)) = (headers.get(header), body) else {
            continue;
        };
        if given.as_bytes() != body.as_bytes() {
            let complaint = format!("the header `{header}` does not agree with the body");
            let id = Some(id.clone());
            return Err(Rejection::new(id, Code::HeaderMismatch, complaint));
        }
    }
    Ok(message)
}

/// A legacy agent takes 404 for the end of its session, so only a modern one hears it.
fn status(code: Code, modern: bool) -> StatusCode {
    match code {
        Code::ParseError | Code::InvalidRequest | Code::HeaderMismatch | Code::UnsupportedProtocolVersion => {
            StatusCode::BAD_REQUEST
        }
        Code::MethodNotFound if modern => StatusCode::NOT_FOUND,
        Code::MethodNotFound | Code::InvalidParams | Code::InternalError => StatusCode::OK,
    }
}

fn refusal(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let words = serde_json::json!(problem).to_string();
    let mut response = typed(status, "application/problem+json", words);
    if let Some(seconds) = problem.retry_after {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(status: StatusCode, line: String) -> Response<Body> {
    typed(status, "application/json", line)
}

fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(String::new()));
    *response.status_mut() = status;
    response
}

fn typed(status: StatusCode, kind: &'static str, words: String) -> Response<Body> {
    let mut response = Response::new(full(words));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn full(words: String) -> Body {
    Full::new(Bytes::from(words)).map_err(|never| match never {}).boxed_unsync()
}
