//! A2A: JSON-RPC at `/a2a`, HTTP and JSON beneath `/a2a/v1`, and the card. A call is a task, and a task is what its trace tells.

mod begin;
mod card;
mod follow;
mod list;
mod methods;
mod push;
mod rest;
mod rpc;
mod task;

use std::sync::Arc;

use amends_core::Principal;
use amends_wire::a2a::version::HEADER;
use amends_wire::a2a::{Refused, Trouble, Version};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};

pub(super) use card::card;
pub(super) use list::Over;
pub(super) use push::Pushes;

use super::Door;
use super::body::{Bad, Body, Read, read};
use super::connection::Connection;
use crate::config::Limits;

/// The name of this door in traces and policies.
const DOOR: &str = "a2a";
/// Where JSON-RPC is.
const RPC: &str = "/a2a";
/// What the paths of the other binding begin with.
const REST: &str = "/a2a/v1";

/// Whether that is a path of ours.
pub(super) fn is_here(path: &str) -> bool {
    path.strip_prefix(RPC).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Takes one request of an agent.
pub(super) async fn handle(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    match request.uri().path().trim_end_matches('/') {
        RPC => rpc::handle(door, connection, who, request).await,
        _ => rest::handle(door, connection, who, request).await,
    }
}

/// Who asks, and in which version.
struct Asker<'a> {
    door: &'a Arc<Door>,
    who: &'a Principal,
    version: Version,
    /// Whether a stream ends where somebody is asked, as it did in 0.3.
    ends_asking: bool,
}

/// The version that a request names, in its header or else in its address; nothing where it names none.
fn named_version<B>(door: &Door, request: &Request<B>) -> Result<Option<Version>, Refused> {
    let header = request.headers().get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let asked = request.uri().query().unwrap_or_default().split('&');
    let asked = asked.filter_map(|pair| pair.split_once('='));
    let asked =
        asked.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(HEADER)).map(|(_, value)| value.to_owned());
    let Some(named) = header.or(asked).filter(|named| !named.trim().is_empty()) else { return Ok(None) };
    match Version::parse(&named) {
        Some(version) => spoken(door, version, &named).map(Some),
        None => Err(unspoken(door, &named)),
    }
}

/// That version, where it is spoken here.
fn spoken(door: &Door, version: Version, named: &str) -> Result<Version, Refused> {
    match version {
        Version::V03 if !door.gateway.config().a2a.old => Err(unspoken(door, named)),
        version => Ok(version),
    }
}

fn unspoken(door: &Door, named: &str) -> Refused {
    let shown: String = named.chars().take(32).collect();
    let supported = if door.gateway.config().a2a.old { "1.0, 0.3" } else { "1.0" };
    let refused = Refused::of(Trouble::Version, format!("version `{shown}` of A2A is not spoken here"));
    refused.with("supported", supported)
}

/// Whether the body is of a type that is read here.
fn is_json<B>(request: &Request<B>) -> Result<(), Refused> {
    let given =
        request.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
    let given = given.unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/a2a+json" => Ok(()),
        other => {
            let shown: String = other.chars().take(64).collect();
            let words = format!("a body of the type `{shown}` is not read here; send `application/json`");
            Err(Refused::of(Trouble::ContentType, words))
        }
    }
}

/// Reads a body within bounds. What is too large says at least of which request it is.
async fn text_of(body: Incoming, limits: Limits) -> Result<String, (Refused, Option<String>)> {
    match read(body, limits.body_bytes, limits.depth).await {
        Read::Text(text) => Ok(text),
        Read::Gone => Err((Refused::of(Trouble::InvalidRequest, "the body broke off"), None)),
        Read::Bad { why, scanned } => {
            let words = match why {
                Bad::TooLarge => format!("the body is larger than {} bytes", limits.body_bytes),
                Bad::TooDeep => format!("the body nests deeper than {} levels", limits.depth),
                Bad::NotUtf8 => "the body is not UTF-8".to_owned(),
            };
            Err((Refused::of(Trouble::InvalidRequest, words), scanned.id().map(str::to_owned)))
        }
    }
}

fn unavailable(error: &amends_ledger::Error) -> Refused {
    tracing::warn!(%error, "a task cannot be read");
    Refused::of(Trouble::Internal, "the ledger cannot be read; ask again later")
}
