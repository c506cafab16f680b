//! The task that takes spans to their collector. Nothing waits for it but the end of the process.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::protobuf;
use super::span::Span;
use super::target::{Fate, Target};
use crate::metrics::Exports;

/// How many spans go in one request.
const BATCH_MAX: usize = 512;
/// How long a span waits for others to go with it.
const GATHER: Duration = Duration::from_secs(1);
/// The waits before a request is sent again.
const AGAIN_AFTER: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// The longest wait that a collector may ask for.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What arrives at the exporter.
#[derive(Debug)]
pub(super) enum Parcel {
    Span(Box<Span>),
    /// Everything before this has gone, or never will, when this is answered.
    Flush(oneshot::Sender<()>),
}

/// Exports what comes until nobody can send any more.
pub(super) async fn export(target: Target, service: String, mut queue: mpsc::Receiver<Parcel>, exports: Exports) {
    while let Some(first) = queue.recv().await {
        let (mut spans, mut flushed) = (Vec::new(), Vec::new());
        let until = Instant::now() + GATHER;
        let mut next = Some(first);
        // Ends: each turn adds to a bounded batch, or somebody waits, or the time is over.
        while let Some(parcel) = next {
            match parcel {
                Parcel::Span(span) => spans.push(*span),
                Parcel::Flush(done) => flushed.push(done),
            }
            if spans.len() >= BATCH_MAX || !flushed.is_empty() {
                break;
            }
            next = timeout_at(until, queue.recv()).await.ok().flatten();
        }
        if !spans.is_empty() {
            let (count, body) = (spans.len() as u64, Bytes::from(protobuf::request(&service, &spans)));
            let taken = send(&target, body, !flushed.is_empty()).await;
            exports.count(if taken { "exported" } else { "lost" }, count);
        }
        for done in flushed {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }
}

/// Sends a request, again where that may help and nobody waits for it.
async fn send(target: &Target, body: Bytes, hurried: bool) -> bool {
    for wait in AGAIN_AFTER.into_iter().map(Some).chain([None]) {
        match (target.post(body.clone()).await, wait.filter(|_| !hurried)) {
            (Fate::Taken, _) => return true,
            (Fate::Later(asked), Some(wait)) => {
                tokio::time::sleep(asked.unwrap_or(wait).clamp(wait, WAIT_MAX)).await;
            }
            (Fate::Later(_), None) => {
                tracing::warn!("the collector of spans cannot be reached; what was to go there is lost");
                return false;
            }
            (Fate::Refused, _) => {
                tracing::warn!("the collector of spans takes none of ours");
                return false;
            }
        }
    }
    false
}
