//! Two different writes to one object are never under way at once.

use amends_core::{AttemptId, CallId, Certainty, EffectKind, Purpose, Timestamp};

use crate::catalog::Tool;
use crate::watch::view::{AttemptView, CallView};
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// No write to an object is sent while a different one to it may still arrive, or nobody knows whether it did.
    pub(crate) fn one_object_one_write(&self, attempt: &AttemptId, purpose: Purpose, at: Timestamp) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let object = view.tool.object;
        if object.is_none() || !matches!(purpose, Purpose::Act | Purpose::Reverse) {
            return Ok(());
        }
        let differs = |other: &CallView| {
            let same = other.received.tool == view.received.tool
                && other.received.arguments.digest == view.received.arguments.digest;
            other.tool.object == object && !same
        };
        for (call, other) in self.calls.iter().filter(|(call, other)| **call != attempt.call && differs(other)) {
            let under_way = |write: &(u32, &AttemptView)| self.may_arrive(call, other, *write, at);
            if let Some((n, _)) = (1..).zip(&other.attempts).find(under_way) {
                let what = format!("{attempt} is sent while {call}/{n} may still arrive at the same object");
                return Err(self.broken("one_object_one_write", Some(attempt.call.clone()), what));
            }
        }
        Ok(())
    }

    fn may_arrive(&self, call: &CallId, view: &CallView, (n, write): (u32, &AttemptView), at: Timestamp) -> bool {
        let tool: &Tool = match (write.purpose, view.tool.undo) {
            (Purpose::Act, _) => view.tool,
            (Purpose::Reverse, Some(undo)) => &self.tools[undo],
            _ => return false,
        };
        let Some(end) = &write.end else {
            return true;
        };
        let id = AttemptId { call: call.clone(), n };
        let heard_late = self.heard.get(&id).is_some_and(|report| report.answered);
        if end.report.answered || heard_late || end.report.certainty == Certainty::NotSent {
            return false;
        }
        let left_by = if end.reported { write.send_by.min(end.at) } else { write.send_by };
        let lives = at < left_by + tool.life_ms;
        let known = end.certainty != Certainty::InDoubt;
        let resolved = view.ended.as_ref().is_some_and(|end| end.certainty != Certainty::InDoubt);
        match (write.purpose, tool.effect()) {
            (Purpose::Reverse, _) | (_, EffectKind::Idempotent) => lives,
            // Its key makes one effect of all its sends.
            (_, EffectKind::Keyed) => lives && !known && !resolved && !view.was_done(),
            (_, EffectKind::Read) => false,
            (_, EffectKind::Write) => !known && !resolved,
        }
    }
}
