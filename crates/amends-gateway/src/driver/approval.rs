//! A call that waits for a person's yes: what its own agent is told and asked meanwhile.

use std::time::Duration;

use amends_core::claim::ClaimKind;
use amends_core::effect::Reply;
use amends_core::interaction::{Form, Interaction, Subject, choice};
use amends_core::privacy::Mask;
use amends_core::{
    CallId, Code, Digest, Gates, Held, Input, InteractionId, PersonAnswer, Principal, Refusal, RefusalKind, Way,
};
use amends_ledger::{AnswerFate, Append, digest, exactly};
use amends_wire::mcp::call::hold_ms;
use amends_wire::mcp::classify::structured;
use amends_wire::mcp::{Askable, InputRequired, Question};
use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Form as Answer, Rendered};
use super::inquiry::{ask, subject};
use super::session::{Live, Session};
use crate::clock;
use crate::form;
use crate::gateway::Gateway;
use crate::request_state::{RequestState, Waiting};
use crate::upstream::{Aside, AsideSender, Progress};

/// The name of the one question that an agent's user is asked.
pub(super) const QUESTION: &str = "approval";
/// The inquiry of a state that names no inquiry of an upstream: the agent comes back for a person's answer.
pub(crate) const BY_PERSON: u32 = 0;
/// For how long an agent can come back for what a person says.
const COME_BACK_MS: u64 = 24 * 60 * 60 * 1000;

/// How long something that was read may be to be shown, and how much of it is.
const SHOWN_BYTES_MAX: usize = 256 << 10;
const SHOWN_MAX: usize = 2000;

/// How long a schema may be to be shown with a question.
const GIVES_BYTES_MAX: usize = 16 << 10;

/// How often an agent that is kept waiting hears that it goes on.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What is said to an agent while a person is asked: that it goes on, and the question to its own user. Dropped, both end.
#[derive(Debug, Default)]
pub(crate) struct Asking(Vec<tokio::task::AbortHandle>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

impl Session {
    /// A person is asked about a call. It holds no room meanwhile, and its own user is asked where that counts.
    pub(super) fn wait_for_yes(&mut self, interaction: &Interaction) {
        if !matches!(interaction.subject, Subject::Call | Subject::SignIn) {
            return;
        }
        let (gateway, principal) = (self.gateway.clone(), self.principal.clone());
        let Some(live) = self.live.get_mut(&interaction.call) else { return };
        // One whose upstream waits is still with it.
        if live.inquiries.is_empty() {
            live.room = None;
            live.place = None;
        }
        let mut asking = Asking::default();
        if let Some(asides) = live.listener.asides.clone().filter(|_| live.listener.progress) {
            asking.0.push(tokio::spawn(go_on(asides)).abort_handle());
        }
        let on_line = |question: &Question| live.listener.way_for(std::slice::from_ref(question)) == Way::Line;
        let question = question(interaction).filter(|it| on_line(it) && counts(live, interaction, &principal));
        if let (Some(question), Some(asides)) = (question, live.listener.asides.clone()) {
            let id = interaction.id.clone();
            let asks = tokio::spawn(async move {
                if let Some(Ok(said)) = ask(&asides, &question, id.to_string()).await {
                    answered(&gateway, &id, &principal, &said).await;
                }
            });
            asking.0.push(asks.abort_handle());
        }
        live.asking = Some(asking);
    }

    /// Shows whoever is asked what was read for the call, as far as it may be shown.
    pub(super) fn show_evidence(&self, append: &mut Append) {
        let config = self.gateway.config();
        for asked in &mut append.asks {
            let (Some(grounds), Some(live)) = (&mut asked.grounds, self.live.get(&asked.call)) else { continue };
            for read in &mut grounds.evidence {
                let mask = config.privacy.of(read.tool.as_str());
                let shown = |result: &Bytes| evidence(mask, result, &read.hash);
                read.view = live.results.values().filter(|_| mask.shows_arguments()).find_map(shown);
            }
        }
    }

    /// Says with the questions what became of a call what its tool gives, so that whoever knows can say what it gave.
    pub(super) fn show_output(&self, append: &mut Append) {
        for asked in append.asks.iter_mut().filter(|asked| asked.subject == Subject::Doubt) {
            let tool = self.live.get(&asked.call).and_then(|live| live.tool.as_ref());
            let schema = tool.and_then(|tool| tool.output.as_ref()).map(|schema| schema.source().to_string());
            asked.gives = schema.filter(|schema| schema.len() <= GIVES_BYTES_MAX);
        }
    }

    /// Nobody is asked about a call any more.
    pub(super) fn asked_enough(&mut self, call: &CallId) {
        if let Some(live) = self.live.get_mut(call) {
            live.asking = None;
        }
    }

    /// An agent that comes back by itself is asked to, rather than told that a person is asked.
    pub(super) fn ask_back(&self, reply: &Reply, rendered: &mut Rendered) {
        let Some(live) = self.live.get(&reply.call) else { return };
        let Answer::Envelope { envelope, .. } = &rendered.form else { return };
        let Some(error) = envelope.error() else { return };
        // An agent that says for how long it waits wants to be told then, and asks its user by itself.
        if live.listener.way != Way::Return
            || live.listener.takes_tasks
            || hold_ms(&live.params).is_some()
            || error.kind != RefusalKind::AwaitingPerson.as_str()
        {
            return;
        }
        let Some(result) = self.return_for(&reply.call, live, error.interaction.as_ref()) else { return };
        rendered.form = Answer::Asked { result: result.into() };
    }

    fn return_for(&self, call: &CallId, live: &Live, asked: Option<&InteractionId>) -> Option<String> {
        let (name, arguments) = live.wanted.clone().or_else(|| subject(&live.params))?;
        let state = RequestState {
            principal: self.principal.clone(),
            asked: self.gateway.seal.asked("tools/call", &name, &arguments),
            expires: clock::now() + COME_BACK_MS,
            waiting: Some(Waiting { session: self.id.clone(), call: call.clone(), inquiry: BY_PERSON }),
            theirs: asked.map(ToString::to_string),
        };
        let may = live.approval.as_ref().is_some_and(|approval| approval.requester_may);
        let takes_forms = Askable::of(live.listener.capabilities.as_deref()).form && asked.is_some();
        let question = match live.approval.as_ref().and_then(|approval| approval.form.as_deref()) {
            _ if live.sign_in.is_some() => None,
            Some(form) => elicited(form),
            None => Some(form_of(&format!("May `{name}` be called?"))),
        };
        let questions = question.filter(|_| may && takes_forms).into_iter().collect();
        let asked = InputRequired { questions, state: None };
        Some(asked.result(&self.gateway.seal.close(&state)))
    }

    /// What a step wanted was taken by another call in the same moment: a call that a person said yes to is not sent now, and
    /// the yes is kept; one that wanted to spend another's yes was too late.
    pub(super) fn lose_yes(&self, held: &Held, input: &mut Input, gates: &mut Gates) {
        let mut claims = self.dispatcher.calls().flat_map(|(_, received)| &received.claims);
        let is_object = claims.any(|claim| claim.name == held.name && claim.kind == ClaimKind::Object);
        if let Input::Result { report, .. } = input
            && !is_object
        {
            report.granted = None;
            return;
        }
        let words = "a person said yes, and another write to the same object is on its way or not settled yet; nothing was \
                     sent, come back when it is over";
        let refusal = Refusal { code: Code::ResourceBusy, ..Refusal::of(RefusalKind::InFlight, words) };
        gates.refusal = Some(Box::new(Refusal { retry_after_ms: Some(1_000), ..refusal }));
    }
}

/// What a read said, masked and cut, if it is the one of that hash.
fn evidence(mask: &Mask, result: &Bytes, hash: &Digest) -> Option<String> {
    if result.len() > SHOWN_BYTES_MAX {
        return None;
    }
    let found = structured(std::str::from_utf8(result).ok()?)?;
    let masked = || mask.text_without(&found.to_string(), &mask.quoted_of_result(&found));
    (digest(&exactly(&found)) == *hash).then(|| masked().chars().take(SHOWN_MAX).collect())
}

/// Says now and then that a person is asked, in steps so small that what the upstream says later is more.
async fn go_on(asides: AsideSender) {
    for n in 0_u32.. {
        let progress = f64::from(n) / 1000.0;
        let said = json!({ "progress": progress, "message": "a person is asked" }).to_string();
        if asides.send(Aside::Progress(Progress(said))).is_err() {
            return;
        }
        tokio::time::sleep(SAY_EVERY).await;
    }
}

/// Whether the yes of whoever called counts.
fn counts(live: &Live, interaction: &Interaction, principal: &Principal) -> bool {
    live.approval.as_ref().is_some_and(|approval| approval.requester_may)
        && interaction.admits(principal.as_str(), interaction.options.first().map_or(choice::APPROVE, String::as_str))
}

/// The question to an agent's user, as its protocol asks it; nothing where it has no word for that.
fn question(interaction: &Interaction) -> Option<Question> {
    if let Some(form) = interaction.form() {
        return elicited(form);
    }
    if interaction.subject == Subject::SignIn {
        return None;
    }
    let shown = interaction.view.as_ref().map(|view| format!(" {view}")).unwrap_or_default();
    Some(form_of(&format!("{}{shown}", interaction.question)))
}

/// A form of more than a yes.
fn elicited(form: &Form) -> Option<Question> {
    let schema = form::elicitable(form)?;
    let params = json!({ "mode": "form", "message": form.message, "requestedSchema": schema }).to_string();
    Some(Question { key: QUESTION.into(), method: "elicitation/create".into(), params: Some(params) })
}

fn form_of(words: &str) -> Question {
    let schema = json!({
        "type": "object",
        "properties": { "approve": { "type": "boolean", "title": "Approve", "description": "Whether it may be done" } },
        "required": ["approve"],
    });
    let params = json!({ "mode": "form", "message": words, "requestedSchema": schema }).to_string();
    Question { key: QUESTION.into(), method: "elicitation/create".into(), params: Some(params) }
}

/// Hands in what an agent's user said, as whoever called. A form that was put away is no answer.
pub(super) async fn answered(gateway: &Gateway, id: &InteractionId, principal: &Principal, said: &str) {
    let said: Value = serde_json::from_str(said).unwrap_or_default();
    let interaction = match gateway.ledger.interaction(id).await {
        Ok(Some(entry)) => entry.interaction,
        Ok(None) => return,
        Err(error) => return tracing::warn!(%error, interaction = %id, "an answer could not be kept"),
    };
    let Some((choice, content)) = read(&interaction, &said) else { return };
    let (by, at) = (principal.to_string(), clock::now());
    let mut answer = PersonAnswer { choice, by, note: None, at, content: None };
    if let Err(why) = form::fill(&interaction, &mut answer, content) {
        return tracing::info!(interaction = %id, why, "what whoever called answered does not fit");
    }
    match gateway.ledger.answer_interaction(id, answer).await {
        Ok(AnswerFate::Taken | AnswerFate::Late { .. } | AnswerFate::Closed(_)) => {}
        Ok(fate) => tracing::info!(interaction = %id, ?fate, "the answer of whoever called does not count"),
        Err(error) => tracing::warn!(%error, interaction = %id, "an answer could not be kept"),
    }
}

/// What an agent's user said: the answer, and what was asked for with it.
fn read(interaction: &Interaction, said: &Value) -> Option<(String, Option<Value>)> {
    let content = &said["content"];
    let deny = || Some((choice::DENY.to_owned(), None));
    match (said["action"].as_str()?, interaction.form()) {
        ("decline", _) => deny(),
        ("accept", Some(form)) if form.choices.is_empty() => Some((choice::ANSWER.to_owned(), Some(content.clone()))),
        ("accept", Some(form)) => Some((content[form::field(form)?].as_str()?.to_owned(), None)),
        ("accept", None) => match content["approve"].as_bool()? {
            true => Some((choice::APPROVE.to_owned(), None)),
            false => deny(),
        },
        _ => None,
    }
}
