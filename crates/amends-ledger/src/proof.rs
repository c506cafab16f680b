//! A proof that one event is in a ledger as it was signed, which can be checked without the ledger.

use amends_core::SessionId;
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use crate::chain::Link;
use crate::error::Error;
use crate::log::{Checkpoint, LogEntry};
use crate::merkle::{self, Hash};
use crate::note::{NoteError, NoteVerifier};
use crate::{Ledger, StoredSession};

/// The name of the form.
const FORMAT: &str = "amends/proof/1";

/// How many entries of the log are read at a time.
const PAGE: usize = 4_096;

/// A proof that an event is in a ledger. Hashes are in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The name of this form.
    pub format: String,
    /// The session.
    pub session: SessionId,
    /// The place of the event in it.
    pub seq: u64,
    /// The link of the chain before it.
    pub before: String,
    /// The event, and those after it up to the one that was logged, as canonical JSON.
    pub events: Vec<String>,
    /// The entry of the log that the last of them leads to.
    pub entry: ProofEntry,
    /// The hashes that lead from the entry to the root of the tree, the lowest first.
    pub path: Vec<String>,
    /// The signed checkpoint with that root.
    pub checkpoint: String,
}

/// The entry of the log in a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofEntry {
    /// Its place in the log.
    pub place: u64,
    /// The sequence of the session's last event then.
    pub seq: u64,
    /// The head of the session's chain then.
    pub head: String,
}

/// Why there is no proof, or why one does not hold.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
pub enum ProofError {
    /// The event is not in the session.
    #[error("there is no event {0} in it")]
    NoEvent(u64),
    /// No checkpoint covers the event yet.
    #[error("no checkpoint covers it yet")]
    NotCovered,
    /// The proof is not of the form this program knows.
    #[error("it is not a proof of the form `{FORMAT}`")]
    Form,
    /// A hash in it is none.
    #[error("it holds a hash that is none")]
    Hash,
    /// The event is not the one that the proof names.
    #[error("its event is not event {0}")]
    Event(u64),
    /// The events do not lead to the head that was logged.
    #[error("its events do not lead to the head that was logged")]
    Chain,
    /// The entry is not in the tree that was signed.
    #[error("its entry is not in the log that was signed")]
    Tree,
    /// The checkpoint is not accepted.
    #[error("its checkpoint is not accepted: {0}")]
    Checkpoint(NoteError),
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] Error),
}

impl Proof {
    /// Makes the proof of a session's event from what the ledger has, under its newest checkpoint.
    pub async fn of(ledger: &dyn Ledger, session: &StoredSession, seq: u64) -> Result<Self, ProofError> {
        let newest = ledger.checkpoints(1).await?.pop().ok_or(ProofError::NotCovered)?;
        let size = usize::try_from(newest.size).map_err(|_| ProofError::Tree)?;
        let (mut leaves, mut found): (Vec<Hash>, Option<(usize, LogEntry)>) = (Vec::new(), None);
        // Ends: each turn reads at least one of a bounded number of entries.
        while leaves.len() < size {
            let page = ledger.log(leaves.len() as u64, PAGE.min(size - leaves.len())).await?;
            if page.is_empty() {
                return Err(ProofError::Tree);
            }
            for entry in page {
                let covers = found.is_none() && entry.session == session.session && entry.seq >= seq;
                leaves.push(entry.leaf());
                if covers {
                    found = Some((leaves.len() - 1, entry));
                }
            }
        }
        let (place, entry) = found.ok_or(ProofError::NotCovered)?;
        let path = merkle::inclusion(&leaves, place).ok_or(ProofError::Tree)?;
        let before = crate::verify::link_at(session, seq.checked_sub(1).ok_or(ProofError::NoEvent(seq))?);
        let covered = session.records.iter().filter(|record| (seq..=entry.seq).contains(&record.seq));
        let events: Vec<String> = covered.map(|record| String::from_utf8_lossy(&record.body).into_owned()).collect();
        if events.is_empty() {
            return Err(ProofError::NoEvent(seq));
        }
        Ok(Self {
            format: FORMAT.to_owned(),
            session: session.session.clone(),
            seq,
            before: before.ok_or(ProofError::NoEvent(seq))?.hex().to_string(),
            events,
            entry: ProofEntry { place: place as u64, seq: entry.seq, head: entry.head.hex().to_string() },
            path: path
                .into_iter()
                .map(|hash| Link::stored(&hash).expect("a hash is as long as a link").hex().to_string())
                .collect(),
            checkpoint: newest.note,
        })
    }

    /// Checks it with nothing but the key, and gives back the checkpoint that it leads to.
    pub fn check(&self, key: &NoteVerifier) -> Result<Checkpoint, ProofError> {
        if self.format != FORMAT {
            return Err(ProofError::Form);
        }
        let hash = |text: &str| Link::parse(text).ok_or(ProofError::Hash);
        #[derive(Deserialize)]
        struct Numbered {
            seq: u64,
        }
        let mut link = hash(&self.before)?;
        let mut seq = self.seq;
        for body in &self.events {
            let numbered: Numbered = serde_json::from_str(body).map_err(|_| ProofError::Event(seq))?;
            if numbered.seq != seq {
                return Err(ProofError::Event(seq));
            }
            link = link.next(body.as_bytes());
            seq += 1;
        }
        let head = hash(&self.entry.head)?;
        if link != head || self.events.is_empty() || self.entry.seq + 1 != seq {
            return Err(ProofError::Chain);
        }
        let checkpoint = Checkpoint::open(&self.checkpoint, key).map_err(ProofError::Checkpoint)?;
        let entry = LogEntry { session: self.session.clone(), seq: self.entry.seq, head };
        let path: Result<Vec<Hash>, ProofError> = self.path.iter().map(|text| Ok(*hash(text)?.bytes())).collect();
        let root = merkle::root_of_inclusion(entry.leaf(), self.entry.place, checkpoint.size, &path?);
        if root == Some(checkpoint.root) { Ok(checkpoint) } else { Err(ProofError::Tree) }
    }
}
