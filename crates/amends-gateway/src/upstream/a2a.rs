//! An agent behind an address: its card says what it can do, and a call is a message whose task is followed to its end.

mod line;
mod look;
mod question;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use amends_core::gates::UNSEEN_RUN;
use amends_wire::a2a::agent::{Agent, LOOK, META};
use amends_wire::a2a::card;
use amends_wire::mcp::{Era, ToolCall, era};
use amends_wire::message::{INVALID_PARAMS, METHOD_NOT_FOUND};
use hyper::Uri;
use hyper::header::HeaderName;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::credential::Credential;
use super::exchange::{Exchange, ExchangeEnd, Fault, Reply, Request, RpcFault};
use super::http::pool::Pool;
use super::{Health, StartFault};
use crate::config::{Access, Limits};
use crate::hub::News;
use crate::identity::Account;

/// How long a card may take.
const CARD_WITHIN: Duration = Duration::from_secs(10);
/// How often it is read again, and how soon where it could not be read: twice as late each time, up to the last.
const CARD_EVERY: Duration = Duration::from_secs(300);
const CARD_AGAIN: Duration = Duration::from_millis(500);
const CARD_AGAIN_MAX: Duration = Duration::from_secs(30);
/// For how long a list of tools may be kept.
const LIST_MS: u64 = 60_000;
/// How large a card may be.
const CARD_BYTES_MAX: usize = 1 << 20;

/// An agent behind an address.
#[derive(Debug)]
pub struct Peer {
    shared: Arc<Shared>,
    reader: tokio::task::JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// What all requests to an agent share.
#[derive(Debug)]
struct Shared {
    /// Where its card is.
    card: Uri,
    /// How its card is fetched.
    door: Pool,
    access: Access,
    headers: Vec<(HeaderName, Credential)>,
    limits: Limits,
    next: AtomicU64,
    health: watch::Sender<Health>,
    known: RwLock<Option<Arc<Known>>>,
}

/// An agent whose card was read.
#[derive(Debug)]
struct Known {
    agent: Agent,
    uri: Uri,
    pool: Pool,
}

impl Peer {
    /// Begins to read the card of the agent at that address.
    pub fn start(url: &str, access: &Access, limits: Limits, news: Arc<News>) -> Result<Self, StartFault> {
        let card = card_of(url);
        let shared = Arc::new(Shared {
            door: super::http::pool(&card, access)?,
            headers: super::http::shown(access)?,
            access: access.clone(),
            card,
            limits,
            next: AtomicU64::new(1),
            health: watch::Sender::new(Health::Starting),
            known: RwLock::default(),
        });
        let reader = tokio::spawn(keep_reading(shared.clone(), news));
        Ok(Self { shared, reader })
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How the agent is: ready once its card is known.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Whether what it wants to be shown is not there any more.
    pub fn lacks_credential(&self) -> bool {
        self.shared.headers.iter().any(|(_, credential)| credential.is_missing())
    }

    /// The account whose token it is shown.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        super::http::account(&self.shared.headers)
    }

    /// Why it cannot be reached, where that was seen last.
    pub fn away(&self) -> Option<Arc<str>> {
        self.shared.known().and_then(|known| known.pool.presence().away())
    }

    /// Sends a request.
    pub fn send(&self, request: Request) -> Exchange {
        let (exchange, end) = Exchange::channel();
        tokio::spawn(exchanged(self.shared.clone(), request, end));
        exchange
    }
}

/// The address of a card: the one that was given, if it is one, else the usual place of its host.
fn card_of(url: &str) -> Uri {
    let given: Uri = url.parse().unwrap_or_else(|_| Uri::from_static("http://invalid.invalid/"));
    if given.path().ends_with(".json") {
        return given;
    }
    let base = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    format!("{base}{}", card::PATH).parse().unwrap_or(given)
}

/// Reads the card, and again from time to time.
async fn keep_reading(shared: Arc<Shared>, news: Arc<News>) {
    let mut wait = CARD_AGAIN;
    loop {
        match shared.read_card().await {
            Ok(known) => {
                wait = CARD_AGAIN;
                shared.learn(known, &news);
                tokio::time::sleep(CARD_EVERY).await;
            }
            Err(reason) => {
                // One that was known once is called as it was known.
                if shared.known().is_none() {
                    shared.health.send_replace(Health::Down { reason });
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(CARD_AGAIN_MAX);
            }
        }
    }
}

impl Shared {
    fn known(&self) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn read_card(&self) -> Result<Known, String> {
        let text = line::fetch(self, CARD_WITHIN, CARD_BYTES_MAX).await?;
        let agent = Agent::read(&text)?;
        let uri: Uri = agent.url.parse().map_err(|_| format!("its card names `{}`, which is no address", agent.url))?;
        let elsewhere = uri.authority() != self.card.authority() || uri.scheme() != self.card.scheme();
        if elsewhere && !self.headers.is_empty() {
            return Err(format!("its card leads to `{}`, and what it is shown is for its own host", agent.url));
        }
        let pool = super::http::pool(&uri, &self.access).map_err(|error| error.to_string())?;
        Ok(Known { agent, uri, pool })
    }

    fn learn(&self, known: Known, news: &News) {
        let before = self.known();
        if before.as_ref().is_some_and(|before| before.agent == known.agent) {
            return;
        }
        let greeting = json!({
            "protocolVersion": era::LEGACY,
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": known.agent.name, "version": known.agent.version },
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
        if before.is_some() {
            news.hear("notifications/tools/list_changed", None);
        }
        // It keeps no session with us, so its restarts are not ours to see.
        let ready = Health::Ready { run: UNSEEN_RUN, era: Era::Legacy, greeting: greeting.to_string().into() };
        self.health.send_replace(ready);
    }
}

async fn exchanged(shared: Arc<Shared>, request: Request, end: ExchangeEnd) {
    let ExchangeEnd { reply, abort } = end;
    let answer = answer(&shared, request, abort).await;
    // Nobody waits for it any more where this fails.
    let _ = reply.send(answer);
}

async fn answer(shared: &Arc<Shared>, request: Request, abort: tokio::sync::oneshot::Receiver<()>) -> Reply {
    let Some(known) = shared.known() else { return Reply::Fault(Fault::ConnectRefused) };
    match request.method.as_str() {
        "tools/list" => {
            let list = json!({ "tools": known.agent.tools, "ttlMs": LIST_MS });
            return Reply::Result(list.to_string().into());
        }
        "tools/call" => {}
        method => return failure(METHOD_NOT_FOUND, format!("an A2A agent has no `{method}`")),
    }
    let params = request.params.clone().unwrap_or_else(|| "{}".into());
    let raw = serde_json::from_str::<&RawValue>(&params).ok();
    let Some(call) = raw.and_then(|raw| ToolCall::parse(Some(raw)).ok()) else {
        return failure(INVALID_PARAMS, "the call cannot be read".into());
    };
    let Some(tool) = known.agent.tools.iter().find(|tool| tool["name"] == call.name()) else {
        return failure(INVALID_PARAMS, format!("the agent has no skill `{}`", call.name()));
    };
    let arguments = call.arguments().map_or("{}", RawValue::get);
    if call.name() == LOOK {
        return look::look(shared, &known, arguments, request.send_by, abort).await;
    }
    let skill = tool["_meta"][META]["skill"].as_str().unwrap_or_default();
    let wish = match work::Wish::read(arguments, call.raw_meta(), skill) {
        Ok(wish) => wish,
        Err(words) => return failure(INVALID_PARAMS, words),
    };
    let work = work::Work::new(shared.clone(), known.clone(), request.asides, request.send_by);
    work.run(&wish, abort).await
}

fn failure(code: i64, message: String) -> Reply {
    Reply::Error(RpcFault { code, message, data: None })
}

/// When a request of ours must have left that is made while another is on its way.
fn soon() -> Instant {
    Instant::now() + line::WITHIN
}
