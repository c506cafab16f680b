//! `POST /agui`: a run as a stream of events, and `POST /agui/stop`, which ends one.

use std::sync::Arc;

use amends_core::{Principal, Refusal, RefusalKind};
use amends_wire::agui::input::{Input, unfit};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::body::{Bad, Body, Read, read};
use super::connection::Connection;
use super::{Door, json, plain, plain_text};
use crate::door::agui::{self, NoPlace, Order, Place};
use crate::driver::{Listener, Wish};
use crate::telemetry::Named;

/// Runs what a client wants run.
pub(super) async fn run(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let text = match text(door, connection, who, body).await {
        Ok(text) => text,
        Err(response) => return response,
    };
    let input = match Input::read(&text) {
        Ok(input) => input,
        Err(refusal) => return refused(door, connection, who, *refusal).await,
    };
    // Before anything is answered, so that two runs do not both go on with one.
    let place = match door.gateway.runs.begin(who, &input.thread, &input.run) {
        Ok(place) => place,
        Err(no) => {
            let (kind, words) = match no {
                NoPlace::Taken => {
                    let words = "another run goes on in this thread; nothing was done, wait for its end or stop it";
                    (RefusalKind::InFlight, words)
                }
                NoPlace::Ending => (RefusalKind::RetryLater, "the gateway stops; nothing was done, run it again"),
            };
            let refusal = Refusal { retry_after_ms: Some(1000), ..Refusal::of(kind, words) };
            return refused(door, connection, who, refusal).await;
        }
    };
    match agui::prepare(&door.gateway, who, input, meta(&parts.headers)).await {
        Ok(order) => stream(door, connection, order, place),
        Err(refusal) => refused(door, connection, who, *refusal).await,
    }
}

fn stream(door: &Arc<Door>, connection: &Arc<Connection>, order: Order, place: Place) -> Response<Body> {
    let (events, body) = Body::events();
    let body = body.keeping(door.gateway.runs.stream());
    tokio::spawn(write(door.clone(), connection.clone(), order, place, events));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn write(door: Arc<Door>, connection: Arc<Connection>, order: Order, place: Place, events: mpsc::Sender<Bytes>) {
    let delivered = agui::run(&door.gateway, order, place, events).await;
    delivered.into_iter().for_each(|delivery| connection.answers(Some(delivery)));
}

/// What names a run that is to be stopped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meant {
    thread_id: String,
    #[serde(default)]
    run_id: Option<String>,
}

/// Stops a run. It says so itself, at the end of its stream.
pub(super) async fn stop(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    let text = match text(door, connection, who, request.into_body()).await {
        Ok(text) => text,
        Err(response) => return response,
    };
    let Ok(named) = serde_json::from_str::<Meant>(&text) else {
        let refusal = unfit("the body", "`threadId`, and `runId` where only that run is meant", None);
        return refused(door, connection, who, *refusal).await;
    };
    let (gateway, run) = (&door.gateway, named.run_id.as_deref());
    let stopped = match gateway.runs.stop(who, &named.thread_id, run) {
        true => Ok(true),
        false => agui::stop_elsewhere(gateway, who, &named.thread_id, run).await,
    };
    let refusal = match stopped {
        Ok(true) => return json(StatusCode::ACCEPTED, serde_json::json!({ "stopping": true }).to_string()),
        Ok(false) => Refusal::of(RefusalKind::UnknownName, "nothing of yours runs there"),
        Err(error) => {
            tracing::warn!(%error, "a run at another process could not be stopped");
            let words = "nothing of yours runs there in this process, and the ledger that leads to the others is away";
            Refusal { retry_after_ms: Some(5000), ..Refusal::of(RefusalKind::StoreUnavailable, words) }
        }
    };
    refused(door, connection, who, refusal).await
}

/// The text of a body, within bounds.
async fn text(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    body: Incoming,
) -> Result<String, Response<Body>> {
    let limits = door.gateway.config().limits;
    let (kind, words) = match read(body, limits.body_bytes, limits.depth).await {
        Read::Text(text) => return Ok(text),
        Read::Gone => return Err(plain_text(StatusCode::BAD_REQUEST, "the body broke off")),
        Read::Bad { why: Bad::TooLarge, .. } => {
            (RefusalKind::TooLarge, format!("the body is larger than {} bytes", limits.body_bytes))
        }
        Read::Bad { why: Bad::TooDeep, .. } => {
            (RefusalKind::TooLarge, format!("the body nests deeper than {} levels", limits.depth))
        }
        Read::Bad { why: Bad::NotUtf8, .. } => (RefusalKind::InvalidArgument, "the body is not UTF-8".to_owned()),
    };
    Err(refused(door, connection, who, Refusal::of(kind, words)).await)
}

/// Says no before anything runs, and records that.
async fn refused(door: &Arc<Door>, connection: &Arc<Connection>, who: &Principal, refusal: Refusal) -> Response<Body> {
    let session = door.gateway.open_session(who.clone(), "agui");
    let wish = Wish::Unreadable { requested: "run".to_owned(), refusal: Box::new(refusal) };
    let handle = session.call(wish, Listener::of_the_answer());
    match handle.answer.await {
        Ok(mut answered) => {
            connection.answers(answered.delivery.take().map(|delivery| delivery.keeping(&session)));
            plain::respond(&answered, door.gateway.config().dialect)
        }
        Err(_) => plain_text(StatusCode::INTERNAL_SERVER_ERROR, "the gateway stopped"),
    }
}

/// What the headers say of the trace that a run belongs to, as an MCP client would say it.
fn meta(headers: &HeaderMap) -> serde_json::Map<String, serde_json::Value> {
    let named = Named::by(headers);
    let members = named.iter().flat_map(Named::members);
    members.map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// Runs are posted.
pub(super) fn not_allowed() -> Response<Body> {
    let mut response = plain_text(StatusCode::METHOD_NOT_ALLOWED, "AG-UI runs are posted here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}
