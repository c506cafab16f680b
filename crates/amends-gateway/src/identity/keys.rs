//! An issuer's public keys: read from where it keeps them, and kept for the next token.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use hyper::Uri;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::Denied;
use super::fetch::{self, FetchError, Trust};
use crate::config::{OAuthConfig, is_here};

/// How many keys of an issuer are looked at.
const KEYS_MAX: usize = 64;

/// An issuer's keys. Those that were read count until others were read in their place, or for a bounded time.
#[derive(Debug)]
pub(super) struct Keys {
    config: OAuthConfig,
    held: RwLock<Arc<Held>>,
    /// Held while they are read; when that was last tried.
    reading: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Held {
    keys: Vec<Key>,
    /// When they were read.
    read: Option<Instant>,
}

/// One key, with what it may be used for.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    shape: Shape,
    /// The only algorithm it is for, where the issuer says so.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Why an issuer's keys could not be read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("the description of the issuer is not one: {0}")]
    Description(String),
    #[error("there is no key that could be used")]
    NoKeys,
}

/// What is read of an issuer's description.
#[derive(Deserialize)]
pub(super) struct Description {
    issuer: String,
    #[serde(default)]
    jwks_uri: String,
    /// Where people sign in.
    #[serde(default)]
    pub(super) authorization_endpoint: String,
    /// Where what they bring back becomes a token.
    #[serde(default)]
    pub(super) token_endpoint: String,
    /// Where somebody who has no browser here is given a code.
    #[serde(default)]
    pub(super) device_authorization_endpoint: String,
    /// How it is shown there who asks.
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
}

impl Keys {
    pub(super) fn of(config: &OAuthConfig) -> Self {
        Self { config: config.clone(), held: RwLock::default(), reading: tokio::sync::Mutex::default() }
    }

    /// The keys that a token of that algorithm may be signed with. A key that is not known has them read again, which
    /// happens only so often.
    pub(super) async fn suitable(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Vec<DecodingKey>, Denied> {
        let found = self.held().find(id, algorithm, self.config.keep);
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            return Ok(found);
        }
        self.read_again().await;
        match self.held().find(id, algorithm, self.config.keep) {
            Some(found) if found.is_empty() => Err(Denied::Token("its key is not known")),
            Some(found) => Ok(found),
            None => Err(Denied::Unavailable),
        }
    }

    /// Reads the keys, unless that was just tried. It says whether those that are held were read lately.
    pub(super) async fn read_again(&self) -> bool {
        let mut tried = self.reading.lock().await;
        if tried.is_some_and(|tried| tried.elapsed() < self.config.refresh_min) {
            return self.held().read.is_some();
        }
        let read = self.read().await;
        *tried = Some(Instant::now());
        match read {
            Ok(keys) => {
                let held = Held { keys, read: Some(Instant::now()) };
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(held);
                true
            }
            Err(error) => {
                tracing::warn!(issuer = self.config.issuer, %error, "the issuer's keys could not be read");
                false
            }
        }
    }

    /// How many keys there are now.
    pub(super) async fn count(&self) -> Result<usize, String> {
        self.read().await.map(|keys| keys.len()).map_err(|error| error.to_string())
    }

    fn held(&self) -> Arc<Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn read(&self) -> Result<Vec<Key>, ReadError> {
        let (place, trust) = match &self.config.jwks {
            Some(declared) => (declared.clone(), Trust::Declared),
            None => self.discover().await?,
        };
        let keys = read(&fetch::get(&place, self.config.ca.as_deref(), trust).await?);
        if keys.is_empty() { Err(ReadError::NoKeys) } else { Ok(keys) }
    }

    /// Where the issuer itself says that its keys are. Elsewhere than at the issuer's own host, that is nobody's word that
    /// we would follow into this network.
    async fn discover(&self) -> Result<(Uri, Trust), ReadError> {
        let (place, described) = describe(&self.config).await?;
        trusted(&place, &described.jwks_uri)
    }
}

/// What an issuer says of itself, and where it says so.
pub(super) async fn describe(config: &OAuthConfig) -> Result<(Uri, Description), ReadError> {
    let wrong = |words: &str| ReadError::Description(words.to_owned());
    let mut last = None;
    for place in descriptions(&config.issuer) {
        let text = match fetch::get(&place, config.ca.as_deref(), Trust::Declared).await {
            Ok(text) => text,
            Err(error) => {
                last = Some(error);
                continue;
            }
        };
        let described: Description = serde_json::from_slice(&text).map_err(|error| wrong(&error.to_string()))?;
        return match described.issuer == config.issuer {
            true => Ok((place, described)),
            false => Err(wrong("it is another issuer's")),
        };
    }
    Err(last.map_or_else(|| wrong("it has no address"), ReadError::Fetch))
}

/// An address that an issuer names in its description, and by whose word it is reached.
pub(super) fn trusted(place: &Uri, named: &str) -> Result<(Uri, Trust), ReadError> {
    let wrong = |words: &str| ReadError::Description(words.to_owned());
    let named: Uri = named.parse().map_err(|_| wrong("what it names has no address"))?;
    let same = named.authority() == place.authority() && named.scheme() == place.scheme();
    let secured = named.scheme_str() == Some("https");
    let here = place.host().is_some_and(is_here) && named.host().is_some_and(is_here);
    match (same, secured) {
        (true, _) => Ok((named, Trust::Declared)),
        (false, _) if here => Ok((named, Trust::Declared)),
        (false, true) => Ok((named, Trust::Learnt)),
        (false, false) => Err(wrong("what it names is not behind `https://`")),
    }
}

impl Held {
    /// The keys that fit; nothing where none were read, or too long ago.
    fn find(&self, id: Option<&str>, algorithm: Algorithm, keep: Duration) -> Option<Vec<DecodingKey>> {
        self.read.filter(|read| read.elapsed() < keep)?;
        let fits = |key: &&Key| key.suits(algorithm) && (id.is_none() || key.id.as_deref() == id);
        Some(self.keys.iter().filter(fits).map(|key| key.key.clone()).collect())
    }
}

impl Key {
    /// A key that can check signatures of an algorithm that we take.
    fn of(jwk: &Jwk) -> Option<Self> {
        let shape = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Shape::Rsa,
            AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
                EllipticCurve::P256 => Shape::P256,
                EllipticCurve::P384 => Shape::P384,
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Shape::Ed25519,
            // A key that is shared is no public key.
            AlgorithmParameters::OctetKeyPair(_) | AlgorithmParameters::OctetKey(_) => return None,
        };
        if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let algorithm = match jwk.common.key_algorithm {
            Some(named) => Some(named.to_string().parse().ok()?),
            None => None,
        };
        Some(Self { id: jwk.common.key_id.clone(), shape, algorithm, key: DecodingKey::from_jwk(jwk).ok()? })
    }

    fn suits(&self, algorithm: Algorithm) -> bool {
        let shape = match algorithm {
            Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512 | Algorithm::PS256 => Shape::Rsa,
            Algorithm::ES256 => Shape::P256,
            Algorithm::ES384 => Shape::P384,
            Algorithm::EdDSA => Shape::Ed25519,
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 | Algorithm::PS384 | Algorithm::PS512 => {
                return false;
            }
        };
        self.shape == shape && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

/// The keys of a set; one that we cannot use leaves the others.
fn read(text: &[u8]) -> Vec<Key> {
    let set: Value = serde_json::from_slice(text).unwrap_or_default();
    let keys = set["keys"].as_array().into_iter().flatten().take(KEYS_MAX);
    keys.filter_map(|key| Key::of(&serde_json::from_value(key.clone()).ok()?)).collect()
}

/// Where an issuer may describe itself: as OpenID Connect has it, and as RFC 8414 has it.
fn descriptions(issuer: &str) -> Vec<Uri> {
    let bare = issuer.trim_end_matches('/');
    let host = bare.find("://").map_or(0, |at| at + 3);
    let (origin, path) = bare.split_at(bare[host..].find('/').map_or(bare.len(), |at| host + at));
    let openid = format!("{bare}/.well-known/openid-configuration");
    let oauth = format!("{origin}/.well-known/oauth-authorization-server{path}");
    [openid, oauth].iter().filter_map(|place| place.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_check_a_token_of_ours_are_left_out() {
        let set = serde_json::json!({ "keys": [
            { "kty": "RSA", "kid": "r", "n": "AQAB", "e": "AQAB", "use": "sig", "alg": "RS256" },
            { "kty": "RSA", "kid": "enc", "n": "AQAB", "e": "AQAB", "use": "enc" },
            { "kty": "EC", "kid": "p", "crv": "P-256", "x": "AQAB", "y": "AQAB" },
            { "kty": "EC", "kid": "p521", "crv": "P-521", "x": "AQAB", "y": "AQAB" },
            { "kty": "OKP", "kid": "e", "crv": "Ed25519", "x": "AQAB" },
            { "kty": "oct", "kid": "shared", "k": "AQAB" },
            { "kty": "of the future", "kid": "f" },
            7,
        ]});
        let held = Held { keys: read(set.to_string().as_bytes()), read: Some(Instant::now()) };
        let keep = Duration::from_secs(60);
        let found = |id, algorithm| held.find(id, algorithm, keep).unwrap().len();
        assert_eq!(found(Some("r"), Algorithm::RS256), 1);
        assert_eq!(found(Some("r"), Algorithm::RS384), 0, "it is for one algorithm");
        assert_eq!(found(Some("r"), Algorithm::ES256), 0);
        assert_eq!(found(Some("p"), Algorithm::ES256), 1);
        assert_eq!(found(Some("p"), Algorithm::ES384), 0);
        assert_eq!(found(None, Algorithm::EdDSA), 1);
        for id in ["enc", "p521", "shared", "f", "nobody"] {
            assert_eq!(found(Some(id), Algorithm::RS256), 0, "{id}");
            assert_eq!(found(Some(id), Algorithm::HS256), 0, "{id}");
        }
        assert!(held.find(None, Algorithm::EdDSA, Duration::ZERO).is_none(), "they are too old");
        assert!(Held::default().find(None, Algorithm::EdDSA, keep).is_none());
        assert!(read(b"no json").is_empty() && read(b"{\"keys\":{}}").is_empty());
    }

    #[test]
    fn an_issuer_is_described_under_its_own_path() {
        let places = |issuer| descriptions(issuer).iter().map(Uri::to_string).collect::<Vec<_>>();
        assert_eq!(
            places("https://id.example/realms/x/"),
            [
                "https://id.example/realms/x/.well-known/openid-configuration",
                "https://id.example/.well-known/oauth-authorization-server/realms/x"
            ]
        );
        assert_eq!(places("https://id.example")[1], "https://id.example/.well-known/oauth-authorization-server");
    }
}
