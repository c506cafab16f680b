//! Reading what a call is based on, and comparing it with what it was.

use crate::attempt::Purpose;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::may_send;
use crate::event::Fact;
use crate::evidence::Changed;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::outcome::Outcome;
use crate::time::Timestamp;

/// How often the evidence of a call is compared: before it is sent, and once more when the upstream says it is stale.
const COMPARISONS_MAX: u32 = 2;

impl Dispatcher {
    /// What is to be done next for a call that has not been sent, or is to be sent again.
    pub(super) fn next_purpose(&self, id: &CallId) -> Purpose {
        let Some(call) = self.state.calls.get(id) else {
            return Purpose::Act;
        };
        let sent = call.acts().next().is_some();
        let read = |purpose| call.attempts.iter().any(|attempt| attempt.purpose == purpose && attempt.succeeded());
        if !sent && call.compared < call.comparisons() && call.next_evidence().is_some() {
            Purpose::Evidence
        } else if !sent && call.contract().needs_baseline() && !read(Purpose::Baseline) {
            Purpose::Baseline
        } else {
            Purpose::Act
        }
    }

    /// The upstream says that the evidence is stale: it is read again, once.
    pub(super) fn refresh_evidence(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let reads = call.compared < COMPARISONS_MAX && call.next_evidence().is_some();
        if !reads || !may_send(call, Purpose::Evidence, gates, now) {
            return self.end_failed(now, id, Outcome::Deprecated);
        }
        self.start(now, gates, id, Purpose::Evidence, None);
    }

    /// A piece of evidence was read. When all of them were, they are compared.
    pub(super) fn evidence_was_read(&mut self, now: Timestamp, gates: &Gates, attempt: &AttemptId) {
        let id = &attempt.call;
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.cancel.is_some() {
            return self.end_cancelled(now, id);
        }
        if now >= call.deadline {
            return self.end_failed(now, id, Outcome::Exhausted);
        }
        if call.next_evidence().is_some() {
            return self.start(now, gates, id, Purpose::Evidence, None);
        }
        let round = call.compared as usize;
        let mut changed = Vec::new();
        for (item, evidence) in (0..).zip(&call.received.evidence) {
            let was = match (round, &evidence.hash) {
                (0, named) => named.as_ref(),
                _ => call.evidence_read(item, 0),
            };
            if let (Some(was), Some(is)) = (was, call.evidence_read(item, round))
                && was != is
            {
                let reference = evidence.tool.to_string();
                changed.push(Changed { reference, was: was.clone(), is: is.clone() });
            }
        }
        let stale = !changed.is_empty();
        self.emit(now, Fact::EvidenceCompared { call: id.clone(), changed });
        if stale {
            return self.end_failed(now, id, Outcome::Deprecated);
        }
        let next = self.next_purpose(id);
        self.start(now, gates, id, next, None);
    }
}
