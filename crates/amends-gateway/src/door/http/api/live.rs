//! `GET /api/live`: what is recorded, as it is, as a stream of events.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use serde_json::json;
use tokio::sync::mpsc;

use super::super::body::Body;
use super::super::stream::{SILENT_MAX, STILL_HERE, streamed};
use crate::gateway::Gateway;
use crate::live::{From, Seen};

/// How many facts are written at once.
const AT_ONCE: usize = 64;

/// Opens the stream, after the event that was seen last. Where that is not known here, it begins with `lost`: what happened since
/// is on the ledger.
pub(crate) fn open(gateway: &Arc<Gateway>, last: Option<&str>) -> Response<Body> {
    let (events, body) = Body::events();
    let (from, newest) = gateway.live.watch(last);
    tokio::spawn(write(gateway.clone(), from, newest, events));
    streamed(body)
}

async fn write(
    gateway: Arc<Gateway>,
    from: From,
    mut newest: tokio::sync::watch::Receiver<u64>,
    events: mpsc::Sender<Bytes>,
) {
    let live = &gateway.live;
    let mut at = match from {
        From::After(number) => number,
        From::Lost => live.newest(),
    };
    let first = if from == From::Lost { "lost" } else { "here" };
    // Said at once, so that a browser knows the stream is open and where it is.
    if events.send(event(&live.name(at), first, "{}")).await.is_err() {
        return;
    }
    loop {
        match live.after(at, AT_ONCE) {
            Some(seen) if !seen.is_empty() => {
                for (number, seen) in seen {
                    at = number;
                    if events.send(event(&live.name(number), "fact", &told(&seen))).await.is_err() {
                        return;
                    }
                }
            }
            Some(_) => tokio::select! {
                changed = newest.changed() => if changed.is_err() {
                    return;
                },
                () = tokio::time::sleep(SILENT_MAX) => if events.send(STILL_HERE).await.is_err() {
                    return;
                },
                () = events.closed() => return,
            },
            // It reads slower than is recorded.
            None => {
                at = live.newest();
                if events.send(event(&live.name(at), "lost", "{}")).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn told(seen: &Seen) -> String {
    let mut fact = json!({
        "session": seen.session, "seq": seen.seq, "at": seen.at, "event": seen.event, "words": seen.words,
    });
    if let Some(call) = &seen.call {
        fact["call"] = json!(call);
    }
    fact.to_string()
}

fn event(id: &str, name: &str, data: &str) -> Bytes {
    Bytes::from(format!("id: {id}\nevent: {name}\ndata: {data}\n\n"))
}
