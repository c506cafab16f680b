//! Tokens that are known here.

use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::SystemRandom;

use super::{Caller, IdentityError};
use crate::config::{CredentialConfig, KeySource, TokenConfig};
use crate::upstream::{CredentialError, credential_now};

/// After which time a file is read again, so that a new token counts, and an old one no more, without a restart.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// The key of the digests that are compared. It lives as long as the process and is nowhere else.
static KEY: LazyLock<hmac::Key> = LazyLock::new(|| {
    hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
        .expect("there is randomness, or nothing could be minted")
});

/// The tokens that are known here. Their keyed digests are held, not they themselves.
pub(super) struct Tokens(Vec<Known>);

struct Known {
    config: TokenConfig,
    held: Mutex<Held>,
}

struct Held {
    read: Instant,
    /// Nothing where the token cannot be read: then nobody can show it.
    digest: Option<hmac::Tag>,
}

impl Tokens {
    /// Reads every token.
    pub(super) fn read(configs: &[TokenConfig]) -> Result<Self, IdentityError> {
        let known = configs.iter().map(|config| {
            let digest = digest(config).map_err(|source| IdentityError::Token { name: config.name.clone(), source })?;
            let held = Held { read: Instant::now(), digest: Some(digest) };
            Ok(Known { config: config.clone(), held: Mutex::new(held) })
        });
        Ok(Self(known.collect::<Result<_, _>>()?))
    }

    /// Whoever shows that. Every token is compared to its end, so that the time it takes says nothing of any.
    pub(super) fn find(&self, shown: &str) -> Option<&Caller> {
        if self.0.is_empty() {
            return None;
        }
        let shown = hmac::sign(&KEY, shown.as_bytes());
        let mut found = None;
        for known in &self.0 {
            let differing = match known.now() {
                Some(held) => shown.as_ref().iter().zip(held.as_ref()).fold(0, |differing, (a, b)| differing | (a ^ b)),
                None => 1,
            };
            if differing == 0 {
                found = Some(&known.config.caller);
            }
        }
        found
    }
}

impl Known {
    /// The digest of the token as it is kept now.
    fn now(&self) -> Option<hmac::Tag> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.config.secret, KeySource::File(_)) && held.read.elapsed() >= FRESH_FOR {
            let digest = digest(&self.config);
            if let Err(error) = &digest {
                tracing::warn!(token = self.config.name, %error, "nobody can show this token");
            }
            *held = Held { read: Instant::now(), digest: digest.ok() };
        }
        held.digest
    }
}

fn digest(config: &TokenConfig) -> Result<hmac::Tag, CredentialError> {
    Ok(hmac::sign(&KEY, secret(config)?.as_bytes()))
}

/// How many bytes a token has.
pub(super) fn length(config: &TokenConfig) -> Result<usize, CredentialError> {
    secret(config).map(|secret| secret.len())
}

fn secret(config: &TokenConfig) -> Result<String, CredentialError> {
    credential_now(&CredentialConfig { source: config.secret.clone(), prefix: String::new() })
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| &known.config.name)).finish()
    }
}
