//! What people are asked, and what they answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::interaction::choice;
use amends_core::{Fact, InteractionId, PersonAnswer, Tenant};
use amends_ledger::{AnswerFate, QueueEntry, QueueFilter, QueueState};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::fields::Fields;
use super::problem::Problem;
use crate::clock;
use crate::compared::{Difference, QUESTIONS_MAX, differences};
use crate::form;
use crate::gateway::Gateway;
use crate::hindsight::events_of;
use crate::identity::Person;
use crate::told;

/// How long somebody who answers waits to hear that it was acted on.
const WAIT: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest answer, the longest note, and the longest text of what a call gave.
const CHOICE_MAX: usize = 2000;
const NOTE_MAX: usize = 2000;
const CONTENT_MAX: usize = 16 << 10;
/// What the names of a form's fields begin with on a page.
pub(crate) const FIELD: &str = "answer.";

/// A question with what is needed to decide about it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) entry: QueueEntry,
    /// What the tool does to the world, by the rules that the call has.
    pub(crate) effect: &'static str,
    pub(crate) reversible: bool,
    /// What the call is based on and says something else than it did.
    pub(crate) changed: Vec<Difference>,
}

/// What became of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    pub(crate) status: StatusCode,
    /// `taken`, `late`, `closed` or `barred`.
    pub(crate) word: &'static str,
    pub(crate) message: String,
}

/// The questions, the one that is due first in front.
pub(crate) async fn list(
    gateway: &Arc<Gateway>,
    person: &Person,
    fields: &mut Fields,
) -> Result<Vec<QueueEntry>, Problem> {
    let filter = QueueFilter {
        queue: fields.text("queue")?,
        tenant: person.tenant.as_deref().map(Tenant::new),
        all: fields.flag("all")?,
    };
    let limit = usize::try_from(fields.number("limit", 50, 1, 200)?).unwrap_or(200);
    let entries = gateway.ledger.queue(&filter, limit).await?;
    Ok(entries.into_iter().filter(|entry| sees(person, entry)).collect())
}

/// Whether somebody may see that question.
fn sees(person: &Person, entry: &QueueEntry) -> bool {
    person.sees(&entry.interaction.principal)
}

/// A question, for somebody who may see it.
pub(crate) async fn find(gateway: &Arc<Gateway>, person: &Person, id: &str) -> Result<QueueEntry, Problem> {
    let entry = gateway.ledger.interaction(&InteractionId::new(id)).await?;
    entry.filter(|entry| sees(person, entry)).ok_or_else(|| Problem::not_found("question"))
}

/// The same with what is needed to decide about it.
pub(crate) async fn asked(gateway: &Arc<Gateway>, entry: QueueEntry) -> Result<Asked, Problem> {
    let mut asked = Asked { effect: "unknown", reversible: false, changed: Vec::new(), entry };
    let Some(trace) = gateway.ledger.trace(&asked.entry.interaction.session).await? else { return Ok(asked) };
    let mut compared = Vec::new();
    let events: Vec<_> = trace.events.into_iter().map(|stored| stored.event).collect();
    for event in events_of(&events, &asked.entry.interaction.call) {
        match &event.fact {
            Fact::CallReceived { received, .. } => {
                if let Some(rules) = gateway.ledger.rules(&received.rules).await? {
                    asked.effect = rules.contract.effect.as_str();
                    asked.reversible = rules.contract.reverse.is_some();
                }
            }
            Fact::EvidenceCompared { changed, .. } => compared.clone_from(changed),
            _ => {}
        }
    }
    let of = &asked.entry.interaction;
    if of.grounds.as_ref().is_some_and(|grounds| !grounds.evidence.is_empty()) || !compared.is_empty() {
        let filter = QueueFilter { queue: Some(of.queue.clone()), tenant: of.principal.tenant(), all: true };
        let mut all = gateway.ledger.queue(&filter, QUESTIONS_MAX).await?;
        all.retain(|entry| entry.interaction.principal == of.principal);
        asked.changed = differences(&asked.entry, &compared, &all);
    }
    Ok(asked)
}

impl Asked {
    /// It for a program.
    pub(crate) fn to_json(&self) -> Value {
        let mut question = told::question(&self.entry);
        let changed: Vec<Value> = self.changed.iter().map(Difference::to_json).collect();
        question["risk"] = json!({ "effect": self.effect, "reversible": self.reversible });
        question["evidence_changed"] = json!(changed);
        question
    }
}

/// Gives somebody's answer, and says what became of it.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    person: &Person,
    id: &str,
    fields: &mut Fields,
) -> Result<Fate, Problem> {
    let choice = fields.needed("choice", CHOICE_MAX)?;
    let note = fields.long_text("note", NOTE_MAX)?;
    let entry = find(gateway, person, id).await?;
    let content = match entry.interaction.form() {
        // A page has a field for each, a program says it as it is.
        Some(form) if fields.is_written() => Some(form::written(form, &fields.prefixed(FIELD))),
        // Only what happened gave something: with the other answers the field counts for nothing.
        None if fields.is_written() => match fields.long_text("content", CONTENT_MAX)? {
            Some(text) if choice == choice::HAPPENED => Some(
                serde_json::from_str(&text)
                    .map_err(|error| Problem::field("content", format!("it is not JSON: {error}")))?,
            ),
            _ => None,
        },
        _ => fields.value("content"),
    };
    fields.finish()?;
    let mut answer = PersonAnswer { choice, by: person.name.clone(), note, at: clock::now(), content: None };
    let is_choice = entry.interaction.form().is_some_and(|form| !form.choices.is_empty());
    form::fill(&entry.interaction, &mut answer, content.filter(|_| !is_choice))
        .map_err(|why| Problem::field("content", why))?;
    let id = entry.interaction.id;
    gateway.config().privacy.shared().answer(&mut answer);
    let fate = |status, word, message: String| Fate { status, word, message };
    Ok(match gateway.ledger.answer_interaction(&id, answer).await? {
        AnswerFate::Taken if acted_on(gateway, &id).await? => {
            fate(StatusCode::OK, "taken", "taken, and acted on".to_owned())
        }
        AnswerFate::Taken => {
            let words = "taken; it is acted on as soon as the gateway that has the session gets to it";
            fate(StatusCode::OK, "taken", words.to_owned())
        }
        AnswerFate::Late { choice, by, at } => {
            let words = format!("too late: {by} answered `{choice}` at {}", told::utc(at));
            fate(StatusCode::CONFLICT, "late", words)
        }
        AnswerFate::Closed(closing) => {
            let words = format!("too late: the question is {}", told::over(closing));
            fate(StatusCode::CONFLICT, "closed", words)
        }
        AnswerFate::Barred => {
            let words = "this yes does not count: who called may not say yes, and nobody twice";
            fate(StatusCode::CONFLICT, "barred", words.to_owned())
        }
        AnswerFate::NotAnOption { options } => {
            return Err(Problem::field("choice", format!("it takes `{}`", options.join("`, `"))));
        }
        AnswerFate::Unknown => return Err(Problem::not_found("question")),
    })
}

/// Whether the answer is taken up within a moment.
async fn acted_on(gateway: &Arc<Gateway>, id: &InteractionId) -> Result<bool, Problem> {
    let began = Instant::now();
    while began.elapsed() < WAIT {
        let entry = gateway.ledger.interaction(id).await?;
        if entry.is_none_or(|entry| matches!(entry.state, QueueState::Closed(_))) {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(false)
}
