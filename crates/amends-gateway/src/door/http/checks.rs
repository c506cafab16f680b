//! What the stateless era demands of a request over HTTP before anybody looks at what it wants.

use amends_wire::mcp::{Era, era, http as headers};
use amends_wire::message;
use hyper::{Response, StatusCode};

use super::body::Body;
use super::json;
use crate::door::mcp::Asked;

/// The answer to a request that is not as its era demands; nothing where it is.
///
/// A request belongs to the stateless era if its header or its `_meta` says so, or its method where it names no session. Whether a client says the same thing
/// twice is looked at before whether we can do it: one that disagrees with itself is told that.
pub(super) fn refused(asked: &Asked, routing: headers::Routing<'_>, has_session: bool) -> Option<Response<Body>> {
    let params = asked.params.as_deref();
    let named = era::requested_version(params);
    let in_header = routing.version.is_some_and(|version| Era::of_version(version) == Era::Modern);
    let by_method = !has_session && matches!(asked.method.as_str(), "server/discover" | "subscriptions/listen");
    if named.is_none() && !in_header && !by_method {
        return None;
    }
    let Some(version) = named.filter(|_| era::declares_capabilities(params)) else {
        let words = format!("`_meta` must hold `{}` and `{}`", era::PROTOCOL_VERSION, era::CLIENT_CAPABILITIES);
        return Some(fail(asked, message::INVALID_PARAMS, &words, None));
    };
    if let Err(mismatch) = headers::check(routing, &version, &asked.method, params) {
        return Some(fail(asked, mismatch.code(), &mismatch.to_string(), None));
    }
    if !era::is_known(&version) {
        let data = serde_json::json!({ "supported": era::VERSIONS, "requested": version }).to_string();
        return Some(fail(asked, era::UNSUPPORTED_VERSION, "this protocol version is not supported", Some(&data)));
    }
    // The method belongs to the other era.
    (asked.method == "initialize")
        .then(|| fail(asked, message::METHOD_NOT_FOUND, "there is no such method in this version", None))
}

fn fail(asked: &Asked, code: i64, text: &str, data: Option<&str>) -> Response<Body> {
    let status = StatusCode::from_u16(headers::status_of(code)).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, message::failure(Some(&asked.id), code, text, data))
}
