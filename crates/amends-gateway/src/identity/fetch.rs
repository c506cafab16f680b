//! What an issuer publishes, fetched over our own connections.
//!
//! Nothing leads us elsewhere: a redirect is not followed. A host that the operator did not name is reached only at a public
//! address, and the address that was looked at is the one that is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use thiserror::Error;

use crate::config::Access;
use crate::upstream::http::pool::{Departure, Pool, Sent};
use crate::upstream::http::{TlsError, pool_at};

/// How long a document may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How long a document may be.
const BYTES_MAX: usize = 512 << 10;

/// By whose word an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The operator's.
    Declared,
    /// Another's: only a public address will do.
    Learnt,
}

/// Why a document was not fetched.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("`{place}` is at {address}, which is no public address")]
    Private { place: Uri, address: IpAddr },
    #[error("`{place}` cannot be found: {reason}")]
    Unfound { place: Uri, reason: String },
    #[error("`{place}` cannot be reached: {reason}")]
    Unreached { place: Uri, reason: String },
    #[error("`{place}` answers with {status}")]
    Status { place: Uri, status: StatusCode },
    #[error("`{place}` leads elsewhere, and is not followed")]
    Redirected { place: Uri },
    #[error("`{place}` took too long, or said too much")]
    Bounds { place: Uri },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Fetches a document.
pub(super) async fn get(place: &Uri, ca: Option<&Path>, trust: Trust) -> Result<Vec<u8>, FetchError> {
    taken(place, ask(place, ca, trust, Request::new(Full::new(Bytes::new()))).await?)
}

/// Posts the fields of a form, and fetches what is answered, with its status. `as_whom` is shown where the fields do not say it.
pub(super) async fn post(
    place: &Uri,
    ca: Option<&Path>,
    trust: Trust,
    form: String,
    as_whom: Option<HeaderValue>,
) -> Result<(StatusCode, Vec<u8>), FetchError> {
    let mut request = Request::new(Full::new(Bytes::from(form)));
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.extend(as_whom.map(|shown| (AUTHORIZATION, shown)));
    ask(place, ca, trust, request).await
}

/// An answer that is what was asked for.
pub(super) fn taken(place: &Uri, (status, body): (StatusCode, Vec<u8>)) -> Result<Vec<u8>, FetchError> {
    match status {
        StatusCode::OK => Ok(body),
        status => Err(FetchError::Status { place: place.clone(), status }),
    }
}

async fn ask(
    place: &Uri,
    ca: Option<&Path>,
    trust: Trust,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Vec<u8>), FetchError> {
    match tokio::time::timeout(WITHIN, exchange(place, ca, trust, request)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(FetchError::Bounds { place: place.clone() }),
    }
}

async fn exchange(
    place: &Uri,
    ca: Option<&Path>,
    trust: Trust,
    mut request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Vec<u8>), FetchError> {
    let address = match trust {
        Trust::Declared => None,
        Trust::Learnt => Some(public(place).await?),
    };
    let access = Access { ca: ca.map(PathBuf::from), ..Access::default() };
    let pool: Pool = pool_at(place, address, &access)?;
    let path = place.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_default();
    let host = place.authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    request.headers_mut().extend(host.map(|host| (HOST, host)));
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let sent = pool.send(request, Instant::now() + WITHIN, &Departure::default()).await;
    let Sent { response, .. } =
        sent.map_err(|fault| FetchError::Unreached { place: place.clone(), reason: fault.to_string() })?;
    let (parts, body) = response.into_parts();
    if parts.status.is_redirection() {
        return Err(FetchError::Redirected { place: place.clone() });
    }
    let bounds = |_| FetchError::Bounds { place: place.clone() };
    Ok((parts.status, Limited::new(body, BYTES_MAX).collect().await.map_err(bounds)?.to_bytes().to_vec()))
}

/// The address of a host, if it and all others of its name are public.
async fn public(place: &Uri) -> Result<SocketAddr, FetchError> {
    let host = place.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = place.port_u16().unwrap_or(if place.scheme_str() == Some("https") { 443 } else { 80 });
    let unfound = |reason: String| FetchError::Unfound { place: place.clone(), reason };
    let found: Vec<SocketAddr> =
        tokio::net::lookup_host((host, port)).await.map_err(|error| unfound(error.to_string()))?.collect();
    if let Some(address) = found.iter().find(|address| !is_public(address.ip())) {
        return Err(FetchError::Private { place: place.clone(), address: address.ip() });
    }
    found.into_iter().next().ok_or_else(|| unfound("it has no address".to_owned()))
}

/// Whether an address is one that anybody in the world could reach.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let assigned = (a, b, c) == (192, 0, 0);
    let measured = a == 198 && (18..20).contains(&b);
    let special = v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_broadcast()
        || v4.is_documentation()
        || v4.is_multicast();
    !(special || shared || assigned || measured || a == 0 || a >= 240)
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [a, b, ..] = v6.segments();
    // What the world reaches is in 2000::/3. Of that, some is for documents, and some carries another address inside.
    let carries = a == 0x2002 || (a == 0x2001 && b == 0);
    (a & 0xe000) == 0x2000 && !carries && !(a == 0x2001 && b == 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_world_can_reach_is_public() {
        for address in ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "100.63.0.1", "100.128.0.1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn a_place_that_was_learnt_is_not_followed_into_this_network() {
        for place in
            ["https://127.0.0.1/keys", "https://localhost/keys", "https://[::1]/keys", "https://2130706433/keys"]
        {
            let refused = get(&place.parse().unwrap(), None, Trust::Learnt).await.unwrap_err();
            assert!(matches!(refused, FetchError::Private { .. }), "{place}: {refused}");
        }
        let refused = get(&"http://169.254.169.254/latest".parse().unwrap(), None, Trust::Learnt).await.unwrap_err();
        assert!(matches!(refused, FetchError::Private { .. }), "{refused}");
    }
}
