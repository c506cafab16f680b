//! Signing in at the console: a link that works once becomes a session, which the browser keeps in a cookie.
//!
//! A session is a text with a proof under the ledger's secret, so that it holds after a restart and at another node of the same
//! ledger, and nothing has to be remembered of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use amends_core::{Digest, Timestamp};
use amends_ledger::{digest, keyed_digest};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::identity::{Person, Role};
use crate::mint;

/// How long somebody stays signed in.
pub(crate) const SESSION_MS: u64 = 12 * 60 * 60 * 1000;

/// How long somebody may take at an issuer.
pub(crate) const VISIT_MS: u64 = 10 * 60 * 1000;
/// How many visits to issuers are remembered as over.
const VISITS_MAX: usize = 10_000;

/// Who may sign in, and who is signed in.
#[derive(Debug)]
pub struct SignIn {
    secret: [u8; 32],
    /// The visits to an issuer that are over, with the time until which they could have come back.
    over: Mutex<HashMap<String, u64>>,
    /// The token of the link, which is another one as soon as it was used.
    token: watch::Sender<String>,
}

/// A browser's way to an issuer and back. Everything about it follows from its state, so that any node can take it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// What comes back with the browser.
    pub(crate) state: String,
    /// What the issuer's token must repeat.
    pub(crate) nonce: String,
    /// What proves to the issuer that who comes back is who left: PKCE.
    pub(crate) verifier: String,
    /// What the browser keeps, so that nobody else's way back leads to it.
    pub(crate) kept: String,
}

/// What a session says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Session {
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    until: u64,
    /// What tells it from every other.
    nonce: String,
}

impl SignIn {
    /// Nobody is signed in, and there is a link.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, over: Mutex::default(), token: watch::Sender::new(mint::token()) }
    }

    /// The token of the link, now and whenever it changes.
    pub fn tokens(&self) -> watch::Receiver<String> {
        self.token.subscribe()
    }

    /// Whether that is the token of the link. It works once.
    pub(crate) fn redeem(&self, shown: &str) -> bool {
        // Digests are compared, so that the time it takes says nothing of the token.
        let shown = digest(shown.as_bytes());
        self.token.send_if_modified(|token| {
            let right = digest(token.as_bytes()) == shown;
            if right {
                *token = mint::token();
            }
            right
        })
    }

    /// Signs somebody in: the session as the browser keeps it.
    pub(crate) fn begin(&self, person: &Person, now: Timestamp) -> String {
        let session = Session {
            name: person.name.clone(),
            role: person.role.as_str().to_owned(),
            tenant: person.tenant.clone(),
            until: (now + SESSION_MS).ms(),
            nonce: mint::token(),
        };
        let said = hex(serde_json::to_string(&session).unwrap_or_default().as_bytes());
        format!("{said}.{}", self.proof("console-session", &said))
    }

    /// Who is signed in with that session; nobody where it is not ours or over.
    pub(crate) fn who(&self, session: &str, now: Timestamp) -> Option<Person> {
        let (said, proof) = session.split_once('.')?;
        if digest(proof.as_bytes()) != digest(self.proof("console-session", said).as_str().as_bytes()) {
            return None;
        }
        let session: Session = serde_json::from_slice(&unhex(said)?).ok()?;
        let role =
            [Role::Viewer, Role::Approver, Role::Operator].into_iter().find(|role| role.as_str() == session.role)?;
        (session.until > now.ms()).then_some(Person { name: session.name, tenant: session.tenant, role })
    }

    /// Somebody leaves for an issuer.
    pub(crate) fn leave(&self, now: Timestamp) -> Visit {
        self.visit(mint::token(), (now + VISIT_MS).ms())
    }

    /// Somebody comes back from an issuer, with what their browser kept. It counts once, and not forever.
    pub(crate) fn come_back(&self, kept: &str, state: &str, now: Timestamp) -> Option<Visit> {
        let mut parts = kept.splitn(3, '.');
        let (left_with, until) = (parts.next()?, parts.next()?.parse::<u64>().ok()?);
        let visit = self.visit(left_with.to_owned(), until);
        let same = |one: &str, other: &str| digest(one.as_bytes()) == digest(other.as_bytes());
        if !same(&visit.kept, kept) || !same(&visit.state, state) || until <= now.ms() {
            return None;
        }
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        over.retain(|_, until| *until > now.ms());
        let first = over.len() < VISITS_MAX && over.insert(visit.state.clone(), until).is_none();
        first.then_some(visit)
    }

    fn visit(&self, state: String, until: u64) -> Visit {
        let derived = |what: &str| self.proof(what, &state).as_str().to_owned();
        let (nonce, verifier) = (derived("console-nonce"), derived("console-verifier"));
        let said = format!("{state}.{until}");
        let kept = format!("{said}.{}", self.proof("console-visit", &said));
        Visit { state, nonce, verifier, kept }
    }

    /// What a page of that session shows with everything it wants done, and no page of anybody else can know.
    pub(crate) fn proof_of_page(&self, session: &str) -> String {
        self.proof("console-page", session).as_str().to_owned()
    }

    fn proof(&self, what: &str, of: &str) -> Digest {
        keyed_digest(&self.secret, &[what.as_bytes(), of.as_bytes()])
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person() -> Person {
        Person { name: "ada".into(), tenant: Some("north".into()), role: Role::Approver }
    }

    #[test]
    fn a_link_works_once_and_then_there_is_another() {
        let sign_in = SignIn::new([1; 32]);
        let tokens = sign_in.tokens();
        let first = tokens.borrow().clone();
        assert!(!sign_in.redeem("") && !sign_in.redeem("nothing"));
        assert!(sign_in.redeem(&first));
        assert!(!sign_in.redeem(&first));
        assert_ne!(*tokens.borrow(), first);
    }

    #[test]
    fn a_visit_to_an_issuer_comes_back_once_to_the_browser_that_left() {
        let (sign_in, now) = (SignIn::new([1; 32]), Timestamp::from_ms(1000));
        let (mine, others) = (sign_in.leave(now), sign_in.leave(now));
        assert_ne!((&mine.nonce, &mine.verifier), (&others.nonce, &others.verifier));
        assert_eq!(sign_in.come_back(&mine.kept, &others.state, now), None, "another's way back");
        assert_eq!(sign_in.come_back(&others.kept, &mine.state, now), None);
        assert_eq!(sign_in.come_back(&mine.kept, &mine.state, now + VISIT_MS), None, "it took too long");
        let longer = mine.kept.replacen(&(now + VISIT_MS).ms().to_string(), "99999999999999", 1);
        for forged in [longer.as_str(), "", "a.b.c", &mine.state] {
            assert_eq!(sign_in.come_back(forged, &mine.state, now), None, "{forged}");
        }
        assert_eq!(SignIn::new([2; 32]).come_back(&mine.kept, &mine.state, now), None, "another ledger");
        assert_eq!(sign_in.come_back(&mine.kept, &mine.state, now).as_ref(), Some(&mine));
        assert_eq!(sign_in.come_back(&mine.kept, &mine.state, now), None, "a second time");
        assert_eq!(SignIn::new([1; 32]).come_back(&others.kept, &others.state, now), Some(others), "after a restart");
    }

    #[test]
    fn a_session_holds_after_a_restart_and_not_forever_and_not_changed() {
        let now = Timestamp::from_ms(1000);
        let session = SignIn::new([1; 32]).begin(&person(), now);
        let again = SignIn::new([1; 32]);
        assert_eq!(again.who(&session, now), Some(person()));
        assert_eq!(again.who(&session, now + SESSION_MS), None);
        assert_eq!(SignIn::new([2; 32]).who(&session, now), None, "another ledger");
        let said = hex(br#"{"name":"ada","role":"operator","until":99999999999999,"nonce":""}"#);
        let proof = session.split_once('.').unwrap().1;
        for forged in [format!("{said}.{proof}"), "é.x".to_owned(), ".".to_owned(), session.replace('.', "")] {
            assert_eq!(again.who(&forged, now), None, "{forged}");
        }
        assert_ne!(again.proof_of_page(&session), again.proof_of_page("other"));
    }
}
