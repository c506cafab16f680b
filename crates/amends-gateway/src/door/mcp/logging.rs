//! How much of the upstreams' logs a client wants to hear.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;
use amends_wire::message;
use amends_wire::object::Object;
use futures_util::future::join_all;
use serde_json::json;

use super::{Answer, Asked, Client};
use crate::hub::Level;
use crate::upstream::{Request, Upstream};

const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// `logging/setLevel`: the client hears that much, and each upstream that logs is told the most that anybody wants to hear.
pub(super) async fn set_level(client: &Client, asked: &Asked) -> Answer {
    let params = asked.text().and_then(Object::parse);
    let Some(level) = params.and_then(|params| Level::parse(&params.string("level")?)) else {
        return Answer::error(asked, message::INVALID_PARAMS, "`level` must be one of the protocol's levels", None);
    };
    client.mailbox().change(|wants| wants.level = Some(level));
    let gateway = &client.gateway;
    if let Some(most) = gateway.hub.level() {
        let upstreams = gateway.upstreams();
        join_all(upstreams.values().map(|upstream| tell(upstream, most))).await;
    }
    Answer::result(asked, "{}")
}

/// Tells an upstream how much is wanted of its log, where it has one and takes such a word.
async fn tell(upstream: &Arc<Upstream>, level: Level) {
    if upstream.era() != Some(Era::Legacy) || upstream.news.capability("logging").is_none() {
        return;
    }
    let request = Request {
        method: "logging/setLevel".to_owned(),
        subject: None,
        params: Some(json!({ "level": level.as_str() }).to_string()),
        headers: Vec::new(),
        asides: None,
        send_by: Instant::now() + TELL_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    if tokio::time::timeout(TELL_TIMEOUT, exchange.reply()).await.is_err() {
        tracing::debug!(upstream = %upstream.name, "it was not told how much of its log is wanted");
    }
}
