//! What was agreed with an endpoint: made when it is greeted, and made anew when it has forgotten.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use amends_core::gates::UNSEEN_RUN;
use amends_wire::mcp::{Era, era};
use amends_wire::message;
use amends_wire::object::Object;
use serde_json::value::RawValue;

use super::answer::{self, Read};
use super::pool::Departure;
use super::{GREETING_TIMEOUT, Post, Shared};
use crate::upstream::Health;
use crate::upstream::exchange::{Fault, Reply, RpcFault};

const GREETING_BACKOFF: Duration = Duration::from_secs(1);
/// How long an endpoint may think about a greeting that it may not know.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(3);
/// For how long a session that was made because of a 400 is not given up for another one. Then the requests are to blame.
const BAD_REQUESTS_APART: Duration = Duration::from_secs(30);

/// The JSON-RPC codes with which endpoints refuse a message as such, with the status 400: it is no request, it has no session.
const REFUSED: [i64; 2] = [message::INVALID_REQUEST, -32000];
/// The codes that say so for certain: another version is spoken, or headers of another era.
const OTHER_ERA: [i64; 2] = [era::HEADER_MISMATCH, era::UNSUPPORTED_VERSION];

/// How sure it is that a session is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The endpoint says so.
    Plainly,
    /// The endpoint refused the message, and perhaps for that.
    Perhaps,
}

impl Gone {
    /// What that is to the request, which was answered so.
    pub(super) fn fault(self, reply: Reply) -> Fault {
        match (self, reply) {
            (Self::Plainly, _) => Fault::SessionGone,
            (Self::Perhaps, Reply::Error(RpcFault { code, message, data })) => {
                Fault::SessionPerhapsGone { body: message::failure(None, code, &message, data.as_deref()) }
            }
            (Self::Perhaps, Reply::Fault(Fault::HttpStatus { body, .. })) => Fault::SessionPerhapsGone { body },
            (Self::Perhaps, Reply::Result(_) | Reply::Fault(_)) => Fault::SessionPerhapsGone { body: String::new() },
        }
    }
}

/// What was agreed when the endpoint was greeted.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) era: Era,
    pub(super) version: String,
    pub(super) id: Option<String>,
    /// Which one of ours with this endpoint it is.
    number: u64,
    /// When it was made in place of one that a 400 ended.
    after_bad_request: Option<Instant>,
}

impl Session {
    fn new(era: Era, version: &str) -> Self {
        Self { era, version: version.to_owned(), id: None, number: 0, after_bad_request: None }
    }

    /// The parameters of a request with what the era demands, and without what is only for the other. It may be another era than
    /// when the request was prepared.
    pub(super) fn stamped(&self, params: Option<String>) -> Option<String> {
        let raw = params.as_deref().and_then(|params| serde_json::from_str::<&RawValue>(params).ok());
        match (self.era, era::requested_version(raw).is_some()) {
            (Era::Modern, false) => Some(era::with_own_meta(params.as_deref(), era::MODERN)),
            (Era::Legacy, true) => params.map(|params| era::without_stamps(&params)),
            (Era::Modern, true) | (Era::Legacy, false) => params,
        }
    }

    /// Whether an answer says that the endpoint knows nothing of this session, or speaks another era by now. Where it says so
    /// plainly, it did not look at the request.
    pub(super) fn gone_by(&self, status: u16, reply: &Reply) -> Option<Gone> {
        let perhaps = match reply {
            Reply::Fault(Fault::SessionGone) => return Some(Gone::Plainly),
            Reply::Error(RpcFault { code, .. }) if status == 400 && OTHER_ERA.contains(code) => {
                return Some(Gone::Plainly);
            }
            Reply::Error(RpcFault { code, .. }) => {
                // A stateless endpoint says so of what it does not find, too; to a stateful message, of what it lacks.
                let lacks = self.era == Era::Legacy && *code == message::INVALID_PARAMS;
                status == 400 && (lacks || REFUSED.contains(code))
            }
            Reply::Fault(Fault::HttpStatus { status: 400, .. }) => self.id.is_some(),
            Reply::Result(_) | Reply::Fault(_) => false,
        };
        let fresh = self.after_bad_request.is_some_and(|made| made.elapsed() < BAD_REQUESTS_APART);
        (perhaps && !fresh).then_some(Gone::Perhaps)
    }
}

impl Shared {
    /// What was agreed with the endpoint; it is greeted if nothing was, or if it forgot. Whoever comes meanwhile waits for
    /// the one greeting.
    pub(super) async fn session(&self) -> Result<Session, Fault> {
        let mut held = self.session.lock().await;
        let after_bad_request = match &*held {
            Some(session) if !session.is_over() => return Ok(session.clone()),
            Some(over) => over.after_bad_request,
            None => None,
        };
        let greeted = tokio::time::timeout(GREETING_TIMEOUT, self.greet()).await;
        let (session, greeting) = greeted.map_err(|_| unmet("no answer to our greeting"))??;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let session = Session { number, after_bad_request, ..session };
        *held = Some(session.clone());
        self.health.send_replace(Health::Ready { run: UNSEEN_RUN, era: session.era, greeting: greeting.into() });
        Ok(session)
    }

    /// The same for a request whose agent is on a line or not. Where it is, and the endpoint has both eras, the older one in
    /// which questions are asked over lines; it is greeted so when that is first needed.
    pub(super) async fn session_for(&self, on_line: bool) -> Result<Session, Fault> {
        let newest = self.session().await?;
        if !on_line || newest.era == Era::Legacy {
            return Ok(newest);
        }
        let mut older = self.older.lock().await;
        let after_bad_request = match &*older {
            Older::Agreed(session) if !session.is_over() => return Ok(session.clone()),
            Older::Refused { by } if *by == newest.number => return Ok(newest),
            Older::Agreed(over) => over.after_bad_request,
            Older::Refused { .. } | Older::Unknown => None,
        };
        match tokio::time::timeout(GREETING_TIMEOUT, self.initialize()).await {
            Ok(Ok((session, _))) => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let session = Session { number, after_bad_request, ..session };
                *older = Older::Agreed(session.clone());
                self.agreed.send_replace(Some(session.clone()));
                Ok(session)
            }
            Ok(Err(fault @ Fault::ConnectRefused)) => Err(fault),
            Ok(Err(_)) | Err(_) => {
                *older = Older::Refused { by: newest.number };
                Ok(newest)
            }
        }
    }

    /// Whether that is what was agreed in the older era, and counts.
    pub(super) async fn is_older(&self, session: &Session) -> bool {
        matches!(&*self.older.lock().await, Older::Agreed(known) if known.number == session.number)
    }

    /// What was agreed with the endpoint, as long as it is known to count.
    pub(super) async fn known(&self) -> Option<Session> {
        self.session.lock().await.clone().filter(|session| !session.is_over())
    }

    /// That session is gone. If another was made in the meantime, that one stays.
    pub(super) async fn forget(&self, session: &Session, gone: Gone) {
        if let Older::Agreed(known) = &mut *self.older.lock().await
            && known.number == session.number
        {
            known.after_bad_request = (gone == Gone::Perhaps).then(Instant::now);
            known.number = OVER;
            return;
        }
        let mut held = self.session.lock().await;
        if let Some(known) = held.as_mut().filter(|known| known.number == session.number) {
            tracing::info!(?gone, "an upstream has forgotten its session with us; it is greeted again");
            known.after_bad_request = (gone == Gone::Perhaps).then(Instant::now);
            known.number = OVER;
            self.forgotten.notify_one();
        }
    }

    /// Greets the endpoint: in the stateless way first, as that revision asks of whoever speaks both, else in the older one.
    async fn greet(&self) -> Result<(Session, String), Fault> {
        match tokio::time::timeout(DISCOVERY_TIMEOUT, self.discover()).await {
            Ok(Ok(Some(greeted))) => return Ok(greeted),
            Ok(Ok(None)) | Err(_) => {}
            Ok(Err(unreachable)) => return Err(unreachable),
        }
        self.initialize().await
    }

    /// The older greeting.
    async fn initialize(&self) -> Result<(Session, String), Fault> {
        let stateful = Session::new(Era::Legacy, era::LEGACY);
        match self.ask("initialize", &era::initialize_params(), &stateful).await? {
            (Reply::Result(result), id) => {
                let text = String::from_utf8_lossy(&result);
                let version = Object::parse(&text)
                    .and_then(|greeting| greeting.string("protocolVersion").map(|version| version.into_owned()))
                    .unwrap_or_else(|| era::LEGACY.into());
                let session = Session { version, id, ..stateful };
                let line = message::notification("notifications/initialized", None);
                let post = Post { body: line, method: None, subject: None, headers: &[], session: Some(&session) };
                self.deliver(post, Instant::now() + GREETING_TIMEOUT).await?;
                Ok((session, text.into_owned()))
            }
            (other, _) => Err(unmet(&format!("it takes neither greeting: {}", said(&other)))),
        }
    }

    /// The stateless greeting; nothing where the endpoint does not take it.
    async fn discover(&self) -> Result<Option<(Session, String)>, Fault> {
        let modern = Session::new(Era::Modern, era::MODERN);
        // Again, where it is refused for its version and that version is offered: a refusal may be of what was said before.
        for _ in 0..2 {
            match self.ask("server/discover", &era::with_own_meta(None, era::MODERN), &modern).await?.0 {
                Reply::Result(result) => {
                    let text = String::from_utf8_lossy(&result).into_owned();
                    return Ok(era::offers_modern(&text, "supportedVersions").then_some((modern, text)));
                }
                Reply::Error(RpcFault { code: era::UNSUPPORTED_VERSION, data: Some(data), .. })
                    if era::offers_modern(&data, "supported") => {}
                Reply::Error(_) | Reply::Fault(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    async fn ask(&self, method: &str, params: &str, session: &Session) -> Result<(Reply, Option<String>), Fault> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let body = message::request(&ticket.to_string(), method, Some(params));
        let post = Post { body, method: Some(method), subject: None, headers: &[], session: Some(session) };
        let send_by = Instant::now() + GREETING_TIMEOUT;
        let sent = self.pool.send(self.build(post), send_by, &Departure::default()).await?;
        let id = sent.response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let reply = match answer::read(sent, ticket, None, self.limits.answer_bytes, &self.pool).await {
            Read::Reply(reply) => reply,
            Read::Cut(_) => Reply::Fault(Fault::Lost),
        };
        Ok((reply, id))
    }
}

/// What was agreed in the older era with an endpoint that speaks the newer one.
#[derive(Debug, Default)]
pub(super) enum Older {
    /// Nobody asked.
    #[default]
    Unknown,
    /// It has that one, too.
    Agreed(Session),
    /// It has not, or had not by that session.
    Refused {
        /// The number of the session.
        by: u64,
    },
}

/// The number of a session that is gone.
const OVER: u64 = 0;

impl Session {
    fn is_over(&self) -> bool {
        self.number == OVER
    }
}

fn unmet(reason: &str) -> Fault {
    Fault::Handshake { reason: amends_core::failure::bounded(reason) }
}

fn said(reply: &Reply) -> String {
    match reply {
        Reply::Result(_) => "a result".into(),
        Reply::Error(error) => format!("error {}", error.code),
        Reply::Fault(fault) => fault.to_string(),
    }
}

/// Greets the endpoint until it answers, and again whenever it has forgotten.
pub(super) async fn keep_greeted(shared: Arc<Shared>) {
    loop {
        while let Err(fault) = shared.session().await {
            // One that was there before keeps its tools; its calls say what is wrong.
            if !matches!(&*shared.health.borrow(), Health::Ready { .. }) {
                shared.health.send_replace(Health::Down { reason: fault.to_string() });
            }
            tokio::time::sleep(GREETING_BACKOFF).await;
        }
        shared.forgotten.notified().await;
    }
}
