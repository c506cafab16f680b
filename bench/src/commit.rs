//! The cost of one group commit on the same disk: what a write waits for twice.

use std::path::Path;
use std::time::{Duration, Instant};

use amends_core::claim::{Claim, ClaimKind};
use amends_core::{ClaimChange, Event, Fact, SessionId, Timestamp};
use amends_ledger::{Append, Ledger, Node, OpenWork, SqliteLedger};
use anyhow::Result;

use crate::load::{micros, quantile};

/// A ledger of its own, with one producer that waits for each step.
#[derive(Debug)]
pub(crate) struct Commits {
    ledger: SqliteLedger,
    session: SessionId,
    seq: u64,
}

impl Commits {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let ledger = SqliteLedger::open(&folder.join("commits.db"), Node::this_process(60_000)?)?;
        Ok(Self { ledger, session: "ses_commits".into(), seq: 0 })
    }

    /// Half of all commits took at most this long, in microseconds.
    pub(crate) async fn p50_us(&mut self, lasting: Duration) -> Result<f64> {
        let began = Instant::now();
        let mut took = Vec::new();
        while began.elapsed() < lasting {
            let step = step(&self.session, self.seq);
            let sent = Instant::now();
            self.seq = self.ledger.append(step).await?.seq;
            took.push(sent.elapsed());
        }
        took.sort_unstable();
        Ok(micros(quantile(&took, 0.5)))
    }
}

/// A step of that session the size of a write's intent: two events and a claim.
pub(crate) fn step(session: &SessionId, seq: u64) -> Append {
    let at = Timestamp::from_ms(1_790_000_000_000 + seq);
    let call = format!("call_{session}_{seq}");
    let first = match seq {
        0 => Fact::SessionOpened {
            session: session.clone(),
            seed: 7,
            principal: "local".into(),
            door: "mcp/http".into(),
            tenant: None,
            decider: Default::default(),
        },
        _ => Fact::Ignored { why: "x".repeat(300) },
    };
    let second = Fact::InterimAnswered { call: call.as_str().into() };
    let claim =
        Claim { name: call.as_str().into(), fingerprint: "f".repeat(64).as_str().into(), kind: ClaimKind::Arguments };
    let call = call.as_str().into();
    let take = ClaimChange::Take { claim, call, effect_key: "k".repeat(32), since: at, over: None };
    let numbered = [first, second].into_iter().zip(seq + 1..);
    let events = numbered.map(|(fact, seq)| Event { v: 1, seq, at, fact }).collect();
    Append {
        claims: vec![take],
        open: OpenWork { calls: 1, due: Some(at) },
        ..Append::of(session.clone(), 1, seq, events)
    }
}
