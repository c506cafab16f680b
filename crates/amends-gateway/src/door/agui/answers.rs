//! What a client brings back: a person's answers go to the ledger, as through any other door; an upstream's go on with its call.

use std::sync::Arc;
use std::time::Duration;

use amends_core::interaction::{InteractionKind, choice};
use amends_core::{CallId, Interaction, InteractionId, PersonAnswer, Principal, Refusal, RefusalKind, SessionId};
use amends_ledger::{AnswerFate, Closing, QueueState};
use amends_wire::agui::input::{Answer, unfit};
use amends_wire::agui::plan::Plan;
use amends_wire::agui::reply::{PersonSaid, said, to_upstream};
use amends_wire::mcp::inputs::responses;

use crate::clock;
use crate::form;
use crate::gateway::Gateway;

/// How long it takes at most until a session acts on an answer; whoever drives it looks a few times a second.
const ACTED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why an answer does not count that its queue does not take from whoever called.
const NOT_YOURS: &str = "the answer of whoever called does not count here; another person answers";

/// What a client brought back.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Questions that were answered, now or before.
    answered: Vec<(InteractionId, SessionId, CallId)>,
    /// Questions that are still open, and why what was said does not count.
    pub(super) open: Vec<(Interaction, Option<&'static str>)>,
    /// What an upstream's questions are answered with, as a call brings it.
    pub(super) inputs: Option<String>,
}

/// Takes the answers: all of them, or none where one does not fit.
pub(super) async fn take(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    plan: &Plan,
    answers: &[Answer],
) -> Result<Given, Box<Refusal>> {
    let asked = plan.waiting.as_ref().map(|waiting| waiting.asked.as_slice()).unwrap_or_default();
    if let Some(left) = asked.iter().find(|asked| answers.iter().all(|answer| answer.interrupt != asked.interrupt)) {
        return Err(unfit("resume", &format!("an answer for each interrupt, also for `{}`", left.interrupt), None));
    }
    let mut to_upstreams = Vec::new();
    let mut to_people = Vec::new();
    for answer in answers {
        let asked = asked.iter().find(|asked| asked.interrupt == answer.interrupt);
        match asked.and_then(|asked| Some((asked.key.as_deref()?, asked.schema.as_ref()))) {
            Some((key, schema)) => to_upstreams.push((key, to_upstream(answer, schema)?)),
            None => {
                let id = InteractionId::new(answer.interrupt.clone());
                let entry = gateway.ledger.interaction(&id).await.map_err(|error| unread(&error))?;
                let entry = entry.filter(|entry| entry.interaction.principal == *principal);
                let entry = entry.ok_or_else(|| unknown(&answer.interrupt))?;
                let said = match said(&entry.interaction, answer)? {
                    Some(said) => Some(filled(&entry.interaction, principal, said)?),
                    None => None,
                };
                to_people.push((entry, said));
            }
        }
    }
    let mut given = Given::default();
    if !to_upstreams.is_empty() {
        given.inputs = Some(responses(to_upstreams.iter().map(|(key, said)| (*key, said.as_str()))));
    }
    for (entry, said) in to_people {
        let interaction = entry.interaction;
        let still = match said {
            None => (entry.state == QueueState::Open).then_some(None),
            Some(answer) if entry.state == QueueState::Open && !counts(gateway, &interaction, &answer.choice) => {
                Some(Some(NOT_YOURS))
            }
            Some(answer) => {
                let fate = gateway.ledger.answer_interaction(&interaction.id, answer).await;
                match fate.map_err(|error| unread(&error))? {
                    AnswerFate::Taken | AnswerFate::Late { .. } | AnswerFate::Closed(_) | AnswerFate::Unknown => None,
                    AnswerFate::Barred => Some(Some(NOT_YOURS)),
                    AnswerFate::NotAnOption { .. } => Some(Some("it is none of the answers that can be given")),
                }
            }
        };
        match still {
            Some(why) => given.open.push((interaction, why)),
            None => given.answered.push((interaction.id, interaction.session, interaction.call)),
        }
    }
    Ok(given)
}

/// What was said as an answer that fits its question.
fn filled(interaction: &Interaction, principal: &Principal, said: PersonSaid) -> Result<PersonAnswer, Box<Refusal>> {
    let PersonSaid { choice, note, content } = said;
    let mut answer = PersonAnswer { choice, by: principal.to_string(), note, at: clock::now(), content: None };
    match form::fill(interaction, &mut answer, content) {
        Ok(()) => Ok(answer),
        Err(why) => {
            let mut refusal = unfit("resume.payload", "what `responseSchema` says", None);
            refusal.message = format!("`resume.payload` does not fit: {why}");
            Err(refusal)
        }
    }
}

impl Given {
    /// Waits until the sessions have acted on what was answered, and gives what was asked after that: another person, say.
    pub(super) async fn acted_on(&self, gateway: &Arc<Gateway>) -> Vec<Interaction> {
        let began = tokio::time::Instant::now();
        let mut next = Vec::new();
        for (id, session, call) in &self.answered {
            while began.elapsed() < ACTED_WITHIN {
                match gateway.ledger.interaction(id).await {
                    Ok(Some(entry)) if !matches!(entry.state, QueueState::Closed(_)) => {
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(%error, "a question could not be read");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                }
            }
            let open = super::questions::open(gateway, session).await;
            next.extend(open.into_iter().filter(|interaction| interaction.call == *call));
        }
        next
    }
}

impl Given {
    /// The No that a question ended with, if one did: a person's, or that nobody answered in time.
    pub(super) async fn no(&self, gateway: &Arc<Gateway>) -> Option<RefusalKind> {
        for (id, ..) in &self.answered {
            let Ok(Some(entry)) = gateway.ledger.interaction(id).await else { continue };
            if entry.interaction.kind != InteractionKind::Approve {
                continue;
            }
            match entry.state {
                QueueState::Closed(Closing::Lapsed) => return Some(RefusalKind::ApprovalExpired),
                QueueState::Closed(Closing::Answered) | QueueState::Answered => {
                    if entry.answer.is_some_and(|answer| !choice::is_yes(&answer.choice)) {
                        return Some(RefusalKind::ApprovalDenied);
                    }
                }
                QueueState::Closed(Closing::Withdrawn) | QueueState::Open => {}
            }
        }
        None
    }
}

/// Whether an answer of whoever called may count: where the question does not say whose does, its queue does. A no counts from
/// anybody.
fn counts(gateway: &Gateway, interaction: &Interaction, picked: &str) -> bool {
    let lets = gateway.config().people.queues.get(&interaction.queue).is_some_and(|queue| queue.requester);
    let no = interaction.kind == InteractionKind::Approve && !choice::is_yes(picked);
    lets || no || interaction.grounds.is_some()
}

fn unknown(interrupt: &str) -> Box<Refusal> {
    let words = format!("there is no interrupt `{}` of yours", amends_core::failure::bounded(interrupt));
    Box::new(Refusal::of(RefusalKind::UnknownName, words))
}

fn unread(error: &amends_ledger::Error) -> Box<Refusal> {
    tracing::warn!(%error, "an answer could not be taken");
    let refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is done");
    Box::new(Refusal { retry_after_ms: Some(5000), ..refusal })
}
