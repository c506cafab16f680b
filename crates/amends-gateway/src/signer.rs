//! The signer: it puts the heads of sessions into the log, signs what the log has become, and carries that to the anchor.
//!
//! Any number of processes may sign one ledger. Each extends the log only where it stood when it looked; whoever was slower
//! reads what is new and tries again. It keeps the edge of the tree in memory, so a turn reads only what was added.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use amends_ledger::merkle::Frontier;
use amends_ledger::note::{NoteError, NoteKey};
use amends_ledger::{Checkpoint, Error, Ledger, LogEntry, StoredCheckpoint, anchor, origin};
use thiserror::Error as ThisError;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::clock;
use crate::gateway::Gateway;

/// How many sessions are logged in one transaction. Calls wait meanwhile.
const BATCH: usize = 256;

/// How many transactions one turn makes at most; what is left waits for the next.
const BATCHES_MAX: usize = 1_024;

/// How many entries are read at a time.
const PAGE: usize = 4_096;

/// Signs one ledger's log.
#[derive(Debug)]
pub struct Signer {
    ledger: Arc<dyn Ledger>,
    key: NoteKey,
    origin: String,
    anchor: Option<PathBuf>,
    edge: Mutex<Edge>,
    newest: AtomicU64,
}

/// What the signer knows of the log: as much of it as it has read.
#[derive(Clone, Debug, Default)]
struct Edge {
    tree: Frontier,
    last: Option<LogEntry>,
    /// The last checkpoint of the anchor that was found to be the tree's own.
    anchored: Option<Checkpoint>,
}

/// Why nothing was signed.
#[derive(Debug, ThisError)]
pub enum SignError {
    /// The ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] Error),
    /// The anchor could not be read or written.
    #[error("cannot use the anchor `{path}`")]
    Anchor {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The anchor's last checkpoint is not one of this ledger, signed with this key.
    #[error("the last checkpoint in the anchor is not accepted: {0}")]
    Foreign(NoteError),
    /// The log is not what it was when it was last signed: it was cut, changed, or the ledger is an older copy.
    #[error("the log is not a continuation of what was signed before: {0}")]
    Forked(String),
}

impl Signer {
    /// The signer of a ledger.
    pub fn new(ledger: Arc<dyn Ledger>, key: NoteKey, anchor: Option<PathBuf>) -> Self {
        let origin = origin(&ledger.secret());
        Self { ledger, key, origin, anchor, edge: Mutex::default(), newest: AtomicU64::new(0) }
    }

    /// How many entries the newest checkpoint covers that this signer knows of.
    pub fn newest(&self) -> Option<u64> {
        Some(self.newest.load(Ordering::Relaxed)).filter(|size| *size > 0)
    }

    /// The name of its key.
    pub fn key_name(&self) -> &str {
        self.key.name()
    }

    /// Signs some bytes that are no checkpoint, such as a card.
    pub fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign_bytes(bytes)
    }

    /// Logs what is new and signs it, and gives back the newest checkpoint; nothing while there is nothing to sign.
    ///
    /// It refuses to sign a log that does not continue what was signed before. A ledger that somebody put back to an
    /// older state would otherwise get a second history with good signatures.
    pub async fn sign(&self) -> Result<Option<StoredCheckpoint>, SignError> {
        let mut edge = self.edge.lock().await;
        let anchored = self.read_anchor().await?;
        if let Some(known) = &anchored
            && edge.anchored.as_ref() != Some(known)
            && known.size <= edge.tree.size()
        {
            // Somebody else's note, of a tree that we are past. What we know is read again to compare it.
            *edge = Edge::default();
        }
        self.catch_up(&mut edge, anchored.as_ref()).await?;
        let mut newest = None;
        for _ in 0..BATCHES_MAX {
            let entries = self.ledger.unlogged(BATCH).await?;
            if entries.is_empty() {
                break;
            }
            match self.extend(&mut edge, entries).await? {
                Some(checkpoint) => newest = Some(checkpoint),
                None => self.catch_up(&mut edge, None).await?,
            }
        }
        let newest = match newest {
            Some(checkpoint) => Some(checkpoint),
            None => self.stored(&mut edge).await?,
        };
        if let Some(checkpoint) = &newest {
            self.newest.store(checkpoint.size, Ordering::Relaxed);
            self.write_anchor(&mut edge, checkpoint).await?;
        }
        Ok(newest)
    }

    /// Reads what was added to the log, and compares it with what is known of it.
    async fn catch_up(&self, edge: &mut Edge, anchored: Option<&Checkpoint>) -> Result<(), SignError> {
        let mut read = edge.clone();
        if let Some(last) = &read.last {
            let there = self.ledger.log(read.tree.size() - 1, 1).await?;
            if there.first() != Some(last) {
                let words = format!("entry {} is not there any more, or is another", read.tree.size() - 1);
                return Err(SignError::Forked(words));
            }
        }
        // Ends when the entries are through.
        loop {
            let page = self.ledger.log(read.tree.size(), PAGE).await?;
            let through = page.len() < PAGE;
            for entry in page {
                read.tree.push(entry.leaf());
                read.last = Some(entry);
                if let Some(known) = anchored.filter(|known| known.size == read.tree.size())
                    && known.root != read.tree.root()
                {
                    let words = format!("its first {} entries are not those of the anchor's checkpoint", known.size);
                    return Err(SignError::Forked(words));
                }
            }
            if through {
                break;
            }
        }
        if let Some(known) = anchored.filter(|known| known.size > read.tree.size()) {
            let words = format!("the anchor covers {} entries, and the log has {}", known.size, read.tree.size());
            return Err(SignError::Forked(words));
        }
        read.anchored = anchored.cloned().or(read.anchored);
        *edge = read;
        Ok(())
    }

    /// Adds entries to the log with a checkpoint; nothing if somebody else was faster.
    async fn extend(&self, edge: &mut Edge, entries: Vec<LogEntry>) -> Result<Option<StoredCheckpoint>, SignError> {
        let mut tree = edge.tree.clone();
        entries.iter().for_each(|entry| tree.push(entry.leaf()));
        let last = entries.last().cloned().or_else(|| edge.last.clone());
        let stated = Checkpoint { origin: self.origin.clone(), size: tree.size(), root: tree.root() };
        let checkpoint = StoredCheckpoint { size: tree.size(), at: clock::now(), note: stated.sign(&self.key) };
        if !self.ledger.extend_log(edge.tree.size(), entries, checkpoint.clone()).await? {
            return Ok(None);
        }
        (edge.tree, edge.last) = (tree, last);
        Ok(Some(checkpoint))
    }

    /// The newest checkpoint in the ledger. One that does not hold is not carried anywhere; the log is signed again.
    async fn stored(&self, edge: &mut Edge) -> Result<Option<StoredCheckpoint>, SignError> {
        if edge.tree.size() == 0 {
            return Ok(None);
        }
        let newest = self.ledger.checkpoints(1).await?.pop();
        let stated = Checkpoint { origin: self.origin.clone(), size: edge.tree.size(), root: edge.tree.root() };
        let holds =
            |stored: &StoredCheckpoint| Checkpoint::open(&stored.note, &self.key.verifier()).as_ref() == Ok(&stated);
        match newest.filter(holds) {
            Some(newest) => Ok(Some(newest)),
            None => self.extend(edge, Vec::new()).await,
        }
    }

    /// The anchor's last checkpoint.
    async fn read_anchor(&self) -> Result<Option<Checkpoint>, SignError> {
        let Some(path) = self.anchor.clone() else {
            return Ok(None);
        };
        let note = in_file(path, |path| anchor::last(path)).await?;
        let Some(note) = note else {
            return Ok(None);
        };
        let checkpoint = Checkpoint::open(&note, &self.key.verifier()).map_err(SignError::Foreign)?;
        if checkpoint.origin == self.origin {
            Ok(Some(checkpoint))
        } else {
            Err(SignError::Foreign(NoteError::Unsigned))
        }
    }

    /// Carries the newest checkpoint to the anchor, where a crash may have kept an earlier one from arriving.
    async fn write_anchor(&self, edge: &mut Edge, newest: &StoredCheckpoint) -> Result<(), SignError> {
        let Some(path) = self.anchor.clone() else {
            return Ok(());
        };
        if edge.anchored.as_ref().is_some_and(|known| known.size >= newest.size) && path.exists() {
            return Ok(());
        }
        let (note, size) = (newest.note.clone(), newest.size);
        if in_file(path, move |path| anchor::append(path, &note, size)).await? {
            edge.anchored = Checkpoint::open(&newest.note, &self.key.verifier()).ok();
        }
        Ok(())
    }
}

/// Works on the anchor's file, on a thread that may block.
async fn in_file<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(&PathBuf) -> io::Result<T> + Send + 'static,
) -> Result<T, SignError> {
    let failed = |source| SignError::Anchor { path: path.clone(), source };
    let file = path.clone();
    match spawn_blocking(move || work(&file)).await {
        Ok(done) => done.map_err(failed),
        Err(error) => Err(failed(io::Error::other(error))),
    }
}

/// Signs from time to time, for as long as there is a gateway.
pub(crate) async fn keep_signing(gateway: Weak<Gateway>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        gateway.checkpoint().await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use amends_core::{Event, Fact, Timestamp};
    use amends_ledger::anchor::Anchor;
    use amends_ledger::{Append, Node, SqliteLedger, VerifyOptions, verify};

    use super::*;

    fn open(path: &Path) -> Arc<dyn Ledger> {
        let node = Node { id: "a".into(), place: String::new(), lease_ms: 1_000 };
        Arc::new(SqliteLedger::open(path, node).unwrap())
    }

    fn key() -> NoteKey {
        NoteKey::new("amends/x", &[3; 32]).unwrap()
    }

    async fn fill(ledger: &dyn Ledger, names: impl IntoIterator<Item = u64>) {
        for name in names {
            let session = format!("s{name}");
            let fact = Fact::SessionOpened {
                session: session.as_str().into(),
                seed: 1,
                principal: "local".into(),
                door: "mcp".into(),
                tenant: None,
                decider: Default::default(),
            };
            let event = Event { v: 1, seq: 1, at: Timestamp::from_ms(name), fact };
            ledger.append(Append::of(session.as_str().into(), 1, 0, vec![event])).await.unwrap();
        }
    }

    async fn faults(ledger: &dyn Ledger, anchor: &Path) -> Vec<String> {
        let options = VerifyOptions { anchor: Anchor::read(anchor).ok(), key: Some(key().verifier()) };
        let verified = verify(ledger, options).await.unwrap();
        verified.faults.into_iter().map(|fault| format!("{}: {}", fault.kind.as_str(), fault.words)).collect()
    }

    #[tokio::test]
    async fn what_is_new_is_logged_signed_and_anchored_in_batches() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, anchor) = (open(&folder.path().join("l.db")), folder.path().join("anchor"));
        let signer = Signer::new(ledger.clone(), key(), Some(anchor.clone()));
        assert!(signer.sign().await.unwrap().is_none(), "there is nothing to sign");
        fill(&*ledger, 0..BATCH as u64 + 5).await;
        assert_eq!(signer.sign().await.unwrap().unwrap().size, BATCH as u64 + 5);
        assert_eq!(ledger.unlogged(9).await.unwrap(), []);
        assert_eq!(ledger.checkpoints(9).await.unwrap().len(), 2);
        assert_eq!(Anchor::read(&anchor).unwrap().notes.len(), 1);
        signer.sign().await.unwrap();
        assert_eq!(ledger.checkpoints(9).await.unwrap().len(), 2, "nothing new, nothing signed");
        assert_eq!(faults(&*ledger, &anchor).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn two_signers_share_one_log() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, anchor) = (open(&folder.path().join("l.db")), folder.path().join("anchor"));
        let signers = [(); 2].map(|()| Arc::new(Signer::new(ledger.clone(), key(), Some(anchor.clone()))));
        for round in 0..10 {
            fill(&*ledger, round * 20..round * 20 + 20).await;
            let signing = signers.clone().map(|signer| tokio::spawn(async move { signer.sign().await.unwrap() }));
            for signed in signing {
                signed.await.unwrap();
            }
        }
        assert_eq!(ledger.log(0, 999).await.unwrap().len(), 200, "each session once");
        assert_eq!(faults(&*ledger, &anchor).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_ledger_that_was_put_back_is_not_signed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, anchor) = (folder.path().join("l.db"), folder.path().join("anchor"));
        let old = folder.path().join("old.db");
        let ledger = open(&path);
        fill(&*ledger, 0..3).await;
        Signer::new(ledger.clone(), key(), Some(anchor.clone())).sign().await.unwrap();
        drop(ledger);
        std::fs::copy(&path, &old).unwrap();
        let ledger = open(&path);
        fill(&*ledger, 3..6).await;
        let signer = Signer::new(ledger.clone(), key(), Some(anchor.clone()));
        assert_eq!(signer.sign().await.unwrap().unwrap().size, 6);
        drop((ledger, signer));
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
        }
        std::fs::rename(&old, &path).unwrap();
        let ledger = open(&path);
        fill(&*ledger, 10..20).await;
        let signer = Signer::new(ledger.clone(), key(), Some(anchor.clone()));
        assert!(matches!(signer.sign().await, Err(SignError::Forked(_))));
        assert_eq!(ledger.log(0, 99).await.unwrap().len(), 3, "nothing was logged");
        assert!(!faults(&*ledger, &anchor).await.is_empty());
        std::fs::rename(&anchor, folder.path().join("aside")).unwrap();
        assert_eq!(signer.sign().await.unwrap().unwrap().size, 13, "who takes the anchor away has decided so");
    }

    #[tokio::test]
    async fn a_checkpoint_that_did_not_reach_the_anchor_is_carried_there_later() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, anchor) = (open(&folder.path().join("l.db")), folder.path().join("anchor"));
        fill(&*ledger, 0..3).await;
        Signer::new(ledger.clone(), key(), None).sign().await.unwrap();
        std::fs::write(&anchor, "amends/torn").unwrap();
        Signer::new(ledger.clone(), key(), Some(anchor.clone())).sign().await.unwrap();
        assert_eq!(Anchor::read(&anchor).unwrap().notes.len(), 1);
    }
}
