//! Small wrong behaviours that can be planted, to prove that the watch sees them.

/// A wrong behaviour of the driver, the classifier, the operator or the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The driver sends before the intent is durable.
    SendBeforeAppend,
    /// The driver answers before the result is durable.
    ReplyBeforeAppend,
    /// The driver sends a request again by itself when its answer is overdue.
    ResendInline,
    /// A negative status read counts although the request can still arrive.
    NegativeAtOnce,
    /// The driver records a step without its claims when one of them is held.
    IgnoreHeld,
    /// The classifier takes a conflict for a success.
    ConflictAsSuccess,
    /// The classifier takes a plain error for proof that nothing was done.
    ErrorAsNothingDone,
    /// The first verdict is used for every later attempt.
    JudgeOnce,
    /// The driver sends after its lease and the attempt's send deadline are over.
    SendLate,
    /// The driver looks at its lease as it is when it sends, not as it was at the intent.
    FreshLease,
    /// The driver sends to another run of the upstream than the one the intent names.
    AnyRun,
    /// The upstream does not honour the keys it is sent.
    KeysForgotten,
    /// The classifier drops the time that the upstream asked for.
    Impatient,
    /// The driver never asks for a tick.
    NoTimer,
}
