//! How much is going on: what was counted of recorded facts, looked at every few seconds, for the charts of the console.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use amends_core::{Timestamp, Verdict};

use crate::clock;
use crate::gateway::Gateway;
use crate::metrics::{Metrics, Word};

/// How often it is looked, and how many looks are kept: a quarter of an hour.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(15);
const KEPT_MAX: usize = 61;

/// What was counted lately.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<VecDeque<Beat>>);

/// What had been counted at one time since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    /// When.
    pub(crate) at: Timestamp,
    /// Calls that had come.
    pub(crate) received: u64,
    /// Calls that were over.
    pub(crate) ended: u64,
    /// Calls that were refused.
    pub(crate) refused: u64,
    /// How often each verdict had been given, in the order of [`Verdict::ALL`].
    pub(crate) verdicts: Vec<u64>,
}

impl Pulse {
    /// What was counted lately, the oldest first, and what is counted now.
    pub(crate) fn beats(&self, metrics: &Metrics) -> Vec<Beat> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().chain([Beat::of(metrics)]).collect()
    }

    fn take(&self, beat: Beat) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(beat);
    }
}

impl Beat {
    fn of(metrics: &Metrics) -> Self {
        let event = |name| metrics.events.get(&[("event", Word::Fixed(name))]).map_or(0, |counter| counter.get());
        let verdict = |verdict: Verdict| {
            metrics.verdicts.get(&[("verdict", Word::Fixed(verdict.as_str()))]).map_or(0, |counter| counter.get())
        };
        Self {
            at: clock::now(),
            received: event("call_received"),
            ended: event("call_ended"),
            refused: event("call_refused"),
            verdicts: Verdict::ALL.map(verdict).to_vec(),
        }
    }
}

/// Looks until the gateway is gone.
pub(crate) async fn look(gateway: Weak<Gateway>) {
    while let Some(strong) = gateway.upgrade() {
        strong.pulse.take(Beat::of(&strong.metrics));
        drop(strong);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
