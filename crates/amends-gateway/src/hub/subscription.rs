//! A client's wish to hear of a resource, and what its upstream is told of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::UpstreamName;
use amends_wire::mcp::Era;
use serde_json::json;

use super::Hub;
use crate::upstream::{Reply, Request, Upstream};

const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Somebody wants to hear of a resource, until this is dropped. Its upstream is told once for all who do.
#[derive(Debug)]
pub struct Subscribed {
    hub: Arc<Hub>,
    upstream: UpstreamName,
    uri: String,
}

/// Why a resource cannot be heard of.
#[derive(Debug)]
pub enum SubscribeError {
    /// Its upstream said no, or nothing.
    Refused(Reply),
    /// It did not answer in time.
    Silent,
}

/// Who has the resources that are ours. No upstream has that name.
pub(super) fn own() -> UpstreamName {
    UpstreamName::new("")
}

/// Wants to hear of a resource of ours.
pub fn subscribe_own(hub: &Arc<Hub>, uri: &str) -> Subscribed {
    Subscribed { hub: hub.clone(), upstream: own(), uri: uri.to_owned() }
}

/// Wants to hear of a resource of that upstream.
pub async fn subscribe(hub: &Arc<Hub>, upstream: &Arc<Upstream>, uri: &str) -> Result<Subscribed, SubscribeError> {
    let first = {
        let mut subscribed = hub.subscribed();
        let count = subscribed.entry(upstream.name.clone()).or_default().entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    };
    // Dropped on the way, it is taken back.
    let subscribed = Subscribed { hub: hub.clone(), upstream: upstream.name.clone(), uri: uri.to_owned() };
    if upstream.era() == Some(Era::Modern) {
        upstream.news.wants();
    } else if first {
        match tell(upstream, "resources/subscribe", uri).await {
            Some(Reply::Result(_)) => {}
            Some(reply) => return Err(SubscribeError::Refused(reply)),
            None => return Err(SubscribeError::Silent),
        }
    }
    Ok(subscribed)
}

impl Subscribed {
    /// Where the resource lives.
    pub fn upstream(&self) -> &UpstreamName {
        &self.upstream
    }
}

impl Hub {
    /// Tells an upstream that was greeted anew which resources are wanted.
    pub async fn subscribe_again(&self, upstream: &Arc<Upstream>) {
        if upstream.era() == Some(Era::Modern) {
            return upstream.news.wants();
        }
        for uri in self.wanted_of(&upstream.name) {
            match tell(upstream, "resources/subscribe", &uri).await {
                Some(Reply::Result(_)) => {}
                _ => tracing::warn!(upstream = %upstream.name, uri, "a resource is not heard of any more"),
            }
        }
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let mut subscribed = self.hub.subscribed();
        let Some(of_upstream) = subscribed.get_mut(&self.upstream) else { return };
        let Some(count) = of_upstream.get_mut(&self.uri) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        of_upstream.remove(&self.uri);
        drop(subscribed);
        let Some(upstream) = self.hub.here(&self.upstream) else { return };
        let uri = std::mem::take(&mut self.uri);
        if upstream.era() == Some(Era::Modern) {
            upstream.news.wants();
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Whether it stops is its own business: nobody here listens any more.
                let _ = tell(&upstream, "resources/unsubscribe", &uri).await;
            });
        }
    }
}

async fn tell(upstream: &Upstream, method: &str, uri: &str) -> Option<Reply> {
    let request = Request {
        method: method.to_owned(),
        subject: None,
        params: Some(json!({ "uri": uri }).to_string()),
        headers: Vec::new(),
        asides: None,
        send_by: Instant::now() + SUBSCRIBE_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    tokio::time::timeout(SUBSCRIBE_TIMEOUT, exchange.reply()).await.ok()
}
