//! How much of the upstreams' logs a client wants to hear.

use amends_wire::message;
use amends_wire::object::Object;
use futures_util::future::join_all;

use super::{Answer, Asked, Client};
use crate::hub::Level;

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
