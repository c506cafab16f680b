//! An HTTP API as an upstream: its document lists the tools, and a tool call becomes one request.

mod answer;
mod api;
mod body;
mod document;
mod encode;
mod limits;
mod multipart;
mod operation;
mod parameter;
pub mod propose;
mod request;
mod schema;
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use amends_core::gates::UNSEEN_RUN;
use amends_core::restraint::Sign;
use amends_wire::mcp::call::DEADLINE;
use amends_wire::mcp::{Era, ToolCall, era};
use amends_wire::message::{INVALID_PARAMS, METHOD_NOT_FOUND};
use amends_wire::object::Object;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;

pub(crate) use answer::etag;
pub use api::{Api, Scheme};
pub use document::DocumentError;

use super::credential::Credential;
use super::exchange::{Exchange, ExchangeEnd, Fault, HttpAnswer, Reply, Request, RpcFault};
use super::http::pool::{Departure, Pool};
use super::http::presence::look_for;
use super::{Health, StartFault};
use crate::config::{ApiConfig, Limits};
use crate::identity::Account;
use operation::Operation;
use request::Outgoing;

/// What is forwarded of a call's trace, from its `_meta` into headers of the same names.
const TRACE_CONTEXT: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// For how long a list of tools may be kept: the document is read once.
const LIST_MS: u64 = 60 * 60 * 1000;

/// An HTTP API.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    looker: tokio::task::JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.looker.abort();
    }
}

#[derive(Debug)]
struct Shared {
    api: Arc<Api>,
    base: Uri,
    pool: Pool,
    limits: Limits,
    headers: Vec<(HeaderName, Credential)>,
    credentials: BTreeMap<String, Credential>,
    deadline_header: Option<HeaderName>,
    next: AtomicU64,
    health: watch::Sender<Health>,
}

impl Service {
    /// An API at its address. Nothing is sent to it before it is called.
    pub fn start(config: &ApiConfig, limits: Limits) -> Result<Self, StartFault> {
        let base: Uri = config.base_url.parse().unwrap_or_else(|_| Uri::from_static("http://invalid.invalid/"));
        let credentials: Result<BTreeMap<_, _>, _> = config
            .credentials
            .iter()
            .map(|(scheme, credential)| Credential::read(credential).map(|read| (scheme.clone(), read)))
            .collect();
        for (pointer, reason) in &config.api.unserved {
            tracing::warn!(operation = pointer, reason, "an operation that is not served");
        }
        for operation in config.api.operations.iter().filter(|operation| operation.elsewhere) {
            tracing::warn!(
                operation = operation.name,
                "not served: it has a server of its own; `base_url` names one for all"
            );
        }
        let greeting = json!({
            "protocolVersion": era::LEGACY,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": config.api.title, "version": config.api.version },
        });
        // It keeps no session with us, so its restarts are not ours to see.
        let ready = Health::Ready { run: UNSEEN_RUN, era: Era::Legacy, greeting: greeting.to_string().into() };
        let shared = Arc::new(Shared {
            pool: super::http::pool(&base, &config.access)?,
            headers: super::http::shown(&config.access)?,
            credentials: credentials?,
            deadline_header: config.deadline_header.as_ref().and_then(|name| name.parse().ok()),
            api: config.api.clone(),
            base,
            limits,
            next: AtomicU64::new(1),
            health: watch::Sender::new(ready),
        });
        let looked_at = shared.clone();
        let looker = tokio::spawn(async move { look_for(&looked_at.pool).await });
        Ok(Self { shared, looker })
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How the API is: always ready, as far as we know without asking it for something.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Whether what it wants to be shown is not there any more.
    pub fn lacks_credential(&self) -> bool {
        let headers = self.shared.headers.iter().map(|(_, credential)| credential);
        headers.chain(self.shared.credentials.values()).any(Credential::is_missing)
    }

    /// The account whose token it is shown.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        super::http::account(&self.shared.headers)
    }

    /// Why it cannot be reached, where that was seen last.
    pub fn away(&self) -> Option<Arc<str>> {
        self.shared.pool.presence().away()
    }

    /// Sends a request.
    pub fn send(&self, request: Request) -> Exchange {
        let (exchange, end) = Exchange::channel();
        tokio::spawn(exchanged(self.shared.clone(), request, end));
        exchange
    }

    /// Whether the API answers at all, by a `GET` of what its paths begin with. Listing its tools asks nobody.
    pub async fn probe(&self, within: Duration) -> Sign {
        let outgoing = Outgoing { target: "/".into(), headers: Vec::new(), cookies: Vec::new(), body: None };
        let Some(request) = self.shared.build(&Method::GET, outgoing, None, HeaderMap::new()) else {
            return Sign::Down;
        };
        let departure = Departure::default();
        let sent = self.shared.pool.send(request, Instant::now() + within, &departure);
        match tokio::time::timeout(within, sent).await {
            Ok(Ok(sent)) if sent.response.status().is_server_error() => Sign::Down,
            Ok(Ok(_)) => Sign::Up,
            Ok(Err(_)) | Err(_) => Sign::Down,
        }
    }
}

async fn exchanged(shared: Arc<Shared>, request: Request, mut end: ExchangeEnd) {
    let departure = Departure::default();
    let reply = {
        let work = shared.answer(request, &departure);
        tokio::pin!(work);
        tokio::select! {
            reply = &mut work => reply,
            asked = &mut end.abort => match asked {
                // Dropping the connection is all that can be done to stop it.
                Ok(()) => Reply::Fault(departure.stopped()),
                Err(_) => work.await,
            },
        }
    };
    // Nobody waits for it any more where this fails.
    let _ = end.reply.send(reply);
}

impl Shared {
    async fn answer(&self, request: Request, departure: &Departure) -> Reply {
        match request.method.as_str() {
            "tools/list" => {
                let tools: Vec<_> = self.api.served().map(Operation::entry).collect();
                Reply::Result(json!({ "tools": tools, "ttlMs": LIST_MS }).to_string().into())
            }
            "tools/call" => self.call(request, departure).await,
            method => failure(METHOD_NOT_FOUND, format!("an HTTP API has no `{method}`")),
        }
    }

    async fn call(&self, request: Request, departure: &Departure) -> Reply {
        let params = request.params.as_deref().unwrap_or("{}");
        let raw = serde_json::from_str::<&RawValue>(params).ok();
        let Some(call) = raw.and_then(|raw| ToolCall::parse(Some(raw)).ok()) else {
            return failure(INVALID_PARAMS, "the call cannot be read".into());
        };
        let Some(operation) = self.api.served().find(|operation| operation.name == call.name()) else {
            return failure(INVALID_PARAMS, format!("the document has no operation `{}`", call.name()));
        };
        let outgoing = match operation.request(call.arguments().map_or("{}", RawValue::get)) {
            Ok(outgoing) => outgoing,
            Err(words) => return failure(INVALID_PARAMS, words),
        };
        let mut headers = HeaderMap::new();
        self.context(call.raw_meta(), &mut headers);
        for (name, value) in &request.headers {
            let parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            let Some((name, value)) = parsed else {
                return failure(INVALID_PARAMS, format!("the header `{name}` cannot be sent"));
            };
            headers.insert(name, value);
        }
        let Some(request_out) = self.build(&operation.method, outgoing, Some(operation), headers) else {
            return failure(INVALID_PARAMS, "the arguments make no address".into());
        };
        let sent = match self.pool.send(request_out, request.send_by, departure).await {
            Ok(sent) => sent,
            Err(fault) => return Reply::Fault(fault),
        };
        answer::read(sent, self.limits.answer_bytes, &self.pool).await
    }

    /// What a call's `_meta` says that goes into headers: its trace, and the time that is left.
    fn context(&self, meta: Option<&RawValue>, headers: &mut HeaderMap) {
        let Some(meta) = meta.and_then(|meta| Object::parse(meta.get())) else { return };
        for name in TRACE_CONTEXT {
            let value = meta.string(name).and_then(|value| HeaderValue::from_str(&value).ok());
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        let left = meta.get(DEADLINE).and_then(|left| HeaderValue::from_str(left.get()).ok());
        if let Some((name, left)) = self.deadline_header.clone().zip(left) {
            headers.insert(name, left);
        }
    }

    /// A request: the operation's own headers, then the call's, then what the operator configured; the last counts.
    fn build(
        &self,
        method: &Method,
        outgoing: Outgoing,
        operation: Option<&Operation>,
        headers: HeaderMap,
    ) -> Option<hyper::Request<Full<Bytes>>> {
        let Outgoing { target, headers: own, mut cookies, body } = outgoing;
        let mut target = format!("{}{target}", self.base.path().trim_end_matches('/'));
        let mut all: HeaderMap = own.into_iter().collect();
        all.extend(headers);
        for scheme in operation.into_iter().flat_map(|operation| self.schemes(operation)) {
            let (Some(kind), Some(credential)) = (self.api.schemes.get(scheme), self.credentials.get(scheme)) else {
                continue;
            };
            let shown = credential.shown();
            match kind {
                Scheme::Header { name, word } => {
                    // A credential with a word of its own says how it is meant.
                    let value = if shown.contains(' ') || word.is_empty() { shown } else { format!("{word}{shown}") };
                    all.insert(name.parse::<HeaderName>().ok()?, sensitive(&value)?);
                }
                Scheme::Query(name) => {
                    let separator = if target.contains('?') { '&' } else { '?' };
                    target = format!("{target}{separator}{}={}", encode::query(name), encode::query(&shown));
                }
                Scheme::Cookie(name) => cookies.push(format!("{name}={}", encode::path(&shown))),
            }
        }
        for (name, credential) in operation.map(|_| &self.headers).into_iter().flatten() {
            all.insert(name.clone(), sensitive(&credential.shown())?);
        }
        if !cookies.is_empty() {
            all.insert(COOKIE, sensitive(&cookies.join("; "))?);
        }
        let host = self.base.authority().map_or("", |authority| authority.as_str());
        all.insert(HOST, HeaderValue::from_str(host).ok()?);
        all.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
        if let Some(body) = &body {
            all.insert(CONTENT_TYPE, HeaderValue::from_str(&body.content_type).ok()?);
        } else if !matches!(*method, Method::GET | Method::HEAD | Method::DELETE) {
            // Some servers wait for a body that nobody sends, unless they are told.
            all.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = hyper::Request::new(Full::new(body.map(|body| body.bytes).unwrap_or_default()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = target.parse().ok()?;
        *request.headers_mut() = all;
        Some(request)
    }

    /// The schemes whose credentials go with an operation: the first alternative for which we have all, else as many as we
    /// have of the first.
    fn schemes<'a>(&self, operation: &'a Operation) -> &'a [String] {
        let known = |schemes: &&Vec<String>| schemes.iter().all(|scheme| self.credentials.contains_key(scheme));
        let mut alternatives = operation.security.iter();
        let complete = alternatives.clone().filter(|schemes| !schemes.is_empty()).find(known);
        complete.or_else(|| alternatives.next()).map_or(&[], Vec::as_slice)
    }
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn failure(code: i64, message: String) -> Reply {
    Reply::Error(RpcFault { code, message, data: None })
}

/// An answer that is no success, as far as it says what became of the request.
fn refused(status: u16, headers: &HeaderMap, body: String) -> Reply {
    let headers = headers
        .iter()
        .filter(|(name, _)| *name != hyper::header::SET_COOKIE)
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .take(64)
        .collect();
    Reply::Fault(Fault::Refused(HttpAnswer { status, headers, body }))
}
