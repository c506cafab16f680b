//! Verifying a ledger: every chain is recomputed, every decision made again, and all of it compared with what was signed.
//!
//! Others may write meanwhile. What says how things must be, the anchor and the log, is read before the sessions, and
//! those only ever grow; so a ledger in use never looks as if somebody had touched it.

mod decide;
mod history;
mod report;

use amends_core::SessionId;

use crate::anchor::Anchor;
use crate::chain::{Checked, Link, check};
use crate::error::Error;
use crate::note::NoteVerifier;
use crate::row::StoredSession;
use crate::{Ledger, LogEntry};

pub use report::{FAULTS_MAX, Fault, FaultKind, Proven, Verified};

use decide::Judge;
use history::History;

/// How many sessions are read at a time.
const PAGE: usize = 64;

/// What a ledger is compared with beside itself.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// Checkpoints that were kept elsewhere, as they were read before the verifying began.
    pub anchor: Option<Anchor>,
    /// The key that signed them. Without it no signature is checked, and nothing is proven by a checkpoint.
    pub key: Option<NoteVerifier>,
}

/// Verifies a ledger.
pub async fn verify(ledger: &dyn Ledger, options: VerifyOptions) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    let mut history = History::read(ledger, &options, &mut verified).await?;
    let mut judge = Judge::default();
    let mut after: Option<SessionId> = None;
    // Ends when the ids are through: each page begins after the last one.
    loop {
        let page = ledger.stored(after.as_ref(), PAGE).await?;
        for session in &page {
            verified.sessions += 1;
            verified.events += session.records.len() as u64;
            let Checked { mut faults, events } = check(session);
            let whole = faults.is_empty();
            history.compare(session, &mut faults);
            if whole {
                judge.decide(ledger, session, &events, &mut faults, &mut verified).await?;
            }
            verified.add(faults);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.session.clone()),
            _ => break,
        }
    }
    history.finish(ledger, &mut verified).await?;
    Ok(verified)
}

/// The link stored after that event, where it can be known.
pub(crate) fn link_at(session: &StoredSession, seq: u64) -> Option<Link> {
    let tip = session.tip.as_ref()?;
    if seq == tip.cut {
        let cut = tip.cut_link.as_deref().and_then(Link::stored);
        return if seq == 0 { Some(Link::genesis(&session.session)) } else { cut };
    }
    let place = session.records.binary_search_by_key(&seq, |record| record.seq).ok()?;
    Link::stored(&session.records[place].hash)
}
