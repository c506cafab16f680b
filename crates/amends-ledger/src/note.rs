//! Signed notes: a text, and under it who signed it, in the form of C2SP `signed-note` with Ed25519.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The algorithm's number in keys and key ids.
const ED25519: u8 = 1;

/// What a line of signatures begins with: a dash, as long as an m, and a space.
const SIGNATURE: &str = "— ";

/// What a private key's text begins with.
const PRIVATE: &str = "PRIVATE+KEY+";

/// Why a key or a note is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoteError {
    /// A key's text is not one.
    #[error("it is not a key of the form NAME+ID+KEY")]
    Key,
    /// A key's name holds a space or a plus, or is empty.
    #[error("a key's name is not empty and holds neither spaces nor `+`")]
    Name,
    /// A note's text is not one.
    #[error("it is not a signed note")]
    Shape,
    /// Nobody signed a note with that key.
    #[error("it is not signed with that key")]
    Unsigned,
    /// A signature that claims to be of that key does not fit the text.
    #[error("its signature does not fit")]
    Forged,
}

/// A key that signs notes. It prints without its secret.
#[derive(Clone)]
pub struct NoteKey {
    name: String,
    key: SigningKey,
}

impl NoteKey {
    /// A key of that name with these secret bytes.
    pub fn new(name: &str, secret: &[u8; 32]) -> Result<Self, NoteError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), key: SigningKey::from_bytes(secret) })
    }

    /// Reads a key as [`NoteKey::text`] writes it.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let rest = text.trim().strip_prefix(PRIVATE).ok_or(NoteError::Key)?;
        let (name, id, secret) = key_parts(rest)?;
        let key = Self::new(name, &secret)?;
        if key.verifier().id != id {
            return Err(NoteError::Key);
        }
        Ok(key)
    }

    /// It as a text, which is a secret: `PRIVATE+KEY+NAME+ID+KEY`.
    pub fn text(&self) -> String {
        format!("{PRIVATE}{}", key_text(&self.name, self.verifier().id, self.key.as_bytes()))
    }

    /// The key that checks what this one signs.
    pub fn verifier(&self) -> NoteVerifier {
        NoteVerifier::new(self.name.clone(), self.key.verifying_key())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The signature of some bytes alone, for what is not a note.
    pub fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes).to_bytes()
    }

    /// Signs a text, which ends with a line break.
    pub fn sign(&self, text: &str) -> String {
        let mut signed = self.verifier().id.to_vec();
        signed.extend_from_slice(&self.key.sign(text.as_bytes()).to_bytes());
        format!("{text}\n{SIGNATURE}{} {}\n", self.name, BASE64_STANDARD.encode(signed))
    }
}

impl fmt::Debug for NoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoteKey({}, ……)", self.name)
    }
}

/// A key that checks notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteVerifier {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl NoteVerifier {
    fn new(name: String, key: VerifyingKey) -> Self {
        let hash =
            Sha256::new_with_prefix(&name).chain_update([b'\n', ED25519]).chain_update(key.as_bytes()).finalize();
        let id = [hash[0], hash[1], hash[2], hash[3]];
        Self { name, id, key }
    }

    /// Reads a key as [`NoteVerifier::text`] writes it.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let (name, id, bytes) = key_parts(text.trim())?;
        let key = Self::new(name.to_owned(), VerifyingKey::from_bytes(&bytes).map_err(|_| NoteError::Key)?);
        if key.id == id { Ok(key) } else { Err(NoteError::Key) }
    }

    /// It as a text, which may be known to everybody: `NAME+ID+KEY`.
    pub fn text(&self) -> String {
        key_text(&self.name, self.id, self.key.as_bytes())
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of a note, if this key signed it.
    pub fn open<'a>(&self, note: &'a str) -> Result<&'a str, NoteError> {
        let (text, signatures) = split(note)?;
        let mut found = Err(NoteError::Unsigned);
        for line in signatures.lines() {
            let (name, signed) =
                line.strip_prefix(SIGNATURE).and_then(|line| line.split_once(' ')).ok_or(NoteError::Shape)?;
            let signed = BASE64_STANDARD.decode(signed).map_err(|_| NoteError::Shape)?;
            // Others may sign the same text; whoever they are, they are none of our business.
            if name != self.name || !signed.starts_with(&self.id) {
                continue;
            }
            let signature = Signature::from_slice(&signed[self.id.len()..]).map_err(|_| NoteError::Forged)?;
            self.key.verify_strict(text.as_bytes(), &signature).map_err(|_| NoteError::Forged)?;
            found = Ok(text);
        }
        found
    }
}

/// The text of a note and the lines under it.
pub(crate) fn split(note: &str) -> Result<(&str, &str), NoteError> {
    let end = note.rfind("\n\n").ok_or(NoteError::Shape)?;
    let (text, signatures) = (&note[..=end], &note[end + 2..]);
    if signatures.ends_with('\n') { Ok((text, signatures)) } else { Err(NoteError::Shape) }
}

/// Whether the lines under a note are there to their end: a signature of Ed25519 and the id before it are 68 bytes.
pub(crate) fn is_whole(note: &str) -> bool {
    let decoded = |line: &str| BASE64_STANDARD.decode(line.rsplit(' ').next()?).ok();
    split(note).is_ok_and(|(_, signatures)| {
        !signatures.is_empty() && signatures.lines().all(|line| decoded(line).is_some_and(|bytes| bytes.len() >= 68))
    })
}

fn check_name(name: &str) -> Result<(), NoteError> {
    let odd = |character: char| character.is_whitespace() || character == '+';
    if name.is_empty() || name.contains(odd) { Err(NoteError::Name) } else { Ok(()) }
}

fn key_text(name: &str, id: [u8; 4], bytes: &[u8; 32]) -> String {
    let mut key = vec![ED25519];
    key.extend_from_slice(bytes);
    format!("{name}+{:08x}+{}", u32::from_be_bytes(id), BASE64_STANDARD.encode(key))
}

/// The name, the id and the bytes of a key's text. The base64 may hold a plus itself, so only the first two divide.
fn key_parts(text: &str) -> Result<(&str, [u8; 4], [u8; 32]), NoteError> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(NoteError::Key);
    };
    check_name(name)?;
    let id = u32::from_str_radix(id, 16).ok().filter(|_| id.len() == 8).ok_or(NoteError::Key)?;
    let bytes = BASE64_STANDARD.decode(key).map_err(|_| NoteError::Key)?;
    let [ED25519, key @ ..] = &bytes[..] else { return Err(NoteError::Key) };
    Ok((name, id.to_be_bytes(), key.try_into().map_err(|_| NoteError::Key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Go package `golang.org/x/mod/sumdb/note`, from which the form comes.
    const VERIFIER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\
        \n\
        — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn a_published_note_is_accepted_and_a_changed_one_is_not() {
        let key = NoteVerifier::parse(VERIFIER).unwrap();
        assert_eq!(key.text(), VERIFIER);
        assert!(key.open(NOTE).unwrap().ends_with("problem is.\n"));
        assert_eq!(key.open(&NOTE.replace("problem is", "problem was")), Err(NoteError::Forged));
        assert_eq!(key.open(&NOTE.replace("PeterNeumann", "Somebody")), Err(NoteError::Unsigned));
        assert_eq!(key.open(&NOTE[..NOTE.len() - 1]), Err(NoteError::Shape));
    }

    #[test]
    fn a_key_comes_back_as_it_was_written_and_never_prints_its_secret() {
        let key = NoteKey::new("example.org/log", &[7; 32]).unwrap();
        let again = NoteKey::parse(&key.text()).unwrap();
        let note = again.sign("a text\n");
        assert_eq!(key.verifier().open(&note), Ok("a text\n"));
        assert_eq!(NoteVerifier::parse(&key.verifier().text()), Ok(key.verifier()));
        assert_eq!(format!("{key:?}"), "NoteKey(example.org/log, ……)");
        let other = NoteKey::new("example.org/log", &[8; 32]).unwrap();
        assert_eq!(other.verifier().open(&note), Err(NoteError::Unsigned));
        assert!(NoteKey::parse(&key.text().replace("example", "sample")).is_err(), "the id belongs to the name");
        assert!(NoteKey::new("two words", &[7; 32]).is_err());
    }
}
