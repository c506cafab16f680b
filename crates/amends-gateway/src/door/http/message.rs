//! `POST /mcp`: one message of an agent, in either era.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{Principal, RefusalKind};
use amends_wire::mcp::{ClientTraits, Era, ToolCall, era, http as headers};
use amends_wire::message::{self, Message};
use amends_wire::object::Object;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::body::{Bad, Body, Read, read};
use super::connection::Connection;
use super::sessions::Stateful;
use super::{Door, json, plain_text, respond};
use crate::door::mcp::{self, ProgressRelay, discover, initialize, render, render_protocol_error, tools_list};
use crate::driver::{Answered, CallHandle, SessionHandle, Wish};
use crate::upstream::{Progress, Reply};

const ASK_TIMEOUT: Duration = Duration::from_secs(300);

/// Takes one message and answers it.
pub(super) async fn post(door: &Arc<Door>, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let limits = door.gateway.config.limits;
    let text = match read(body, limits.body_bytes, limits.depth).await {
        Read::Text(text) => text,
        Read::Gone => return plain_text(StatusCode::BAD_REQUEST, "the body broke off"),
        Read::Bad { why, id } => return refuse_bad(door, why, id).await,
    };
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let stateful = match header(headers::SESSION_HEADER) {
        Some(id) => match door.sessions.find(door, id) {
            Some(stateful) => Some(stateful),
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
            let asked = Asked { id: id.get(), method: &method, params };
            if let Some(refused) = checked(&asked, routing) {
                return refused;
            }
            let streams = header("accept").is_some_and(|accept| accept.contains("text/event-stream"));
            answer(door, connection, &asked, stateful, streams).await
        }
        Ok(Message::Notification { method, params }) => {
            if method == "notifications/cancelled"
                && let (Some(stateful), Some(params)) = (&stateful, params)
                && let Some(id) = Object::parse(params.get()).and_then(|params| params.get("requestId"))
            {
                stateful.cancel(id.get());
            }
            respond(StatusCode::ACCEPTED, "application/json", String::new())
        }
        Ok(Message::Success { .. } | Message::Failure { .. }) => {
            respond(StatusCode::ACCEPTED, "application/json", String::new())
        }
        Err(error) => {
            let mut scanner = amends_wire::scan::Scanner::new(usize::MAX);
            let _ = scanner.feed(text.as_bytes());
            let id = scanner.finish().id.map(|id| id.get().to_owned());
            let refusal = mcp::unreadable(RefusalKind::InvalidArgument, error.to_string());
            refuse(door, id, error.code(), StatusCode::BAD_REQUEST, refusal).await
        }
    }
}

/// A request as it was read.
struct Asked<'a> {
    id: &'a str,
    method: &'a str,
    params: Option<&'a RawValue>,
}

impl Asked<'_> {
    fn era(&self) -> Era {
        Era::detect(self.method, self.params).unwrap_or(Era::Legacy)
    }
}

/// What the stateless era demands of headers and versions.
fn checked(asked: &Asked<'_>, routing: headers::Routing<'_>) -> Option<Response<Body>> {
    let body_version = era::requested_version(asked.params);
    let modern_header = routing.version.is_some_and(|version| Era::of_version(version) == Era::Modern);
    let fail = |code: i64, text: &str, data: Option<&str>| {
        let status = StatusCode::from_u16(headers::status_of(code)).unwrap_or(StatusCode::BAD_REQUEST);
        Some(json(status, message::failure(Some(asked.id), code, text, data)))
    };
    if asked.method == "initialize" || (body_version.is_none() && !modern_header) {
        return None;
    }
    let Some(version) = body_version else {
        return fail(message::INVALID_PARAMS, "`_meta` lacks the protocol version", None).map(|mut response| {
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        });
    };
    if !era::is_known(&version) {
        let data = serde_json::json!({ "supported": era::VERSIONS, "requested": version }).to_string();
        return fail(era::UNSUPPORTED_VERSION, "this protocol version is not supported", Some(&data));
    }
    if let Err(mismatch) = headers::check(routing, &version, asked.method, asked.params) {
        return fail(mismatch.code(), &mismatch.to_string(), None);
    }
    None
}

async fn answer(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    asked: &Asked<'_>,
    stateful: Option<Arc<Stateful>>,
    streams: bool,
) -> Response<Body> {
    let gateway = &door.gateway;
    let ok = |result: &str| json(StatusCode::OK, message::success(asked.id, result));
    match asked.method {
        "initialize" => {
            let params = asked.params.and_then(|params| Object::parse(params.get()));
            let version = params.as_ref().and_then(|params| params.string("protocolVersion")).unwrap_or_default();
            let client = params.as_ref().and_then(|params| {
                Object::parse(params.get("clientInfo")?.get())?.string("name").map(|n| n.into_owned())
            });
            let Some(id) = door.sessions.open(door, client.as_deref()) else {
                let text =
                    message::failure(Some(asked.id), message::INTERNAL_ERROR, "there are too many sessions", None);
                return json(StatusCode::SERVICE_UNAVAILABLE, text);
            };
            let mut response = ok(&initialize(gateway, &version));
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(headers::SESSION_HEADER, id);
            }
            response
        }
        "ping" => ok("{}"),
        "server/discover" => ok(&discover(gateway)),
        "tools/list" => ok(&tools_list(gateway, asked.era())),
        "tools/call" => call(door, connection, asked, stateful, streams).await,
        _ => pass_through(door, asked).await,
    }
}

async fn call(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    asked: &Asked<'_>,
    stateful: Option<Arc<Stateful>>,
    streams: bool,
) -> Response<Body> {
    let parsed = ToolCall::parse(asked.params);
    let meta = parsed.as_ref().ok().and_then(|call| call.meta().ok());
    let (session, traits) = match &stateful {
        Some(stateful) => (stateful.handle.clone(), stateful.traits),
        None => {
            let client = meta.as_ref().and_then(|meta| meta.client_name.as_deref());
            let session = door.gateway.open_session(Principal::new("local"), "mcp/http");
            (session, ClientTraits::of(asked.era(), client))
        }
    };
    let dialect = meta.as_ref().and_then(|meta| meta.dialect).unwrap_or(door.gateway.config.dialect);
    let traits = traits.speaking(dialect);
    let token = meta.and_then(|meta| meta.progress_token.map(|token| token.get().to_owned())).filter(|_| streams);
    let (progress_to, progress) = mpsc::unbounded_channel();
    let handle = match &parsed {
        Ok(call) => {
            let params = asked.params.map_or("{}", RawValue::get);
            session.call(Wish::Call { params, call }, token.is_some().then_some(progress_to))
        }
        Err(error) => session.call(crate::door::stdio::unread(error.refusal()), None),
    };
    let stopped = stateful.as_ref().map(|stateful| stateful.runs(asked.id));
    let running = Running { handle, stopped, stateful, id: asked.id.to_owned(), traits, over: false };
    match token {
        Some(token) => stream(running, ProgressRelay::new(token), progress, connection.clone()),
        None => match running.wait().await {
            Some((text, delivery)) => {
                connection.answers(delivery);
                json(StatusCode::OK, text)
            }
            None => respond(StatusCode::ACCEPTED, "application/json", String::new()),
        },
    }
}

/// A call that an agent waits for. Dropped before its answer, it says that the agent is gone.
struct Running {
    handle: CallHandle,
    stopped: Option<oneshot::Receiver<CancelReason>>,
    stateful: Option<Arc<Stateful>>,
    id: String,
    traits: ClientTraits,
    over: bool,
}

impl Running {
    /// Waits for the answer; nothing where the agent said that it wants none.
    async fn wait(mut self) -> Option<(String, Option<crate::driver::Delivery>)> {
        let answered = self.answered().await?;
        Some(self.rendered(answered))
    }

    async fn answered(&mut self) -> Option<Answered> {
        let stopped = async {
            match &mut self.stopped {
                Some(stopped) => stopped.await.ok(),
                None => None,
            }
        };
        tokio::select! {
            biased;
            answer = &mut self.handle.answer => {
                self.over = true;
                answer.ok()
            }
            Some(reason) = stopped => {
                self.over = true;
                self.handle.cancel(reason);
                None
            }
        }
    }

    fn rendered(&self, answered: Answered) -> (String, Option<crate::driver::Delivery>) {
        let text = render(&self.id, &answered, self.traits);
        let session: &SessionHandle = self.handle.session();
        (text, answered.delivery.map(|delivery| delivery.keeping(session)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stateful) = &self.stateful {
            stateful.ended(&self.id);
        }
        if !self.over {
            self.handle.cancel(CancelReason::Disconnected);
        }
    }
}

/// Answers with a stream: progress as it comes, then the answer.
fn stream(
    mut running: Running,
    mut relay: ProgressRelay,
    mut progress: mpsc::UnboundedReceiver<Progress>,
    connection: Arc<Connection>,
) -> Response<Body> {
    let (events, body) = Body::events();
    tokio::spawn(async move {
        let event = |text: &str| Bytes::from(format!("event: message\ndata: {}\n\n", message::one_line(text)));
        loop {
            tokio::select! {
                biased;
                Some(reported) = progress.recv() => {
                    let gone = relay.notification(&reported).is_some_and(|text| events.send(event(&text)).is_err());
                    if gone {
                        return;
                    }
                }
                answered = running.answered() => {
                    while let Ok(reported) = progress.try_recv() {
                        if let Some(text) = relay.notification(&reported) {
                            let _ = events.send(event(&text));
                        }
                    }
                    if let Some(answered) = answered {
                        let (text, delivery) = running.rendered(answered);
                        if events.send(event(&text)).is_ok() {
                            connection.answers(delivery);
                        }
                    }
                    return;
                }
                () = events.closed() => return,
            }
        }
    });
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// Anything that is not about tools goes to the upstream as it is, where there is only one.
async fn pass_through(door: &Arc<Door>, asked: &Asked<'_>) -> Response<Body> {
    let mut upstreams = door.gateway.upstreams.values();
    let (Some(upstream), None) = (upstreams.next(), upstreams.next()) else {
        let text = message::failure(Some(asked.id), message::METHOD_NOT_FOUND, "there is no such method", None);
        return json(StatusCode::from_u16(headers::status_of(message::METHOD_NOT_FOUND)).unwrap_or_default(), text);
    };
    let modern = upstream.era() == Some(Era::Modern);
    let params = asked.params.map(|params| params.get().to_owned());
    let params = if modern && asked.era() == Era::Legacy {
        Some(era::with_own_meta(params.as_deref(), era::MODERN))
    } else {
        params
    };
    let request = crate::upstream::Request {
        method: asked.method.to_owned(),
        subject: headers::body_name(asked.method, asked.params),
        params,
        headers: Vec::new(),
        progress: None,
        send_by: Instant::now() + ASK_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    let reply = tokio::time::timeout(ASK_TIMEOUT, exchange.reply()).await;
    let text = match reply {
        Ok(Reply::Result(result)) => {
            let result = era::stamped(&String::from_utf8_lossy(&result), asked.method, asked.era());
            message::success(asked.id, &result)
        }
        Ok(Reply::Error(error)) => message::failure(Some(asked.id), error.code, &error.message, error.data.as_deref()),
        Ok(Reply::Fault(fault)) => {
            let text = format!("`{}` did not answer `{}`: {fault}", upstream.name, asked.method);
            message::failure(Some(asked.id), message::INTERNAL_ERROR, &text, None)
        }
        Err(_) => message::failure(Some(asked.id), message::INTERNAL_ERROR, "no answer in time", None),
    };
    json(StatusCode::OK, text)
}

async fn refuse_bad(door: &Arc<Door>, why: Bad, id: Option<String>) -> Response<Body> {
    let limits = door.gateway.config.limits;
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
    refuse(door, id, code, status, mcp::unreadable(kind, words)).await
}

async fn refuse(
    door: &Arc<Door>,
    id: Option<String>,
    code: i64,
    status: StatusCode,
    refusal: amends_core::Refusal,
) -> Response<Body> {
    let session = door.gateway.open_session(Principal::new("local"), "mcp/http");
    let handle = session.call(crate::door::stdio::unread(refusal), None);
    match handle.answer.await {
        Ok(answered) => json(status, render_protocol_error(id.as_deref(), code, &answered)),
        Err(_) => json(status, message::failure(id.as_deref(), code, "the message was refused", None)),
    }
}
