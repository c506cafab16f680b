//! Each call ends exactly once.

use amends_core::{Event, Fact};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// Each call ends once, and after that only its delivery and late results are heard of.
    pub(crate) fn one_end(&self, event: &Event) -> Verdicts {
        let Some(call) = event.fact.call() else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let after = matches!(event.fact, Fact::LateResult { .. } | Fact::AnswerDelivered { .. });
        if view.is_open() || after {
            return Ok(());
        }
        let what = format!("after its end there is still {:?}", event.fact);
        Err(self.broken("one_end", Some(call.clone()), what))
    }
}
