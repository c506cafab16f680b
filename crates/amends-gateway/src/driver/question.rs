//! A person is asked something before a call is made: what they answer goes into its arguments.
//!
//! Each question is a call of its own, of a tool of ours, so that it is recorded, waited for, found again by its repeat and
//! taken up after a crash as every call that waits for a person is. Only then is the call itself admitted, with the arguments
//! that it is sent with: whatever judges arguments judges those.

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{AttemptId, Fact, InteractionId, Refusal, RefusalKind, Way};
use amends_ledger::Error;
use amends_wire::mcp::ToolCall;
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::admission::Wish;
use super::answer::{Answered, Form, Rendered};
use super::inquiry::subject;
use super::listener::{Listener, Task};
use super::session::{Live, Session};
use super::{CallHandle, Delivery, SessionHandle};
use crate::config::PEOPLE;
use crate::gateway::Gateway;
use crate::identity::shown;

/// The door whose calls are tasks.
const A2A: &str = "a2a";

/// What a person answered to one question, and whom to tell once it led somewhere.
type Given = (Map<String, Value>, Option<Delivery>);

impl SessionHandle {
    /// Asks people what the tool wants to know, and then makes the call.
    pub(super) fn ask_first(&self, params: &str, tool: &str, listener: Listener, at_once: bool) -> CallHandle {
        let questions = self.gateway.config().asks(tool).to_vec();
        let (to, answer) = oneshot::channel();
        let first = self.ask(&questions[0], params, &listener, at_once);
        let handle = CallHandle {
            requested: tool.to_owned(),
            next: first.next.clone(),
            ..self.waiting(first.id.clone(), answer)
        };
        let (session, params) = (self.clone(), params.to_owned());
        let asked =
            async move { session.asked(questions, Some(first), Map::new(), params, listener, at_once, to).await };
        tokio::spawn(shown::with(shown::scopes(), asked));
        handle
    }

    /// Waits for each answer, and makes the call with all of them. Nothing is asked or sent for an agent that is gone.
    #[expect(clippy::too_many_arguments, reason = "it is one wish, and how far it came")]
    async fn asked(
        self,
        questions: Vec<String>,
        first: Option<CallHandle>,
        given: Map<String, Value>,
        params: String,
        listener: Listener,
        at_once: bool,
        to: oneshot::Sender<Answered>,
    ) {
        let next = first.as_ref().map(|first| first.next.clone()).unwrap_or_default();
        let (mut with, mut given, mut asking) = (Vec::new(), given, first);
        for question in &questions {
            let asks = asking.take().unwrap_or_else(|| self.ask(question, &params, &listener, at_once));
            let Ok(answered) = asks.answer.await else { return };
            match given_by(answered) {
                Ok((content, delivery)) => {
                    given.extend(content);
                    with.extend(delivery);
                }
                // Nobody answered yet, or nobody wants to.
                Err(answered) => return drop(to.send(*answered)),
            }
            if to.is_closed() {
                return;
            }
        }
        let mut call = self.made(&completed(&params, given), subject(&params), listener, at_once);
        // Nobody else sets it.
        let _ = next.set(call.id.clone());
        let mut to = to;
        let answered = tokio::select! {
            answered = &mut call.answer => answered,
            () = to.closed() => return call.cancel(CancelReason::Disconnected),
        };
        if let Ok(mut answered) = answered {
            match &mut answered.delivery {
                Some(delivery) => delivery.with.extend(with),
                // It was refused, or is an earlier one: what people said is kept for the repeat.
                None => drop(with),
            }
            let _ = to.send(answered);
        }
    }

    /// Asks one question. The person sees what the agent wants to do.
    fn ask(&self, question: &str, params: &str, listener: &Listener, at_once: bool) -> CallHandle {
        let wanted = subject(params).unwrap_or_default();
        // What the agent says beside its arguments holds for the question as well: its key, how long it waits.
        let meta = Object::parse(params).and_then(|params| params.get("_meta"));
        let meta = meta.map(|meta| format!(",\"_meta\":{}", meta.get())).unwrap_or_default();
        let (name, tool) = (json!(question), json!(wanted.0));
        let shown = format!("{{\"name\":{name},\"arguments\":{{\"tool\":{tool},\"arguments\":{}}}{meta}}}", wanted.1);
        let parsed = serde_json::from_str::<&RawValue>(&shown).ok();
        let call = parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok());
        let wish = match &call {
            Some(call) => Wish::Call { params: &shown, call },
            None => unreadable(question),
        };
        self.hand_over_to_driver(wish, listener.clone(), at_once, Some(wanted))
    }

    /// Makes the call, whose questions are answered.
    fn made(&self, params: &str, wanted: Option<(String, String)>, listener: Listener, at_once: bool) -> CallHandle {
        let parsed = serde_json::from_str::<&RawValue>(params).ok();
        match parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok()) {
            Some(call) => self.hand_over_to_driver(Wish::Call { params, call: &call }, listener, at_once, wanted),
            None => self.hand_over_to_driver(unreadable(""), listener, at_once, None),
        }
    }
}

impl Session {
    /// A question of a task was answered that another process had asked: the wish is made once more, and finds what people said.
    pub(super) fn go_on_after(&self, live: &Live, rendered: &Rendered) {
        let asks = live.tool.as_ref().is_some_and(|tool| tool.upstream.name.as_str() == PEOPLE);
        if self.door != A2A || live.wanted.is_some() || !asks || rendered.envelope_json()["status"] != "success" {
            return;
        }
        let shown: Value = serde_json::from_str(&live.params).unwrap_or_default();
        let tool = shown["arguments"]["tool"].as_str().filter(|tool| !self.gateway.config().asks(tool).is_empty());
        let (Some(tool), Some(mail)) = (tool, self.gateway.driver_of(&self.id)) else { return };
        let arguments = &shown["arguments"]["arguments"];
        let params = json!({ "name": tool, "arguments": arguments, "_meta": shown["_meta"] }).to_string();
        let Some(session) = SessionHandle::of_driver(&self.gateway, &self.principal, self.id.clone(), mail) else {
            return;
        };
        let session = SessionHandle { door: A2A.into(), ..session };
        let listener = Listener { way: Way::Return, task: Some(Task::default()), ..Listener::of_the_answer() };
        let tool = tool.to_owned();
        tokio::spawn(async move {
            let (given, left) = match session.said_so_far(&tool).await {
                Ok(so_far) => so_far,
                Err(error) => return tracing::warn!(%error, "what people answered to a task cannot be read"),
            };
            let (to, answer) = oneshot::channel();
            let asked = session.asked(left, None, given, params, listener, true, to);
            // It is looked for on the ledger; only nothing is sent for an agent that is gone.
            let _ = tokio::join!(asked, answer);
        });
    }
}

impl SessionHandle {
    /// What people answered in this session before a call of that tool, and the questions that are left.
    async fn said_so_far(&self, tool: &str) -> Result<(Map<String, Value>, Vec<String>), Error> {
        let mut left = self.gateway.config().asks(tool).to_vec();
        let mut given = Map::new();
        let trace = self.gateway.ledger.trace(&self.id).await?;
        for stored in trace.iter().flat_map(|trace| &trace.events) {
            let Fact::InteractionOpened { interaction } = &stored.event.fact else { continue };
            let entry = self.gateway.ledger.interaction(&interaction.id).await?;
            if let Some(Value::Object(content)) = entry.and_then(|entry| entry.answer?.content) {
                left.retain(|question| *question != interaction.tool.as_str());
                given.extend(content);
            }
        }
        Ok((given, left))
    }
}

fn unreadable(tool: &str) -> Wish<'static> {
    let refusal = Refusal::of(RefusalKind::InvalidArgument, "the call cannot be read; nothing was sent");
    Wish::Unreadable { requested: tool.to_owned(), refusal: Box::new(refusal) }
}

/// What a person gave; the answer as it is where that is nothing, or not to pass.
fn given_by(answered: Answered) -> Result<Given, Box<Answered>> {
    let is_result = matches!(answered.rendered.form, Form::Forward { .. } | Form::Stored { .. });
    let told = if is_result { answered.rendered.envelope_json() } else { Value::Null };
    match (told["status"].as_str(), &told["data"]) {
        (Some("success"), Value::Object(content)) => Ok((content.clone(), answered.delivery)),
        _ => Err(Box::new(answered)),
    }
}

/// The parameters of a call with what people answered among its arguments.
fn completed(params: &str, given: Map<String, Value>) -> String {
    let written = Object::parse(params).and_then(|params| params.get("arguments"));
    let arguments = written.map_or("{}", |raw| raw.get());
    let mut splice = Splice::new(arguments);
    for (name, value) in given {
        // Arguments that are no object are refused when the call is admitted.
        let _ = splice.set_member(arguments, &name, value.to_string());
    }
    let arguments = splice.finish();
    let mut splice = Splice::new(params);
    // Parameters that are no object were no call either.
    let _ = splice.set_member(params, "arguments", arguments);
    splice.finish()
}

/// The parameters of an attempt that gives what a person answered.
pub(super) async fn said(
    gateway: &Gateway,
    id: &InteractionId,
    attempt: &AttemptId,
    params: &str,
) -> Result<Option<String>, Error> {
    let entry = gateway.ledger.interaction(id).await?;
    let Some(content) = entry.and_then(|entry| entry.answer?.content) else {
        tracing::warn!(interaction = %id, %attempt, "what a person answered is not kept any more");
        return Ok(None);
    };
    let mut splice = Splice::new(params);
    let set = splice.set_member(params, "arguments", content.to_string());
    Ok(set.is_ok().then(|| splice.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_answered_goes_in_the_place_of_what_the_agent_wrote() {
        let given = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let params = r#"{"name":"pay","arguments":{ "amount": 1.50, "account":"?" },"_meta":{}}"#;
        let whole = completed(params, given(r#"{"account":"giro","when":"now"}"#));
        let read: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(read["arguments"], json!({ "amount": 1.5, "account": "giro", "when": "now" }));
        assert!(whole.contains("1.50"), "what nobody answered stays as it was written: {whole}");
        let none = completed(r#"{"name":"pay"}"#, given(r#"{"account":"giro"}"#));
        assert_eq!(serde_json::from_str::<Value>(&none).unwrap()["arguments"], json!({ "account": "giro" }));
    }
}
