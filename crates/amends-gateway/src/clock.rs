//! The one place that reads the clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amends_core::Timestamp;

/// The time now, as the core knows it.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long it is until then; nothing if it is past.
pub fn until(at: Timestamp) -> Duration {
    Duration::from_millis(at.since_ms(now()))
}
