//! Signing in at an issuer: OpenID Connect's authorization code flow with PKCE, a state and a nonce.
//!
//! What the issuer says of a person is one token, which is checked as every token is. It is looked at once, becomes a
//! [`Person`], and is kept nowhere.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::Uri;
use hyper::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::fetch::{self, FetchError, Trust};
use super::keys::{self, ReadError};
use super::oauth::{self, OAuth, claim};
use super::{Denied, Person, Role, is_reserved, is_sound};
use crate::config::{CredentialConfig, OidcConfig};
use crate::sign_in::Visit;
use crate::upstream::credential_now;

/// For how long what an issuer says of itself is not read again.
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);

/// An issuer at which people sign in.
#[derive(Debug)]
pub(crate) struct Oidc {
    config: OidcConfig,
    issuer: Arc<OAuth>,
    /// What it says of itself, and when it was read.
    endpoints: tokio::sync::Mutex<Option<(Instant, Arc<Endpoints>)>>,
}

/// Where an issuer is asked.
#[derive(Debug)]
struct Endpoints {
    /// Where browsers are sent.
    authorization: Uri,
    token: (Uri, Trust),
    /// Whether the secret is a field of the form, and not in a header.
    secret_in_form: bool,
}

/// Why somebody who comes from the issuer is not let in.
#[derive(Debug, Error)]
pub(crate) enum Unwelcome {
    #[error("the issuer cannot be asked now; try again later")]
    Away,
    #[error("the issuer did not take what you brought back; sign in again")]
    NotTaken,
    #[error("what the issuer says of you does not count: {0}")]
    Token(&'static str),
    #[error("the issuer knows you, and nothing that it says of you gives you a role here")]
    Role,
}

/// What is read of the answer to a code.
#[derive(Deserialize)]
struct Granted {
    id_token: String,
}

impl Oidc {
    pub(super) fn start(config: OidcConfig) -> Self {
        let issuer = Arc::new(OAuth::new(config.issuer.clone()));
        tokio::spawn(oauth::keep_fresh(Arc::downgrade(&issuer)));
        Self { config, issuer, endpoints: tokio::sync::Mutex::default() }
    }

    /// The address by which people reach the console, where the operator says so.
    pub(crate) fn console(&self) -> Option<&str> {
        self.config.url.as_deref()
    }

    /// The name of the issuer, for people.
    pub(crate) fn name(&self) -> &str {
        let issuer = &self.config.issuer.issuer;
        issuer.split_once("://").map_or(issuer.as_str(), |(_, rest)| rest.split('/').next().unwrap_or(rest))
    }

    /// Whether an answer that names its issuer names this one.
    pub(crate) fn is(&self, issuer: &str) -> bool {
        issuer == self.config.issuer.issuer
    }

    /// Where a browser is sent to sign in.
    pub(crate) async fn way(&self, visit: &Visit, back: &str) -> Result<String, Unwelcome> {
        let endpoints = self.endpoints().await?;
        let scopes: Vec<&str> = self.config.scopes.iter().map(String::as_str).collect();
        let challenge = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, visit.verifier.as_bytes()));
        let asked = form(&[
            ("response_type", "code"),
            ("client_id", &self.config.issuer.audience),
            ("redirect_uri", back),
            ("scope", &scopes.join(" ")),
            ("state", &visit.state),
            ("nonce", &visit.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        let mark = if endpoints.authorization.query().is_some() { '&' } else { '?' };
        Ok(format!("{}{mark}{asked}", endpoints.authorization))
    }

    /// The person who came back with that code.
    pub(crate) async fn person(&self, visit: &Visit, code: &str, back: &str) -> Result<Person, Unwelcome> {
        let token = self.redeem(visit, code, back).await?;
        let claims = self.issuer.claims(&token).await.map_err(|denied| match denied {
            Denied::Token(why) => Unwelcome::Token(why),
            _ => Unwelcome::Away,
        })?;
        self.read(&claims, &visit.nonce)
    }

    /// The token for a code. A code is shown once, whatever comes of it.
    async fn redeem(&self, visit: &Visit, code: &str, back: &str) -> Result<String, Unwelcome> {
        let endpoints = self.endpoints().await?;
        let client = self.config.issuer.audience.as_str();
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("client_id", client),
            ("code_verifier", visit.verifier.as_str()),
        ];
        let secret = self.secret()?;
        let mut shown = None;
        match &secret {
            Some(secret) if endpoints.secret_in_form => fields.push(("client_secret", secret.as_str())),
            Some(secret) => shown = Some(basic(client, secret).ok_or(Unwelcome::Away)?),
            None => {}
        }
        let (place, trust) = &endpoints.token;
        let answer = fetch::post(place, self.config.issuer.ca.as_deref(), *trust, form(&fields), shown).await;
        let answer = answer.and_then(|answer| fetch::taken(place, answer));
        let answer = answer.map_err(|error| {
            tracing::warn!(%error, "somebody could not sign in at the console");
            match error {
                FetchError::Status { status, .. } if status.is_client_error() => Unwelcome::NotTaken,
                _ => Unwelcome::Away,
            }
        })?;
        let granted: Granted =
            serde_json::from_slice(&answer).map_err(|_| Unwelcome::Token("there is no `id_token` in its answer"))?;
        Ok(granted.id_token)
    }

    /// Who the claims speak of. The nonce is that of this visit, so that what was said to another browser does not count here.
    fn read(&self, claims: &Map<String, Value>, nonce: &str) -> Result<Person, Unwelcome> {
        if claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
            return Err(Unwelcome::Token("it was made for another visit"));
        }
        let issuer = &self.config.issuer;
        let ours = |party: &Value| party.as_str() == Some(issuer.audience.as_str());
        let shared = claims.get("aud").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
        if claims.get("azp").map_or(shared, |party| !ours(party)) {
            return Err(Unwelcome::Token("it was given to somebody else"));
        }
        let text = |name: &str| claim(claims, name).and_then(Value::as_str).filter(|text| is_sound(text));
        let name = text(&issuer.principal_claim).ok_or(Unwelcome::Token("it does not say who you are"))?;
        let tenant = match &issuer.tenant_claim {
            Some(named) => Some(text(named).ok_or(Unwelcome::Token("it does not say for which tenant"))?.to_owned()),
            None => None,
        };
        if tenant.is_none() && (is_reserved(name) || name == "local") {
            return Err(Unwelcome::Token("it names somebody of ours"));
        }
        let listed = issuer.role_claim.as_ref().and_then(|named| claim(claims, named));
        let role = words(listed).into_iter().filter_map(|word| self.role(word)).max().ok_or(Unwelcome::Role)?;
        Ok(Person { name: name.to_owned(), tenant, role })
    }

    fn role(&self, word: &str) -> Option<Role> {
        match self.config.roles.is_empty() {
            true => Role::parse(word),
            false => self.config.roles.get(word).copied(),
        }
    }

    fn secret(&self) -> Result<Option<String>, Unwelcome> {
        let Some(source) = &self.config.secret else { return Ok(None) };
        let secret = credential_now(&CredentialConfig { source: source.clone(), prefix: String::new() });
        secret.map(Some).map_err(|error| {
            tracing::warn!(%error, "nobody can sign in at the issuer");
            Unwelcome::Away
        })
    }

    async fn endpoints(&self) -> Result<Arc<Endpoints>, Unwelcome> {
        let mut held = self.endpoints.lock().await;
        if let Some((_, known)) = held.as_ref().filter(|(read, _)| read.elapsed() < FRESH_FOR) {
            return Ok(known.clone());
        }
        let read = Arc::new(self.discover().await.map_err(|error| {
            tracing::warn!(%error, "nobody can sign in at the issuer");
            Unwelcome::Away
        })?);
        *held = Some((Instant::now(), read.clone()));
        Ok(read)
    }

    async fn discover(&self) -> Result<Endpoints, ReadError> {
        let (place, said) = keys::describe(&self.config.issuer).await?;
        let methods: BTreeSet<&str> = said.token_endpoint_auth_methods_supported.iter().map(String::as_str).collect();
        Ok(Endpoints {
            authorization: keys::trusted(&place, &said.authorization_endpoint)?.0,
            token: keys::trusted(&place, &said.token_endpoint)?,
            secret_in_form: methods.contains("client_secret_post") && !methods.contains("client_secret_basic"),
        })
    }
}

/// The words of a claim: of a text each, of a list every text as it is.
fn words(listed: Option<&Value>) -> Vec<&str> {
    match listed {
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A client and its secret, in a header.
pub(super) fn basic(client: &str, secret: &str) -> Option<HeaderValue> {
    let pair = STANDARD.encode(format!("{}:{}", encoded(client), encoded(secret)));
    let mut header = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
