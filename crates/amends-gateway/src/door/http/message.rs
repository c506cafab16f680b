//! `POST /mcp`: one message of a client, in either era.

use std::sync::Arc;

use amends_core::{Principal, RefusalKind};
use amends_wire::mcp::{Era, http as headers};
use amends_wire::message::{self, Message};
use amends_wire::object::Object;
use amends_wire::scan::Scanned;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use super::body::{Bad, Body, Read, read};
use super::connection::Connection;
use super::stream::{SILENT_MAX, STILL_HERE, event, streamed};
use super::{Door, checks, json, plain_text, respond};
use crate::door::mcp::{self, Answer, Answering, Asked, Client, Out, Outbox, Said};

/// How many messages may wait to go out before an answer.
const WAITING_MAX: usize = 64;

/// Takes one message and answers it.
pub(super) async fn post(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let limits = door.gateway.config().limits;
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let text = match read(body, limits.body_bytes, limits.depth).await {
        Read::Text(text) => text,
        Read::Gone => return plain_text(StatusCode::BAD_REQUEST, "the body broke off"),
        Read::Bad { why, scanned } => {
            let stateful = header(headers::SESSION_HEADER).and_then(|id| door.sessions.find(door, who, id));
            return refuse_bad(door, who, stateful, why, &scanned).await;
        }
    };
    let stateful = match header(headers::SESSION_HEADER) {
        Some(id) => match door.sessions.find(door, who, id) {
            Some(client) => Some(client),
            None => {
                return json(StatusCode::NOT_FOUND, message::failure(None, -32001, "session not found", None));
            }
        },
        None => None,
    };
    match Message::parse(&text) {
        Ok(Message::Request { id, method, params }) => {
            let routing = headers::Routing {
                version: header(headers::VERSION_HEADER),
                method: header(headers::METHOD_HEADER),
                name: header(headers::NAME_HEADER),
            };
            let params = params.map(ToOwned::to_owned);
            let asked = Asked { id: id.get().to_owned(), method: method.into_owned(), params };
            if let Some(refused) = checks::refused(&asked, routing, stateful.is_some()) {
                return refused;
            }
            if let Some(refused) = checks::unmirrored(&door.gateway, &asked, header) {
                return refused;
            }
            let streams = header("accept").is_some_and(|accept| accept.contains("text/event-stream"));
            answer(door, connection, who, asked, stateful, streams).await
        }
        Ok(Message::Notification { method, params }) => {
            if method == "notifications/cancelled"
                && let (Some(client), Some(params)) = (&stateful, params)
                && let Some(id) = Object::parse(params.get()).and_then(|params| params.get("requestId"))
            {
                client.cancels(id.get());
            }
            accepted()
        }
        Ok(Message::Success { id, .. } | Message::Failure { id: Some(id), .. }) => {
            if let Some(client) = &stateful {
                client.answers(id.get(), &text);
            }
            accepted()
        }
        Ok(Message::Failure { id: None, .. }) => accepted(),
        Err(error) => {
            let mut scanner = amends_wire::scan::Scanner::new(usize::MAX);
            let _ = scanner.feed(text.as_bytes());
            let refusal = mcp::unreadable(RefusalKind::InvalidArgument, error.to_string());
            let client = stateful.unwrap_or_else(|| Arc::new(alone(door, who)));
            let answer = mcp::refuse(&client, &scanner.finish(), error.code(), refusal).await;
            json(StatusCode::BAD_REQUEST, answer)
        }
    }
}

fn accepted() -> Response<Body> {
    respond(StatusCode::ACCEPTED, "application/json", String::new())
}

async fn answer(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    asked: Asked,
    stateful: Option<Arc<Client>>,
    streams: bool,
) -> Response<Body> {
    let mut begun = None;
    let client = match stateful {
        _ if asked.method == "initialize" => {
            let Some((id, client)) = door.sessions.open(door, who, Said::in_greeting(asked.params.as_deref())) else {
                let text =
                    message::failure(Some(&asked.id), message::INTERNAL_ERROR, "there are too many sessions", None);
                return json(StatusCode::SERVICE_UNAVAILABLE, text);
            };
            begun = HeaderValue::from_str(&id).ok();
            // From here on it hears of changes, whenever it opens its stream.
            client.mailbox();
            client
        }
        Some(client) => client,
        None => Arc::new(alone(door, who)),
    };
    let (to, out) = mpsc::channel(WAITING_MAX);
    let outbox = if streams { Outbox::to(client.clone(), to) } else { Outbox::closed(client.clone()) };
    let era = client.era(&asked);
    let answering = mcp::handle(client, asked, outbox);
    let mut response = respond_to(answering, out, connection, era).await;
    if let Some(id) = begun {
        response.headers_mut().insert(headers::SESSION_HEADER, id);
    }
    response
}

/// A client that has no session with us.
fn alone(door: &Arc<Door>, who: &Principal) -> Client {
    Client::new(door.gateway.clone(), who.clone(), "mcp/http", Said::nothing())
}

/// Answers with JSON, or with a stream of events where something goes before the answer.
async fn respond_to(
    mut answering: Answering,
    mut out: mpsc::Receiver<Out>,
    connection: &Arc<Connection>,
    era: Era,
) -> Response<Body> {
    let first = tokio::select! {
        biased;
        Some(first) = out.recv() => first,
        answer = &mut answering => match out.try_recv() {
            Ok(first) => {
                answering = Box::pin(std::future::ready(answer));
                first
            }
            Err(_) => return match answer {
                Some(Answer { message, delivery, code, begun }) => {
                    connection.answers(delivery);
                    if let Some(begun) = begun {
                        begun.told();
                    }
                    json(status(code, era), message)
                }
                None => accepted(),
            },
        },
    };
    let (events, body) = Body::events();
    tokio::spawn(stream(answering, first, out, events, connection.clone()));
    streamed(body)
}

/// The status of an answer. In the stateful era an error is a message like any other, and a status says something of the session.
fn status(code: Option<i64>, era: Era) -> StatusCode {
    let status = code.filter(|_| era == Era::Modern).map_or(200, headers::status_of);
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

/// Writes what goes before the answer as it comes, then the answer. A client that is gone ends it.
async fn stream(
    mut answering: Answering,
    first: Out,
    mut out: mpsc::Receiver<Out>,
    events: mpsc::Sender<Bytes>,
    connection: Arc<Connection>,
) {
    let event = |text: &str| event(None, text);
    if events.send(event(&first.line)).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            biased;
            Some(before) = out.recv() => {
                if events.send(event(&before.line)).await.is_err() {
                    return;
                }
            }
            answer = &mut answering => {
                while let Ok(before) = out.try_recv() {
                    let _ = events.send(event(&before.line)).await;
                }
                if let Some(answer) = answer && events.send(event(&answer.message)).await.is_ok() {
                    connection.answers(answer.delivery);
                    if let Some(begun) = answer.begun {
                        begun.told();
                    }
                }
                return;
            }
            () = events.closed() => return,
            () = tokio::time::sleep(SILENT_MAX) => {
                if events.send(STILL_HERE).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn refuse_bad(
    door: &Arc<Door>,
    who: &Principal,
    stateful: Option<Arc<Client>>,
    why: Bad,
    scanned: &Scanned,
) -> Response<Body> {
    let limits = door.gateway.config().limits;
    let (kind, code, status, words) = match why {
        Bad::TooLarge => (
            RefusalKind::TooLarge,
            message::INVALID_REQUEST,
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message is larger than {} bytes", limits.body_bytes),
        ),
        Bad::TooDeep => (
            RefusalKind::TooLarge,
            message::INVALID_REQUEST,
            StatusCode::BAD_REQUEST,
            format!("the message nests deeper than {} levels", limits.depth),
        ),
        Bad::NotUtf8 => (
            RefusalKind::InvalidArgument,
            message::PARSE_ERROR,
            StatusCode::BAD_REQUEST,
            "the message is not UTF-8".to_owned(),
        ),
    };
    let client = stateful.unwrap_or_else(|| Arc::new(alone(door, who)));
    json(status, mcp::refuse(&client, scanned, code, mcp::unreadable(kind, words)).await)
}
