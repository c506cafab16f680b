//! What an endpoint says of its own accord: a stream that is kept open, and opened again when it breaks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;
use amends_wire::message::{self, Message};
use bytes::Bytes;
use futures_util::FutureExt;
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
    /// Other resources or tasks are wanted, so that it must be opened anew. It goes on until then.
    Wanted(Box<Open>),
    /// The endpoint has no such stream.
    Absent,
}

/// A stream that is open.
struct Open {
    sent: Sent,
    events: Events,
}

impl Open {
    /// What comes next, as whole events; nothing once it is over.
    async fn next(&mut self) -> Option<Vec<Vec<u8>>> {
        loop {
            let frame = self.sent.response.body_mut().frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                return Some(self.events.feed(data));
            }
        }
    }

    /// What has come by now.
    fn rest(&mut self) -> Vec<Vec<u8>> {
        let mut rest = Vec::new();
        while let Some(Some(events)) = self.next().now_or_never() {
            rest.extend(events);
        }
        rest
    }
}

/// Listens to the endpoint for as long as it is there.
pub(super) async fn listen(shared: Arc<Shared>, news: Arc<News>) {
    let mut health = shared.health.subscribe();
    let (mut backoff, mut last_id, mut before) = (BACKOFF_MIN, None, None);
    loop {
        if health.wait_for(|health| matches!(health, Health::Ready { .. })).await.is_err() {
            return;
        }
        let Some(session) = shared.known().await else {
            tokio::time::sleep(BACKOFF_MIN).await;
            continue;
        };
        let began = Instant::now();
        let ended = hear(&shared, &news, &session, last_id.take(), before.take()).await;
        if !matches!(ended, Ended::Wanted(_)) {
            news.hears(false);
        }
        match ended {
            Ended::Absent => {
                // Until it is greeted anew there is nothing to hear.
                if health.changed().await.is_err() {
                    return;
                }
                backoff = BACKOFF_MIN;
            }
            Ended::Wanted(open) => before = Some(*open),
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

/// Listens in the older era, too, to an endpoint that has both: what belongs to such a session is said in it alone.
pub(super) async fn listen_to_older(shared: Arc<Shared>, news: Arc<News>) {
    let mut agreed = shared.agreed.subscribe();
    loop {
        let Ok(session) = agreed.wait_for(Option::is_some).await.map(|session| session.clone()) else { return };
        agreed.mark_unchanged();
        let Some(session) = session else { continue };
        tokio::select! {
            () = listen_in(&shared, &news, &session) => {}
            changed = agreed.changed() => {
                if changed.is_err() {
                    return;
                }
                continue;
            }
        }
        if agreed.changed().await.is_err() {
            return;
        }
    }
}

/// Listens in one session, for as long as it counts.
async fn listen_in(shared: &Arc<Shared>, news: &News, session: &Session) {
    let (mut last_id, mut backoff) = (None, BACKOFF_MIN);
    while shared.is_older(session).await {
        match hear(shared, news, session, last_id.take(), None).await {
            Ended::Absent | Ended::Wanted(_) => return,
            Ended::Broken(seen) => last_id = seen,
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Hears a stream until it ends. The one before is heard, too, until this one says its first word.
async fn hear(
    shared: &Arc<Shared>,
    news: &News,
    session: &Session,
    last_id: Option<String>,
    mut before: Option<Open>,
) -> Ended {
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
    let Ok(Ok(sent)) = sent else { return Ended::Broken(last_id) };
    if !is_stream(&sent) {
        let away = sent.response.status().is_server_error() || sent.response.status() == StatusCode::TOO_MANY_REQUESTS;
        return if away { Ended::Broken(last_id) } else { Ended::Absent };
    }
    news.hears(true);
    if before.is_none() && session.era == Era::Modern {
        news.listens_anew();
    }
    let mut open = Open { sent, events: Events::default() };
    let is_modern = session.era == Era::Modern;
    let take = |events: Vec<Vec<u8>>| {
        for text in events.iter().filter_map(|event| std::str::from_utf8(event).ok()) {
            heard(shared, news, session, text);
        }
    };
    loop {
        let alone = before.is_none();
        let of_before = async {
            match &mut before {
                Some(before) => before.next().await,
                None => std::future::pending().await,
            }
        };
        let events = tokio::select! {
            events = open.next() => events,
            events = of_before => {
                match events {
                    Some(events) => take(events),
                    None => before = None,
                }
                continue;
            }
            () = &mut wanted, if is_modern && alone => return Ended::Wanted(Box::new(open)),
        };
        let seen = |open: &Open| open.events.last_id().map(str::to_owned).or(last_id.clone());
        let Some(events) = events else { return Ended::Broken(seen(&open)) };
        if !events.is_empty()
            && let Some(mut before) = before.take()
        {
            take(before.rest());
        }
        take(events);
        if open.events.waiting() > shared.limits.answer_bytes {
            return Ended::Broken(seen(&open));
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
