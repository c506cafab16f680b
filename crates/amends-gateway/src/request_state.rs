//! What an agent brings back with its answers: a sealed note that only this ledger's nodes can write and read.
//!
//! It is bound to whom it was given, to the method and to what was asked for, and it expires. That it counts once is not its
//! doing: the inquiry it names is over when it was answered.

use amends_core::{CallId, Principal, SessionId, Timestamp};
use amends_ledger::keyed_digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::equal;

/// What goes in beside the bytes.
const BESIDE: &[u8] = b"amends/request-state/1";
/// The same for what one node writes to another.
const BESIDE_LETTER: &[u8] = b"amends/letter/1";
/// The same for what we keep of our accounts elsewhere.
const BESIDE_ACCOUNT: &[u8] = b"amends/account/1";
const NONCE_LEN: usize = 24;
/// How long what an agent brings back may be.
const LENGTH_MAX: usize = 1 << 20;

/// What an agent brings back with its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// To whom it was given.
    pub(crate) principal: Principal,
    /// The digest of the method and of what was asked for.
    pub(crate) asked: String,
    /// When it is worth nothing any more.
    pub(crate) expires: Timestamp,
    /// The call that waits, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<Waiting>,
    /// What the upstream wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) theirs: Option<String>,
}

/// The call that waits for an agent to come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) session: SessionId,
    pub(crate) call: CallId,
    pub(crate) inquiry: u32,
}

/// Why what an agent brought back does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it was not given out here, or was changed")]
    Forged,
    #[error("it was given for another request")]
    Another,
    #[error("its time is over")]
    Expired,
}

/// Seals and opens what agents bring back.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
    secret: [u8; 32],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The seal of a ledger with that secret.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let derived = keyed_digest(&secret, &[BESIDE]);
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(derived.as_str().as_bytes().chunks(2)) {
            let text = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(text, 16).expect("a digest is written in hexadecimal");
        }
        Self { cipher: XChaCha20Poly1305::new(&key.into()), secret }
    }

    /// The digest of a method and of what is asked for, by which a state is bound to it.
    pub(crate) fn asked(&self, method: &str, subject: &str, arguments: &str) -> String {
        let canonical = serde_json::from_str::<serde_json::Value>(arguments)
            .ok()
            .map_or_else(|| arguments.as_bytes().to_vec(), |value| equal::form(&value, arguments));
        keyed_digest(&self.secret, &[b"request-state", method.as_bytes(), subject.as_bytes(), &canonical]).to_string()
    }

    /// Seals a state.
    pub(crate) fn close(&self, state: &RequestState) -> String {
        self.sealed(&serde_json::to_vec(state).expect("a state can be written"), BESIDE)
    }

    /// Seals what we keep of an account, or take along on the way to one.
    pub(crate) fn close_account(&self, kept: &impl Serialize) -> String {
        self.sealed(&serde_json::to_vec(kept).expect("an account can be written"), BESIDE_ACCOUNT)
    }

    /// Opens it again.
    pub(crate) fn open_account<T: DeserializeOwned>(&self, sealed: &str) -> Option<T> {
        serde_json::from_slice(&self.unsealed(sealed, BESIDE_ACCOUNT)?).ok()
    }

    /// Seals what one node writes to another.
    pub(crate) fn close_letter(&self, letter: &impl Serialize) -> String {
        self.sealed(&serde_json::to_vec(letter).expect("a letter can be written"), BESIDE_LETTER)
    }

    /// Opens what another node wrote.
    pub(crate) fn open_letter<T: DeserializeOwned>(&self, sealed: &str) -> Option<T> {
        serde_json::from_slice(&self.unsealed(sealed, BESIDE_LETTER)?).ok()
    }

    fn sealed(&self, text: &[u8], beside: &[u8]) -> String {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("there is randomness, or nothing could be minted");
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: text, aad: beside })
            .expect("a text of this length can be sealed");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    fn unsealed(&self, sealed: &str, beside: &[u8]) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        self.cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: beside }).ok()
    }

    /// Opens a state that was given to that principal for that.
    pub(crate) fn open(
        &self,
        state: &str,
        principal: &Principal,
        asked: &str,
        now: Timestamp,
    ) -> Result<RequestState, Refused> {
        if state.len() > LENGTH_MAX {
            return Err(Refused::Forged);
        }
        let text = self.unsealed(state, BESIDE).ok_or(Refused::Forged)?;
        let state: RequestState = serde_json::from_slice(&text).map_err(|_| Refused::Forged)?;
        // Another's is as good as none, and looks the same.
        if state.principal != *principal {
            return Err(Refused::Forged);
        }
        if state.asked != asked {
            return Err(Refused::Another);
        }
        if state.expires <= now {
            return Err(Refused::Expired);
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_for_whom_and_for_what_it_was_given_and_in_its_time() {
        let seal = Seal::new([7; 32]);
        let asked = seal.asked("tools/call", "pay", r#"{"a":1,"b":2}"#);
        assert_eq!(asked, seal.asked("tools/call", "pay", r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(asked, seal.asked("tools/call", "pay", r#"{"a":1,"b":3}"#));
        assert_ne!(asked, seal.asked("prompts/get", "pay", r#"{"a":1,"b":2}"#));
        let state = RequestState {
            principal: Principal::new("ada"),
            asked: asked.clone(),
            expires: Timestamp::from_ms(100),
            waiting: Some(Waiting { session: SessionId::new("s"), call: CallId::new("c"), inquiry: 1 }),
            theirs: Some("theirs".into()),
        };
        let sealed = seal.close(&state);
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let now = Timestamp::from_ms(99);
        assert!(!sealed.contains("theirs"));
        assert_eq!(seal.open(&sealed, &ada, &asked, now), Ok(state.clone()));
        assert_eq!(Seal::new([7; 32]).open(&sealed, &ada, &asked, now), Ok(state));
        assert_eq!(Seal::new([8; 32]).open(&sealed, &ada, &asked, now), Err(Refused::Forged));
        assert_eq!(seal.open(&sealed, &bob, &asked, now), Err(Refused::Forged));
        assert_eq!(seal.open(&sealed, &ada, "another", now), Err(Refused::Another));
        assert_eq!(seal.open(&sealed, &ada, &asked, Timestamp::from_ms(100)), Err(Refused::Expired));
        for odd in ["", "x", "====", &sealed[1..], &sealed[..sealed.len() - 1]] {
            assert_eq!(seal.open(odd, &ada, &asked, now), Err(Refused::Forged), "{odd}");
        }
    }
}
