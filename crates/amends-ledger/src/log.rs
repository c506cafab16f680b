//! The log of session heads: an append-only list, over which a Merkle tree is kept and checkpoints are signed.

use amends_core::{SessionId, Timestamp};
use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::chain::{Link, keyed_digest};
use crate::merkle::{self, Hash};
use crate::note::{NoteError, NoteKey, NoteVerifier};

/// What the bytes of a leaf begin with.
const LEAF: &str = "amends/log/1\n";

/// One entry of the log: how far a session's chain had come.
///
/// Invariant: of two entries of one session the later one has the greater sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The session.
    pub session: SessionId,
    /// The sequence of its last event then.
    pub seq: u64,
    /// The head of its chain then.
    pub head: Link,
}

impl LogEntry {
    /// What is hashed of it: a line that names the form, the session, the sequence, and the head in hexadecimal, each on a
    /// line. A session's id can hold a line break and still not pass for another's, since the last two lines cannot.
    pub fn text(&self) -> String {
        format!("{LEAF}{}\n{}\n{}\n", self.session, self.seq, self.head.hex())
    }

    /// Its leaf in the tree.
    pub fn leaf(&self) -> Hash {
        merkle::leaf(self.text().as_bytes())
    }
}

/// A checkpoint of the log as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// How many entries the log had.
    pub size: u64,
    /// When it was signed.
    pub at: Timestamp,
    /// The signed note, byte for byte.
    pub note: String,
}

/// What a checkpoint says: which log it is about, how long it was, and the root of its tree. In the form of C2SP
/// `tlog-checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name.
    pub origin: String,
    /// How many entries it had.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
}

impl Checkpoint {
    /// Signs it.
    pub fn sign(&self, key: &NoteKey) -> String {
        key.sign(&format!("{}\n{}\n{}\n", self.origin, self.size, BASE64_STANDARD.encode(self.root)))
    }

    /// Reads a note that this key signed.
    pub fn open(note: &str, key: &NoteVerifier) -> Result<Self, NoteError> {
        Self::parse(key.open(note)?)
    }

    /// Reads a note without asking who signed it.
    pub(crate) fn unchecked(note: &str) -> Result<Self, NoteError> {
        Self::parse(crate::note::split(note)?.0)
    }

    fn parse(text: &str) -> Result<Self, NoteError> {
        // Lines after the third are extensions, which say nothing to us.
        let mut lines = text.lines();
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(NoteError::Shape);
        };
        let number: u64 = size.parse().map_err(|_| NoteError::Shape)?;
        let root = BASE64_STANDARD.decode(root).ok().and_then(|root| root.try_into().ok()).ok_or(NoteError::Shape)?;
        // One number is written in one way only.
        if origin.is_empty() || number.to_string() != size {
            return Err(NoteError::Shape);
        }
        Ok(Self { origin: origin.to_owned(), size: number, root })
    }
}

/// The name of a ledger's log, which follows from the ledger's secret and does not give it away.
pub fn origin(secret: &[u8; 32]) -> String {
    let name = keyed_digest(secret, &[b"amends/log"]);
    format!("amends/{}", &name.as_str()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_what_the_page_says() {
        let entry = LogEntry { session: "ses_1".into(), seq: 7, head: Link::genesis(&"ses_1".into()) };
        let head = crate::digest(b"amends/chain/1\nses_1");
        assert_eq!(entry.text(), format!("amends/log/1\nses_1\n7\n{head}\n"));
    }

    #[test]
    fn a_checkpoint_comes_back_as_it_was_signed() {
        let key = NoteKey::new("amends/x", &[1; 32]).unwrap();
        let checkpoint = Checkpoint { origin: "amends/x".into(), size: 12, root: [3; 32] };
        let note = checkpoint.sign(&key);
        assert_eq!(note.lines().take(2).collect::<Vec<_>>(), ["amends/x", "12"]);
        assert_eq!(Checkpoint::open(&note, &key.verifier()), Ok(checkpoint));
        assert_eq!(Checkpoint::open(&note.replace("12", "13"), &key.verifier()), Err(NoteError::Forged));
        assert_eq!(Checkpoint::open(&key.sign("amends/x\n012\nAAAA\n"), &key.verifier()), Err(NoteError::Shape));
    }
}
