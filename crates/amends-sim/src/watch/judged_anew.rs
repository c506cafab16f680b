//! Each attempt gets its own verdict.

use amends_core::{AttemptId, EffectKind, Event, Fact, Purpose, Verdict};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A failed attempt to act, to undo, or to read what must be known first has its own judgement before the next attempt begins.
    pub(crate) fn judged_before_the_next(&self, attempt: &AttemptId) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let unjudged = view.attempts.iter().zip(1..).find(|(earlier, _)| {
            let judges = !matches!(earlier.purpose, Purpose::Status | Purpose::Join);
            let failed = earlier.end.as_ref().map(|end| end.report.failure.is_some());
            judges && failed != Some(false) && earlier.judged == 0
        });
        match unjudged {
            Some((_, n)) => {
                let what = format!("attempt {n} was not judged before {attempt} began");
                Err(self.broken("judged_anew", Some(attempt.call.clone()), what))
            }
            None => Ok(()),
        }
    }

    /// A judgement follows from its own attempt: its code, what is known of it, and the contract.
    pub(crate) fn judged_by_its_own(&self, event: &Event) -> Verdicts {
        let Fact::FailureJudged { attempt, verdict, .. } = &event.fact else {
            return Ok(());
        };
        let view = self.calls.get(&attempt.call);
        let judged = view.and_then(|view| {
            let judged = view.attempts.get(attempt.n as usize - 1)?;
            let end = judged.end.as_ref()?;
            let effect = match judged.purpose {
                Purpose::Act => view.effect(),
                // Whatever the tool declares that undoes it.
                Purpose::Reverse => EffectKind::Write,
                Purpose::Baseline | Purpose::Status | Purpose::Join | Purpose::Evidence => EffectKind::Read,
            };
            let code = end.report.failure.as_ref()?.code;
            Some(Verdict::judge(code, end.certainty, effect))
        });
        if judged == Some(*verdict) {
            return Ok(());
        }
        let what = format!("{attempt} was judged {verdict:?}, and is {judged:?}");
        Err(self.broken("judged_anew", Some(attempt.call.clone()), what))
    }
}
