//! What can be read of a walk, as MCP resources and through the tool that mirrors them.

use amends_core::{Refusal, RefusalKind, SessionId};
use amends_wire::mcp::steps::{Address, What, content};
use amends_wire::mcp::{Era, era};
use amends_wire::message;
use amends_wire::object::Object;

use super::methods::RESOURCE_NOT_FOUND;
use super::{Answer, Asked, Client};
use crate::door::walk::{Shown, look, look_own};
use crate::hub::{Subscribed, subscribe_own};

/// The address in a request about resources, where it is ours.
pub(super) fn own_address(client: &Client, asked: &Asked) -> Option<String> {
    if !asked.method.starts_with("resources/") {
        return None;
    }
    let uri = asked.text().and_then(Object::parse)?.string("uri")?.into_owned();
    is_own(client, &uri).then_some(uri)
}

/// Whether an address is ours. Where no machine is declared, a walk through one that was may be named all the same.
pub(super) fn is_own(client: &Client, uri: &str) -> bool {
    let named = || Address::parse(uri).is_some_and(|address| address.session.is_some());
    Address::is_ours(uri) && (!client.gateway.catalogue.now().machines().is_empty() || named())
}

/// `resources/read` of an address of ours.
pub(super) async fn read(client: &Client, asked: &Asked, uri: &str) -> Answer {
    let era = client.era(asked);
    let Some(address) = Address::parse(uri) else { return unknown(asked, era, uri) };
    match shown(client, era, &address).await {
        Ok(shown) => {
            let result = content(uri, address.what, &shown.text());
            Answer::result(asked, &era::stamped(&result, "resources/read", era))
        }
        Err(refusal) if refusal.kind == RefusalKind::UnknownName => unknown(asked, era, uri),
        Err(refusal) => {
            let code = match refusal.kind {
                RefusalKind::ValidationFailed => message::INVALID_PARAMS,
                _ => message::INTERNAL_ERROR,
            };
            Answer::error(asked, code, &refusal.message, None)
        }
    }
}

/// `resources/subscribe` to an address of ours.
pub(super) async fn subscribes(client: &Client, asked: &Asked, uri: &str) -> Answer {
    match hears(client, uri).await {
        Some(subscribed) => match client.subscribes(uri, subscribed) {
            true => Answer::result(asked, "{}"),
            false => Answer::error(asked, message::INVALID_PARAMS, "these are too many subscriptions", None),
        },
        None => unknown(asked, client.era(asked), uri),
    }
}

/// Wants to hear of an address of ours; nothing where there is nothing to hear of.
pub(super) async fn hears(client: &Client, uri: &str) -> Option<Subscribed> {
    let address = Address::parse(uri)?;
    match &address.session {
        Some(session) => {
            let session = Some(SessionId::new(session.as_str()));
            look(&client.gateway, &client.principal, session, What::State).await.ok()?;
        }
        None => {
            if let Some(own) = client.own_walks(Era::Legacy).and_then(|own| own.meant(&client.gateway)) {
                client.walks(&own);
            }
        }
    }
    Some(subscribe_own(&client.gateway.hub, uri))
}

async fn shown(client: &Client, era: Era, address: &Address) -> Result<Shown, Box<Refusal>> {
    let named = address.session.as_deref().map(SessionId::new);
    look_own(&client.gateway, &client.principal, named, client.own_walks(era), address.what).await
}

fn unknown(asked: &Asked, era: Era, uri: &str) -> Answer {
    let code = if era == Era::Legacy { RESOURCE_NOT_FOUND } else { message::INVALID_PARAMS };
    let words = format!("there is no resource `{}`", amends_core::failure::bounded(uri));
    Answer::error(asked, code, &words, None)
}
