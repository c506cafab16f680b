//! One step of a run: a call or a move handed in, and what comes of it.

use std::time::Duration;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{Refusal, RefusalKind, Way};
use amends_wire::agui::event::Interrupt;
use amends_wire::agui::plan::{Asked, Step, Waiting};
use amends_wire::agui::reply::{of_person, of_upstream};
use amends_wire::mcp::call::KEY;
use amends_wire::mcp::inputs::with_inputs;
use amends_wire::mcp::steps::{Moved, Tool, read};
use amends_wire::mcp::{Askable, InputRequired, Returned, ToolCall};
use serde_json::Value;
use serde_json::value::RawValue;

use super::DOOR;
use super::questions::{self, Watch};
use super::run::Run;
use super::runs::Word;
use super::teller::{Gone, Teller};
use crate::config::OnDisconnect;
use crate::door::walk::{self, Asker, Came as Handed};
use crate::driver::{Answered, CallHandle, Form, Listener, Wish};
use crate::told;

/// How long a stream is silent at most.
const SILENT_MAX: Duration = Duration::from_secs(15);

/// What came of a step.
pub(super) enum Came {
    /// It is answered, in that session.
    Answered(Box<Answered>, Option<CallHandle>),
    /// Somebody must answer first.
    Asks(Vec<Interrupt>, Waiting),
    /// The gateway stops.
    Nothing,
}

impl Run<'_> {
    /// Makes a step, with what an upstream's questions were answered with.
    pub(super) async fn make(
        &mut self,
        teller: &mut Teller,
        step: &Step,
        inputs: Option<(String, String)>,
    ) -> Result<Came, Gone> {
        let watch = Watch::begin(self.gateway);
        let handed = match &self.order.plan.machine {
            Some(machine) => match self.no.take() {
                Some(no) => self.was_refused(machine, step, no).await,
                None => self.take_action(machine, step).await,
            },
            None => self.call(&step.name, &self.params(&step.name, &step.args, step), inputs).await,
        };
        let (handle, instead) = match handed {
            Handed::Answered(answered) => return Ok(Came::Answered(answered, None)),
            Handed::Handed(handle, instead) => (handle, instead),
        };
        match self.wait(teller, handle, watch).await? {
            Waited::Answered(answered, handle) => {
                let answered = walk::dressed(self.gateway, *answered, instead);
                if let Form::Asked { result } = &answered.rendered.form {
                    let result = String::from_utf8_lossy(result).into_owned();
                    return Ok(self.asked(step, &result, &handle).await);
                }
                Ok(Came::Answered(Box::new(answered), Some(handle)))
            }
            Waited::Asks(asked) => Ok(asks(step, asked.iter().map(|one| (one, None)))),
            Waited::Nothing => Ok(Came::Nothing),
        }
    }

    /// The parameters of a call, as an MCP client would write them.
    fn params(&self, name: &str, arguments: &str, step: &Step) -> String {
        let mut meta = self.order.meta.clone();
        if step.keyed {
            let parts = [b"agui" as &[u8], self.order.thread.as_bytes(), step.id.as_bytes()];
            let key = amends_ledger::keyed_digest(&self.gateway.secret, &parts);
            meta.insert(KEY.to_owned(), Value::String(format!("agui_{}", &key.as_str()[..32])));
        }
        let meta = match meta.is_empty() {
            true => String::new(),
            false => format!(",\"_meta\":{}", Value::Object(meta)),
        };
        format!("{{\"name\":{},\"arguments\":{arguments}{meta}}}", quoted(name))
    }

    /// Hands in a call.
    async fn call(&self, name: &str, params: &str, inputs: Option<(String, String)>) -> Handed {
        let params = match &inputs {
            Some((inputs, state)) => with_inputs(params, Some(inputs), Some(state)),
            None => params.to_owned(),
        };
        let parsed = serde_json::from_str::<&RawValue>(&params).map(|raw| ToolCall::parse(Some(raw)));
        let call = match parsed {
            Ok(Ok(call)) => call,
            Ok(Err(error)) => return self.refused(name, error.refusal()),
            Err(error) => return self.refused(name, Refusal::of(RefusalKind::InvalidArgument, error.to_string())),
        };
        if let Some(wanted) = walk::wanted(self.gateway, &call) {
            return walk::call(&self.asker(), &call, wanted, Listener::of_the_answer()).await;
        }
        let listener = listener();
        match Returned::read(&params) {
            Ok(Some(returned)) => Handed::Handed(self.session.go_on(&params, &call, &returned, listener).await, None),
            Ok(None) => Handed::Handed(self.session.call(Wish::Call { params: &params, call: &call }, listener), None),
            Err(bad) => self.refused(name, Refusal::of(RefusalKind::InvalidArgument, bad.to_string())),
        }
    }

    /// Hands in the wish to take an action.
    async fn take_action(&self, machine: &str, step: &Step) -> Handed {
        let seq = step.expect_seq.map(|seq| format!(",\"expect_seq\":{seq}")).unwrap_or_default();
        let (action, machine) = (quoted(&step.name), quoted(machine));
        let arguments = format!("{{\"action\":{action},\"machine\":{machine},\"inputs\":{}{seq}}}", step.args);
        let name = self.gateway.catalogue.now().machines().names().own(Tool::Step).unwrap_or("step").to_owned();
        let params = self.params(&name, &arguments, step);
        let parsed = serde_json::from_str::<&RawValue>(&params).map(|raw| ToolCall::parse(Some(raw)));
        match parsed {
            Ok(Ok(call)) => {
                let wanted = read(Tool::Step, &name, call.arguments());
                walk::call(&self.asker(), &call, wanted, Listener::of_the_answer()).await
            }
            Ok(Err(error)) => self.refused(&step.name, error.refusal()),
            Err(error) => self.refused(&step.name, Refusal::of(RefusalKind::InvalidArgument, error.to_string())),
        }
    }

    /// Tells of a move that was refused while nobody waited for it.
    async fn was_refused(&self, machine: &str, step: &Step, no: RefusalKind) -> Handed {
        let words = match no {
            RefusalKind::ApprovalExpired => format!("nobody said yes to `{}` in time; nothing was sent", step.name),
            _ => format!("a person said no to `{}`; that is final, nothing was sent", step.name),
        };
        let wish = Wish::Unreadable { requested: step.name.clone(), refusal: Box::new(Refusal::of(no, words)) };
        let view = walk::view(self.gateway, &self.order.principal, &self.order.walks, machine).await.ok();
        let moved = view.map(|view| Box::new(Moved::at(&step.name, view)));
        Handed::Handed(self.session.call(wish, Listener::of_the_answer()), moved)
    }

    fn asker(&self) -> Asker<'_> {
        let (gateway, session) = (self.gateway, &self.session);
        Asker { gateway, principal: &self.order.principal, door: DOOR, session, own: Some(&self.order.walks) }
    }

    fn refused(&self, name: &str, refusal: Refusal) -> Handed {
        let wish = Wish::Unreadable { requested: name.to_owned(), refusal: Box::new(refusal) };
        Handed::Handed(self.session.call(wish, Listener::of_the_answer()), None)
    }

    /// Waits for an answer, for a question to a person, for a wish to stop, or for the client to go.
    async fn wait(&mut self, teller: &mut Teller, mut handle: CallHandle, mut watch: Watch) -> Result<Waited, Gone> {
        let (gateway, walks) = (self.gateway, handle.session().id != self.session.id);
        let mut stopping = false;
        loop {
            let session = handle.session().id.clone();
            tokio::select! {
                biased;
                answer = &mut handle.answer => {
                    // Whoever should give it may have failed, which is an answer too.
                    let answered = answer.unwrap_or_else(|_| handle.broken());
                    return Ok(Waited::Answered(Box::new(answered), handle));
                }
                word = self.place.word(stopping) => match word {
                    Word::Stop => {
                        stopping = true;
                        handle.cancel(CancelReason::Asked);
                    }
                    Word::End => return Ok(Waited::Nothing),
                },
                () = watch.asked(gateway, &session), if walks && !stopping => {
                    let asked = questions::open(gateway, &session).await;
                    if !asked.is_empty() {
                        return Ok(Waited::Asks(asked));
                    }
                }
                () = teller.gone() => {
                    self.leave(handle, stopping);
                    return Err(Gone);
                }
                () = tokio::time::sleep(SILENT_MAX) => {
                    if teller.keep_alive().await.is_err() {
                        self.leave(handle, stopping);
                        return Err(Gone);
                    }
                }
            }
        }
    }

    /// The client is gone. The call runs until it is settled, though nobody waits for its answer: its repeat finds it.
    fn leave(&self, handle: CallHandle, stopping: bool) {
        if !stopping {
            handle.cancel(match self.gateway.config().agui.on_disconnect {
                OnDisconnect::Cancel => CancelReason::Asked,
                OnDisconnect::Detach => CancelReason::Disconnected,
            });
        }
        tokio::spawn(async move {
            let _ = handle.answer.await;
        });
    }

    /// What an answer asks that wants the agent to come back: an upstream's questions, or a person's yes.
    async fn asked(&self, step: &Step, result: &str, handle: &CallHandle) -> Came {
        let asked = InputRequired::parse(result).unwrap_or_default();
        let by_person = asked.state.as_deref().is_none_or(|state| self.is_by_person(step, state));
        if by_person {
            let people = questions::about(self.gateway, &handle.session().id, &handle.id).await;
            return asks(step, people.iter().map(|one| (one, None)));
        }
        let named = |n: usize| format!("ask_{}_{}", handle.id.as_str().trim_start_matches("call_"), n + 1);
        let (mut interrupts, mut waiting) = (Vec::new(), Waiting { asked: Vec::new(), state: asked.state });
        for (n, question) in asked.questions.iter().enumerate() {
            interrupts.push(of_upstream(question, named(n), &step.id));
            let schema = interrupts.last().and_then(|it: &Interrupt| it.response_schema.clone());
            waiting.asked.push(Asked { interrupt: named(n), key: Some(question.key.clone()), schema });
        }
        Came::Asks(interrupts, waiting)
    }

    fn is_by_person(&self, step: &Step, state: &str) -> bool {
        let asked = self.gateway.seal.asked("tools/call", &step.name, &step.args);
        let opened = self.gateway.seal.open(state, &self.order.principal, &asked, crate::clock::now());
        opened.ok().and_then(|state| state.waiting).is_none_or(|waiting| waiting.inquiry == crate::driver::BY_PERSON)
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

enum Waited {
    Answered(Box<Answered>, CallHandle),
    Asks(Vec<amends_core::Interaction>),
    Nothing,
}

/// Somebody who can be asked by ending the run, and comes back.
fn listener() -> Listener {
    let askable = Askable { form: true, url: true, ..Askable::default() };
    Listener { way: Way::Return, capabilities: Some(askable.declared()), ..Listener::of_the_answer() }
}

/// The questions to people as interrupts, each with why what was said to it does not count.
pub(super) fn asks<'a>(
    step: &Step,
    people: impl Iterator<Item = (&'a amends_core::Interaction, Option<&'static str>)>,
) -> Came {
    let (mut interrupts, mut waiting) = (Vec::new(), Waiting::default());
    for (interaction, why) in people {
        let expires = told::utc(interaction.due).replace(' ', "T") + "Z";
        let mut interrupt = of_person(interaction, &step.id, expires);
        if let (Some(why), Some(about)) = (why, interrupt.metadata.get_mut("amends")) {
            about["not_counted"] = Value::String(why.to_owned());
        }
        waiting.asked.push(Asked { interrupt: interrupt.id.clone(), key: None, schema: None });
        interrupts.push(interrupt);
    }
    Came::Asks(interrupts, waiting)
}
