//! Comparing a ledger with its log, and the log with what was signed.

use std::collections::BTreeMap;

use amends_core::SessionId;

use super::{Fault, FaultKind, LogEntry, Proven, Verified, VerifyOptions, link_at};
use crate::Ledger;
use crate::chain::Link;
use crate::error::Error;
use crate::log::{Checkpoint, origin};
use crate::merkle::{Frontier, Hash};
use crate::note::NoteVerifier;
use crate::row::StoredSession;

/// How many entries are read at a time.
const PAGE: usize = 4_096;

/// How many of the newest checkpoints in the ledger are looked at. The anchor's are all looked at.
const CHECKPOINTS_MAX: usize = 100_000;

/// What the log says of the sessions.
#[derive(Debug)]
pub(super) struct History {
    sessions: BTreeMap<SessionId, Vec<Logged>>,
    size: u64,
    /// The size that the anchor's last good checkpoint covers.
    proven: Option<u64>,
    /// Sessions that say they were logged further than the log said when it was read.
    ahead: Vec<(SessionId, u64)>,
    covered: u64,
    beyond: u64,
}

#[derive(Debug)]
struct Logged {
    place: u64,
    seq: u64,
    head: Link,
    /// Whether the session was found in the ledger. Only the first entry's counts.
    found: bool,
}

/// A tree that somebody signed.
struct Signed {
    root: Hash,
    whose: &'static str,
}

impl History {
    /// Reads the log, and compares it with every checkpoint.
    pub(super) async fn read(
        ledger: &dyn Ledger,
        options: &VerifyOptions,
        verified: &mut Verified,
    ) -> Result<Self, Error> {
        let mut signed: BTreeMap<u64, Vec<Signed>> = BTreeMap::new();
        let origin = origin(&ledger.secret());
        let key = options.key.as_ref();
        let mut proven = None;
        if let Some(anchor) = &options.anchor {
            for note in &anchor.notes {
                match read_note(note, key, &origin) {
                    Ok(Checkpoint { size, root, .. }) => {
                        proven = proven.max(key.map(|_| size));
                        signed.entry(size).or_default().push(Signed { root, whose: "the anchor's" });
                    }
                    Err(why) => verified.add([checkpoint_fault("a checkpoint in the anchor", &why)]),
                }
            }
            for debris in &anchor.debris {
                let shown: String = debris.chars().take(60).collect();
                verified.add([checkpoint_fault("a piece of the anchor", &format!("is no checkpoint: {shown:?}"))]);
            }
        }
        for stored in ledger.checkpoints(CHECKPOINTS_MAX).await? {
            verified.checkpoints += 1;
            match read_note(&stored.note, key, &origin) {
                Ok(Checkpoint { size, root, .. }) if size == stored.size => {
                    signed.entry(size).or_default().push(Signed { root, whose: "the ledger's" });
                }
                Ok(_) => verified.add([checkpoint_fault("a checkpoint in the ledger", "is kept under another size")]),
                Err(why) => verified.add([checkpoint_fault("a checkpoint in the ledger", &why)]),
            }
        }
        let mut history = Self { sessions: BTreeMap::new(), size: 0, proven, ahead: Vec::new(), covered: 0, beyond: 0 };
        let tree = history.read_log(ledger, &signed, verified).await?;
        history.size = tree.size();
        verified.logged = tree.size();
        for (size, Signed { whose, .. }) in signed.iter().flat_map(|(size, all)| all.iter().map(|one| (*size, one))) {
            if size > tree.size() {
                let words =
                    format!("{whose} checkpoint covers {size} entries of the log, and {} are there", tree.size());
                verified.add([Fault::of(FaultKind::LogCut, None, None, words)]);
            }
        }
        Ok(history)
    }

    async fn read_log(
        &mut self,
        ledger: &dyn Ledger,
        signed: &BTreeMap<u64, Vec<Signed>>,
        verified: &mut Verified,
    ) -> Result<Frontier, Error> {
        let mut tree = Frontier::default();
        // Ends when the entries are through.
        loop {
            let page = ledger.log(tree.size(), PAGE).await?;
            let last = page.len() < PAGE;
            for entry in page {
                let place = tree.size();
                tree.push(entry.leaf());
                for Signed { root, whose } in signed.get(&tree.size()).into_iter().flatten() {
                    if *root != tree.root() {
                        let words =
                            format!("the first {} entries of the log are not those of {whose} checkpoint", place + 1);
                        verified.add([Fault::of(FaultKind::LogEdited, None, None, words)]);
                    }
                }
                self.note(entry, place, verified);
            }
            if last {
                return Ok(tree);
            }
        }
    }

    fn note(&mut self, entry: LogEntry, place: u64, verified: &mut Verified) {
        let LogEntry { session, seq, head } = entry;
        let logged = self.sessions.entry(session.clone()).or_default();
        if logged.last().is_some_and(|before| before.seq >= seq) {
            let words = format!("entry {place} of the log is no later than an earlier one of the same session");
            verified.add([Fault::of(FaultKind::LogEdited, Some(&session), Some(seq), words)]);
            return;
        }
        logged.push(Logged { place, seq, head, found: false });
    }

    /// Compares a session with what the log says of it.
    pub(super) fn compare(&mut self, session: &StoredSession, faults: &mut Vec<Fault>) {
        let Some(tip) = &session.tip else {
            // That its row is gone has been told.
            self.sessions.remove(&session.session);
            return;
        };
        let mut fault = |kind, seq, words| faults.push(Fault::of(kind, Some(&session.session), Some(seq), words));
        let mut last = 0;
        let mut covered = 0;
        if let Some(logged) = self.sessions.get_mut(&session.session) {
            for entry in &mut *logged {
                entry.found = true;
                last = entry.seq;
                if self.proven.is_some_and(|size| entry.place < size) {
                    covered = entry.seq;
                }
                if entry.seq > tip.seq {
                    let words = format!("the log says that it had {} events, and it has {}", entry.seq, tip.seq);
                    fault(FaultKind::TailCut, entry.seq, words);
                    break;
                }
                let rewritten = match link_at(session, entry.seq) {
                    Some(link) => link != entry.head,
                    // What retention dropped cannot be compared any more; what else is not there has its own fault.
                    None => false,
                };
                if rewritten {
                    let words = format!("the log has another head at event {}", entry.seq);
                    fault(FaultKind::Rewritten, entry.seq, words);
                    break;
                }
            }
        }
        if tip.logged < last {
            let words = format!("its row says that it is logged up to event {}, and the log says {last}", tip.logged);
            fault(FaultKind::LoggedMismatch, last, words);
        } else if tip.logged > last {
            self.ahead.push((session.session.clone(), tip.logged));
        }
        self.covered += covered.min(tip.seq);
        self.beyond += tip.seq.saturating_sub(covered);
    }

    /// Tells what the log names and nobody has seen, once all sessions were seen.
    pub(super) async fn finish(self, ledger: &dyn Ledger, verified: &mut Verified) -> Result<(), Error> {
        for (session, logged) in &self.sessions {
            if let Some(first) = logged.first().filter(|first| !first.found) {
                let words = format!("entry {} of the log names it, and nothing of it is there", first.place);
                verified.add([Fault::of(FaultKind::SessionRemoved, Some(session), None, words)]);
            }
        }
        verified.proven = self.proven.filter(|size| *size <= self.size).map(|size| Proven {
            size,
            events: self.covered,
            beyond: self.beyond,
        });
        self.look_ahead(ledger, verified).await
    }

    /// A session may have been logged after the log was read. Then the entry is there by now.
    async fn look_ahead(self, ledger: &dyn Ledger, verified: &mut Verified) -> Result<(), Error> {
        let mut ahead: BTreeMap<SessionId, u64> = self.ahead.into_iter().collect();
        let mut from = self.size;
        // Ends when the entries are through, or nobody is looked for any more.
        while !ahead.is_empty() {
            let page = ledger.log(from, PAGE).await?;
            for entry in &page {
                if ahead.get(&entry.session).is_some_and(|logged| entry.seq >= *logged) {
                    ahead.remove(&entry.session);
                }
            }
            from += page.len() as u64;
            if page.len() < PAGE {
                break;
            }
        }
        for (session, logged) in ahead {
            let words = format!("its row says that it is logged up to event {logged}, and the log does not");
            verified.add([Fault::of(FaultKind::LoggedMismatch, Some(&session), Some(logged), words)]);
        }
        Ok(())
    }
}

fn read_note(note: &str, key: Option<&NoteVerifier>, origin: &str) -> Result<Checkpoint, String> {
    let read = match key {
        Some(key) => Checkpoint::open(note, key),
        None => Checkpoint::unchecked(note),
    };
    let checkpoint = read.map_err(|error| format!("is not accepted: {error}"))?;
    if checkpoint.origin != origin {
        return Err(format!("is of the log `{}`, and this one is `{origin}`", checkpoint.origin));
    }
    Ok(checkpoint)
}

fn checkpoint_fault(what: &str, why: &str) -> Fault {
    Fault::of(FaultKind::Checkpoint, None, None, format!("{what} {why}"))
}
