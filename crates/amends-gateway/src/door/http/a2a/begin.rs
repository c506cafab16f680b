//! From a message to a call, or to the answer that a task waits for.

use amends_core::expression::ExpressionError;
use amends_core::interaction::choice;
use amends_core::{Interaction, PersonAnswer, Refusal, RefusalKind, Way};
use amends_ledger::AnswerFate;
use amends_wire::a2a::message::Incoming;
use amends_wire::a2a::{Refused, Trouble, Wanted, reply};
use amends_wire::mcp::call::KEY;
use amends_wire::mcp::inputs::{responses, with_inputs};
use amends_wire::mcp::steps::{Moved, Wanted as Walk};
use amends_wire::mcp::{Askable, InputRequired, Returned, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::task::{Seen, TaskId, look, may_answer};
use super::{Asker, DOOR, unavailable};
use crate::clock;
use crate::config::TextReply;
use crate::door::walk::{self, Came, Stray};
use crate::driver::{CallHandle, Listener, Task, Wish};
use crate::{form, mint};

/// The member of a call's `_meta` that names the walk it is for.
const SESSION: &str = "amends/session";

/// What came of a message.
pub(super) enum Begun {
    /// A task, and whether a message says what it gave once it was done.
    Task(TaskId, TextReply),
    /// A task that is over: our No to what no walk could be asked about, as an envelope that says what could be done instead.
    Refused(TaskId, Box<RawValue>),
    /// An answer without one, as an envelope.
    Said(Box<RawValue>),
}

/// The call that is in a message.
struct Call {
    tool: String,
    /// Its arguments, as they are written.
    args: String,
    /// The rule that gives the message's text to the tool, where it names none itself.
    rule: Option<TextReply>,
}

impl Asker<'_> {
    /// Does what a message wants.
    pub(super) async fn take(&self, incoming: &Incoming<'_>) -> Result<Begun, Refused> {
        if let Some(media) = incoming.strange(&self.door.gateway.config().a2a.accepts) {
            let shown: String = media.chars().take(64).collect();
            let words = format!("a part of the type `{shown}` is not taken here; the card says what is");
            return Err(Refused::of(Trouble::ContentType, words).with("mediaType", shown));
        }
        match &incoming.task {
            Some(task) => self.go_on(&TaskId::parse(task), incoming).await,
            None => Ok(self.begin(incoming).await),
        }
    }

    async fn begin(&self, incoming: &Incoming<'_>) -> Begun {
        let gateway = &self.door.gateway;
        let session = gateway.open_session(self.who.clone(), DOOR);
        let refused = |requested: &str, refusal: Refusal| {
            let wish = Wish::Unreadable { requested: requested.to_owned(), refusal: Box::new(refusal) };
            keep(session.call(wish, self.listener(incoming.context.clone())), None, TextReply::Task)
        };
        let Call { tool, args, rule } = match self.wanted(incoming) {
            Ok(wanted) => wanted,
            Err(words) => return refused("", Refusal::of(RefusalKind::InvalidArgument, words)),
        };
        let served = gateway.catalogue.now().find(&tool).cloned();
        let reads = served.as_ref().is_some_and(|tool| tool.rules.contract.effect.is_read());
        // Whoever only talks may use an id again for another message. A read can be done for each of them.
        let key = match rule {
            Some(_) if reads => format!("{}.{}", incoming.id, mint::token()),
            _ => incoming.id.clone(),
        };
        let reply = rule.unwrap_or_default();
        let params = |meta: Map<String, Value>| {
            let name = Value::String(tool.clone());
            format!(r#"{{"name":{name},"arguments":{args},"_meta":{}}}"#, Value::Object(meta))
        };
        let mut meta = Map::from_iter([(KEY.to_owned(), Value::String(key))]);
        let mut text = params(meta.clone());
        // The context of a move is its walk.
        let walk = incoming.context.as_deref().filter(|context| context.starts_with("ses_"));
        if let Some(walk) = walk.filter(|_| served.is_none()) {
            meta.insert(SESSION.to_owned(), Value::String(walk.to_owned()));
            text = params(meta);
        }
        let raw: &RawValue = match serde_json::from_str(&text) {
            Ok(raw) => raw,
            Err(_) => return refused(&tool, Refusal::of(RefusalKind::InvalidArgument, "the call cannot be read")),
        };
        let call = match ToolCall::parse(Some(raw)) {
            Ok(call) => call,
            Err(error) => {
                let wish = Wish::Unreadable { requested: tool.clone(), refusal: Box::new(error.refusal()) };
                let instead = walk::instead(gateway, self.who, None, &tool, walk).await;
                return self.keep_no(session.call(wish, self.listener(incoming.context.clone())), reply, instead).await;
            }
        };
        let listener = self.listener(incoming.context.clone());
        let asker = walk::Asker { gateway, principal: self.who, door: DOOR, session: &session, own: None };
        // What is done with a walk as a whole is no move of it, and so no task.
        let wanted = walk::wanted(gateway, &call);
        let is_whole = matches!(wanted, Some(Ok(Walk::Reset { .. } | Walk::Cancel { .. } | Walk::Fork { .. })));
        let came = match wanted {
            Some(wanted) => walk::call(&asker, &call, wanted, listener).await,
            None => match walk::stray(&asker, &call, listener).await {
                Stray::Came(came) => came,
                Stray::Passes(listener, instead) => {
                    let handle = session.call(Wish::Call { params: &text, call: &call }, listener);
                    return self.keep_no(handle, reply, instead).await;
                }
            },
        };
        match came {
            Came::Handed(mut handle, instead) => {
                let of_walk = (handle.session().id != session.id).then(|| handle.id.clone());
                match of_walk {
                    Some(_) if is_whole => {
                        let answered = (&mut handle.answer).await.unwrap_or_else(|_| handle.broken());
                        let answered = walk::dressed(gateway, answered, instead);
                        Begun::Said(answered.rendered.envelope_raw())
                    }
                    Some(_) => keep(handle, of_walk, reply),
                    None => self.keep_no(handle, reply, instead).await,
                }
            }
            Came::Answered(answered) => Begun::Said(answered.rendered.envelope_raw()),
        }
    }

    /// Waits for a call's answer as for all others. Where it may only be our No, and something could be done instead, that is
    /// told with it: the trace of such a call knows no walk.
    async fn keep_no(&self, mut handle: CallHandle, reply: TextReply, instead: Option<Box<Moved>>) -> Begun {
        if instead.is_none() {
            return keep(handle, None, reply);
        }
        let id = TaskId { session: handle.session().id.clone(), call: None };
        let answered = (&mut handle.answer).await.unwrap_or_else(|_| handle.broken());
        Begun::Refused(id, walk::dressed(&self.door.gateway, answered, instead).rendered.envelope_raw())
    }

    /// The call in a message; else why there is none.
    fn wanted(&self, incoming: &Incoming<'_>) -> Result<Call, String> {
        let config = self.door.gateway.config();
        let text = match incoming.wanted() {
            Wanted::Call { tool, args } => {
                let args = args.map_or("{}", RawValue::get).to_owned();
                return Ok(Call { tool, args, rule: None });
            }
            Wanted::Text(text) => Some(text),
            Wanted::Other => None,
        };
        let message: Value = serde_json::from_str(incoming.raw.get()).unwrap_or_default();
        let text = text.map(Value::String);
        for rule in text.iter().flat_map(|_| &config.a2a.text) {
            let variables = [("text", text.as_ref().unwrap_or(&Value::Null)), ("message", &message)];
            let holds =
                rule.when.as_ref().is_none_or(|when| matches!(when.evaluate(&variables), Ok(Value::Bool(true))));
            if !holds {
                continue;
            }
            let args: Result<Map<String, Value>, ExpressionError> =
                rule.args.iter().map(|(name, value)| Ok((name.clone(), value.evaluate(&variables)?))).collect();
            return match args {
                Ok(args) => {
                    let args = Value::Object(args).to_string();
                    Ok(Call { tool: rule.tool.clone(), args, rule: Some(rule.reply) })
                }
                Err(error) => Err(format!("the arguments of `{}` cannot be told from the message: {error}", rule.tool)),
            };
        }
        let listing = self.door.gateway.catalogue.now();
        let names: Vec<String> = listing.names().map(str::to_owned).collect();
        Err(reply::how_to_call(&names))
    }

    /// A task waits for something, and a message brings it.
    async fn go_on(&self, id: &TaskId, incoming: &Incoming<'_>) -> Result<Begun, Refused> {
        let gateway = &self.door.gateway;
        let seen = look(gateway, self.who, id).await?.ok_or_else(|| id.unknown())?;
        if incoming.context.as_ref().is_some_and(|context| *context != seen.view.context) {
            let words = format!("the task `{}` is of another context", seen.view.id);
            return Err(Refused::of(Trouble::InvalidParams, words));
        }
        if seen.view.state.is_terminal() {
            let words = format!("the task `{}` is over; send a message without a task", seen.view.id);
            return Err(Refused::of(Trouble::UnsupportedOperation, words));
        }
        match (&seen.asks, &seen.asked) {
            (Some(asks), _) => self.answer(asks, incoming).await?,
            (None, Some(asked)) => self.bring(&seen, asked, incoming).await?,
            (None, None) => {
                let words = format!("the task `{}` goes on by itself and takes no message", seen.view.id);
                return Err(Refused::of(Trouble::UnsupportedOperation, words));
            }
        }
        Ok(Begun::Task(id.clone(), TextReply::Task))
    }

    /// Whoever called answers what a person is asked.
    async fn answer(&self, asks: &Interaction, incoming: &Incoming<'_>) -> Result<(), Refused> {
        let gateway = &self.door.gateway;
        if !may_answer(&gateway.config(), asks, self.who) {
            let words = "a person is asked, and the answer of whoever called does not count";
            return Err(Refused::of(Trouble::UnsupportedOperation, words).with("interaction", asks.id.as_str()));
        }
        let given: Value = incoming.object().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let choice = match (given["choice"].as_str(), given["approve"].as_bool()) {
            (Some(choice), _) => Some(choice.to_owned()),
            (None, Some(true)) => Some(choice::APPROVE.to_owned()),
            (None, Some(false)) => Some(choice::DENY.to_owned()),
            (None, None) => incoming.text().map(|text| text.trim().to_lowercase()),
        };
        let choice = choice.filter(|choice| asks.options.contains(choice)).ok_or_else(|| {
            let words = format!("answer with a data part {{\"choice\": …}}: one of `{}`", asks.options.join("`, `"));
            Refused::of(Trouble::InvalidParams, words)
        })?;
        let note = given["note"].as_str().map(amends_core::failure::bounded);
        let (by, at) = (self.who.to_string(), clock::now());
        let mut answer = PersonAnswer { choice, by, note, at, content: None };
        form::fill(asks, &mut answer, given.get("content").cloned())
            .map_err(|why| Refused::of(Trouble::InvalidParams, format!("that is no answer: {why}")))?;
        match gateway.ledger.answer_interaction(&asks.id, answer).await {
            Ok(AnswerFate::Taken | AnswerFate::Late { .. } | AnswerFate::Closed(_)) => Ok(()),
            Ok(fate) => {
                tracing::info!(interaction = %asks.id, ?fate, "the answer of whoever called does not count");
                Err(Refused::of(Trouble::UnsupportedOperation, "that answer does not count"))
            }
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Whoever called brings what an upstream asks for.
    async fn bring(&self, seen: &Seen, asked: &InputRequired, incoming: &Incoming<'_>) -> Result<(), Refused> {
        let gateway = &self.door.gateway;
        let given: Value = incoming.object().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let mut answers = Vec::new();
        for question in &asked.questions {
            let params: Value =
                question.params.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            let only = asked.questions.len() == 1;
            let own = given.get(&question.key).filter(|own| own.is_object()).cloned();
            let answer = match own {
                Some(whole) if whole["action"].is_string() => whole,
                Some(content) => json!({ "action": "accept", "content": content }),
                None if given["action"].is_string() && only => given.clone(),
                // Whoever was sent to an address says that they were there.
                None if params["mode"] == "url" && only => json!({ "action": "accept" }),
                None if only => match incoming.content(&params["requestedSchema"]) {
                    Some(content) => json!({ "action": "accept", "content": content }),
                    None => return Err(unanswered()),
                },
                None => return Err(unanswered()),
            };
            answers.push((question.key.clone(), answer.to_string()));
        }
        let stored = gateway.ledger.arguments(&seen.call).await.map_err(|error| unavailable(&error))?;
        let stored = stored.ok_or_else(|| Refused::of(Trouble::UnsupportedOperation, "the call is over"))?;
        let inputs = responses(answers.iter().map(|(key, answer)| (key.as_str(), answer.as_str())));
        let params = with_inputs(&String::from_utf8_lossy(&stored.body), Some(&inputs), asked.state.as_deref());
        let unreadable = || Refused::of(Trouble::Internal, "the call that waits cannot be read");
        let raw: &RawValue = serde_json::from_str(&params).map_err(|_| unreadable())?;
        let call = ToolCall::parse(Some(raw)).map_err(|_| unreadable())?;
        let returned = Returned::read(&params).ok().flatten().ok_or_else(unreadable)?;
        let session = gateway.open_session(self.who.clone(), DOOR);
        let handle = session.go_on(&params, &call, &returned, self.listener(None)).await;
        keep(handle, None, TextReply::Task);
        Ok(())
    }

    /// Who waits for a call here: an agent that looks for what became of it, and comes back with what it is asked.
    fn listener(&self, context: Option<String>) -> Listener {
        let askable = Askable { form: true, url: true, ..Askable::default() };
        Listener {
            way: Way::Return,
            capabilities: Some(askable.declared()),
            task: Some(Task { context }),
            ..Listener::of_the_answer()
        }
    }
}

/// Waits for a call's answer, though it is looked for on the ledger: nothing is sent for an agent that is gone.
fn keep(handle: CallHandle, of_walk: Option<amends_core::CallId>, reply: TextReply) -> Begun {
    let id = TaskId { session: handle.session().id.clone(), call: of_walk };
    tokio::spawn(async move {
        let mut handle = handle;
        // Where the gateway stops first, the next one takes the call up.
        let _ = (&mut handle.answer).await;
    });
    Begun::Task(id, reply)
}

fn unanswered() -> Refused {
    Refused::of(Trouble::InvalidParams, "answer with a data part that fits `responseSchema`")
}
