//! Intent before the first byte, result before the answer; if the ledger cannot record, nothing happens.

use amends_core::{Attempt, Purpose, Reply, SessionId};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// No byte leaves before its attempt is durable, and none of a write under an epoch that is over. While the ledger
    /// cannot record, this is what makes us fail closed.
    pub(crate) fn intent_first(&self, session: &SessionId, attempt: &Attempt) -> Verdicts {
        let call = &attempt.id.call;
        let view = self.calls.get(call);
        let intent = view.and_then(|view| view.attempts.get(attempt.id.n as usize - 1));
        let Some((view, intent)) = view.zip(intent) else {
            let what = format!("{} leaves before its intent is durable", attempt.id);
            return Err(self.broken("intent_first", Some(call.clone()), what));
        };
        let epoch = self.sessions.get(session).map_or(0, |view| view.epoch);
        let writes = attempt.purpose == Purpose::Act && !view.effect().is_read();
        if writes && intent.epoch != epoch {
            let what = format!("{} leaves under epoch {}, the session is at {epoch}", attempt.id, intent.epoch);
            return Err(self.broken("intent_first", Some(call.clone()), what));
        }
        Ok(())
    }

    /// No answer is given before what it says is durable.
    pub(crate) fn result_before_answer(&self, session: &SessionId, reply: &Reply) -> Verdicts {
        let recorded = self
            .calls
            .get(&reply.call)
            .is_some_and(|view| view.session == *session && if reply.last { !view.is_open() } else { view.interim });
        if recorded {
            return Ok(());
        }
        let what = "it is answered before that is durable".into();
        Err(self.broken("result_before_answer", Some(reply.call.clone()), what))
    }
}
