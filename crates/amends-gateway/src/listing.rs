//! Asking an upstream for its lists, and again whenever it may have others.
//!
//! All pages of a list are read at once, within bounds: where a name or an address leads can only be told by somebody who knows
//! all of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use amends_core::restraint::Sign;
use amends_wire::mcp::lists::{Entry, Kind, Page};
use amends_wire::mcp::{Era, era};
use futures_util::future::join_all;
use thiserror::Error;
use tokio::sync::watch;

use crate::clock;
use crate::gateway::Gateway;
use crate::pin;
use crate::upstream::{Fault, Health, HttpAnswer, Reply, Request, Upstream};

pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long an agent that lists waits for upstreams that have not answered.
const AGENT_WAIT: Duration = Duration::from_secs(3);
/// How many pages of a list are read, and how many entries are kept.
const PAGES_MAX: usize = 100;
const ENTRIES_MAX: usize = 20_000;
const AGAIN_AFTER: Duration = Duration::from_secs(2);
const LISTED_EVERY: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why an upstream's list is not known.
#[derive(Debug, Error)]
pub enum ListError {
    /// It did not answer in time.
    #[error("no answer to `{0}`")]
    Silent(&'static str),
    /// It answered with an error, or with something else.
    #[error("`{0}` was answered with {1}")]
    Refused(&'static str, String),
    /// It could not be asked.
    #[error("`{0}` was not answered: {1}")]
    Away(&'static str, Fault),
    /// Its tools could not be compared with what is pinned.
    #[error("its tools cannot be compared with what is pinned: {0}")]
    Unpinned(#[from] amends_ledger::Error),
}

/// Lists what an upstream has whenever it is ready anew, or says that it has something else, and tells the clients.
pub async fn follow(gateway: Weak<Gateway>, upstream: Arc<Upstream>) {
    let mut health = upstream.health();
    loop {
        let ready = ready(&upstream, &mut health).await;
        let (Some(strong), Some((era, greeting))) = (gateway.upgrade(), ready) else { return };
        upstream.news.greeted(era, &greeting);
        let known = list_all(&strong, &upstream).await;
        if known {
            let listing = strong.catalogue.now();
            let tools = listing.tools().filter(|tool| tool.upstream.name == upstream.name).count();
            tracing::info!(upstream = %upstream.name, tools, "the upstream is ready");
        }
        strong.hub.subscribe_again(&upstream).await;
        strong.hub.tell_level_anew(&upstream).await;
        drop(strong);
        if !known {
            tokio::time::sleep(AGAIN_AFTER).await;
            continue;
        }
        loop {
            let stale = tokio::select! {
                changed = health.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    break;
                }
                stale = upstream.news.stale() => stale,
            };
            let Some(strong) = gateway.upgrade() else { return };
            let mut changed = stale.clone();
            for kind in stale {
                match refresh(&strong, &upstream, kind, None).await {
                    Ok(others) => changed.extend(others),
                    Err(error) => tracing::warn!(upstream = %upstream.name, %error, "what it changed is not known"),
                }
            }
            strong.hub.lists_changed(changed);
            drop(strong);
            // One that says so without end is listed only so often.
            tokio::time::sleep(LISTED_EVERY).await;
        }
    }
}

/// Waits until an upstream is ready, and gives how it speaks and what it said; nothing where it is gone for good.
async fn ready(upstream: &Upstream, health: &mut watch::Receiver<Health>) -> Option<(Era, Arc<str>)> {
    let mut told = None;
    loop {
        match health.borrow_and_update().clone() {
            Health::Ready { era, greeting, .. } => return Some((era, greeting)),
            // A child's end is told where it is seen.
            Health::Down { reason } if upstream.is_remote() && told.as_ref() != Some(&reason) => {
                tracing::warn!(upstream = %upstream.name, reason, "the upstream is down");
                told = Some(reason);
            }
            Health::Down { .. } | Health::Starting => {}
        }
        health.changed().await.ok()?;
    }
}

/// Lists everything an upstream says it has; says whether that worked.
async fn list_all(gateway: &Gateway, upstream: &Arc<Upstream>) -> bool {
    let (mut known, mut changed) = (true, BTreeSet::new());
    for kind in Kind::ALL {
        let promised = upstream.news.may_have(kind);
        // Tools are what servers are for, and some forget to say that they have any.
        if !promised && kind != Kind::Tools {
            changed.extend(gateway.catalogue.update(upstream, kind, Vec::new()));
            continue;
        }
        match refresh(gateway, upstream, kind, None).await {
            Ok(others) => changed.extend(others),
            // Many a server has resources and no templates of them.
            Err(ListError::Refused(_, reason)) if kind != Kind::Tools || !promised => {
                tracing::debug!(upstream = %upstream.name, method = kind.method(), reason, "a list it does not have");
                changed.extend(gateway.catalogue.update(upstream, kind, Vec::new()));
            }
            Err(error) => {
                tracing::warn!(upstream = %upstream.name, %error, "what it has is not known yet");
                known = false;
            }
        }
    }
    gateway.hub.lists_changed(changed);
    known
}

/// Brings a list up to date for an agent that asks for it: upstreams that just start are waited for, and those that do not tell of
/// changes are asked, all at once and for a bounded time. What is not known by then is taken as it was.
pub async fn freshen(gateway: &Gateway, kind: Kind) {
    let upstreams = gateway.upstreams();
    let each = upstreams.values().map(|upstream| async {
        match upstream.state() {
            Health::Down { .. } => {}
            Health::Starting => {
                let unlisted = || !gateway.catalogue.now().has(&upstream.name, kind);
                while unlisted() && !matches!(&*upstream.health().borrow(), Health::Down { .. }) {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Health::Ready { .. } => {
                if !upstream.news.may_have(kind) {
                    return;
                }
                let _one_at_a_time = upstream.news.listing.lock().await;
                if upstream.news.is_fresh(kind) {
                    return;
                }
                match read_all(gateway, upstream, kind, None).await {
                    Ok(changed) => gateway.hub.lists_changed(changed.into_iter().collect()),
                    Err(error) => tracing::debug!(upstream = %upstream.name, %error, "its list is taken as it was"),
                }
            }
        }
    });
    let _ = tokio::time::timeout(AGENT_WAIT, join_all(each)).await;
}

/// Waits, for a bounded time, until the upstreams that just start have said what they can do.
pub async fn greeted(gateway: &Gateway) {
    let upstreams = gateway.upstreams();
    let each = upstreams.values().map(|upstream| async {
        while upstream.news.greeting().is_none() && !matches!(&*upstream.health().borrow(), Health::Down { .. }) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    let _ = tokio::time::timeout(AGENT_WAIT, join_all(each)).await;
}

/// Reads the tools of an upstream into the catalogue, for whoever starts a gateway and calls at once.
pub async fn refresh_tools(gateway: &Gateway, upstream: &Arc<Upstream>) -> Result<(), ListError> {
    refresh(gateway, upstream, Kind::Tools, None).await.map(drop)
}

/// Reads a list of an upstream into the catalogue, and gives the lists of ours that are different now. `meta` is what a stateless request carries, where it is not ours.
pub async fn refresh(
    gateway: &Gateway,
    upstream: &Arc<Upstream>,
    kind: Kind,
    meta: Option<&str>,
) -> Result<Vec<Kind>, ListError> {
    let _one_at_a_time = upstream.news.listing.lock().await;
    read_all(gateway, upstream, kind, meta).await
}

async fn read_all(
    gateway: &Gateway,
    upstream: &Arc<Upstream>,
    kind: Kind,
    meta: Option<&str>,
) -> Result<Vec<Kind>, ListError> {
    let mut all: Vec<Entry> = Vec::new();
    let mut cursor: Option<String> = None;
    let mut ttl_ms = None;
    for _ in 0..PAGES_MAX {
        let reply = ask(upstream, kind, cursor.as_deref(), meta, LIST_TIMEOUT).await;
        if !upstream.is_described() {
            upstream.restraint.record_listing(clock::now(), sign(reply.as_ref()));
        }
        let page = read(kind, reply)?;
        ttl_ms = page.ttl_ms;
        all.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= ENTRIES_MAX {
            break;
        }
    }
    if cursor.is_some() {
        tracing::warn!(upstream = %upstream.name, method = kind.method(), kept = all.len(), "a list is too long and is cut");
        all.truncate(ENTRIES_MAX);
    }
    upstream.news.listed(kind, ttl_ms);
    match kind {
        Kind::Tools => Ok(pin::take_in(gateway, upstream, all).await?),
        Kind::Prompts | Kind::Resources | Kind::Templates => Ok(gateway.catalogue.update(upstream, kind, all)),
    }
}

/// Asks for the first page of an upstream's tools, to see whether it answers.
pub(crate) async fn probe(upstream: &Upstream, within: Duration) -> Sign {
    match upstream.probe(within).await {
        Some(sign) => sign,
        None => sign(ask(upstream, Kind::Tools, None, None, within).await.as_ref()),
    }
}

/// What came of asking says of the upstream.
fn sign(reply: Option<&Reply>) -> Sign {
    match reply {
        Some(Reply::Result(_) | Reply::Error(_)) => Sign::Up,
        Some(Reply::Fault(
            Fault::HttpStatus { status: 500.., .. } | Fault::Refused(HttpAnswer { status: 500.., .. }),
        )) => Sign::Down,
        Some(Reply::Fault(Fault::HttpStatus { status: 429, .. })) => Sign::Nothing,
        Some(Reply::Fault(
            Fault::HttpStatus { .. }
            | Fault::Refused(_)
            | Fault::TooLarge
            | Fault::Unreadable { .. }
            | Fault::Agent(_)
            | Fault::SessionGone
            | Fault::SessionPerhapsGone { .. },
        )) => Sign::Up,
        Some(Reply::Fault(
            Fault::ConnectRefused
            | Fault::Handshake { .. }
            | Fault::Unstartable { .. }
            | Fault::NotWritten
            | Fault::Lost,
        ))
        | None => Sign::Down,
    }
}

/// Asks for a page; nothing where no answer came in time.
async fn ask(
    upstream: &Upstream,
    kind: Kind,
    cursor: Option<&str>,
    meta: Option<&str>,
    within: Duration,
) -> Option<Reply> {
    let mut params = match cursor {
        Some(cursor) => serde_json::json!({ "cursor": cursor }).to_string(),
        None => "{}".to_owned(),
    };
    if let Some(meta) = meta {
        let mut splice = amends_wire::splice::Splice::new(&params);
        if splice.set_member(&params, "_meta", meta).is_ok() {
            params = splice.finish();
        }
    } else if upstream.era() == Some(Era::Modern) {
        params = era::with_own_meta(Some(&params), era::MODERN);
    }
    let request = Request {
        method: kind.method().into(),
        subject: None,
        params: Some(params),
        headers: Vec::new(),
        asides: None,
        send_by: Instant::now() + within,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    tokio::time::timeout(within, exchange.reply()).await.ok()
}

fn read(kind: Kind, reply: Option<Reply>) -> Result<Page, ListError> {
    let method = kind.method();
    match reply {
        Some(Reply::Result(result)) => {
            let text = String::from_utf8_lossy(&result);
            Page::parse(kind, &text).ok_or_else(|| ListError::Refused(method, "what is no list".into()))
        }
        Some(Reply::Error(error)) => Err(ListError::Refused(method, format!("error {}", error.code))),
        Some(Reply::Fault(fault)) => Err(ListError::Away(method, fault)),
        None => Err(ListError::Silent(method)),
    }
}
