//! Retries are bounded.

use amends_core::limits::{ATTEMPTS_MAX, STATUS_READS_MAX};
use amends_core::{AttemptId, Compensation, Event, Fact, Purpose, Timestamp};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// No attempt to act begins after the call's deadline, after the agent was answered, before the upstream said, or
    /// beyond the bounds.
    pub(crate) fn bounded_attempt(&self, attempt: &AttemptId, purpose: Purpose, at: Timestamp) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let broken = |what: String| Err(self.broken("bounded", Some(attempt.call.clone()), what));
        let reads = view.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Status).count();
        if reads > STATUS_READS_MAX as usize {
            return broken(format!("{attempt} follows {reads} status reads"));
        }
        if !matches!(purpose, Purpose::Act | Purpose::Baseline) {
            return Ok(());
        }
        if attempt.n > ATTEMPTS_MAX {
            return broken(format!("{attempt} is one too many"));
        }
        if at >= view.received.deadline {
            return broken(format!("{attempt} begins after the call's deadline"));
        }
        if view.interim {
            return broken(format!("{attempt} begins after the agent was answered"));
        }
        let early = self
            .not_before
            .iter()
            .filter(|(earlier, _)| earlier.call == attempt.call && earlier.n < attempt.n)
            // What is heard of an attempt that is over binds nobody.
            .filter(|(earlier, _)| {
                let heard = view.attempts.get(earlier.n as usize - 1);
                let end = heard.and_then(|heard| heard.end.as_ref());
                end.is_some_and(|end| end.report.answered)
            })
            .find(|(_, until)| at.ms() < **until);
        if let Some((earlier, until)) = early {
            return broken(format!("{attempt} undercuts what {earlier} was told: {until}"));
        }
        Ok(())
    }

    /// No ladder has more steps than the playbook gave it.
    pub(crate) fn bounded_ladder(&self, event: &Event) -> Verdicts {
        let Fact::FailureJudged { attempt, verdict, retry: Some(retry), .. } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let steps = match &view.tool.rules.playbook.rule(*verdict).compensation {
            Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => ladder.backoff_ms.len(),
            _ => 0,
        };
        if *retry as usize > steps {
            let what = format!("retry {retry} of a ladder with {steps} steps");
            return Err(self.broken("bounded", Some(attempt.call.clone()), what));
        }
        Ok(())
    }
}
