//! The one place that reads the clock.
//!
//! The machine's clock is read once, when the process begins; from there on time is what has passed, sleep included. So a clock
//! that is set while we run neither shortens a wait that something is sent after, nor makes anything wait for hours.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amends_core::Timestamp;
use amends_ledger::uptime_ms;

/// When this process began, by the clock it goes by, and how long the machine was up by then.
static BEGAN: OnceLock<(Timestamp, u64)> = OnceLock::new();

/// The time now, as the core knows it.
pub fn now() -> Timestamp {
    let (began, up) = *BEGAN.get_or_init(|| (machine(), uptime_ms()));
    began + uptime_ms().saturating_sub(up)
}

/// How long it is until then; nothing if it is past.
pub fn until(at: Timestamp) -> Duration {
    Duration::from_millis(at.since_ms(now()))
}

/// Goes by another clock than the machine's, which shows that time now: the one that whoever shares the ledger goes by. It does
/// nothing once a time was read.
pub fn begin_at(shown: Timestamp) {
    // Whoever came first decides for the process.
    let _ = BEGAN.set((shown, uptime_ms()));
}

/// By how much the machine's clock is ahead of the time we go by, in milliseconds; negative where it is behind.
pub fn machine_ahead_ms() -> i64 {
    let (ours, machine) = (now(), machine());
    let ahead = i64::try_from(machine.since_ms(ours)).unwrap_or(i64::MAX);
    ahead.saturating_sub(i64::try_from(ours.since_ms(machine)).unwrap_or(i64::MAX))
}

/// For how long the machine may sleep before what was begun before that is not gone on with.
const NAP_MS: u64 = 500;

/// A moment after which the machine may have slept. Timers do not count sleep, and leases do: what was to be sent before it must
/// not leave after it.
#[derive(Clone, Copy, Debug)]
pub struct Awake {
    since: Instant,
    up_ms: u64,
}

impl Awake {
    /// This moment.
    pub fn now() -> Self {
        Self { since: Instant::now(), up_ms: uptime_ms() }
    }

    /// Whether the machine has been awake ever since.
    pub fn still(self) -> bool {
        let counted_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        uptime_ms().saturating_sub(self.up_ms) <= counted_ms.saturating_add(NAP_MS)
    }
}

/// What the machine's clock shows.
fn machine() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let shown = Timestamp::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    shown + set_forward_ms()
}

/// By how much a test has set the machine's clock forward: the number in the file that `AMENDS_CLOCK_FORWARD_MS` names.
#[cfg(debug_assertions)]
fn set_forward_ms() -> u64 {
    let file = std::env::var_os("AMENDS_CLOCK_FORWARD_MS");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// Nothing: a release build has no such file.
#[cfg(not(debug_assertions))]
fn set_forward_ms() -> u64 {
    0
}
