//! One call as a task of an agent: sent once, heard of until it is over, asked about where the line was lost.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::a2a::agent::{Method, Outgoing, Said, Task, message_result};
use amends_wire::a2a::{State, Version};
use amends_wire::object::{Object, quoted};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::line::{self, Heard, Stream};
use super::look::{LOOK_AFTER, LOOK_AFTER_MAX, get};
use super::question::{Answer, ask};
use super::{Known, Shared, soon};
use crate::mint;
use crate::upstream::exchange::{AgentFault, Aside, Asides, Fault, Progress, Reply};
use crate::upstream::http::pool::Departure;

/// How often a task that cannot be looked at is looked at again before that counts as lost.
const LOOKS_FAILED_MAX: u32 = 5;
/// How long a task that was stopped is still looked at.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);
/// How long a task that should stop may take to be named.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
/// How long a task for which somebody signed in may take to go on by itself, and what its agent is told then.
const SIGNED_IN_WITHIN: Duration = Duration::from_secs(10);
const SIGNED_IN: &str = "Signed in.";
/// How often an agent may ask something in one task.
const QUESTIONS_MAX: u32 = 32;

/// What is wanted of an agent.
#[derive(Debug)]
pub(super) struct Wish<'a> {
    id: String,
    text: Option<String>,
    data: Option<&'a str>,
    context: Option<String>,
    skill: &'a str,
}

impl<'a> Wish<'a> {
    /// Reads the arguments of a call. The id of the message is the key that the call was given, where it was given one.
    pub(super) fn read(arguments: &'a str, meta: Option<&RawValue>, skill: &'a str) -> Result<Self, String> {
        let arguments = Object::parse(arguments).ok_or("the arguments are not an object")?;
        let text = |name: &str| arguments.string(name).map(|text| text.into_owned());
        let (words, data) = (text("message"), arguments.get("data").map(RawValue::get));
        if words.is_none() && data.is_none() {
            return Err("an agent is told something with `message` or `data`".into());
        }
        let key = meta
            .and_then(|meta| Object::parse(meta.get()))
            .and_then(|meta| Some(meta.string("messageId")?.into_owned()));
        let id = key.unwrap_or_else(|| format!("msg_{}", mint::token()));
        Ok(Self { id, text: words, data, context: text("context"), skill })
    }
}

/// One call on its way.
pub(super) struct Work {
    shared: Arc<Shared>,
    known: Arc<Known>,
    asides: Option<Asides>,
    send_by: Instant,
    departure: Arc<Departure>,
    task: Option<Task>,
    /// Told when the task has a name.
    named: Arc<Notify>,
    questions: u32,
    said: u32,
}

/// Why hearing of a task ended before the task did.
enum Pause {
    /// It waits for somebody.
    Interrupted,
    /// The line broke, or says nothing of it.
    Cut,
}

/// What became of hearing of a task.
enum Came {
    Over(Reply),
    Paused(Pause),
}

impl Work {
    pub(super) fn new(shared: Arc<Shared>, known: Arc<Known>, asides: Option<Asides>, send_by: Instant) -> Self {
        let (departure, named) = Default::default();
        Self { shared, known, asides, send_by, departure, task: None, named, questions: 0, said: 0 }
    }

    /// Sends it and follows it to its end. Once somebody wants it stopped, the agent is told, and what it says then counts.
    pub(super) async fn run(mut self, wish: &Wish<'_>, mut abort: oneshot::Receiver<()>) -> Reply {
        let (departure, named) = (self.departure.clone(), self.named.clone());
        let stopped = {
            let mut following = pin!(self.follow(wish));
            let stopped = tokio::select! {
                reply = &mut following => return reply,
                asked = &mut abort => asked.is_ok(),
            };
            // What has left can be stopped only by the name that the agent gives it.
            if departure.is_past() {
                tokio::select! {
                    reply = &mut following => return reply,
                    () = named.notified() => {}
                    () = tokio::time::sleep(NAMED_WITHIN) => {}
                }
            }
            stopped
        };
        if !stopped {
            // Nobody can stop it any more, and somebody may still listen.
            return self.settle().await;
        }
        self.stop().await
    }

    async fn follow(&mut self, wish: &Wish<'_>) -> Reply {
        let mut message = Outgoing {
            id: &wish.id,
            context: wish.context.as_deref(),
            task: None,
            text: wish.text.as_deref(),
            data: wish.data,
            skill: wish.skill,
        };
        let mut came = self.send(&message, true).await;
        // Ends: the agent asks only so often, and what it is not asked to do is over at some time.
        loop {
            let pause = match came {
                Came::Over(reply) => return reply,
                Came::Paused(pause) => pause,
            };
            let Some(task) = self.task.clone() else { return Reply::Fault(Fault::Lost) };
            if matches!(pause, Pause::Cut) {
                came = self.watch().await;
                continue;
            }
            if task.asks_elsewhere() {
                // Its own people settle it. Whoever called is told what is known, and can look at the task.
                return ended(&task);
            }
            self.questions += 1;
            if self.questions > QUESTIONS_MAX {
                return self.unanswered(&task).await;
            }
            let answer = match task.state {
                Some(State::AuthRequired) => self.sign_in(&task).await,
                _ => ask(self.asides.as_ref(), &task).await,
            };
            match answer {
                Some(Answer::MovedOn) => came = self.watch().await,
                Some(Answer::SignedIn) => came = self.nudge(wish, &task).await,
                Some(Answer::Given { text, data }) => {
                    let id = format!("{}-{}", wish.id, self.questions);
                    message = Outgoing {
                        id: &id,
                        context: Some(task.context.as_str()).filter(|context| !context.is_empty()),
                        task: Some(&task.id),
                        text: text.as_deref(),
                        data: data.as_deref(),
                        skill: wish.skill,
                    };
                    came = self.send(&message, false).await;
                }
                None => return self.unanswered(&task).await,
            }
        }
    }

    /// Sends a message, and hears of its task for as long as the line holds.
    async fn send(&mut self, message: &Outgoing<'_>, first: bool) -> Came {
        let speaks = self.known.agent.speaks;
        let mut params = message.params(speaks);
        let method = if self.known.agent.streams { Method::Stream } else { Method::Send };
        if method == Method::Send {
            // The id of a task is worth more than its answer on a line that may break.
            params = match speaks {
                Version::V1 => {
                    params.replacen("\"configuration\":{", "\"configuration\":{\"returnImmediately\":true,", 1)
                }
                Version::V03 => params.replacen("\"blocking\":true", "\"blocking\":false", 1),
            };
        }
        let send_by = if first { self.send_by } else { soon() };
        let (shared, known) = (self.shared.clone(), self.known.clone());
        match line::call(&shared, &known, method, &params, send_by, &self.departure).await {
            Ok(Heard::Stream(stream)) => self.hear(*stream).await,
            Ok(Heard::Result(result)) => match Said::read(&result) {
                Some(said) => match self.take(said).await {
                    Some(came) => came,
                    None => Came::Paused(Pause::Cut),
                },
                None => Came::Over(Reply::Fault(Fault::Unreadable { start: String::new() })),
            },
            Ok(Heard::Error(error)) => Came::Over(Reply::Fault(Fault::Agent(AgentFault::Error(error)))),
            // What was answered before may still be on its way at the agent: its task says so.
            Err(_) if !first => Came::Paused(Pause::Cut),
            Err(fault) => Came::Over(Reply::Fault(fault)),
        }
    }

    async fn hear(&mut self, mut stream: Stream) -> Came {
        while let Some(said) = stream.next().await {
            match said {
                Ok(result) => {
                    if let Some(said) = Said::read(&result)
                        && let Some(came) = self.take(said).await
                    {
                        return came;
                    }
                }
                Err(error) if self.task.is_none() => {
                    return Came::Over(Reply::Fault(Fault::Agent(AgentFault::Error(error))));
                }
                Err(_) => break,
            }
        }
        match self.task {
            Some(_) => Came::Paused(Pause::Cut),
            None => Came::Over(Reply::Fault(Fault::Lost)),
        }
    }

    /// What was said; nothing where it goes on.
    async fn take(&mut self, said: Said) -> Option<Came> {
        let (task, whole) = match said {
            Said::Message(message) => {
                return Some(Came::Over(Reply::Result(message_result(&message).to_string().into())));
            }
            Said::Task(task) => (*task, true),
            Said::Status(task) => (*task, false),
            Said::Aside { .. } => return None,
        };
        if self.task.is_none() {
            self.name(&task.id);
        }
        let state = task.state;
        self.progress(&task);
        self.task = Some(task);
        match state {
            Some(state) if state.is_terminal() => Some(Came::Over(self.over(whole).await)),
            Some(state) if state.is_interrupted() => Some(Came::Paused(Pause::Interrupted)),
            _ => None,
        }
    }

    /// Looks at the task until it is over or waits for somebody.
    async fn watch(&mut self) -> Came {
        let Some(id) = self.task.as_ref().map(|task| task.id.clone()) else {
            return Came::Over(Reply::Fault(Fault::Lost));
        };
        let (mut after, mut failed) = (LOOK_AFTER, 0);
        // Ends: whoever waits for it stops waiting, and drops this.
        loop {
            match get(&self.shared, &self.known, &id, soon()).await {
                Ok(task) => {
                    failed = 0;
                    if let Some(came) = self.take(Said::Task(Box::new(task))).await {
                        return came;
                    }
                }
                Err(_) if failed >= LOOKS_FAILED_MAX => {
                    return Came::Over(Reply::Fault(Fault::Lost));
                }
                Err(_) => failed += 1,
            }
            tokio::time::sleep(after).await;
            after = (after * 2).min(LOOK_AFTER_MAX);
        }
    }

    /// The task is over. What it gave is asked for where only its end was told.
    async fn over(&mut self, whole: bool) -> Reply {
        let Some(mut task) = self.task.clone() else { return Reply::Fault(Fault::Lost) };
        if !whole && let Ok(found) = get(&self.shared, &self.known, &task.id, soon()).await {
            task = found;
        }
        ended(&task)
    }

    /// Somebody has to sign in. Work may go on without a message, so it is looked at meanwhile.
    async fn sign_in(&mut self, task: &Task) -> Option<Answer> {
        let (shared, known, id) = (self.shared.clone(), self.known.clone(), task.id.clone());
        let moves_on = async {
            loop {
                tokio::time::sleep(LOOK_AFTER_MAX / 3).await;
                if let Ok(task) = get(&shared, &known, &id, soon()).await
                    && task.state != Some(State::AuthRequired)
                {
                    return;
                }
            }
        };
        let mut moves_on = pin!(moves_on);
        tokio::select! {
            () = &mut moves_on => return Some(Answer::MovedOn),
            answer = ask(self.asides.as_ref(), task) => answer?,
        };
        match tokio::time::timeout(SIGNED_IN_WITHIN, moves_on).await {
            Ok(()) => Some(Answer::MovedOn),
            Err(_) => Some(Answer::SignedIn),
        }
    }

    /// Tells an agent that somebody signed in, which some wait for. One that has gone on meanwhile may refuse that: its task counts.
    async fn nudge(&mut self, wish: &Wish<'_>, task: &Task) -> Came {
        let id = format!("{}-{}", wish.id, self.questions);
        let message = Outgoing {
            id: &id,
            context: Some(task.context.as_str()).filter(|context| !context.is_empty()),
            task: Some(&task.id),
            text: Some(SIGNED_IN),
            data: None,
            skill: wish.skill,
        };
        match self.send(&message, false).await {
            Came::Over(Reply::Fault(Fault::Agent(AgentFault::Error(_)))) => self.watch().await,
            came => came,
        }
    }

    /// Nobody answers what it asks: it is stopped, so that it does not wait for ever.
    async fn unanswered(&mut self, task: &Task) -> Reply {
        match self.cancel(&task.id).await {
            // That it was stopped is our doing; why is that nobody could be asked. One that does not stop is left as it is.
            Some(Task { state: Some(State::Canceled), .. }) | None => ended(task),
            Some(task) => ended(&task),
        }
    }

    /// Tells the agent to stop, and says what it says then.
    async fn stop(&mut self) -> Reply {
        let Some(id) = self.task.as_ref().map(|task| task.id.clone()) else {
            return Reply::Fault(self.departure.stopped());
        };
        match self.cancel(&id).await {
            Some(task) => ended(&task),
            // That it takes no such wish, or has not come to it, says nothing of the task: that is looked at.
            None => self.settle().await,
        }
    }

    /// Asks the agent to stop a task; the task where it is over with that.
    async fn cancel(&self, id: &str) -> Option<Task> {
        let params = format!("{{\"id\":{}}}", quoted(id));
        let asked = line::call(&self.shared, &self.known, Method::Cancel, &params, soon(), &self.departure);
        match tokio::time::timeout(line::WITHIN, asked).await {
            Ok(Ok(Heard::Result(result))) => {
                Task::read(&result).filter(|task| task.state.is_some_and(State::is_terminal))
            }
            _ => None,
        }
    }

    /// Waits for the task to be over, without asking anybody anything.
    async fn settle(&mut self) -> Reply {
        let Some(id) = self.task.as_ref().map(|task| task.id.clone()) else {
            return Reply::Fault(self.departure.stopped());
        };
        let (mut after, mut failed, began) = (LOOK_AFTER, 0, Instant::now());
        // Whoever stopped it listens for a bounded time.
        while began.elapsed() < SETTLES_WITHIN {
            match get(&self.shared, &self.known, &id, soon()).await {
                Ok(task) if task.state.is_some_and(State::is_terminal) => return ended(&task),
                Ok(_) => failed = 0,
                Err(_) if failed >= LOOKS_FAILED_MAX => return Reply::Fault(Fault::Lost),
                Err(_) => failed += 1,
            }
            tokio::time::sleep(after).await;
            after = (after * 2).min(LOOK_AFTER_MAX);
        }
        Reply::Fault(Fault::Lost)
    }

    /// The work has a name from now on, by which it can be asked about.
    fn name(&self, id: &str) {
        self.named.notify_one();
        if let Some(asides) = &self.asides {
            // Whoever does not hear it has given the call up.
            let _ = asides.to.send(Aside::Named(id.to_owned()));
        }
    }

    fn progress(&mut self, task: &Task) {
        let (words, _) = task.says();
        if words.is_empty() || task.state != Some(State::Working) {
            return;
        }
        self.said += 1;
        if let Some(asides) = &self.asides {
            let said = json!({ "progress": self.said, "message": words }).to_string();
            // The same.
            let _ = asides.to.send(Aside::Progress(Progress(said)));
        }
    }
}

/// A task that is over, or given up, as a reply.
fn ended(task: &Task) -> Reply {
    let result: Value = task.result();
    match task.state {
        Some(State::Completed) => Reply::Result(result.to_string().into()),
        state => Reply::Fault(Fault::Agent(AgentFault::Ended { state, result: result.to_string() })),
    }
}
