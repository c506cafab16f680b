//! The time of a walk.

use crate::time::Timestamp;

/// The time that a walk spends in one machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clock {
    pub(super) began: Timestamp,
    /// After how many moves that was.
    pub(super) entered: u64,
    /// What the walk had spent before of which this one is a fork.
    pub(super) before_ms: u64,
    /// How long people took.
    pub(super) people_ms: u64,
}

impl Clock {
    pub(super) fn new(began: Timestamp, entered: u64) -> Self {
        Self { began, entered, before_ms: 0, people_ms: 0 }
    }

    pub(super) fn ends(&self, most_ms: u64) -> Timestamp {
        self.began + most_ms.saturating_sub(self.before_ms).saturating_add(self.people_ms)
    }

    pub(super) fn spent_ms(&self, at: Timestamp) -> u64 {
        at.since_ms(self.began).saturating_sub(self.people_ms).saturating_add(self.before_ms)
    }
}
