//! What an upstream is shown so that it believes us: read from where it is kept, never from the configuration itself.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::config::{CredentialConfig, KeySource};
use crate::identity::Account;

/// After which time a file is read again, so that a new credential is used without a restart.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// A credential, ready to be shown. It prints as dots.
pub(super) enum Credential {
    /// One that is read from where it is kept.
    Kept(Kept),
    /// The token of an account that a person signed in to.
    Account(Arc<Account>),
}

/// A credential that is read from where it is kept.
pub(super) struct Kept {
    config: CredentialConfig,
    held: Mutex<Held>,
}

struct Held {
    read: Instant,
    value: String,
    /// Whether its place was empty when it was last looked at: somebody took it away.
    gone: bool,
}

/// Why a credential is not there.
#[derive(Debug, Error)]
#[error("no credential in {place}: {reason}")]
pub struct CredentialError {
    place: String,
    reason: String,
    empty: bool,
}

impl Credential {
    /// Reads a credential.
    pub(super) fn read(config: &CredentialConfig) -> Result<Self, CredentialError> {
        let value = value(config)?;
        let held = Mutex::new(Held { read: Instant::now(), value, gone: false });
        Ok(Self::Kept(Kept { config: config.clone(), held }))
    }

    /// What is shown; empty where nobody has signed in. A file that cannot be read again leaves it as it was.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Kept(kept) => kept.now().value.clone(),
            Self::Account(account) => account.shown().map(|token| format!("Bearer {token}")).unwrap_or_default(),
        }
    }

    /// Whether its place is empty, so that there is nothing to show. For an account, somebody is asked to sign in.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            Self::Kept(kept) => kept.now().gone,
            Self::Account(_) => false,
        }
    }

    /// The account whose token it is.
    pub(super) fn account(&self) -> Option<&Arc<Account>> {
        match self {
            Self::Kept(_) => None,
            Self::Account(account) => Some(account),
        }
    }
}

impl Kept {
    fn now(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.config.source, KeySource::File(_)) && held.read.elapsed() >= FRESH_FOR {
            held.read = Instant::now();
            match value(&self.config) {
                Ok(value) => (held.value, held.gone) = (value, false),
                Err(error) if error.empty => {
                    tracing::warn!(%error, "nothing is sent that would want it");
                    held.gone = true;
                }
                Err(error) => tracing::warn!(%error, "the credential that was read before is used"),
            }
        }
        held
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// What is kept there now.
pub(crate) fn value(config: &CredentialConfig) -> Result<String, CredentialError> {
    let (place, read) = match &config.source {
        KeySource::Env(variable) => {
            let read = std::env::var(variable).map_err(|_| "it is not set, or no text".to_owned());
            (format!("the variable `{variable}`"), read)
        }
        KeySource::File(path) => {
            let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
            (format!("the file `{}`", path.display()), read)
        }
    };
    let empty = read.as_ref().is_ok_and(|text| text.trim().is_empty());
    let checked = read.and_then(|text| match text.trim() {
        "" => Err("it is empty".to_owned()),
        text if text.chars().any(char::is_control) => {
            Err("it has more than one line, or a control character".to_owned())
        }
        text => Ok(format!("{}{text}", config.prefix)),
    });
    checked.map_err(|reason| CredentialError { place, reason, empty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_read_with_its_prefix_and_is_not_shown_by_accident() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "s3cret\n").unwrap();
        let config = CredentialConfig { source: KeySource::File(path.clone()), prefix: "Bearer ".into() };
        let credential = Credential::read(&config).unwrap();
        assert_eq!(credential.shown(), "Bearer s3cret");
        assert!(!format!("{credential:?}").contains("s3cret"));
        std::fs::write(&path, "two\nlines").unwrap();
        let refused = Credential::read(&config).unwrap_err().to_string();
        assert!(refused.contains("token") && !refused.contains("two"), "{refused}");
    }
}
