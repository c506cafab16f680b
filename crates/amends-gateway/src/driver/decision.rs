//! What whoever calls says with the call itself to the question whether it may be sent.

use std::time::{Duration, Instant};

use amends_core::interaction::{Subject, choice};
use amends_core::{InteractionId, PersonAnswer};
use amends_ledger::{AnswerFate, Error, QueueState};
use amends_wire::mcp::Decision;

use super::SessionHandle;
use crate::clock;

/// For how long the call waits until what was said is acted on.
const ACTED_ON_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl SessionHandle {
    /// Hands in what whoever calls says, where it is their own call that is asked about. Whether it counts is for the question
    /// to say; the call then finds what became of it.
    pub async fn decide(&self, decision: &Decision) {
        let id = InteractionId::new(decision.interaction.as_str());
        match self.say(&id, decision.approves).await {
            Ok(Some(fate)) => tracing::info!(interaction = %id, ?fate, "the answer of whoever called does not count"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, interaction = %id, "an answer could not be kept"),
        }
    }

    /// What became of it, where it does not count.
    async fn say(&self, id: &InteractionId, approves: bool) -> Result<Option<AnswerFate>, Error> {
        let asked = self.gateway.ledger.interaction(id).await?.map(|entry| entry.interaction);
        // The same for a question that is not there and one that is another's.
        if !asked.is_some_and(|asked| asked.principal == self.principal && asked.subject == Subject::Call) {
            return Ok(Some(AnswerFate::Unknown));
        }
        let choice = if approves { choice::APPROVE } else { choice::DENY };
        let by = self.principal.to_string();
        let answer = PersonAnswer { choice: choice.into(), by, note: None, at: clock::now(), content: None };
        match self.gateway.ledger.answer_interaction(id, answer).await? {
            AnswerFate::Taken => {}
            AnswerFate::Late { .. } | AnswerFate::Closed(_) => return Ok(None),
            fate => return Ok(Some(fate)),
        }
        // Until then the call would only be told once more that a person is asked.
        let said = Instant::now();
        while said.elapsed() < ACTED_ON_WITHIN {
            let entry = self.gateway.ledger.interaction(id).await?;
            if entry.is_none_or(|entry| matches!(entry.state, QueueState::Closed(_))) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(None)
    }
}
