//! The keys of a vault.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use sha2::{Digest as _, Sha256};
use thiserror::Error as ThisError;

use crate::error::Error;

/// How long a key's id is.
pub(super) const ID_LEN: usize = 8;

const KEY_LEN: usize = 32;

/// What a key's id is made from, before the key.
const ID: &[u8] = b"amends/vault/key/1\n";

/// A key that seals and opens.
pub(super) struct Key {
    id: KeyId,
    cipher: XChaCha20Poly1305,
}

/// The name of a key, which says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyId(pub(super) [u8; ID_LEN]);

/// Why keys cannot be read. The keys themselves are not in it.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
pub enum KeyError {
    /// There is none.
    #[error("it holds no key")]
    Empty,
    /// A line is not a key.
    #[error("line {line} is not a key: 32 bytes in base64")]
    NotAKey {
        /// Which line, from 1.
        line: usize,
    },
}

impl Key {
    pub(super) fn id(&self) -> KeyId {
        self.id
    }

    pub(super) fn cipher(&self) -> &XChaCha20Poly1305 {
        &self.cipher
    }
}

impl KeyId {
    pub(super) fn bytes(&self) -> &[u8; ID_LEN] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

/// A new random key, as it is written in a key's file.
pub fn new_key() -> Result<String, Error> {
    let mut key = [0; KEY_LEN];
    getrandom::fill(&mut key)
        .map_err(|error| Error::Unavailable { reason: format!("no randomness for a key: {error}") })?;
    Ok(to_base64(&key))
}

pub(super) fn parse(text: &str) -> Result<Vec<Key>, KeyError> {
    let mut keys = Vec::new();
    for (line, written) in (1..).zip(text.lines().map(str::trim)) {
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let bytes: [u8; KEY_LEN] =
            from_base64(written).and_then(|bytes| bytes.try_into().ok()).ok_or(KeyError::NotAKey { line })?;
        let hash = Sha256::new_with_prefix(ID).chain_update(bytes).finalize();
        let id = hash.first_chunk().copied().expect("a hash is longer than an id");
        keys.push(Key { id: KeyId(id), cipher: XChaCha20Poly1305::new(&bytes.into()) });
    }
    if keys.is_empty() { Err(KeyError::Empty) } else { Ok(keys) }
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_and_never_shown() {
        let written = new_key().unwrap();
        let keys = parse(&written).unwrap();
        let shown = format!("{keys:?}");
        assert!(!shown.contains(&written) && shown.starts_with("[Key("), "{shown}");
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_line_and_without_its_words() {
        assert_eq!(parse("# nothing\n\n").unwrap_err(), KeyError::Empty);
        let refused = parse(&format!("{}\nhunter2", new_key().unwrap())).unwrap_err();
        assert_eq!(refused, KeyError::NotAKey { line: 2 });
        assert!(!refused.to_string().contains("hunter2"));
        assert!(parse(&to_base64(&[1; 31])).is_err());
    }
}
