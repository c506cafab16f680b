//! Listening to a stateless upstream over its line. One with sessions says everything unasked; one over HTTP has a stream for it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;

use crate::config::Reach;
use crate::gateway::Gateway;
use crate::upstream::{Exchange, Health, Reply, Request, Upstream};

const AGAIN_AFTER: Duration = Duration::from_secs(2);
const SEND_WITHIN: Duration = Duration::from_secs(30);

/// Keeps a `subscriptions/listen` open with a child that has no sessions, and opens it anew whenever other resources are wanted.
pub async fn listen(gateway: Weak<Gateway>, upstream: Arc<Upstream>) {
    if !matches!(upstream.config.reach, Reach::Stdio { .. }) {
        return;
    }
    let mut health = upstream.health();
    // The one before goes on until the next counts, so that nothing is missed in between.
    let mut before: Option<Exchange> = None;
    while gateway.strong_count() > 0 {
        let ready = health.wait_for(|health| matches!(health, Health::Ready { .. })).await.map(|ready| ready.clone());
        let Ok(Health::Ready { era, .. }) = ready else { return };
        if era == Era::Legacy {
            if health.changed().await.is_err() {
                return;
            }
            continue;
        }
        let (wanted, promises) = (upstream.news.wanted(), upstream.news.promises());
        let request = Request {
            method: "subscriptions/listen".to_owned(),
            subject: None,
            params: Some(upstream.news.wishes()),
            headers: Vec::new(),
            asides: None,
            send_by: Instant::now() + SEND_WITHIN,
            run: None,
        };
        let mut exchange = upstream.send(upstream.ticket(), request);
        match before.take() {
            Some(mut before) => {
                upstream.news.promised_since(promises).await;
                before.abort();
            }
            None => upstream.news.listens_anew(),
        }
        tokio::select! {
            reply = exchange.reply() => {
                if let Reply::Error(error) = reply {
                    tracing::debug!(upstream = %upstream.name, code = error.code, "it does not tell of changes");
                    upstream.news.hears(false);
                    if health.changed().await.is_err() {
                        return;
                    }
                    upstream.news.hears(true);
                }
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            () = wanted => before = Some(exchange),
            changed = health.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
