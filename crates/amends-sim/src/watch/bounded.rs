//! Retries are bounded.

use amends_core::limits::{ATTEMPTS_MAX, STATUS_READS_MAX};
use amends_core::{AttemptId, Compensation, Event, Fact, Gates, Purpose, Timestamp};

use crate::watch::view::CallView;
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
        self.waits_as_asked(attempt, purpose, view, at)?;
        if !matches!(purpose, Purpose::Act | Purpose::Baseline | Purpose::Evidence) {
            return Ok(());
        }
        if attempt.n > ATTEMPTS_MAX {
            return broken(format!("{attempt} is one too many"));
        }
        if at >= view.deadline {
            return broken(format!("{attempt} begins after the call's deadline"));
        }
        if view.interim {
            return broken(format!("{attempt} begins after the agent was answered"));
        }
        Ok(())
    }

    /// Nothing is sent again to an upstream whose budget is spent or whose breaker is open, but for what settles a doubt or undoes.
    pub(crate) fn held_back(&self, attempt: &AttemptId, purpose: Purpose, gates: &Gates) -> Verdicts {
        let restrained = matches!(purpose, Purpose::Act | Purpose::Baseline);
        let Some(view) = self.calls.get(&attempt.call).filter(|_| restrained) else {
            return Ok(());
        };
        let again = view.attempts.iter().any(|earlier| earlier.purpose == purpose);
        match gates.held_back(&view.received.upstream, &view.received.tool) {
            Some(by) if again => {
                let what = format!("{attempt} is sent again in spite of the {}", by.as_str());
                Err(self.broken("bounded", Some(attempt.call.clone()), what))
            }
            _ => Ok(()),
        }
    }

    /// An upstream that asked for time is not asked for the same thing before that.
    fn waits_as_asked(&self, attempt: &AttemptId, purpose: Purpose, view: &CallView, at: Timestamp) -> Verdicts {
        // What is heard of an attempt that is over binds nobody.
        let heard = |n: u32| {
            let earlier = view.attempts.get(n as usize - 1).filter(|earlier| earlier.purpose == purpose);
            earlier.and_then(|earlier| earlier.end.as_ref()).is_some_and(|end| end.report.answered)
        };
        let asked = self.not_before.iter().filter(|(earlier, _)| earlier.call == attempt.call && heard(earlier.n));
        for (earlier, until) in asked {
            if at.ms() < *until {
                let what = format!("{attempt} undercuts what {earlier} was told: {until}");
                return Err(self.broken("bounded", Some(attempt.call.clone()), what));
            }
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
        let ended = view.attempts.get(attempt.n as usize - 1).and_then(|attempt| attempt.end.as_ref());
        let Some(failure) = ended.and_then(|end| end.report.failure.as_ref()) else {
            return Ok(());
        };
        let steps = match &view.tool.rules.playbook.rule(*verdict, failure.code).compensation {
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
