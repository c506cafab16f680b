//! A client in front of a single server that it greets itself: everything but its tool calls is passed through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use amends_wire::mcp::lists::{Kind, Page};
use amends_wire::mcp::{Era, era, tools};
use amends_wire::message;
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use tokio::sync::OnceCell;

use super::client::Said;
use super::methods::{self, ASK_TIMEOUT};
use super::own::reverse_entry;
use super::{Answer, Answering, Asked, Client, Outbox, ProgressRelay, Running, progress};
use crate::listing;
use crate::pin;
use crate::upstream::{Asides, Health, Reply, Request, Upstream, asides};

/// How long a server may take to say whether it knows requests that stand alone.
const MEET_TIMEOUT: Duration = Duration::from_secs(10);

/// The server that a client is in front of.
#[derive(Debug)]
pub struct Wrapped {
    /// The server.
    pub upstream: Arc<Upstream>,
    listed: AtomicBool,
    bridged: AtomicBool,
    /// Set once it is known whether the server knows requests that stand alone.
    met: OnceCell<()>,
    /// Set once we stand between for the sake of machines.
    between: OnceCell<()>,
}

impl Wrapped {
    /// That server, of whose tools nothing is known yet.
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            listed: AtomicBool::new(false),
            bridged: AtomicBool::new(false),
            met: OnceCell::new(),
            between: OnceCell::new(),
        }
    }

    /// Whether we stand between client and server, as the server of the one and the client of the other: they are of different
    /// eras, or we have machines of our own to serve.
    pub fn is_bridged(&self) -> bool {
        self.bridged.load(Ordering::Acquire)
    }

    /// Greets the server in its own era, which is not the client's; `false` where it takes no greeting of ours either.
    async fn bridge(&self, client: &Client) -> bool {
        if !self.upstream.greet().await {
            return false;
        }
        // Whoever calls next without asking for the tools finds them.
        if let Err(error) = listing::refresh(&client.gateway, &self.upstream, Kind::Tools, None).await {
            tracing::warn!(%error, "the wrapped server's tools are not known");
        }
        self.bridged.store(true, Ordering::Release);
        client.gateway.follows(&self.upstream);
        tracing::info!(upstream = %self.upstream.name, "standing between client and server");
        true
    }

    /// Finds out, before the first request that stands alone and was not greeted with, whether the server knows such requests.
    pub(super) async fn meet(&self, client: &Client, asked: &Asked) {
        if serves_machines(client) {
            let stand = async {
                let mut health = self.upstream.health();
                // It may just be starting; one that does not is not greeted either.
                let up = health.wait_for(|health| matches!(health, Health::Ready { .. }));
                let _ = tokio::time::timeout(MEET_TIMEOUT, up).await;
                if !self.bridge(client).await {
                    tracing::warn!("the wrapped server takes no greeting of ours, so that the machines are not served");
                }
            };
            self.between.get_or_init(|| stand).await;
            return;
        }
        if asked.era() != Some(Era::Modern) || asked.method == "server/discover" {
            return;
        }
        let meeting = async {
            let request = Request {
                method: "server/discover".to_owned(),
                subject: None,
                params: Some(era::with_own_meta(None, era::MODERN)),
                headers: Vec::new(),
                asides: None,
                send_by: Instant::now() + MEET_TIMEOUT,
                run: None,
            };
            let mut exchange = self.upstream.send(self.upstream.ticket(), request);
            if let Ok(Reply::Error(_)) = tokio::time::timeout(MEET_TIMEOUT, exchange.reply()).await {
                self.bridge(client).await;
            }
        };
        self.met.get_or_init(|| meeting).await;
    }

    /// Its tools may be others now.
    pub fn tools_changed(&self) {
        self.listed.store(false, Ordering::Release);
    }

    /// Asks for the tools before the first call, where the client did not.
    pub(super) async fn list_first(&self, client: &Client, asked: &Asked) {
        if self.listed.load(Ordering::Acquire) {
            return;
        }
        let params = asked.text().and_then(Object::parse);
        let meta = params.and_then(|params| params.get("_meta").map(|meta| meta.get().to_owned()));
        let modern = meta.filter(|meta| meta.contains(era::PROTOCOL_VERSION)).map(|meta| {
            let mut splice = Splice::new(&meta);
            let _ = splice.remove_member(&meta, "progressToken");
            splice.finish()
        });
        match listing::refresh(&client.gateway, &self.upstream, Kind::Tools, modern.as_deref()).await {
            Ok(_) => self.listed.store(true, Ordering::Release),
            Err(error) => tracing::warn!(%error, "the wrapped server's tools are not known"),
        }
    }

    /// Takes a page of tools to heart; says whether it is the last one.
    async fn lists(&self, client: &Client, result: &str, first: bool) -> bool {
        let Some(page) = Page::parse(Kind::Tools, result).filter(|page| page.next_cursor.is_none()) else {
            return false;
        };
        // A first page that is the whole list saves asking for it ourselves.
        if first {
            match pin::take_in(&client.gateway, &self.upstream, page.entries).await {
                Ok(_) => self.listed.store(true, Ordering::Release),
                Err(error) => {
                    tracing::warn!(%error, "the wrapped server's tools cannot be compared with what is pinned");
                }
            }
        }
        true
    }
}

/// Passes a request through as it is. It has been sent when this returns, so that requests keep their order; but for the first
/// that stand alone, which have none.
pub(super) fn pass(client: Arc<Client>, asked: Asked, outbox: Outbox, running: Running) -> Answering {
    let Some(wrapped) = client.wrapped() else { return Box::pin(methods::answer(client, asked, outbox, running)) };
    let greets = matches!(asked.method.as_str(), "initialize" | "server/discover");
    let between = serves_machines(&client);
    if !between && (greets || asked.era() != Some(Era::Modern) || wrapped.met.initialized()) {
        return send(client, asked, outbox, running);
    }
    Box::pin(async move {
        if let Some(wrapped) = client.wrapped() {
            wrapped.meet(&client, &asked).await;
        }
        if between && asked.method == "initialize" {
            client.greets(Said::in_greeting(asked.params.as_deref()));
        }
        match client.wrapped() {
            Some(_) => send(client, asked, outbox, running).await,
            None => methods::answer(client, asked, outbox, running).await,
        }
    })
}

fn send(client: Arc<Client>, asked: Asked, outbox: Outbox, mut running: Running) -> Answering {
    let Some(wrapped) = client.wrapped() else { return Box::pin(async { None }) };
    let upstream = wrapped.upstream.clone();
    if asked.method == "initialize" {
        client.greets(Said::in_greeting(asked.params.as_deref()));
        wrapped.tools_changed();
    }
    let ticket = upstream.ticket();
    let (progress_to, reports) = asides();
    let token = asked.text().and_then(progress::token);
    let sent = match (asked.text(), &token) {
        (Some(params), Some(_)) => Some(progress::with_token(params, ticket)),
        (params, _) => params.map(str::to_owned),
    };
    let request = Request {
        method: asked.method.clone(),
        subject: None,
        params: sent,
        headers: Vec::new(),
        asides: token.is_some().then_some(Asides { to: progress_to, whose: None, on_line: false }),
        send_by: Instant::now() + ASK_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(ticket, request);
    Box::pin(async move {
        let relay = token.map(ProgressRelay::new);
        let mut reply = tokio::select! {
            reply = progress::relayed(&mut exchange, relay, reports, &outbox, None) => reply,
            _ = running.stopped() => {
                exchange.abort();
                return None;
            }
        };
        if let (Reply::Result(_), "initialize" | "server/discover", Some(wrapped)) =
            (&reply, asked.method.as_str(), client.wrapped())
        {
            // Another may have found out at the same time.
            let _ = wrapped.met.set(());
        }
        if let (Reply::Error(error), Some(wrapped)) = (&reply, client.wrapped())
            && is_of_another_era(&asked.method, error.code)
            && wrapped.bridge(&client).await
        {
            return methods::answer(client, asked, outbox, running).await;
        }
        if let (Reply::Result(result), "tools/list", Some(wrapped)) =
            (&mut reply, asked.method.as_str(), client.wrapped())
        {
            let text = String::from_utf8_lossy(result).into_owned();
            let first = asked.text().and_then(Object::parse).is_none_or(|params| params.get("cursor").is_none());
            let last = wrapped.lists(&client, &text, first).await;
            let text = pin::as_approved(&client.gateway, &wrapped.upstream, text);
            *result = text.clone().into();
            if last && let Some(entry) = reverse_entry(&client.gateway.catalogue.now()) {
                *result = tools::with_entry(&text, &entry).into();
            }
        }
        Some(passed(&asked, reply))
    })
}

/// Whether there is anything of ours to serve beside what the server has.
fn serves_machines(client: &Client) -> bool {
    !client.gateway.config().machines.is_empty()
}

/// Whether the answer to a greeting says that the server does not know such a greeting.
fn is_of_another_era(method: &str, code: i64) -> bool {
    match method {
        "server/discover" => true,
        "initialize" => matches!(code, message::METHOD_NOT_FOUND | era::UNSUPPORTED_VERSION),
        _ => false,
    }
}

fn passed(asked: &Asked, reply: Reply) -> Answer {
    match reply {
        Reply::Result(result) => Answer::result(asked, &String::from_utf8_lossy(&result)),
        Reply::Error(error) => Answer::error(asked, error.code, &error.message, error.data.as_deref()),
        Reply::Fault(fault) => {
            let text = format!("the wrapped server did not answer `{}`: {fault}", asked.method);
            Answer::error(asked, message::INTERNAL_ERROR, &text, None)
        }
    }
}
