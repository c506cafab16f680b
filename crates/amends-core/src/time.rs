//! Time as the core knows it: milliseconds in UTC, given from outside.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970 in UTC. It can be stored, and survives a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The latest time there is.
    pub const MAX: Self = Self(u64::MAX);

    /// The time that many milliseconds after 1970.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// Milliseconds from `earlier` to this, zero if it is not earlier.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Timestamp {
    type Output = Self;

    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Sub<u64> for Timestamp {
    type Output = Self;

    fn sub(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
