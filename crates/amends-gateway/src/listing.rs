//! Asking an upstream for its tools, and again whenever it may have others.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use amends_core::restraint::Sign;
use amends_wire::mcp::{Era, ToolList, ToolListing, era};
use thiserror::Error;

use crate::clock;
use crate::gateway::Gateway;
use crate::upstream::{Fault, Health, HttpAnswer, Reply, Request, Upstream};

pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// How many pages of a list are read, and so how long the list may be.
const PAGES_MAX: usize = 100;
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Why an upstream's tools are not known.
#[derive(Debug, Error)]
pub enum ListError {
    /// It did not answer in time.
    #[error("no answer to `tools/list`")]
    Silent,
    /// It answered with something else.
    #[error("`tools/list` was answered with {0}")]
    Refused(String),
}

/// Lists an upstream's tools whenever it is ready anew.
pub async fn follow(gateway: Weak<Gateway>, upstream: Arc<Upstream>) {
    let mut health = upstream.health();
    loop {
        let ready = health.wait_for(|health| matches!(health, Health::Ready { .. })).await.is_ok();
        let Some(gateway) = gateway.upgrade().filter(|_| ready) else {
            return;
        };
        if let Err(error) = refresh(&gateway, &upstream, None).await {
            tracing::warn!(upstream = %upstream.name, %error, "its tools are not known yet");
            drop(gateway);
            tokio::time::sleep(AGAIN_AFTER).await;
            continue;
        }
        drop(gateway);
        if health.changed().await.is_err() {
            return;
        }
    }
}

/// Lists an upstream's tools into the catalogue. `meta` is what a stateless request carries, where it is not ours.
pub async fn refresh(gateway: &Gateway, upstream: &Arc<Upstream>, meta: Option<&str>) -> Result<(), ListError> {
    upstream.lists_anew();
    let mut all: Vec<ToolListing> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let reply = ask(upstream, cursor.as_deref(), meta, LIST_TIMEOUT).await;
        upstream.restraint.record_listing(clock::now(), sign(reply.as_ref()));
        let page = read(reply)?;
        all.extend(page.tools);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    gateway.catalogue.update(upstream, &all);
    Ok(())
}

/// Asks for the first page of an upstream's tools, to see whether it answers.
pub(crate) async fn probe(upstream: &Upstream, within: Duration) -> Sign {
    match upstream.probe(within).await {
        Some(sign) => sign,
        None => sign(ask(upstream, None, None, within).await.as_ref()),
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
            | Fault::SessionGone,
        )) => Sign::Up,
        Some(Reply::Fault(Fault::ConnectRefused | Fault::Handshake { .. } | Fault::NotWritten | Fault::Lost))
        | None => Sign::Down,
    }
}

/// Asks for a page; nothing where no answer came in time.
async fn ask(upstream: &Upstream, cursor: Option<&str>, meta: Option<&str>, within: Duration) -> Option<Reply> {
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
        method: "tools/list".into(),
        subject: None,
        params: Some(params),
        headers: Vec::new(),
        progress: None,
        send_by: Instant::now() + within,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    tokio::time::timeout(within, exchange.reply()).await.ok()
}

fn read(reply: Option<Reply>) -> Result<ToolList, ListError> {
    match reply {
        Some(Reply::Result(result)) => {
            let text = String::from_utf8_lossy(&result);
            ToolList::parse(&text).ok_or_else(|| ListError::Refused("what is no list".into()))
        }
        Some(Reply::Error(error)) => Err(ListError::Refused(format!("error {}", error.code))),
        Some(Reply::Fault(fault)) => Err(ListError::Refused(format!("{fault}"))),
        None => Err(ListError::Silent),
    }
}
