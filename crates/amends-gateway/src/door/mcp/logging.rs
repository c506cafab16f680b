//! How much of the upstreams' logs a client wants to hear.

use amends_wire::mcp::{Era, era};
use amends_wire::message;
use amends_wire::object::Object;
use futures_util::future::join_all;

use super::{Answer, Asked, Client};
use crate::hub::{Hearing, Level};
use crate::upstream::AsideSender;

/// `logging/setLevel`: the client hears that much, and each upstream that logs is told the most that anybody wants to hear.
pub(super) async fn set_level(client: &Client, asked: &Asked) -> Answer {
    let params = asked.text().and_then(Object::parse);
    let Some(level) = params.and_then(|params| Level::parse(&params.string("level")?)) else {
        return Answer::error(asked, message::INVALID_PARAMS, "`level` must be one of the protocol's levels", None);
    };
    client.mailbox().change(|wants| wants.level = Some(level));
    let gateway = &client.gateway;
    let upstreams = gateway.upstreams();
    join_all(upstreams.values().map(|upstream| gateway.hub.tell_level(upstream))).await;
    Answer::result(asked, "{}")
}

/// How much a client wants to hear while a request of it lasts: what the request says, where it stands alone, else what its session
/// said, and all of it where that said nothing.
pub(super) fn wanted(client: &Client, asked: &Asked, era: Era) -> Option<Level> {
    match era {
        Era::Modern => level_of(asked),
        Era::Legacy => Some(client.level().unwrap_or(Level::Debug)),
    }
}

/// A request that stands alone and says how much it wants to hear of the log: its tool's upstream is told, where that has sessions.
pub(super) async fn hears(client: &Client, asked: &Asked, tool: &str, to: &AsideSender) -> Option<Hearing> {
    if client.wrapped().is_some() || client.era(asked) != Era::Modern {
        return None;
    }
    let level = level_of(asked)?;
    let tool = client.gateway.catalogue.now().find(tool).cloned()?;
    Some(client.gateway.hub.hears(&tool.upstream, level, to.clone()).await)
}

/// The level that a request names in its `_meta`. A word that is no level asks for everything.
fn level_of(asked: &Asked) -> Option<Level> {
    let params = asked.text().and_then(Object::parse)?;
    let meta = Object::parse(params.get("_meta")?.get())?;
    meta.get(era::LOG_LEVEL)?;
    Some(meta.string(era::LOG_LEVEL).and_then(|level| Level::parse(&level)).unwrap_or(Level::Debug))
}
