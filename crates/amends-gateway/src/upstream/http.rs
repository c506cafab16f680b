//! An upstream behind an address: requests are posted, answers come as JSON or as a stream of events.

mod answer;
mod ear;
pub(crate) mod pool;
pub(super) mod presence;
mod session;
mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use amends_wire::mcp::{Era, http as headers};
use amends_wire::message;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use tokio::sync::{Mutex, Notify, watch};

use super::credential::{Credential, CredentialError};
use super::exchange::{Aside, Asides, Asking, Exchange, ExchangeEnd, Fault, Reply, Request, RpcFault, Said, Whose};
use super::questions::Questions;
use super::{Health, StartFault};
use crate::config::{Access, Limits};
use crate::hub::News;
use crate::identity::Account;
use answer::{Cut, Read};
use pool::{Departure, Pool};
use session::{Older, Session, keep_greeted};
use tls::Tls;
pub use tls::TlsError;

const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a stream that ended before its answer is asked for again.
const RESUMPTIONS_MAX: usize = 8;
/// When it is asked for, where the endpoint does not say.
const RESUME_AFTER: Duration = Duration::from_millis(500);

/// An MCP server over HTTP.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    greeter: tokio::task::JoinHandle<()>,
    ears: [tokio::task::JoinHandle<()>; 2],
    watcher: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    uri: Uri,
    pool: Pool,
    limits: Limits,
    next: AtomicU64,
    headers: Vec<(HeaderName, Credential)>,
    health: watch::Sender<Health>,
    session: Mutex<Option<Session>>,
    /// What was agreed in the older era with an endpoint that has both.
    older: Mutex<Older>,
    /// Told when that is agreed anew.
    agreed: watch::Sender<Option<Session>>,
    /// What it says of its own accord.
    news: Arc<News>,
    /// Who listens to the requests in flight.
    listening: std::sync::Mutex<BTreeMap<u64, Asides>>,
    /// What it asked and waits for.
    questions: Arc<Questions>,
    /// Told when the session is gone.
    forgotten: Notify,
}

/// Connections to that address.
pub(crate) fn pool(uri: &Uri, access: &Access) -> Result<Pool, TlsError> {
    let secured = uri.scheme_str() == Some("https");
    let tls = secured.then(|| Tls::to(uri.host().unwrap_or_default(), access.ca.as_deref())).transpose()?;
    Ok(Pool::new(uri, tls))
}

/// The same at that address, whatever the host's name means by now.
pub(crate) fn pool_at(uri: &Uri, address: Option<SocketAddr>, access: &Access) -> Result<Pool, TlsError> {
    let pool = pool(uri, access)?;
    Ok(match address {
        Some(address) => pool.at(address),
        None => pool,
    })
}

/// Asks once at that address, over TLS where it begins with `https://`: the status, and at most so much of what is said.
pub async fn ask(
    uri: &Uri,
    request: hyper::Request<Full<Bytes>>,
    within: Duration,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), String> {
    let pool = pool(uri, &Access::default()).map_err(|error| error.to_string())?;
    let asked = async {
        let sent = pool.send(request, Instant::now() + within, &Departure::default()).await;
        let (parts, body) = sent.map_err(|fault| fault.to_string())?.response.into_parts();
        let body = Limited::new(body, bytes_max).collect().await.map_err(|error| error.to_string())?;
        Ok((parts.status, body.to_bytes()))
    };
    tokio::time::timeout(within, asked).await.unwrap_or_else(|_| Err("it took too long".to_owned()))
}

/// The headers that every request shows.
pub(super) fn shown(access: &Access) -> Result<Vec<(HeaderName, Credential)>, CredentialError> {
    let named = access.headers.iter().filter_map(|(name, config)| Some((name.parse::<HeaderName>().ok()?, config)));
    let account = access.sign_in.as_deref().map(|config| Credential::Account(Arc::new(Account::new(config.clone()))));
    let read = named.map(|(name, config)| Ok((name, Credential::read(config)?)));
    read.chain(account.map(|account| Ok((AUTHORIZATION, account)))).collect()
}

/// The account among them.
pub(super) fn account(headers: &[(HeaderName, Credential)]) -> Option<Arc<Account>> {
    headers.iter().find_map(|(_, credential)| credential.account()).cloned()
}

impl Endpoint {
    /// Begins to greet the endpoint at that address.
    pub fn start(url: &str, access: &Access, limits: Limits, news: Arc<News>) -> Result<Self, StartFault> {
        let uri: Uri = url.parse().unwrap_or_else(|_| Uri::from_static("http://invalid.invalid/"));
        let shared = Arc::new(Shared {
            pool: pool(&uri, access)?,
            headers: shown(access)?,
            uri,
            limits,
            next: AtomicU64::new(1),
            health: watch::Sender::new(Health::Starting),
            session: Mutex::new(None),
            older: Mutex::default(),
            agreed: watch::Sender::new(None),
            news: news.clone(),
            listening: std::sync::Mutex::default(),
            questions: Arc::default(),
            forgotten: Notify::new(),
        });
        let greeter = tokio::spawn(keep_greeted(shared.clone()));
        let ears = [
            tokio::spawn(ear::listen(shared.clone(), news.clone())),
            tokio::spawn(ear::listen_to_older(shared.clone(), news)),
        ];
        let watcher = tokio::spawn(presence::watch(shared.clone()));
        Ok(Self { shared, greeter, ears, watcher })
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How the endpoint is.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Whether what it wants to be shown is not there any more.
    pub fn lacks_credential(&self) -> bool {
        self.shared.headers.iter().any(|(_, credential)| credential.is_missing())
    }

    /// The account whose token it is shown.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        account(&self.shared.headers)
    }

    /// Why it cannot be reached, where that was seen last.
    pub fn away(&self) -> Option<Arc<str>> {
        self.shared.pool.presence().away()
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
        tokio::spawn(async move {
            let session = shared.known().await;
            shared.post(line, Instant::now() + GREETING_TIMEOUT, session.as_ref()).await;
        });
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.greeter.abort();
        self.ears.iter().for_each(tokio::task::JoinHandle::abort);
        self.watcher.abort();
    }
}

async fn exchanged(shared: Arc<Shared>, ticket: u64, request: Request, mut end: ExchangeEnd) {
    let (departure, by) = (Departure::default(), OnceLock::new());
    let work = shared.request(ticket, request, &departure, &by);
    tokio::pin!(work);
    let reply = tokio::select! {
        reply = &mut work => reply,
        asked = &mut end.abort => match asked {
            // Dropping the connection is how a stateless request is cancelled; a stateful one is told in words.
            Ok(()) => {
                let stopped = departure.stopped();
                if let (Fault::Lost, Some(session)) = (&stopped, by.get()) {
                    shared.tell_cancelled(ticket, session).await;
                }
                Reply::Fault(stopped)
            }
            Err(_) => work.await,
        },
    };
    let _ = end.reply.send(reply);
}

impl Shared {
    /// Sends a request and waits for what comes of it. The session it goes by is left in `by`.
    async fn request(
        self: &Arc<Self>,
        ticket: u64,
        request: Request,
        departure: &Departure,
        by: &OnceLock<Session>,
    ) -> Reply {
        let on_line = request.asides.as_ref().is_some_and(|asides| asides.on_line);
        let limit = tokio::time::Instant::from_std(request.send_by);
        let session = match tokio::time::timeout_at(limit, self.session_for(on_line)).await {
            Ok(Ok(session)) => by.get_or_init(|| session),
            Ok(Err(fault)) => return Reply::Fault(fault),
            Err(_) => return Reply::Fault(Fault::NotWritten),
        };
        let _listed = request.asides.clone().map(|asides| Listed::new(self.clone(), ticket, asides));
        let params = session.stamped(request.params);
        let body = message::request(&ticket.to_string(), &request.method, params.as_deref());
        let post = Post {
            body,
            method: Some(&request.method),
            subject: request.subject.as_deref(),
            headers: &request.headers,
            session: Some(session),
        };
        let sent = match self.pool.send(self.build(post), request.send_by, departure).await {
            Ok(sent) => sent,
            Err(fault) => return Reply::Fault(fault),
        };
        let status = sent.response.status().as_u16();
        let reply = match status {
            404 if session.id.is_some() => Reply::Fault(Fault::SessionGone),
            _ => {
                let (shared, by) = (self.clone(), session.clone());
                let asides = request.asides.map(|asides| Listening { asides, shared, session: by });
                let read = answer::read(sent, ticket, asides.as_ref(), self.limits.answer_bytes, &self.pool).await;
                self.resumed(read, ticket, session, asides.as_ref()).await
            }
        };
        if let Some(gone) = session.gone_by(status, &reply) {
            self.forget(session, gone).await;
            return Reply::Fault(gone.fault(reply));
        }
        reply
    }

    /// Goes on reading a stream that ended before its answer, where the endpoint keeps it. Nothing is sent again: what is asked for
    /// is only what was said after the last event that arrived. Whoever waits for the answer bounds all of it.
    async fn resumed(&self, mut read: Read, ticket: u64, session: &Session, asides: Option<&Listening>) -> Reply {
        let mut after = None;
        for _ in 0..RESUMPTIONS_MAX {
            let cut = match read {
                Read::Reply(reply) => return reply,
                Read::Cut(cut) => cut,
            };
            after = cut.last_id.or(after);
            let Some(id) = after.as_deref().filter(|_| session.era == Era::Legacy) else { break };
            let wait = cut.retry_ms.map_or(RESUME_AFTER, Duration::from_millis).min(GREETING_TIMEOUT);
            tokio::time::sleep(wait).await;
            let sent = self
                .pool
                .send(ear::get(self, session, Some(id)), Instant::now() + GREETING_TIMEOUT, &Departure::default())
                .await;
            read = match sent {
                Ok(sent) if ear::is_stream(&sent) => {
                    answer::read(sent, ticket, asides, self.limits.answer_bytes, &self.pool).await
                }
                Ok(_) => break,
                Err(_) => Read::Cut(Cut { last_id: None, retry_ms: cut.retry_ms }),
            };
        }
        Reply::Fault(Fault::Lost)
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Asides>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose agent a question is for that came apart from any request's stream.
    fn whose_question(&self) -> Whose {
        Whose::of(self.listeners().iter().map(|(ticket, asides)| (*ticket, asides)))
    }

    /// Posts a message that has no answer. Whether it arrives is nobody's business but the endpoint's.
    async fn post(&self, line: String, send_by: Instant, session: Option<&Session>) {
        let post = Post { body: line, method: None, subject: None, headers: &[], session };
        let _ = tokio::time::timeout(GREETING_TIMEOUT, self.deliver(post, send_by)).await;
    }

    /// Sends a message whose answer nobody reads.
    async fn deliver(&self, post: Post<'_>, send_by: Instant) -> Result<(), Fault> {
        self.pool.send(self.build(post), send_by, &Departure::default()).await.map(drop)
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
                    request = request.header("mcp-name", &*headers::encode(subject));
                }
            }
        }
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        for (name, credential) in &self.headers {
            let shown = credential.shown();
            if let Ok(mut value) = HeaderValue::from_str(&shown)
                && !shown.is_empty()
            {
                value.set_sensitive(true);
                request = request.header(name, value);
            }
        }
        let body = Full::new(Bytes::from(post.body));
        request.body(body).unwrap_or_else(|_| hyper::Request::new(Full::new(Bytes::new())))
    }

    async fn tell_cancelled(&self, ticket: u64, session: &Session) {
        if session.era == Era::Legacy {
            let params = format!(r#"{{"requestId":{ticket},"reason":"no longer wanted"}}"#);
            let body = message::notification("notifications/cancelled", Some(&params));
            let post = Post { body, method: None, subject: None, headers: &[], session: Some(session) };
            let send_by = Instant::now() + Duration::from_secs(2);
            // An upstream that does not hear of it goes on, and its answer is not waited for.
            let _ = tokio::time::timeout(Duration::from_secs(2), self.deliver(post, send_by)).await;
        }
    }
}

/// A request in flight that questions may be about, until this is dropped.
struct Listed {
    shared: Arc<Shared>,
    ticket: u64,
}

impl Listed {
    fn new(shared: Arc<Shared>, ticket: u64, asides: Asides) -> Self {
        shared.listeners().insert(ticket, asides);
        Self { shared, ticket }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.shared.listeners().remove(&self.ticket);
    }
}

/// Somebody who hears what an endpoint says before its answer, and the way back to it.
struct Listening {
    asides: Asides,
    shared: Arc<Shared>,
    /// By which it speaks, and is answered.
    session: Session,
}

impl Listening {
    /// Brings a question to whoever listens, and posts what it is told.
    fn ask(&self, id: String, method: String, params: Option<String>) {
        let (shared, session, of) = (self.shared.clone(), self.session.clone(), id.clone());
        let (answer, withdrawn) = self.shared.questions.wait(&id, move |said: Said| async move {
            shared.post(said.message(&of), said.send_by, Some(&session)).await;
        });
        if method == "ping" {
            let _ = answer.send(Said { answer: Ok("{}".into()), send_by: Instant::now() + GREETING_TIMEOUT });
        } else if self.asides.whose.is_some() {
            // Nobody hears it any more once the request is given up.
            let _ = self.asides.to.send(Aside::Question(Asking { method, params, answer, withdrawn }));
        } else {
            let _ = answer.send(nobody(&method));
        }
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
