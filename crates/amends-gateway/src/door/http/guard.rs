//! Who may talk to us at all: the checks of `Host` and `Origin` against pages that a browser was lured to.

use hyper::body::Incoming;
use hyper::header::{HOST, ORIGIN};
use hyper::{Request, Response, StatusCode};

use super::body::Body;
use super::{Door, plain_text};

/// The refusal of a request whose `Host` or `Origin` is not ours; nothing where both are.
pub(super) fn check(door: &Door, request: &Request<Incoming>) -> Option<Response<Body>> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or(""));
    let config = door.gateway.config();
    let ours = |authority: &str| is_ours(authority, &config.hosts, door.port);
    if let Some(host) = header(HOST)
        && !ours(host)
    {
        return Some(plain_text(StatusCode::FORBIDDEN, "this `Host` is not ours; see `listen.hosts`"));
    }
    if let Some(origin) = header(ORIGIN) {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !authority.is_some_and(ours) {
            return Some(plain_text(StatusCode::FORBIDDEN, "this `Origin` is not ours; see `listen.hosts`"));
        }
    }
    None
}

fn is_ours(authority: &str, hosts: &[String], _port: u16) -> bool {
    let name = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => authority.rsplit_once(':').map_or(authority, |(name, _)| name),
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1") || hosts.iter().any(|host| host == name || host == authority)
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_the_loopback_names_and_the_configured_ones_are_ours() {
        let hosts = vec!["amends.internal".to_owned()];
        for ours in ["localhost", "localhost:7070", "127.0.0.1:1", "[::1]:7070", "amends.internal:7070"] {
            assert!(is_ours(ours, &hosts, 7070), "{ours}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7070", "", "[::2]:7070"] {
            assert!(!is_ours(foreign, &hosts, 7070), "{foreign}");
        }
    }
}
