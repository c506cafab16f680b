//! Who comes in: what a request shows of its sender, and what it is told where that does not do.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use serde_json::json;

use super::body::Body;
use super::{Door, json as respond, plain_text};
use crate::identity::{self, Caller, Denied, Right};

/// The names under which a token is put into an address.
const IN_ADDRESS: [&str; 5] = ["access_token", "token", "bearer", "authorization", "api_key"];

/// The refusal of a request with a token in its address, where proxies and logs keep it. A page may be opened by a link.
pub(super) fn check(door: &Door, request: &Request<Incoming>) -> Option<Response<Body>> {
    let names = request.uri().query()?.split('&').map(|pair| decoded(pair.split('=').next().unwrap_or_default()));
    let path = request.uri().path();
    let is_door = matches!(path, "/mcp" | "/metrics" | "/agui" | "/agui/stop")
        || path.starts_with("/call/")
        || super::a2a::is_here(path);
    let wrong = |name: &String| name == IN_ADDRESS[0] || (is_door && IN_ADDRESS.contains(&name.as_str()));
    names.into_iter().any(|name| wrong(&name)).then(|| denied(door, &Denied::InAddress))
}

/// Who sent a request, as an agent.
pub(super) async fn caller(door: &Arc<Door>, request: &Request<Incoming>) -> Result<Caller, Response<Body>> {
    let caller = door.gateway.identity().caller_with(request.headers(), Right::Call).await;
    caller.map_err(|why| denied(door, &why))
}

/// The description of this gateway that tells agents where to get a token.
pub(super) fn metadata(door: &Door, path: &str) -> Response<Body> {
    let config = door.gateway.config();
    let below = path.strip_prefix(identity::METADATA_PATH).unwrap_or_default();
    match &config.auth.oauth {
        Some(oauth) if matches!(below, "" | "/" | "/mcp") => {
            respond(StatusCode::OK, identity::metadata(oauth).to_string())
        }
        _ => plain_text(StatusCode::NOT_FOUND, "there is nothing here; MCP is at /mcp"),
    }
}

/// What somebody is told who is not let in.
pub(super) fn denied(door: &Door, why: &Denied) -> Response<Body> {
    let status = StatusCode::from_u16(why.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let code = why.code().unwrap_or(if status == StatusCode::UNAUTHORIZED { "unauthorized" } else { "unavailable" });
    let mut response = respond(status, json!({ "error": code, "error_description": why.to_string() }).to_string());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    let challenge = why.challenge(&door.gateway.config().auth);
    headers.extend(challenge.and_then(|text| HeaderValue::from_str(&text).ok()).map(|text| (WWW_AUTHENTICATE, text)));
    response
}

/// The name of a parameter, however it is spelled.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn the_name_of_a_parameter_is_known_however_it_is_spelled() {
        for name in ["access_token", "Access_Token", "access%5Ftoken", "%61ccess%5ftoken"] {
            assert_eq!(decoded(name), "access_token");
        }
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
