//! An upstream behind an address: requests are posted, answers come as JSON or as a stream of events.

mod answer;
mod ear;
mod pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use amends_core::gates::UNSEEN_RUN;
use amends_wire::mcp::{Era, era};
use amends_wire::message;
use amends_wire::object::Object;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Uri};
use tokio::sync::{Mutex, oneshot, watch};

use super::Health;
use super::exchange::{Aside, Asides, Asking, Exchange, ExchangeEnd, Fault, Reply, Request, RpcFault, Said};
use crate::config::Limits;
use crate::hub::News;
use pool::Pool;

const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
const GREETING_BACKOFF: Duration = Duration::from_secs(1);

/// An MCP server over HTTP.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    greeter: tokio::task::JoinHandle<()>,
    ear: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    uri: Uri,
    pool: Pool,
    limits: Limits,
    next: AtomicU64,
    health: watch::Sender<Health>,
    session: Mutex<Option<Session>>,
}

/// What was agreed when the endpoint was greeted.
#[derive(Clone, Debug)]
struct Session {
    era: Era,
    version: String,
    id: Option<String>,
}

impl Endpoint {
    /// Begins to greet the endpoint at that address.
    pub fn start(url: String, limits: Limits, news: Arc<News>) -> Self {
        let uri: Uri = url.parse().unwrap_or_else(|_| Uri::from_static("http://invalid.invalid/"));
        let shared = Arc::new(Shared {
            pool: Pool::new(&uri),
            uri,
            limits,
            next: AtomicU64::new(1),
            health: watch::Sender::new(Health::Starting),
            session: Mutex::new(None),
        });
        let greeter = tokio::spawn(greet_until_ready(shared.clone()));
        let ear = tokio::spawn(ear::listen(shared.clone(), news));
        Self { shared, greeter, ear }
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How the endpoint is.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Sends a request.
    pub fn send(&self, ticket: u64, request: Request) -> Exchange {
        let (exchange, end) = Exchange::channel();
        tokio::spawn(exchanged(self.shared.clone(), ticket, request, end));
        exchange
    }

    /// Sends a message that has no answer.
    pub fn tell(&self, line: String) {
        let shared = self.shared.clone();
        tokio::spawn(async move { shared.post(line, Instant::now() + GREETING_TIMEOUT).await });
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.greeter.abort();
        self.ear.abort();
    }
}

async fn exchanged(shared: Arc<Shared>, ticket: u64, request: Request, mut end: ExchangeEnd) {
    let work = shared.request(ticket, request);
    tokio::pin!(work);
    let reply = tokio::select! {
        reply = &mut work => reply,
        asked = &mut end.abort => match asked {
            // Dropping the connection is how a stateless request is cancelled; a stateful one is told in words.
            Ok(()) => {
                shared.tell_cancelled(ticket).await;
                Reply::Fault(Fault::Lost)
            }
            Err(_) => work.await,
        },
    };
    let _ = end.reply.send(reply);
}

impl Shared {
    async fn request(self: &Arc<Self>, ticket: u64, request: Request) -> Reply {
        let session = match self.session().await {
            Ok(session) => session,
            Err(_) => return Reply::Fault(Fault::ConnectRefused),
        };
        let body = message::request(&ticket.to_string(), &request.method, request.params.as_deref());
        let post = Post {
            body,
            method: Some(&request.method),
            subject: request.subject.as_deref(),
            headers: &request.headers,
            session: Some(&session),
        };
        let sent = match self.pool.send(self.build(post), request.send_by).await {
            Ok(sent) => sent,
            Err(fault) => return Reply::Fault(fault),
        };
        let had_session = session.id.is_some();
        let status = sent.response.status().as_u16();
        if status == 404 && had_session {
            *self.session.lock().await = None;
            return Reply::Fault(Fault::SessionGone);
        }
        let asides = request.asides.map(|asides| Listening { asides, shared: self.clone() });
        answer::read(sent, ticket, asides, self.limits.answer_bytes, &self.pool).await
    }

    /// Posts a message that has no answer. Whether it arrives is nobody's business but the endpoint's.
    async fn post(&self, line: String, send_by: Instant) {
        let session = self.session.lock().await.clone();
        let post = Post { body: line, method: None, subject: None, headers: &[], session: session.as_ref() };
        let _ = tokio::time::timeout(GREETING_TIMEOUT, self.pool.send(self.build(post), send_by)).await;
    }

    /// What was agreed with the endpoint; it is greeted if nothing was, or if it forgot.
    async fn session(&self) -> Result<Session, String> {
        let mut held = self.session.lock().await;
        if let Some(session) = &*held {
            return Ok(session.clone());
        }
        let greeted = tokio::time::timeout(GREETING_TIMEOUT, self.greet()).await;
        let (session, greeting) = greeted.map_err(|_| "no answer to our greeting".to_owned())??;
        let era = session.era;
        *held = Some(session.clone());
        self.health.send_replace(Health::Ready { run: UNSEEN_RUN, era, greeting: greeting.into() });
        Ok(session)
    }

    async fn greet(&self) -> Result<(Session, String), String> {
        let stateful = Session { era: Era::Legacy, version: era::LEGACY.into(), id: None };
        let (reply, id) = self.ask("initialize", &era::initialize_params(), &stateful).await?;
        if let Reply::Result(result) = reply {
            let text = String::from_utf8_lossy(&result);
            let version = Object::parse(&text)
                .and_then(|greeting| greeting.string("protocolVersion").map(|version| version.into_owned()))
                .unwrap_or_else(|| era::LEGACY.into());
            let session = Session { era: Era::Legacy, version, id };
            let line = message::notification("notifications/initialized", None);
            let post = Post { body: line, method: None, subject: None, headers: &[], session: Some(&session) };
            let sent = self.pool.send(self.build(post), Instant::now() + GREETING_TIMEOUT).await;
            sent.map_err(|fault| format!("the greeting broke off: {fault}"))?;
            return Ok((session, String::from_utf8_lossy(&result).into_owned()));
        }
        let modern = Session { era: Era::Modern, version: era::MODERN.into(), id: None };
        match self.ask("server/discover", &era::with_own_meta(None, era::MODERN), &modern).await? {
            (Reply::Result(result), _) => Ok((modern, String::from_utf8_lossy(&result).into_owned())),
            (other, _) => Err(format!("it takes neither greeting: {other:?}")),
        }
    }

    async fn ask(&self, method: &str, params: &str, session: &Session) -> Result<(Reply, Option<String>), String> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let body = message::request(&ticket.to_string(), method, Some(params));
        let post = Post { body, method: Some(method), subject: None, headers: &[], session: Some(session) };
        let sent = self.pool.send(self.build(post), Instant::now() + GREETING_TIMEOUT).await;
        let sent = sent.map_err(|fault| format!("{fault}"))?;
        let id = sent.response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        Ok((answer::read(sent, ticket, None, self.limits.answer_bytes, &self.pool).await, id))
    }

    fn build(&self, post: Post<'_>) -> hyper::Request<Full<Bytes>> {
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = hyper::Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = post.session {
            request = request.header("mcp-protocol-version", &session.version);
            if let Some(id) = &session.id {
                request = request.header("mcp-session-id", id);
            }
            if session.era == Era::Modern {
                if let Some(method) = post.method {
                    request = request.header("mcp-method", method);
                }
                if let Some(subject) = post.subject {
                    request = request.header("mcp-name", subject);
                }
            }
        }
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(post.body));
        request.body(body).unwrap_or_else(|_| hyper::Request::new(Full::new(Bytes::new())))
    }

    async fn tell_cancelled(&self, ticket: u64) {
        let session = self.session.lock().await.clone();
        if let Some(session) = session.filter(|session| session.era == Era::Legacy) {
            let params = format!(r#"{{"requestId":{ticket},"reason":"no longer wanted"}}"#);
            let body = message::notification("notifications/cancelled", Some(&params));
            let post = Post { body, method: None, subject: None, headers: &[], session: Some(&session) };
            let send_by = Instant::now() + Duration::from_secs(2);
            let _ = tokio::time::timeout(Duration::from_secs(2), self.pool.send(self.build(post), send_by)).await;
        }
    }
}

/// Somebody who hears what an endpoint says before its answer, and the way back to it.
struct Listening {
    asides: Asides,
    shared: Arc<Shared>,
}

impl Listening {
    /// Brings a question to whoever listens, and posts what it is told.
    fn ask(&self, id: String, method: String, params: Option<String>) {
        let (answer, said) = oneshot::channel();
        let shared = self.shared.clone();
        if method == "ping" {
            let _ = answer.send(Said { answer: Ok("{}".into()), send_by: Instant::now() + GREETING_TIMEOUT });
        } else if self.asides.whose.is_some() {
            // Nobody hears it any more once the request is given up.
            let _ = self.asides.to.send(Aside::Question(Asking { method, params, answer }));
        } else {
            let _ = answer.send(nobody(&method));
        }
        tokio::spawn(async move {
            if let Ok(said) = said.await {
                shared.post(said.message(&id), said.send_by).await;
            }
        });
    }
}

/// What an upstream is told that asks where there is no agent to ask.
pub(super) fn nobody(method: &str) -> Said {
    let error =
        RpcFault { code: message::METHOD_NOT_FOUND, message: format!("nobody here answers `{method}`"), data: None };
    Said { answer: Err(error), send_by: Instant::now() + GREETING_TIMEOUT }
}

/// One message to be posted.
struct Post<'a> {
    body: String,
    method: Option<&'a str>,
    subject: Option<&'a str>,
    headers: &'a [(String, String)],
    session: Option<&'a Session>,
}

async fn greet_until_ready(shared: Arc<Shared>) {
    while let Err(reason) = shared.session().await {
        shared.health.send_replace(Health::Down { reason });
        tokio::time::sleep(GREETING_BACKOFF).await;
    }
}
