//! Every method but `tools/call`, where the gateway is the server.

use std::sync::Arc;
use std::time::Duration;

use amends_wire::mcp::lists::Kind;
use amends_wire::mcp::{Era, tasks};
use amends_wire::message;
use amends_wire::object::Object;
use serde_json::value::RawValue;

use super::own::{discover, initialize, list};
use super::{Answer, Asked, Client, Outbox, Running, forward, listen, logging, waiting, walk};
use crate::gateway::Gateway;
use crate::hub::{SubscribeError, subscribe};
use crate::listing;
use crate::router::{Route, alone, route, task};
use crate::upstream::Reply;

/// How long something that is not a tool call may take.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(300);
/// There is no such resource, before 2026-07-28.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Answers a request, unless the client wants it stopped.
pub(super) async fn answer(client: Arc<Client>, asked: Asked, outbox: Outbox, mut running: Running) -> Option<Answer> {
    tokio::select! {
        answer = by_method(&client, &asked, &outbox) => Some(answer),
        _ = running.stopped() => None,
    }
}

async fn by_method(client: &Client, asked: &Asked, outbox: &Outbox) -> Answer {
    let gateway = &client.gateway;
    let era = client.era(asked);
    match (asked.method.as_str(), era) {
        ("initialize", _) => {
            listing::greeted(gateway).await;
            let params = asked.text().and_then(Object::parse);
            let version = params.as_ref().and_then(|params| params.string("protocolVersion")).unwrap_or_default();
            Answer::result(asked, &initialize(gateway, &version))
        }
        ("ping", Era::Legacy) => Answer::result(asked, "{}"),
        ("server/discover", _) => {
            listing::greeted(gateway).await;
            Answer::result(asked, &discover(gateway))
        }
        ("logging/setLevel", Era::Legacy) => logging::set_level(client, asked).await,
        ("resources/subscribe", Era::Legacy) => subscribes(client, asked).await,
        ("resources/unsubscribe", Era::Legacy) => unsubscribes(client, asked),
        ("subscriptions/listen", Era::Modern) => listen::listen(client, asked, outbox).await,
        ("tasks/get" | "tasks/cancel", _) | ("tasks/result", Era::Legacy) | ("tasks/update", Era::Modern) => {
            task(client, asked, outbox).await
        }
        // What the one era has and the other has not, and what would show everybody's tasks.
        ("tasks/list" | "tasks/result" | "tasks/update", _)
        | ("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe", Era::Modern)
        | ("subscriptions/listen", Era::Legacy) => no_method(asked),
        (method, _) => match Kind::of_method(method) {
            Some(kind) => lists(client, asked, outbox, kind).await,
            None => pass(client, asked, outbox).await,
        },
    }
}

/// A list: our own pages of what all upstreams have. Where there is only one and its names are as they are, its own pages of
/// anything but tools, byte for byte, for as long as it answers.
async fn lists(client: &Client, asked: &Asked, outbox: &Outbox, kind: Kind) -> Answer {
    let gateway = &client.gateway;
    // Where we have machines, their resources are among the upstream's.
    let merged = matches!(kind, Kind::Resources | Kind::Templates) && !gateway.catalogue.now().machines().is_empty();
    if let Some(only) = alone(gateway).filter(|_| kind != Kind::Tools && !merged) {
        let known = gateway.catalogue.now().has(&only.name, kind);
        if only.run().is_some() || !known {
            match forward::forward(client, asked, outbox, &only, asked.text(), None).await {
                Reply::Result(result) => {
                    return Answer::result(asked, &forward::dressed(&result, asked, client, &only));
                }
                reply @ Reply::Error(_) => return forward::failed(client, asked, &only, reply),
                reply if !known => return forward::failed(client, asked, &only, reply),
                Reply::Fault(_) => {}
            }
        }
    }
    let params = asked.text().and_then(Object::parse);
    let cursor = match params.as_ref().and_then(|params| params.get("cursor")).filter(|cursor| cursor.get() != "null") {
        Some(raw) => match amends_wire::object::string(raw) {
            Some(cursor) => Some(cursor.into_owned()),
            None => return bad_cursor(asked),
        },
        None => None,
    };
    // The pages of one list are of one state of it, as far as nothing else happens.
    if cursor.is_none() {
        listing::freshen(gateway, kind).await;
    }
    match list(gateway, kind, cursor.as_deref(), client.era(asked)) {
        Ok(page) => Answer::result(asked, &page),
        Err(_) => bad_cursor(asked),
    }
}

fn bad_cursor(asked: &Asked) -> Answer {
    let words = "`cursor` is not one that was given here, or the list is another by now; begin again without it";
    Answer::error(asked, message::INVALID_PARAMS, words, None)
}

fn no_method(asked: &Asked) -> Answer {
    Answer::error(asked, message::METHOD_NOT_FOUND, "there is no such method", None)
}

/// Passes a request on to the upstream it is for.
async fn pass(client: &Client, asked: &Asked, outbox: &Outbox) -> Answer {
    if let Some(uri) = walk::own_address(client, asked) {
        return walk::read(client, asked, &uri).await;
    }
    let (upstreams, params, subject) = match route(&client.gateway, &asked.method, asked.params.as_deref()) {
        Route::To { upstreams, params, subject } => (upstreams, params, subject),
        other => return unrouted(client, asked, other),
    };
    let mut last = None;
    for upstream in &upstreams {
        let reply = forward::forward(client, asked, outbox, upstream, params.as_deref(), subject.clone()).await;
        let unknown = matches!(&reply, Reply::Error(error) if not_found(error.code));
        match reply {
            Reply::Result(result) => {
                return Answer::result(asked, &forward::dressed(&result, asked, client, upstream));
            }
            // The next may know what this one does not; one that could not be asked says more than one that does not know.
            reply if unknown => drop(last.get_or_insert((upstream, reply))),
            reply => last = Some((upstream, reply)),
        }
    }
    match last {
        Some((upstream, reply)) => forward::failed(client, asked, upstream, reply),
        None => no_method(asked),
    }
}

/// Passes a request about a task on to where the task is, under the id it has there.
async fn task(client: &Client, asked: &Asked, outbox: &Outbox) -> Answer {
    let (secret, principal) = (&client.gateway.secret, &client.principal);
    let named = tasks::id(asked.params.as_deref()).and_then(|given| task::take(secret, principal, &given));
    if let Some((_, id)) = named.as_ref().filter(|(upstream, _)| upstream.as_str() == waiting::OWN) {
        return waiting::answer(client, asked, id).await;
    }
    let upstreams = client.gateway.upstreams();
    let known = named.and_then(|(upstream, id)| Some((upstreams.get(&upstream)?, id)));
    let (Some((upstream, id)), Some(params)) = (known, asked.text()) else {
        return Answer::error(asked, message::INVALID_PARAMS, "there is no such task", None);
    };
    let params = tasks::with_id(params, &id);
    match forward::forward(client, asked, outbox, upstream, Some(&params), Some(id)).await {
        Reply::Result(result) => {
            let result = forward::dressed(&result, asked, client, upstream);
            Answer::result(asked, &tasks::renamed(&result, |id| task::give(secret, principal, &upstream.name, id)))
        }
        reply => forward::failed(client, asked, upstream, reply),
    }
}

fn not_found(code: i64) -> bool {
    matches!(code, RESOURCE_NOT_FOUND | message::INVALID_PARAMS)
}

fn unrouted(client: &Client, asked: &Asked, route: Route) -> Answer {
    match route {
        Route::Unknown { resource, words } => {
            let legacy = resource && client.era(asked) == Era::Legacy;
            Answer::error(asked, if legacy { RESOURCE_NOT_FOUND } else { message::INVALID_PARAMS }, &words, None)
        }
        Route::BadParams(words) => Answer::error(asked, message::INVALID_PARAMS, words, None),
        Route::NoMethod | Route::To { .. } => no_method(asked),
    }
}

/// Where what names a resource goes. What an upstream that just starts has is not known before it has said so, so that one that
/// seems to live nowhere is looked for once more.
pub(super) async fn settled_route(gateway: &Gateway, method: &str, params: Option<&RawValue>) -> Route {
    match route(gateway, method, params) {
        found @ Route::To { .. } => found,
        _ => {
            listing::freshen(gateway, Kind::Resources).await;
            route(gateway, method, params)
        }
    }
}

async fn subscribes(client: &Client, asked: &Asked) -> Answer {
    let Some(uri) = uri(asked) else {
        return Answer::error(asked, message::INVALID_PARAMS, "`uri` must be a string", None);
    };
    if walk::own_address(client, asked).is_some() {
        return walk::subscribes(client, asked, &uri).await;
    }
    let upstreams = match settled_route(&client.gateway, &asked.method, asked.params.as_deref()).await {
        Route::To { upstreams, .. } => upstreams,
        other => return unrouted(client, asked, other),
    };
    let mut last = None;
    for upstream in &upstreams {
        match subscribe(&client.gateway.hub, upstream, &uri).await {
            Ok(subscribed) => {
                return match client.subscribes(&uri, subscribed) {
                    true => Answer::result(asked, "{}"),
                    false => Answer::error(asked, message::INVALID_PARAMS, "these are too many subscriptions", None),
                };
            }
            Err(SubscribeError::Refused(reply)) => last = Some(forward::failed(client, asked, upstream, reply)),
            Err(SubscribeError::Silent) => {
                last = Some(Answer::error(asked, message::INTERNAL_ERROR, "no answer in time", None));
            }
        }
    }
    last.unwrap_or_else(|| no_method(asked))
}

fn unsubscribes(client: &Client, asked: &Asked) -> Answer {
    match uri(asked) {
        Some(uri) => {
            // To want no more what was not wanted is no mistake.
            client.unsubscribes(&uri);
            Answer::result(asked, "{}")
        }
        None => Answer::error(asked, message::INVALID_PARAMS, "`uri` must be a string", None),
    }
}

fn uri(asked: &Asked) -> Option<String> {
    asked.text().and_then(Object::parse)?.string("uri").map(|uri| uri.into_owned())
}
