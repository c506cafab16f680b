//! The hash chain of a session, and the digests a ledger hands out.
//!
//! A chain begins with `SHA-256("amends/chain/1\n" || session id)`. Each event's link is the SHA-256 of the link before it
//! and of the event's canonical JSON (RFC 8785), which is stored byte for byte as it was hashed.

mod canonical;
mod check;

use std::fmt;

use amends_core::{Digest, Event, Rules, SessionId};
use hmac::{Hmac, Mac};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error::Error;

pub use check::{Checked, check};

/// What a chain's first link is made from, before the session's id.
const GENESIS: &[u8] = b"amends/chain/1\n";

/// The digest of some bytes: SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> Digest {
    Link(Sha256::digest(bytes).into()).hex()
}

/// The rules in a stored text, if that is the digest of the text in its canonical form.
pub fn read_rules(body: &str, hash: &Digest) -> Option<Rules> {
    let value: serde_json::Value = serde_json::from_str(body).ok()?;
    let canonical = serde_json_canonicalizer::to_vec(&value).ok()?;
    (digest(&canonical) == *hash).then_some(())?;
    serde_json::from_value(value).ok()
}

/// The digest that rules are kept under: that of their canonical JSON.
pub fn rules_digest(rules: &Rules) -> Digest {
    digest(&serde_json_canonicalizer::to_vec(rules).unwrap_or_default())
}

/// What makes two payloads equal: canonical JSON in which every whole number keeps all its digits. Payloads whose numbers a double holds
/// have their canonical JSON (RFC 8785).
pub fn exactly(payload: &impl Serialize) -> Vec<u8> {
    canonical::write_exactly(payload).or_else(|_| serde_json::to_vec(payload)).unwrap_or_default()
}

/// The digest of some parts under a secret: HMAC-SHA-256 in hexadecimal. Each part is preceded by its length, so that
/// moving a byte from one part to the next gives another digest.
pub fn keyed_digest(secret: &[u8], parts: &[&[u8]]) -> Digest {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of every length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    Link(mac.finalize().into_bytes().into()).hex()
}

/// One link of a chain: the hash of everything up to an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Link([u8; 32]);

impl Link {
    /// The link before a session's first event.
    pub fn genesis(session: &SessionId) -> Self {
        Self(Sha256::new_with_prefix(GENESIS).chain_update(session.as_str()).finalize().into())
    }

    /// The link after an event, given its canonical JSON.
    #[must_use]
    pub fn next(self, body: &[u8]) -> Self {
        Self(Sha256::new_with_prefix(self.0).chain_update(body).finalize().into())
    }

    /// A link as it was stored; nothing if it is not as long as a link.
    pub fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// A link as [`Link::hex`] writes it.
    pub fn parse(hex: &str) -> Option<Self> {
        let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let is_plain = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let bytes: Option<Vec<u8>> = is_plain.then(|| (0..64).step_by(2).map(digit).collect())?;
        Self::stored(&bytes?)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A link that was written in hexadecimal.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase()).map(|four| four as u8);
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }

    /// It in hexadecimal.
    pub fn hex(self) -> Digest {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 0xf));
        }
        Digest::new(text)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

/// The canonical JSON of an event, which is what is hashed and stored.
///
/// Fails on an integer that a double does not hold exactly: it would come back as another number.
pub fn canonical(event: &Event) -> Result<String, Error> {
    canonical::write(event)
        .map_err(|error| Error::Corrupt { reason: format!("event {} cannot be written: {error}", event.seq) })
}

#[cfg(test)]
mod tests {
    use amends_core::{Fact, Timestamp};

    use super::*;

    fn opened(seed: u64) -> Event {
        let fact = Fact::SessionOpened {
            session: "s-1".into(),
            seed,
            principal: "local".into(),
            door: "mcp \"1e99\"".into(),
            tenant: None,
            decider: Default::default(),
        };
        Event { v: 1, seq: 1, at: Timestamp::from_ms(5), fact }
    }

    #[test]
    fn an_event_is_written_with_its_fields_in_order() {
        let body = canonical(&opened(7)).unwrap();
        assert_eq!(
            body,
            r#"{"at":5,"door":"mcp \"1e99\"","event":"session_opened","principal":"local","seed":7,"seq":1,"session":"s-1","v":1}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&body).unwrap(), opened(7));
    }

    #[test]
    fn the_links_are_what_the_page_says() {
        let genesis = Link::genesis(&"s-1".into());
        assert_eq!(genesis.hex(), digest(b"amends/chain/1\ns-1"));
        let body = canonical(&opened(7)).unwrap();
        let mut joined = genesis.bytes().to_vec();
        joined.extend_from_slice(body.as_bytes());
        assert_eq!(genesis.next(body.as_bytes()).hex(), digest(&joined));
        assert_eq!(digest(b"").as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn an_integer_that_would_come_back_changed_is_not_written() {
        assert!(canonical(&opened((1 << 53) - 1)).is_ok());
        for seed in [1 << 53, (1 << 53) + 1, u64::MAX] {
            assert!(matches!(canonical(&opened(seed)), Err(Error::Corrupt { .. })), "{seed}");
        }
    }

    #[test]
    fn long_digits_in_strings_are_no_inexact_integers() {
        let fact = Fact::Ignored { why: "9007199254740993 and \"9007199254740993\"".into() };
        let event = Event { v: 1, seq: 1, at: Timestamp::from_ms(5), fact };
        assert_eq!(serde_json::from_str::<Event>(&canonical(&event).unwrap()).unwrap(), event);
    }

    #[test]
    fn a_keyed_digest_depends_on_the_secret_and_on_where_a_part_ends() {
        let one = keyed_digest(b"secret", &[b"ab", b"c"]);
        assert_eq!(one, keyed_digest(b"secret", &[b"ab", b"c"]));
        assert_ne!(one, keyed_digest(b"secret", &[b"a", b"bc"]));
        assert_ne!(one, keyed_digest(b"Secret", &[b"ab", b"c"]));
        assert_eq!(one.as_str().len(), 64);
    }
}
