//! Keys that belong to a ledger: read from a file or the environment, never kept in the ledger itself.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use amends_ledger::note::{NoteError, NoteKey, NoteVerifier};
use thiserror::Error;

use crate::config::{KeySource, LedgerConfig};

/// Why a key is not there.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("cannot use the key file `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The variable is not set.
    #[error("the variable `{0}` holds no key")]
    Unset(String),
    /// What is there is no key.
    #[error("`{origin}` holds no signing key")]
    Malformed {
        /// Where it was read.
        origin: String,
        /// Why.
        source: NoteError,
    },
    /// There is no randomness to make a key from.
    #[error("there is no randomness for a key: {0}")]
    NoRandomness(String),
}

/// The key that signs a ledger's checkpoints; nothing where the configuration names none. Where the default names a file
/// that is not there, a key of that name is made, and the key that checks it is put beside it.
pub fn signing(config: &LedgerConfig, name: &str) -> Result<Option<NoteKey>, KeyError> {
    let Some(source) = &config.signing_key else {
        return Ok(None);
    };
    let is_default = LedgerConfig::at(config.place.clone()).signing_key.as_ref() == Some(source);
    let text = match source {
        KeySource::File(path) if is_default && !path.exists() => {
            make_once(path, &new(path, name)?).map_err(|source| KeyError::File { path: path.clone(), source })?
        }
        KeySource::File(path) => read(path)?,
        KeySource::Env(variable) => std::env::var(variable)
            .ok()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| KeyError::Unset(variable.clone()))?,
    };
    let key = NoteKey::parse(&text).map_err(|source_error| malformed(source, source_error))?;
    if let KeySource::File(path) = source {
        publish(path, &key)?;
    }
    Ok(Some(key))
}

/// The key that checks a ledger's checkpoints, where it can be found without making anything.
pub fn verifier(config: &LedgerConfig) -> Result<Option<NoteVerifier>, KeyError> {
    let Some(source) = &config.signing_key else {
        return Ok(None);
    };
    match source {
        KeySource::File(path) => {
            let public = public(path);
            if !public.exists() {
                return Ok(None);
            }
            let text = read(&public)?;
            NoteVerifier::parse(&text).map(Some).map_err(|error| malformed(&KeySource::File(public), error))
        }
        KeySource::Env(variable) => match std::env::var(variable) {
            Ok(text) => NoteKey::parse(&text).map(|key| Some(key.verifier())).map_err(|error| malformed(source, error)),
            Err(_) => Ok(None),
        },
    }
}

fn malformed(source: &KeySource, error: NoteError) -> KeyError {
    let origin = match source {
        KeySource::File(path) => path.display().to_string(),
        KeySource::Env(variable) => variable.clone(),
    };
    KeyError::Malformed { origin, source: error }
}

fn read(path: &Path) -> Result<String, KeyError> {
    fs::read_to_string(path).map_err(|source| KeyError::File { path: path.to_owned(), source })
}

/// A new signing key of that name, as it is written.
fn new(path: &Path, name: &str) -> Result<String, KeyError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
    let key = NoteKey::new(name, &secret).map_err(|error| malformed(&KeySource::File(path.to_owned()), error))?;
    Ok(key.text())
}

/// Puts the key that checks beside the one that signs, where another is there or none.
fn publish(path: &Path, key: &NoteKey) -> Result<(), KeyError> {
    let (public, text) = (public(path), format!("{}\n", key.verifier().text()));
    if fs::read_to_string(&public).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let unfinished = beside(&public, &format!("{}.new", std::process::id()));
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &public))
        .map_err(|source| KeyError::File { path: public, source })
}

/// The file of the key that checks what the key in that file signs.
pub fn public(path: &Path) -> PathBuf {
    beside(path, "pub")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Puts a new key into a file that only its owner can read, unless another process is faster, and gives what is in it then.
///
/// It is written under another name first and then linked, which fails where there is one: nobody reads half a key, and
/// nobody's key is replaced.
pub(crate) fn make_once(path: &Path, key: &str) -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let draft = beside(path, &format!("{:016x}", u64::from_be_bytes(random)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(format!("{key}\n").as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // A draft that is left behind holds a key that nobody uses.
    drop(fs::remove_file(&draft));
    linked?;
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LedgerPlace;

    fn config(folder: &Path) -> LedgerConfig {
        LedgerConfig::at(LedgerPlace::Sqlite(folder.join("amends.db")))
    }

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        assert_eq!(verifier(&config).unwrap(), None, "looking makes nothing");
        let key = signing(&config, "amends/x").unwrap().unwrap();
        let again = signing(&config, "amends/y").unwrap().unwrap();
        assert_eq!(key.text(), again.text());
        assert_eq!(verifier(&config).unwrap(), Some(key.verifier()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = fs::metadata(folder.path().join("amends.db.sign")).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_somebody_named_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        config.signing_key = Some(KeySource::File(folder.path().join("elsewhere")));
        assert!(matches!(signing(&config, "amends/x"), Err(KeyError::File { .. })));
        fs::write(folder.path().join("elsewhere"), "no key").unwrap();
        assert!(matches!(signing(&config, "amends/x"), Err(KeyError::Malformed { .. })));
    }
}
