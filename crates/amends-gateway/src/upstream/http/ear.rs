//! What an endpoint says of its own accord: a stream that is kept open, and opened again when it breaks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;
use amends_wire::message::{self, Message};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, StatusCode};

use super::pool::{Departure, Sent};
use super::{Listening, Post, Session, Shared, nobody};
use crate::hub::News;
use crate::upstream::Health;
use crate::upstream::exchange::Whose;
use crate::upstream::questions::CANCELLED;
use crate::upstream::sse::Events;

const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How a stream ended.
enum Ended {
    /// It broke, or could not be opened; after which event, where that is known.
    Broken(Option<String>),
    /// Other resources are wanted, so that it must be opened anew.
    Wanted,
    /// The endpoint has no such stream.
    Absent,
}

/// Listens to the endpoint for as long as it is there.
pub(super) async fn listen(shared: Arc<Shared>, news: Arc<News>) {
    let mut health = shared.health.subscribe();
    let (mut backoff, mut last_id) = (BACKOFF_MIN, None);
    loop {
        if health.wait_for(|health| matches!(health, Health::Ready { .. })).await.is_err() {
            return;
        }
        let Some(session) = shared.known().await else {
            tokio::time::sleep(BACKOFF_MIN).await;
            continue;
        };
        let began = Instant::now();
        let ended = hear(&shared, &news, &session, last_id.take()).await;
        news.hears(false);
        match ended {
            Ended::Absent => {
                // Until it is greeted anew there is nothing to hear.
                if health.changed().await.is_err() {
                    return;
                }
                backoff = BACKOFF_MIN;
            }
            Ended::Wanted => {}
            Ended::Broken(seen) => {
                last_id = seen;
                if began.elapsed() > BACKOFF_MAX {
                    backoff = BACKOFF_MIN;
                }
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF_MAX);
            }
        }
    }
}

async fn hear(shared: &Arc<Shared>, news: &News, session: &Session, last_id: Option<String>) -> Ended {
    // Taken before the wishes are read, so that none that comes meanwhile is missed.
    let wanted = news.wanted();
    tokio::pin!(wanted);
    let request = match session.era {
        Era::Legacy => get(shared, session, last_id.as_deref()),
        Era::Modern => {
            let ticket = shared.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let body = message::request(&ticket.to_string(), "subscriptions/listen", Some(&news.wishes()));
            let method = Some("subscriptions/listen");
            shared.build(Post { body, method, subject: None, headers: &[], session: Some(session) })
        }
    };
    let departure = Departure::default();
    let opened = shared.pool.send(request, Instant::now() + OPEN_TIMEOUT, &departure);
    let sent = tokio::time::timeout(OPEN_TIMEOUT, opened).await;
    let Ok(Ok(mut sent)) = sent else { return Ended::Broken(last_id) };
    if !is_stream(&sent) {
        let away = sent.response.status().is_server_error() || sent.response.status() == StatusCode::TOO_MANY_REQUESTS;
        return if away { Ended::Broken(last_id) } else { Ended::Absent };
    }
    news.hears(true);
    let mut events = Events::default();
    let is_modern = session.era == Era::Modern;
    loop {
        let frame = tokio::select! {
            frame = sent.response.body_mut().frame() => frame,
            () = &mut wanted, if is_modern => return Ended::Wanted,
        };
        let seen = |events: &Events| events.last_id().map(str::to_owned).or(last_id.clone());
        let Some(Ok(frame)) = frame else { return Ended::Broken(seen(&events)) };
        let Some(data) = frame.data_ref() else { continue };
        for event in events.feed(data) {
            if let Ok(text) = std::str::from_utf8(&event) {
                heard(shared, news, session, text);
            }
        }
        if events.waiting() > shared.limits.answer_bytes {
            return Ended::Broken(seen(&events));
        }
    }
}

fn heard(shared: &Arc<Shared>, news: &News, session: &Session, text: &str) {
    match Message::parse(text) {
        Ok(Message::Notification { method, params }) if method == CANCELLED => {
            shared.questions.take_back(params.map(|params| params.get()));
        }
        Ok(Message::Notification { method, params }) => news.hear(&method, params.map(|params| params.get())),
        Ok(Message::Request { id, method, params }) => {
            // Apart from any request's stream, so that it may be about any of those in flight.
            if let (Whose::One(asides), true) = (shared.whose_question(), method != "ping") {
                let params = params.map(|params| params.get().to_owned());
                let listening = Listening { asides, shared: shared.clone(), session: session.clone() };
                listening.ask(id.get().to_owned(), method.into_owned(), params);
                return;
            }
            let answer = match &*method {
                "ping" => message::success(id.get(), "{}"),
                "roots/list" => message::success(id.get(), r#"{"roots":[]}"#),
                other => nobody(other).message(id.get()),
            };
            tokio::spawn(answered(shared.clone(), session.clone(), answer));
        }
        Ok(Message::Success { .. } | Message::Failure { .. }) | Err(_) => {}
    }
}

async fn answered(shared: Arc<Shared>, session: Session, body: String) {
    let post = Post { body, method: None, subject: None, headers: &[], session: Some(&session) };
    let _ = tokio::time::timeout(OPEN_TIMEOUT, shared.deliver(post, Instant::now() + OPEN_TIMEOUT)).await;
}

/// A request for the stream of what a stateful endpoint says, after that event.
pub(super) fn get(shared: &Shared, session: &Session, last_id: Option<&str>) -> hyper::Request<Full<Bytes>> {
    let post = Post { body: String::new(), method: None, subject: None, headers: &[], session: Some(session) };
    let mut request = shared.build(post);
    *request.method_mut() = Method::GET;
    request.headers_mut().remove(CONTENT_TYPE);
    request.headers_mut().insert(ACCEPT, hyper::header::HeaderValue::from_static("text/event-stream"));
    if let Some(id) = last_id.and_then(|id| hyper::header::HeaderValue::from_str(id).ok()) {
        request.headers_mut().insert("last-event-id", id);
    }
    request
}

/// Whether what comes is a stream of events.
pub(super) fn is_stream(sent: &Sent) -> bool {
    let kind = sent.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    sent.response.status().is_success() && kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}
