//! What a call is based on is read before it is sent, and nothing is sent on what has changed.

use amends_core::{AttemptId, Code, Digest, Purpose};

use crate::watch::view::{AttemptView, CallView};
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A call acts only after every piece of its evidence was read and says what it should; and when the upstream called it
    /// stale, only once more, after all of it was read again and says what it said.
    pub(crate) fn evidence_compared(&self, attempt: &AttemptId, purpose: Purpose) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call).filter(|view| !view.received.evidence.is_empty()) else {
            return Ok(());
        };
        if purpose != Purpose::Act {
            return Ok(());
        }
        let broken = |what: String| Err(self.broken("evidence_compared", Some(attempt.call.clone()), what));
        let stale = self.times_stale(attempt);
        if stale > 1 {
            return broken(format!("{attempt} is sent although the upstream called it stale {stale} times"));
        }
        for (item, evidence) in (0..).zip(&view.received.evidence) {
            let reads = self.reads(attempt, view, item);
            let Some(last) = reads.get(stale) else {
                return broken(format!("{attempt} is sent before `{}` was read {} times", evidence.tool, stale + 1));
            };
            let was = if stale == 0 { evidence.hash.as_ref() } else { reads.first() };
            if was.is_some_and(|was| was != last) {
                return broken(format!("{attempt} is sent although `{}` was {was:?} and is {last}", evidence.tool));
            }
        }
        Ok(())
    }

    /// How often the upstream called a call stale, of what was heard and recorded while it mattered.
    pub(crate) fn times_stale(&self, attempt: &AttemptId) -> usize {
        let said = |report: &amends_core::Report| {
            report.failure.as_ref().is_some_and(|failure| failure.code == Code::EvidenceStale)
        };
        let acted = |n: u32| {
            let view = self.calls.get(&attempt.call).and_then(|view| view.attempts.get(n as usize - 1));
            let answered = |act: &AttemptView| act.end.as_ref().is_some_and(|end| end.report.answered);
            view.is_some_and(|earlier| earlier.purpose == Purpose::Act && answered(earlier))
        };
        let heard = self.heard.iter().filter(|(earlier, _)| earlier.call == attempt.call && acted(earlier.n));
        heard.filter(|(_, report)| said(report)).count()
    }

    /// What a piece of evidence really said each time it was read.
    fn reads(&self, attempt: &AttemptId, view: &CallView, item: u32) -> Vec<Digest> {
        let of = |read: &(u32, &AttemptView)| {
            let succeeded = read.1.end.as_ref().is_some_and(|end| end.report.failure.is_none());
            read.1.purpose == Purpose::Evidence && read.1.item == Some(item) && succeeded
        };
        let heard = |n| self.heard.get(&AttemptId { call: attempt.call.clone(), n });
        let reads = (1..).zip(&view.attempts).filter(of);
        reads.filter_map(|(n, _)| Some(heard(n)?.payload.as_ref()?.digest.clone())).collect()
    }

    /// What the evidence that an attempt reads should say, as the call names it: for a planted flaw.
    pub(crate) fn named_evidence(&self, attempt: &AttemptId) -> Option<Digest> {
        let view = self.calls.get(&attempt.call)?;
        let item = view.attempts.get(attempt.n as usize - 1)?.item?;
        view.received.evidence.get(item as usize)?.hash.clone()
    }

    /// Whether the upstream calls a call stale for the second time: for a planted flaw.
    pub(crate) fn twice_stale(&self, attempt: &AttemptId) -> bool {
        let now = self.heard.get(attempt).and_then(|report| report.failure.as_ref()).map(|failure| failure.code);
        now == Some(Code::EvidenceStale) && self.times_stale(attempt) >= 1
    }
}
