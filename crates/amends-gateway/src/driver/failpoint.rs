//! Points of a write's life at which a test lets the process die, as `kill -9` would end it, or the driver fail, as a mistake of
//! ours would make it. A release build has none.

/// The variable that names the point to die at.
#[cfg(debug_assertions)]
const VARIABLE: &str = "AMENDS_CRASH_AT";
/// The variable that names the point at which the first driver that reaches it fails.
#[cfg(debug_assertions)]
const FAILS: &str = "AMENDS_PANIC_AT";

/// A point of a write's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// Its intent was decided and is not on the ledger.
    BeforeIntent,
    /// Its intent is durable, and nothing was sent.
    AfterIntent,
    /// Its result has arrived and is not on the ledger.
    AfterResult,
    /// Its end is durable, and the agent has no answer.
    BeforeReply,
}

impl Point {
    /// Its name in the variable.
    #[cfg(debug_assertions)]
    const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeIntent => "before_intent",
            Self::AfterIntent => "after_intent",
            Self::AfterResult => "after_result",
            Self::BeforeReply => "before_reply",
        }
    }
}

/// Dies here if a test asked for that.
#[cfg(debug_assertions)]
pub(super) fn reach(point: Point) {
    if std::env::var_os(VARIABLE).is_some_and(|named| named == point.as_str()) {
        std::process::abort();
    }
    if std::env::var_os(FAILS).is_some_and(|named| named == point.as_str())
        && !FAILED.swap(true, std::sync::atomic::Ordering::Relaxed)
    {
        panic!("a test lets the driver fail at {}", point.as_str());
    }
}

/// Whether a driver has failed on purpose in this process.
#[cfg(debug_assertions)]
static FAILED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Nothing happens here.
#[cfg(not(debug_assertions))]
pub(super) fn reach(_: Point) {}
