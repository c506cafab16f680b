//! What an upstream asks of an agent: brought before it, and its answers brought back.

use std::time::Instant;

use amends_core::attempt::Payload;
use amends_core::effect::Effect;
use amends_core::inquiry::{Asking, Telling};
use amends_core::interaction::Subject;
use amends_core::privacy::Sieve;
use amends_core::{Ask, AttemptId, CallId, Fact, Gates, Input, Inquiry, Report, Timestamp, Unanswered, Way};
use amends_ledger::{Append, Form as StoredForm, StoredAnswer, StoredArguments, keyed_digest};
use amends_wire::mcp::inputs::{responses, unaskable, with_inputs};
use amends_wire::mcp::{Askable, InputRequired, Question, Returned};
use amends_wire::message;
use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::answer::{Answered, Form, Rendered};
use super::listener::Listener;
use super::session::{Live, Mail, Session};
use super::sign_in;
use super::turn::Act;
use crate::clock;
use crate::request_state::{RequestState, Waiting};
use crate::upstream::{self, Aside, AsideSender, RpcFault, Said};

/// The name of the one question that an upstream asks at a time while it waits.
const ONLY: &str = "input";
/// How long an agent that has nothing to answer waits before it comes back.
const COME_BACK_MS: u64 = 200;
/// For how long a state says after the inquiry's time what became of its call.
const REMEMBERED_MS: u64 = 10 * 60 * 1000;
/// What a client says where its user does not want to answer.
const DECLINED: i64 = -1;

/// An inquiry as the driver holds it.
#[derive(Debug)]
pub(super) struct LiveInquiry {
    asked: InputRequired,
    /// Where the answer goes, where the upstream waits for it.
    held: Option<oneshot::Sender<Said>>,
    /// When it is due, and how it is brought, once it is opened.
    opened: Option<(Timestamp, Way)>,
    /// Whether the agent has it.
    brought: bool,
    /// What waits for the agent's answer on its line.
    line: Option<tokio::task::AbortHandle>,
    /// By which the agent on its line is told that it is taken back, and why.
    withdraw: Vec<oneshot::Sender<Option<String>>>,
    /// Why the upstream took it back.
    reason: Option<String>,
    /// What waits for the upstream to take it back.
    watched: Option<tokio::task::AbortHandle>,
    /// The answers, one for each question.
    answers: Vec<Result<String, RpcFault>>,
}

impl LiveInquiry {
    fn new(asked: InputRequired, held: Option<oneshot::Sender<Said>>) -> Self {
        Self {
            asked,
            held,
            opened: None,
            brought: false,
            line: None,
            withdraw: Vec::new(),
            reason: None,
            watched: None,
            answers: Vec::new(),
        }
    }

    fn stop(&mut self) {
        for withdraw in self.withdraw.drain(..).filter(|_| self.reason.is_some()) {
            // Whoever has answered meanwhile does not hear of it.
            let _ = withdraw.send(self.reason.clone());
        }
        for task in self.line.take().into_iter().chain(self.watched.take()) {
            task.abort();
        }
    }
}

impl Drop for LiveInquiry {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An agent that came back with what it was asked for.
#[derive(Debug)]
pub(crate) struct Return {
    pub(super) waiting: Waiting,
    pub(super) theirs: Option<String>,
    /// The parameters of its new request.
    pub(super) params: String,
    pub(super) listener: Listener,
    pub(super) answer: oneshot::Sender<Answered>,
    /// Told when its call took it: which call, or which move, it waits for now.
    pub(super) taken: oneshot::Sender<CallId>,
}

impl Session {
    /// The upstream of an attempt asks something, and waits.
    pub(super) fn asked(&mut self, attempt: AttemptId, asking: upstream::Asking) {
        let upstream::Asking { method, params, answer, withdrawn } = asking;
        let question = Question { key: ONLY.into(), method, params };
        let asked = InputRequired { questions: vec![question], state: None };
        let Some(live) = self.live.get_mut(&attempt.call) else { return };
        let mut inquiry = Box::new(inquiry(&self.gateway.secret, &asked, &live.listener));
        sign_in::in_its_place(&self.gateway, live, &asked, &mut inquiry);
        let Some(n) = self.dispatcher.next_inquiry(&attempt.call) else { return };
        let mut live_inquiry = LiveInquiry::new(asked, Some(answer));
        let (mail, call) = (self.mail.clone(), attempt.call.clone());
        let watching = tokio::spawn(async move {
            if let Ok(reason) = withdrawn.await {
                // The driver outlives its calls, unless the process ends.
                let _ = mail.send(Mail::Withdrawn { call, inquiry: n, reason });
            }
        });
        live_inquiry.watched = Some(watching.abort_handle());
        live.inquiries.insert(n, live_inquiry);
        let gates = self.gates_of(&attempt.call);
        self.take(Input::Inquiry { attempt, inquiry }, gates);
    }

    /// The upstream took back what it asked.
    pub(super) fn withdrawn(&mut self, call: CallId, inquiry: u32, reason: Option<String>) {
        if self.dispatcher.is_asking(&call, inquiry) {
            if let Some(live) = self.live.get_mut(&call).and_then(|live| live.inquiries.get_mut(&inquiry)) {
                live.reason = reason;
            }
            self.take(Input::Withdrawal { call, inquiry }, Gates::default());
        }
    }

    /// An attempt was answered with an inquiry: kept, if the agent can be asked, else it is a failure.
    pub(super) fn keep_round(&mut self, attempt: &AttemptId, asked: InputRequired, report: &mut Report) {
        let n = self.dispatcher.next_inquiry(&attempt.call);
        let (Some(n), Some(live)) = (n, self.live.get_mut(&attempt.call)) else { return };
        let mut inquiry = inquiry(&self.gateway.secret, &asked, &live.listener);
        sign_in::in_its_place(&self.gateway, live, &asked, &mut inquiry);
        match inquiry.way {
            Way::Person => {
                // Should it be taken up by another process, it goes on with what it is sent with then.
                live.params =
                    with_inputs(&live.params, Some(&sign_in::was_there(&asked)), asked.state.as_deref()).into();
                report.inquiry = Some(Box::new(inquiry));
            }
            Way::Line | Way::Return => {
                report.inquiry = Some(Box::new(inquiry));
                live.inquiries.insert(n, LiveInquiry::new(asked, None));
            }
            Way::Undeclared => {
                let askable = Askable::of(live.listener.capabilities.as_deref());
                let missing = asked.questions.iter().find(|question| !askable.takes(question));
                *report = unaskable(missing, "it did not declare that");
            }
            Way::Closed => *report = unaskable(asked.questions.first(), "there is no way to ask it"),
        }
    }

    /// Brings an inquiry before the agent.
    pub(super) fn inquire(&mut self, asking: &Asking) {
        let call = &asking.attempt.call;
        let Some(live) = self.live.get_mut(call) else { return };
        let Some(inquiry) = live.inquiries.get_mut(&asking.inquiry) else { return };
        inquiry.opened = Some((asking.due, asking.way));
        match asking.way {
            Way::Line => {
                let mail = self.mail.clone();
                let (call, n) = (call.clone(), asking.inquiry);
                let Some(asides) = live.listener.asides.clone() else { return };
                let id = |at: usize| format!("{call}-{n}-{at}");
                // Here and not where they are waited for, so that they reach the agent in the order they were asked in.
                let questions = inquiry.asked.questions.iter().enumerate();
                let asked: Option<Vec<_>> = questions.map(|(at, question)| put(&asides, question, id(at))).collect();
                // Where the line broke, that is heard elsewhere.
                let Some(asked) = asked else { return };
                let (said, withdraw): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
                inquiry.withdraw = withdraw;
                let task = tokio::spawn(async move {
                    let nothing = said.is_empty();
                    let answers: Option<Vec<_>> = join_all(said).await.into_iter().map(|said| said.ok()).collect();
                    let answers = answers.map(|said| said.into_iter().map(|said| said.answer).collect());
                    if nothing {
                        tokio::time::sleep(std::time::Duration::from_millis(COME_BACK_MS)).await;
                    }
                    // Where the line broke, that is heard elsewhere.
                    if let Some(answers) = answers {
                        let _ = mail.send(Mail::Inputs { call, inquiry: n, answers });
                    }
                });
                inquiry.line = Some(task.abort_handle());
            }
            Way::Return => self.bring(&asking.attempt.call.clone()),
            Way::Person | Way::Undeclared | Way::Closed => {}
        }
    }

    /// Answers an agent that waits with what it is asked, so that it comes back with it.
    fn bring(&mut self, call: &CallId) {
        let Some(n) = self
            .live
            .get(call)
            .and_then(|live| {
                let waits =
                    |inquiry: &LiveInquiry| matches!(inquiry.opened, Some((_, Way::Return))) && !inquiry.brought;
                live.inquiries.iter().find(|(n, inquiry)| waits(inquiry) && self.dispatcher.is_asking(call, **n))
            })
            .map(|(n, _)| *n)
        else {
            return;
        };
        let Some(result) = self.input_required(call, n) else { return };
        let doors = self.doors(call);
        let Some(live) = self.live.get_mut(call).filter(|_| !doors.is_empty()) else { return };
        if let Some(inquiry) = live.inquiries.get_mut(&n) {
            inquiry.brought = true;
        }
        let rendered = Rendered { form: Form::Asked { result: result.into() }, replayed: false };
        for door in doors {
            let rendered = rendered.clone();
            // Whoever is gone finds it again by repeating.
            let answered = Answered { rendered, receipt: None, last: false, delivery: None, declares_output: false };
            let _ = door.send(answered);
        }
    }

    /// Whoever waits for a call, or for the move that it is made for.
    fn doors(&mut self, call: &CallId) -> Vec<oneshot::Sender<Answered>> {
        let Some(live) = self.live.get_mut(call) else { return Vec::new() };
        match live.leg.clone() {
            Some(leg) => self.waits_for_move(&leg),
            None => match live.answer.take() {
                Some(first) => std::iter::once(first).chain(std::mem::take(&mut live.also)).collect(),
                None => Vec::new(),
            },
        }
    }

    /// Asks again what a call of that move waits for: somebody repeats the wish for it.
    pub(super) fn bring_again(&mut self, of: &CallId) {
        let legs = self.live.iter_mut().filter(|(_, live)| live.leg.as_ref().is_some_and(|leg| leg.of == *of));
        let mut asking = Vec::new();
        for (call, live) in legs {
            live.inquiries.values_mut().for_each(|inquiry| inquiry.brought = false);
            asking.push(call.clone());
        }
        asking.iter().for_each(|call| self.bring(call));
    }

    /// The result that asks an agent to come back, with our own state in it.
    fn input_required(&self, call: &CallId, n: u32) -> Option<String> {
        let live = self.live.get(call)?;
        let inquiry = live.inquiries.get(&n)?;
        let (due, _) = inquiry.opened?;
        self.sealed(call, n, live, &inquiry.asked, due)
    }

    fn sealed(&self, call: &CallId, n: u32, live: &Live, asked: &InputRequired, due: Timestamp) -> Option<String> {
        let (name, arguments) = match (&live.leg, &live.wanted) {
            (Some(leg), _) => self.subject_of_move(leg)?,
            (None, Some(wanted)) => wanted.clone(),
            (None, None) => subject(&live.params)?,
        };
        let state = RequestState {
            principal: self.principal.clone(),
            asked: self.gateway.seal.asked("tools/call", &name, &arguments),
            expires: due + REMEMBERED_MS,
            waiting: Some(Waiting { session: self.id.clone(), call: call.clone(), inquiry: n }),
            theirs: asked.state.clone(),
        };
        Some(asked.result(&self.gateway.seal.close(&state)))
    }

    /// The agent answered on its line.
    pub(super) fn given(&mut self, call: CallId, n: u32, answers: Vec<Result<String, RpcFault>>) {
        let Some(live) = self.live.get_mut(&call) else { return };
        let Some(inquiry) = live.inquiries.get_mut(&n) else { return };
        if !self.dispatcher.is_asking(&call, n) {
            return;
        }
        let config = self.gateway.config();
        let sieves = live.tool.as_ref().map_or(config.pii.shared(), |tool| config.pii.of(tool.name.as_str()));
        let answers: Vec<_> = answers.into_iter().map(|answer| passing(&sieves.arguments, answer)).collect();
        let told: Vec<String> = answers.iter().map(written).collect();
        if inquiry.held.is_none() {
            let questions = inquiry.asked.questions.iter().zip(&answers);
            let usable: Option<Vec<(&str, &str)>> = questions
                .map(|(question, answer)| usable(question, answer).map(|answer| (question.key.as_str(), answer)))
                .collect();
            let Some(usable) = usable else {
                // A refusal for which the next round has no word: the call is not wanted any more.
                let reason = amends_core::dispatcher::cancel::CancelReason::Asked;
                return self.take(Input::Cancel { call, reason }, Gates::default());
            };
            let inputs = (!usable.is_empty()).then(|| responses(usable));
            live.params = with_inputs(&live.params, inputs.as_deref(), inquiry.asked.state.as_deref()).into();
        }
        inquiry.answers = answers;
        let inputs = payload(&self.gateway.secret, &told.concat());
        let gates = self.gates_of(&call);
        self.take(Input::Inputs { call, inquiry: n, inputs }, gates);
    }

    /// An agent came back with what it was asked for.
    pub(super) fn returned(&mut self, returned: Return) {
        let Return { waiting: Waiting { call, inquiry: n, .. }, theirs, params, listener, answer, taken } = returned;
        let asking = self.dispatcher.is_asking(&call, n);
        let Some(live) = self.live.get_mut(&call).filter(|_| self.dispatcher.is_open(&call)) else {
            // The call is over: whoever came back looks for its answer.
            return;
        };
        let leg = live.leg.clone();
        // Whoever came back may be gone again.
        let _ = taken.send(leg.as_ref().map_or_else(|| call.clone(), |leg| leg.of.clone()));
        match &leg {
            Some(leg) => self.came_back(leg, subject(&params), &listener, answer),
            None => {
                if let Some(before) = live.answer.replace(answer) {
                    live.also.push(before);
                }
                live.also.retain(|door| !door.is_closed());
            }
        }
        let Some(live) = self.live.get_mut(&call) else { return };
        let given =
            Returned::read(&params).ok().flatten().and_then(|returned| returned.inputs).map(|inputs| inputs.get());
        let inputs = payload(&self.gateway.secret, given.unwrap_or("{}"));
        let config = self.gateway.config();
        let sieves = live.tool.as_ref().map_or(config.pii.shared(), |tool| config.pii.of(tool.name.as_str()));
        if asking && given.is_some_and(|given| !sieves.arguments.finds(given).is_empty()) {
            // What may not pass is not given, and the call is not gone on with.
            let reason = amends_core::dispatcher::cancel::CancelReason::Asked;
            return self.take(Input::Cancel { call, reason }, Gates::default());
        }
        if asking {
            live.listener = listener;
            let held = match live.inquiries.get_mut(&n).filter(|inquiry| inquiry.held.is_some()) {
                Some(inquiry) => match answers_of(&inquiry.asked, &params) {
                    Some(answers) => {
                        inquiry.answers = answers;
                        true
                    }
                    None => {
                        // What is missing is asked for again.
                        inquiry.brought = false;
                        return self.bring(&call);
                    }
                },
                None => false,
            };
            if !held {
                // A call that is made for a move keeps its own tool and arguments, and so does one before which people answered.
                let own = leg.is_some() || live.wanted.is_some();
                let base = if own { live.params.as_ref() } else { params.as_str() };
                live.params = with_inputs(base, given, theirs.as_deref()).into();
            }
        }
        let gates = self.gates_of(&call);
        self.take(Input::Inputs { call: call.clone(), inquiry: n, inputs }, gates);
        if !asking && let Some(live) = self.live.get_mut(&call) {
            // What it was asked next may not have reached it.
            live.inquiries.values_mut().for_each(|inquiry| inquiry.brought = false);
        }
        self.bring(&call);
    }

    /// Tells an upstream that waits what became of its inquiry.
    pub(super) fn tell(&mut self, telling: &Telling) {
        let Some(live) = self.live.get_mut(&telling.attempt.call) else { return };
        let Some(mut inquiry) = live.inquiries.remove(&telling.inquiry) else { return };
        let Some(to) = inquiry.held.take() else { return };
        let question = inquiry.asked.questions.first();
        let answer = match (telling.unanswered, inquiry.answers.pop()) {
            (None, Some(answer)) => answer,
            (None, None) => Err(refusal("the agent did not answer")),
            (Some(Unanswered::Refused), _) => {
                let capability = question.map_or("it", |question| question.capability());
                let code = message::METHOD_NOT_FOUND;
                let message = format!("the agent of this call cannot be asked for `{capability}`");
                Err(RpcFault { code, message, data: None })
            }
            (Some(Unanswered::Done), _) => Ok(sign_in::WAS_THERE.to_owned()),
            (Some(Unanswered::Declined), _) => Ok(sign_in::WILL_NOT_GO.to_owned()),
            (Some(Unanswered::Lapsed | Unanswered::Withdrawn), _) => match question.and_then(Question::dismissed) {
                Some(dismissed) => Ok(dismissed.to_owned()),
                None => Err(refusal("nobody answered in time")),
            },
        };
        let send_by = Instant::now() + clock::until(telling.send_by);
        // It may have given up waiting.
        let _ = to.send(Said { answer, send_by });
    }

    /// An inquiry is pointless by now.
    pub(super) fn retract(&mut self, call: &CallId, n: u32) {
        if let Some(inquiry) = self.live.get_mut(call).and_then(|live| live.inquiries.get_mut(&n)) {
            inquiry.stop();
        }
    }

    /// Keeps what a repeat of a waiting call is told, and what the next round of it is sent with.
    pub(super) fn append_inquiry(&self, append: &mut Append, input: &Input, acts: &[Act]) {
        let kept = |call: &CallId, certainty, body: Bytes, until| StoredAnswer {
            call: call.clone(),
            outcome: amends_core::Outcome::Unresolved,
            certainty,
            form: StoredForm::Asked,
            body,
            until,
        };
        let certainty = amends_core::Certainty::InDoubt;
        let given = |event: &amends_core::Event| matches!(event.fact, Fact::InputsGiven { .. });
        if let Input::Inputs { call, .. } = input
            && append.events.iter().any(given)
            && let Some(live) = self.live.get(call).filter(|live| live.claimed)
        {
            let body = Bytes::copy_from_slice(live.params.as_bytes());
            append.arguments.push(StoredArguments { call: call.clone(), body });
            append.answers.push(kept(call, certainty, Bytes::new(), clock::now()));
        }
        for act in acts {
            if let Act::Do(Effect::Ask(asked)) = act
                && asked.subject == Subject::SignIn
                && let Some(live) = self.live.get(&asked.call).filter(|live| live.claimed)
            {
                let body = Bytes::copy_from_slice(live.params.as_bytes());
                append.arguments.push(StoredArguments { call: asked.call.clone(), body });
            }
            if let Act::Do(Effect::Inquire(asking)) = act
                && asking.way == Way::Return
                && let Some(live) = self.live.get(&asking.attempt.call).filter(|live| live.claimed)
                && let Some(inquiry) = live.inquiries.get(&asking.inquiry)
                && let Some(result) =
                    self.sealed(&asking.attempt.call, asking.inquiry, live, &inquiry.asked, asking.due)
            {
                append.answers.push(kept(&asking.attempt.call, certainty, result.into(), asking.due));
            }
        }
    }
}

/// What is recorded of an inquiry, and how its agent can be asked.
pub(super) fn inquiry(secret: &[u8], asked: &InputRequired, listener: &Listener) -> Inquiry {
    let ask = |question: &Question| Ask {
        kind: question.kind(),
        payload: payload(secret, question.params.as_deref().unwrap_or_default()),
    };
    Inquiry::of(asked.questions.iter().map(ask).collect(), listener.way_for(&asked.questions))
}

/// The tool and the arguments of a call, by which a state is bound to it.
pub(super) fn subject(params: &str) -> Option<(String, String)> {
    let object = amends_wire::object::Object::parse(params)?;
    let arguments = object.get("arguments").map_or("{}", |raw| raw.get());
    Some((object.string("name")?.into_owned(), arguments.to_owned()))
}

/// Asks the agent something and waits for its answer; nothing where there is no way to it any more.
pub(super) async fn ask(asides: &AsideSender, question: &Question, id: String) -> Option<Result<String, RpcFault>> {
    let (said, _withdraw) = put(asides, question, id)?;
    said.await.ok().map(|said| said.answer)
}

/// Puts a question before the agent: where its answer will come, and by what it is taken back. Nobody waits for the answer any more
/// once that is dropped, and then whoever asks the agent takes the question back, too.
fn put(asides: &AsideSender, question: &Question, id: String) -> Option<Put> {
    let (answer, said) = oneshot::channel();
    let (withdraw, withdrawn) = oneshot::channel();
    let params = question.for_line(&id);
    let asking = upstream::Asking { method: question.method.clone(), params, answer, withdrawn };
    asides.send(Aside::Question(asking)).ok()?;
    Some((said, withdraw))
}

/// A question that is put before an agent.
type Put = (oneshot::Receiver<Said>, oneshot::Sender<Option<String>>);

/// The answers of an agent that came back, one for each question; nothing where one of them is missing.
fn answers_of(asked: &InputRequired, params: &str) -> Option<Vec<Result<String, RpcFault>>> {
    let returned = Returned::read(params).ok().flatten()?;
    let answer = |question: &Question| Some(Ok(returned.answer(&question.key)?.get().to_owned()));
    asked.questions.iter().map(answer).collect()
}

/// An answer, unless it holds what the tool is not to be sent.
fn passing(sieve: &Sieve, answer: Result<String, RpcFault>) -> Result<String, RpcFault> {
    let found = answer.as_ref().map(|given| sieve.finds(given)).unwrap_or_default();
    match found.first() {
        Some(category) => Err(refusal(&format!("what was given holds `{}`, which may not pass", category.as_str()))),
        None => answer,
    }
}

/// An answer as the next round can carry it.
fn usable<'a>(question: &Question, answer: &'a Result<String, RpcFault>) -> Option<&'a str> {
    match answer {
        Ok(answer) => Some(answer),
        Err(_) => question.dismissed(),
    }
}

fn written(answer: &Result<String, RpcFault>) -> String {
    match answer {
        Ok(answer) => answer.clone(),
        Err(error) => error.code.to_string(),
    }
}

fn refusal(message: &str) -> RpcFault {
    RpcFault { code: DECLINED, message: message.to_owned(), data: None }
}

/// The digest of a question or an answer, which may be short enough to be guessed without a key.
fn payload(secret: &[u8], text: &str) -> Payload {
    Payload { digest: keyed_digest(secret, &[b"inquiry", text.as_bytes()]), size: text.len() as u64 }
}
