//! The envelope of a call that was done, by what its answer looks like.

use crate::dispatcher::state::CallState;
use crate::dispatcher::wording;
use crate::envelope::{Data, Envelope};
use crate::id::AttemptId;
use crate::outcome::Outcome;

/// The envelope of a call that was done, whose answer is what that attempt gave back.
pub(super) fn done(call: &CallState, attempt: &AttemptId, outcome: Outcome) -> Envelope {
    let end = call.attempts.iter().find(|one| one.n == attempt.n).and_then(|one| one.end.as_ref());
    let shape = end.and_then(|end| end.report.shape.as_deref());
    let attempts = if outcome == Outcome::Succeeded { Vec::new() } else { wording::history(call) };
    let tool = call.received.tool.as_str();
    let envelope = Envelope::shaped(tool, call.contract(), outcome, Data::Of(attempt.clone()), shape);
    Envelope { attempts, ..envelope }
}
