//! `GET /metrics`: who may read it: whoever shows the token of `listen.metrics`, or one that is good for administering; where
//! nobody has to say who they are, whoever is on this machine.

use std::sync::Arc;

use amends_ledger::digest;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};

use super::body::Body;
use super::connection::Connection;
use super::{Door, entry, plain_text, respond};
use crate::config::{CredentialConfig, KeySource};
use crate::identity::Right;
use crate::metrics;
use crate::upstream::credential_now;

/// The numbers, for whoever may read them.
pub(super) async fn report(door: &Arc<Door>, connection: &Connection, request: &Request<Incoming>) -> Response<Body> {
    if let Some(refused) = refused(door, connection, request.headers()).await {
        return refused;
    }
    respond(StatusCode::OK, metrics::CONTENT_TYPE, door.gateway.metrics.text(&door.gateway).await)
}

async fn refused(door: &Door, connection: &Connection, headers: &HeaderMap) -> Option<Response<Body>> {
    let (config, identity) = (door.gateway.config(), door.gateway.identity());
    if !identity.is_asked_for() {
        return refusal(config.metrics.as_ref(), connection.is_local, headers);
    }
    let by_token = config.metrics.as_ref().is_some_and(|token| refusal(Some(token), false, headers).is_none());
    if by_token {
        return None;
    }
    identity.caller_with(headers, Right::Admin).await.err().map(|denied| entry::denied(door, &denied))
}

/// The refusal of somebody who may not read them. Where there is a token, everybody has to show it: behind a proxy, all the
/// world is on this machine.
fn refusal(token: Option<&KeySource>, is_local: bool, headers: &HeaderMap) -> Option<Response<Body>> {
    let Some(source) = token else {
        let forwarded = ["via", "forwarded", "x-forwarded-for"].iter().any(|name| headers.contains_key(*name));
        let words = "the metrics are for this machine; `listen.metrics` names a token for others";
        return (!is_local || forwarded).then(|| plain_text(StatusCode::FORBIDDEN, words));
    };
    let config = CredentialConfig { source: source.clone(), prefix: "Bearer ".to_owned() };
    let wanted = match credential_now(&config) {
        Ok(wanted) => wanted,
        Err(error) => {
            tracing::warn!(%error, "nobody can read the metrics");
            return Some(plain_text(StatusCode::FORBIDDEN, "the token of `listen.metrics` cannot be read"));
        }
    };
    let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // Digests are compared, so that the time it takes says nothing of the token.
    if digest(shown) == digest(wanted.as_bytes()) {
        return None;
    }
    let mut refused = plain_text(StatusCode::UNAUTHORIZED, "the metrics want to be shown a token");
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Some(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(token: Option<&KeySource>, is_local: bool, headers: &[(&'static str, &str)]) -> u16 {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        refusal(token, is_local, &headers).map_or(200, |refused| refused.status().as_u16())
    }

    #[test]
    fn without_a_token_only_this_machine_reads_and_with_one_whoever_shows_it() {
        assert_eq!(status(None, true, &[]), 200);
        assert_eq!(status(None, false, &[("authorization", "Bearer x")]), 403);
        assert_eq!(status(None, true, &[("x-forwarded-for", "10.0.0.1")]), 403, "a proxy is not who asks");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = KeySource::File(path.clone());
        assert_eq!(status(Some(&token), true, &[("authorization", "Bearer ")]), 403, "it is not there");
        std::fs::write(&path, "t0ken\n").unwrap();
        assert_eq!(status(Some(&token), false, &[("authorization", "Bearer t0ken")]), 200);
        for odd in ["", "t0ken", "Bearer t0kem", "Bearer t0ken2", "bearer t0ken"] {
            assert_eq!(status(Some(&token), true, &[("authorization", odd)]), 401, "{odd}");
        }
        assert_eq!(status(Some(&token), true, &[]), 401);
    }
}
