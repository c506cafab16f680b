//! Asking an upstream for its tools, and again whenever it may have others.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use amends_wire::mcp::{Era, ToolList, ToolListing, era};
use thiserror::Error;

use crate::gateway::Gateway;
use crate::upstream::{Health, Reply, Request, Upstream};

const LIST_TIMEOUT: Duration = Duration::from_secs(15);
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
        let page = page(upstream, cursor.as_deref(), meta).await?;
        all.extend(page.tools);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    gateway.catalogue.update(upstream, &all);
    Ok(())
}

async fn page(upstream: &Upstream, cursor: Option<&str>, meta: Option<&str>) -> Result<ToolList, ListError> {
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
        send_by: Instant::now() + LIST_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    match tokio::time::timeout(LIST_TIMEOUT, exchange.reply()).await {
        Ok(Reply::Result(result)) => {
            let text = String::from_utf8_lossy(&result);
            ToolList::parse(&text).ok_or_else(|| ListError::Refused("what is no list".into()))
        }
        Ok(Reply::Error(error)) => Err(ListError::Refused(format!("error {}", error.code))),
        Ok(Reply::Fault(fault)) => Err(ListError::Refused(format!("{fault}"))),
        Err(_) => Err(ListError::Silent),
    }
}
