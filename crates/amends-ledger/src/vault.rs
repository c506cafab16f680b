//! What keeps payloads from being read by whoever reads the store.
//!
//! Payloads (arguments of open calls, fields of walks, answers for repeats, the arguments of an undoing, letters,
//! what is kept under a name) are sealed before a store
//! sees them and opened after it gave them back, so that no store can forget to.
//!
//! A sealed payload is a mark, the id of the key that sealed it, a random nonce, and what XChaCha20-Poly1305 made of the
//! bytes. What it is and whose it is goes in beside them, so that a payload that was moved to another row does not open.

mod key;

use amends_core::{InteractionId, PersonAnswer, SessionId};
use bytes::Bytes;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde_json::{Value, json};

use crate::append::{Append, StoredAnswer, StoredArguments};
use crate::error::Error;
use crate::interactions::QueueEntry;
use crate::kept::Kept;
use crate::letter::{Letter, LetterId, LetterState};
use crate::reversals::ReversalRow;
use key::{ID_LEN, Key, KeyId};

pub use key::{KeyError, new_key};

/// What a sealed payload begins with. No JSON text does, so one that was stored in the clear is told from it.
const MARK: [u8; 4] = [0xA5, b'a', b's', 1];

/// How long a nonce is. It is random; with this length two are never the same.
const NONCE_LEN: usize = 24;

/// The member of a JSON object that stands for a sealed body.
const SEALED: &str = "sealed";

/// Seals and opens the payloads of a ledger.
#[derive(Debug, Default)]
pub struct Vault {
    /// The first seals, all of them open. With none, payloads are left as they are.
    keys: Vec<Key>,
    /// Whether a payload that is not sealed is taken although there are keys.
    takes_unsealed: bool,
}

impl Vault {
    /// A vault that leaves everything as it is.
    pub fn unlocked() -> Self {
        Self::default()
    }

    /// A vault with these keys, one on each line: 32 bytes in base64. The first seals, all of them open. Empty lines and
    /// lines that begin with `#` do not count.
    pub fn parse(keys: &str) -> Result<Self, KeyError> {
        Ok(Self { keys: key::parse(keys)?, takes_unsealed: false })
    }

    /// The same vault, which also takes payloads that are not sealed: those that were stored before there was a key. Whoever can
    /// write to the store can then put one of his own in a sealed one's place.
    #[must_use]
    pub fn taking_unsealed(self, takes_unsealed: bool) -> Self {
        Self { takes_unsealed, ..self }
    }

    /// Whether it seals.
    pub fn is_locked(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Seals the payloads of a step.
    pub(crate) fn seal(&self, mut append: Append) -> Result<Append, Error> {
        for answer in &mut append.answers {
            answer.body = self.close("answer", answer.call.as_str(), &answer.body)?;
        }
        for arguments in &mut append.arguments {
            arguments.body = self.close("arguments", arguments.call.as_str(), &arguments.body)?;
        }
        for fields in &mut append.fields {
            fields.body = self.close("fields", &whose_fields(&append.session, fields.seq), &fields.body)?;
        }
        for undo in &mut append.undo {
            undo.arguments = self.close("undo", undo.token.as_str(), &undo.arguments)?;
        }
        Ok(append)
    }

    /// Seals what a person was asked for.
    pub(crate) fn seal_content(&self, id: &InteractionId, mut answer: PersonAnswer) -> Result<PersonAnswer, Error> {
        answer.content = answer.content.map(|content| self.close_json("content", id.as_str(), content)).transpose()?;
        Ok(answer)
    }

    /// Opens what a person was asked for.
    pub(crate) fn open_content(&self, mut entry: QueueEntry) -> Result<QueueEntry, Error> {
        if let Some(answer) = &mut entry.answer {
            let opened =
                answer.content.take().map(|content| self.open_json("content", entry.interaction.id.as_str(), content));
            answer.content = opened.transpose()?;
        }
        Ok(entry)
    }

    /// Seals what is kept under a name.
    pub(crate) fn seal_kept(&self, kept: Kept) -> Result<Kept, Error> {
        Ok(Kept { body: self.close("kept", kept.name.as_str(), &kept.body)?, ..kept })
    }

    /// Opens what is kept under a name.
    pub(crate) fn open_kept(&self, kept: Kept) -> Result<Kept, Error> {
        Ok(Kept { body: self.open("kept", kept.name.as_str(), kept.body)?, ..kept })
    }

    /// Seals a letter.
    pub(crate) fn seal_letter(&self, letter: Letter) -> Result<Letter, Error> {
        let whose = whose(&letter);
        Ok(Letter { body: self.close_json("letter", &whose, letter.body)?, ..letter })
    }

    /// Opens a letter. One that does not open says so in its body, so that whoever acts on it can tell its sender.
    pub(crate) fn open_letter(&self, letter: Letter) -> Result<Letter, Error> {
        let whose = whose(&letter);
        let body = self.open_json("letter", &whose, letter.body);
        Ok(Letter { body: body.unwrap_or_else(|error| json!({ "unreadable": error.to_string() })), ..letter })
    }

    /// Seals the reply to a letter.
    pub(crate) fn seal_reply(&self, id: LetterId, body: Value) -> Result<Value, Error> {
        self.close_json("reply", &id.to_string(), body)
    }

    /// Opens the reply to a letter.
    pub(crate) fn open_reply(&self, id: LetterId, state: LetterState) -> Result<LetterState, Error> {
        let reply = state.reply.map(|body| self.open_json("reply", &id.to_string(), body)).transpose()?;
        Ok(LetterState { reply, ..state })
    }

    /// Opens an answer.
    pub(crate) fn open_answer(&self, answer: StoredAnswer) -> Result<StoredAnswer, Error> {
        Ok(StoredAnswer { body: self.open("answer", answer.call.as_str(), answer.body)?, ..answer })
    }

    /// Opens arguments.
    pub(crate) fn open_arguments(&self, arguments: StoredArguments) -> Result<StoredArguments, Error> {
        Ok(StoredArguments { body: self.open("arguments", arguments.call.as_str(), arguments.body)?, ..arguments })
    }

    /// Opens a walk's fields.
    pub(crate) fn open_fields(
        &self,
        session: &SessionId,
        stored: Vec<(u64, Bytes)>,
    ) -> Result<Vec<(u64, Bytes)>, Error> {
        let open = |(seq, body)| Ok((seq, self.open("fields", &whose_fields(session, seq), body)?));
        stored.into_iter().map(open).collect()
    }

    /// Opens how a write is undone.
    pub(crate) fn open_reversal(&self, mut row: ReversalRow) -> Result<ReversalRow, Error> {
        if let Some(undo) = &mut row.undo {
            undo.arguments = self.open("undo", undo.token.as_str(), undo.arguments.clone())?;
        }
        Ok(row)
    }

    fn close(&self, what: &str, whose: &str, body: &Bytes) -> Result<Bytes, Error> {
        let Some(key) = self.keys.first() else {
            return Ok(body.clone());
        };
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)
            .map_err(|error| Error::Unavailable { reason: format!("no randomness to seal with: {error}") })?;
        let beside = beside(what, whose);
        let sealed = key
            .cipher()
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: body, aad: &beside })
            .map_err(|_| Error::Unavailable { reason: format!("the {what} of `{whose}` cannot be sealed") })?;
        Ok([&MARK[..], key.id().bytes(), &nonce, &sealed].concat().into())
    }

    fn open(&self, what: &str, whose: &str, body: Bytes) -> Result<Bytes, Error> {
        let Some(sealed) = body.strip_prefix(&MARK) else {
            return self.take_unsealed(what, whose).map(|()| body);
        };
        let Some((id, sealed)) = sealed.split_first_chunk::<ID_LEN>() else {
            return Err(broken(what, whose));
        };
        let Some((nonce, sealed)) = sealed.split_first_chunk::<NONCE_LEN>() else {
            return Err(broken(what, whose));
        };
        let id = KeyId(*id);
        let Some(key) = self.keys.iter().find(|key| key.id() == id) else {
            let reason = format!(
                "the {what} of `{whose}` is sealed with key {id}, which is not among the {} given; \
                 give it in `ledger.sealing_key`",
                self.keys.len()
            );
            return Err(Error::Unavailable { reason });
        };
        let cipher: &XChaCha20Poly1305 = key.cipher();
        let opened = cipher
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: &beside(what, whose) })
            .map_err(|_| broken(what, whose))?;
        Ok(opened.into())
    }

    /// Whether a payload that is not sealed is taken: where nothing is, or where some were stored before there was a key.
    fn take_unsealed(&self, what: &str, whose: &str) -> Result<(), Error> {
        if self.takes_unsealed || !self.is_locked() {
            return Ok(());
        }
        let reason = format!(
            "the {what} of `{whose}` is not sealed; if it was stored before there was a key, say \
             `unsealed = \"take\"` in `[ledger]` for as long as such are kept"
        );
        Err(Error::Corrupt { reason })
    }

    fn close_json(&self, what: &str, whose: &str, body: Value) -> Result<Value, Error> {
        if !self.is_locked() {
            return Ok(body);
        }
        let sealed = self.close(what, whose, &Bytes::from(body.to_string()))?;
        Ok(json!({ SEALED: key::to_base64(&sealed) }))
    }

    fn open_json(&self, what: &str, whose: &str, body: Value) -> Result<Value, Error> {
        let sealed = match &body {
            Value::Object(members) if members.len() == 1 => members.get(SEALED).and_then(Value::as_str),
            _ => None,
        };
        let Some(sealed) = sealed else {
            return self.take_unsealed(what, whose).map(|()| body);
        };
        let sealed = key::from_base64(sealed).ok_or_else(|| broken(what, whose))?;
        let opened = self.open(what, whose, sealed.into())?;
        serde_json::from_slice(&opened).map_err(|_| broken(what, whose))
    }
}

/// What goes in beside the bytes: what they are and whose. No kind has a line break in its name.
fn beside(what: &str, whose: &str) -> Vec<u8> {
    format!("amends/vault/1\n{what}\n{whose}").into_bytes()
}

/// Whose a letter is before it has an id: the place and the session it is for.
fn whose(letter: &Letter) -> String {
    let session = letter.session.as_ref().map_or("", |session| session.as_str());
    format!("{session}\n{}", letter.place.as_deref().unwrap_or_default())
}

/// Whose fields they are: a number cannot be taken for a part of the session's id, since it comes last and is one.
fn whose_fields(session: &SessionId, seq: u64) -> String {
    format!("{session}#{seq}")
}

fn broken(what: &str, whose: &str) -> Error {
    Error::Corrupt { reason: format!("the sealed {what} of `{whose}` was changed, moved, or sealed for another") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_core::{Certainty, Outcome, Timestamp};

    use crate::append::{Form, StoredFields};

    fn vault(keys: &[&str]) -> Vault {
        Vault::parse(&keys.join("\n")).unwrap()
    }

    fn answer(call: &str, body: &[u8]) -> StoredAnswer {
        StoredAnswer {
            call: call.into(),
            outcome: Outcome::Succeeded,
            certainty: Certainty::Processed,
            form: Form::Forward,
            body: Bytes::copy_from_slice(body),
            until: Timestamp::from_ms(9),
        }
    }

    fn sealed(vault: &Vault, call: &str, body: &[u8]) -> StoredAnswer {
        let append = Append { answers: vec![answer(call, body)], ..Append::of("s".into(), 1, 1, Vec::new()) };
        vault.seal(append).unwrap().answers.remove(0)
    }

    #[test]
    fn what_was_sealed_opens_and_does_not_show() {
        let vault = vault(&[&new_key().unwrap()]);
        let stored = sealed(&vault, "c", br#"{"card":"4111"}"#);
        assert!(!stored.body.windows(4).any(|part| part == b"4111"));
        assert_ne!(stored.body, sealed(&vault, "c", br#"{"card":"4111"}"#).body);
        assert_eq!(vault.open_answer(stored).unwrap(), answer("c", br#"{"card":"4111"}"#));
    }

    #[test]
    fn a_sealed_payload_cannot_be_moved_or_changed() {
        let vault = vault(&[&new_key().unwrap()]);
        let stored = sealed(&vault, "c", b"{}");
        let moved = StoredAnswer { call: "d".into(), ..stored.clone() };
        assert!(matches!(vault.open_answer(moved), Err(Error::Corrupt { .. })));
        let elsewhere = StoredArguments { call: "c".into(), body: stored.body.clone() };
        assert!(matches!(vault.open_arguments(elsewhere), Err(Error::Corrupt { .. })));
        for at in MARK.len() + ID_LEN..stored.body.len() {
            let mut body = stored.body.to_vec();
            body[at] ^= 1;
            let changed = StoredAnswer { body: body.into(), ..stored.clone() };
            assert!(matches!(vault.open_answer(changed), Err(Error::Corrupt { .. })), "{at}");
        }
        for length in MARK.len()..stored.body.len() {
            let cut = StoredAnswer { body: stored.body.slice(..length), ..stored.clone() };
            assert!(vault.open_answer(cut).is_err(), "{length}");
        }
    }

    #[test]
    fn fields_cannot_be_passed_off_as_those_of_another_session_or_another_move() {
        let vault = vault(&[&new_key().unwrap()]);
        let plain = |seq| StoredFields { seq, body: Bytes::from_static(br#"{"item":"tea"}"#) };
        let append = Append { fields: vec![plain(1), plain(2)], ..Append::of("s".into(), 1, 1, Vec::new()) };
        let stored: Vec<_> =
            vault.seal(append).unwrap().fields.into_iter().map(|fields| (fields.seq, fields.body)).collect();
        assert!(!stored[0].1.windows(3).any(|part| part == b"tea"));
        let opened = vault.open_fields(&"s".into(), stored.clone()).unwrap();
        assert_eq!(opened, [(1, plain(1).body), (2, plain(2).body)]);
        let (first, second) = (stored[0].1.clone(), stored[1].1.clone());
        let swapped = vec![(1, second), (2, first.clone())];
        assert!(matches!(vault.open_fields(&"s".into(), swapped), Err(Error::Corrupt { .. })));
        assert!(matches!(vault.open_fields(&"t".into(), stored), Err(Error::Corrupt { .. })));
        assert!(vault.open_fields(&"s#1".into(), vec![(1, first.clone())]).is_err());
        let elsewhere = StoredArguments { call: "s#1".into(), body: first };
        assert!(matches!(vault.open_arguments(elsewhere), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn keys_are_rotated_by_putting_a_new_one_in_front() {
        let (old, new) = (new_key().unwrap(), new_key().unwrap());
        let before = sealed(&vault(&[&old]), "c", b"{}");
        let rotated = vault(&["# the new one", &new, "", &old]);
        assert_eq!(rotated.open_answer(before.clone()).unwrap().body, "{}");
        let after = sealed(&rotated, "c", b"[]");
        assert_eq!(vault(&[&new]).open_answer(after.clone()).unwrap().body, "[]");
        for refused in [vault(&[&new]).open_answer(before.clone()), Vault::unlocked().open_answer(before)] {
            assert!(matches!(refused, Err(Error::Unavailable { reason }) if reason.contains("ledger.sealing_key")));
        }
    }

    #[test]
    fn a_plain_payload_in_a_sealed_ones_place_does_not_open() {
        let vault = vault(&[&new_key().unwrap()]);
        let refused = vault.open_answer(answer("c", b"{\"a\":1}")).unwrap_err();
        assert!(matches!(&refused, Error::Corrupt { reason } if reason.contains("unsealed")), "{refused}");
        assert!(vault.open_arguments(StoredArguments { call: "c".into(), body: "{}".into() }).is_err());
        let letter = Letter { place: None, session: None, body: json!({ "unwind": { "session": "s" } }) };
        assert!(vault.open_letter(letter).unwrap().body.get("unreadable").is_some());
        let state = LetterState { taken: true, reply: Some(json!({ "done": true })) };
        assert!(vault.open_reply(LetterId(7), state).is_err());
    }

    #[test]
    fn what_was_stored_in_the_clear_opens_where_that_is_said() {
        let vault = vault(&[&new_key().unwrap()]).taking_unsealed(true);
        assert_eq!(vault.open_answer(answer("c", b"{\"a\":1}")).unwrap().body, "{\"a\":1}");
        assert_eq!(sealed(&Vault::unlocked(), "c", b"{}").body, "{}");
        let letter = Letter { place: None, session: None, body: json!({ "unwind": { "session": "s" } }) };
        assert_eq!(vault.open_letter(letter.clone()).unwrap(), letter);
    }

    #[test]
    fn letters_and_replies_are_sealed_for_whom_they_are() {
        let vault = vault(&[&new_key().unwrap()]);
        let letter =
            Letter { place: Some("p".into()), session: None, body: json!({ "reverse": { "token": "rev_1" } }) };
        let posted = vault.seal_letter(letter.clone()).unwrap();
        assert!(!posted.body.to_string().contains("rev_1"));
        assert_eq!(vault.open_letter(posted.clone()).unwrap(), letter);
        let moved = Letter { place: Some("q".into()), ..posted };
        assert!(vault.open_letter(moved).unwrap().body.get("unreadable").is_some());
        let reply = vault.seal_reply(LetterId(7), json!({ "done": true })).unwrap();
        let state = LetterState { taken: true, reply: Some(reply) };
        assert_eq!(vault.open_reply(LetterId(7), state.clone()).unwrap().reply, Some(json!({ "done": true })));
        assert!(vault.open_reply(LetterId(8), state).is_err());
    }
}
