//! Each call ends exactly once.

use amends_core::{Certainty, Event, Fact, Reply};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// Each call ends once, and after that only its delivery, late results and what a person says of it are heard of.
    pub(crate) fn one_end(&self, event: &Event) -> Verdicts {
        let Some(call) = event.fact.call() else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let after = matches!(event.fact, Fact::LateResult { .. } | Fact::AnswerDelivered { .. });
        let in_doubt = view.ended.as_ref().is_some_and(|end| end.certainty == Certainty::InDoubt);
        let said = match &event.fact {
            Fact::DoubtResolved { .. } => in_doubt,
            // They follow from what was said, or what came late.
            Fact::ReversalVoided { .. } => !view.refused && !in_doubt,
            Fact::ReversalArmed { .. } => view.done_late && !in_doubt,
            Fact::ReversalRedeemed { .. } => !view.refused && (!in_doubt || view.done_late),
            _ => false,
        };
        if view.is_open() || after || said {
            return Ok(());
        }
        let what = format!("after its end there is still {:?}", event.fact);
        Err(self.broken("one_end", Some(call.clone()), what))
    }

    /// Each call is answered for good once, and once more for each time that a person settled it after its end.
    pub(crate) fn one_answer_for_good(&mut self, reply: &Reply) -> Verdicts {
        let (answers, settled) = self.answered.entry(reply.call.clone()).or_default();
        *answers += u32::from(reply.last);
        if *answers <= 1 + *settled {
            return Ok(());
        }
        let what = format!("it is answered for the {answers}. time");
        Err(self.broken("one_end", Some(reply.call.clone()), what))
    }
}
