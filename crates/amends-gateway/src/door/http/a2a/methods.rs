//! What can be asked of the door, whichever binding asks it.

use std::time::Duration;

use amends_wire::a2a::message::Incoming;
use amends_wire::a2a::{Part, Refused, State, Trouble, Version, reply};
use amends_wire::object::quoted;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::begin::Begun;
use super::follow::{Ear, Manner, tell, wait};
use super::task::{Seen, TaskId, look};
use super::{Asker, unavailable};
use crate::config::TextReply;
use crate::driver;
use crate::mint;

/// How long a wish to stop waits for what comes of it.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// How many events of a stream may wait to be written.
const EVENTS_MAX: usize = 16;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    PushCreate,
    PushGet,
    PushList,
    PushDelete,
    Card,
}

const NAMES: [(Method, &str, &str); 11] = [
    (Method::Send, "SendMessage", "message/send"),
    (Method::Stream, "SendStreamingMessage", "message/stream"),
    (Method::Get, "GetTask", "tasks/get"),
    (Method::List, "ListTasks", "tasks/list"),
    (Method::Cancel, "CancelTask", "tasks/cancel"),
    (Method::Subscribe, "SubscribeToTask", "tasks/resubscribe"),
    (Method::PushCreate, "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    (Method::PushGet, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    (Method::PushList, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    (Method::PushDelete, "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
    (Method::Card, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
];

impl Method {
    /// The method of that name in that version.
    pub(super) fn find(name: &str, version: Version) -> Option<Self> {
        let is = |(_, new, old): &&(Self, &str, &str)| match version {
            Version::V1 => *new == name,
            Version::V03 => *old == name,
        };
        NAMES.iter().find(is).map(|(method, ..)| *method)
    }
}

/// What is answered.
pub(super) enum Answer {
    /// A value, as it is written.
    Value(String),
    /// One value after the other.
    Stream(mpsc::Receiver<String>),
}

impl Asker<'_> {
    /// Does what is asked for.
    pub(super) async fn ask(&self, method: Method, params: &RawValue, host: &str) -> Result<Answer, Refused> {
        match method {
            Method::Send => self.send(params).await,
            Method::Stream => self.stream(params).await,
            Method::Get => {
                let seen = self.find(params).await?;
                Ok(Answer::Value(seen.view.task(self.version, true)))
            }
            Method::List => self.list(params).await,
            Method::Cancel => self.cancel(params).await,
            Method::Subscribe => {
                let ear = Ear::open(&self.door.gateway);
                let seen = self.find(params).await?;
                if seen.view.state.is_terminal() {
                    let words = format!("the task `{}` is over: there is nothing more to hear", seen.view.id);
                    return Err(Refused::of(Trouble::UnsupportedOperation, words));
                }
                Ok(self.follow(seen, ear))
            }
            Method::PushCreate => self.push_create(params).await,
            Method::PushGet => self.push_get(params).await,
            Method::PushList => self.push_list(params).await,
            Method::PushDelete => self.push_delete(params).await,
            Method::Card => Ok(Answer::Value(super::card::text(self.door, host))),
        }
    }

    async fn send(&self, params: &RawValue) -> Result<Answer, Refused> {
        let incoming = Incoming::read(params, self.version)?;
        let mut ear = Ear::open(&self.door.gateway);
        let push = self.read_push(&incoming)?;
        let (id, reply, no) = match self.take(&incoming).await? {
            Begun::Task(id, reply) => (id, reply, None),
            Begun::Refused(id, envelope) => (id, TextReply::Task, Some(envelope)),
            Begun::Said(envelope) => return Ok(Answer::Value(self.message(&incoming, &[Part::Data(envelope)]))),
        };
        self.keep_push(&id, push);
        // An answer takes a moment to be acted upon; until then the task waits as before, and nobody else waits for that.
        let before = incoming.task.is_some();
        let there = |state: State| incoming.at_once || state.is_terminal() || state.is_interrupted();
        if before && !incoming.at_once {
            self.moved_on(&id, &mut ear).await?;
        }
        let seen = wait(&self.door.gateway, self.who, &id, &mut ear, None, there).await?;
        let seen = told_instead(seen, no.as_deref());
        let said = said(&seen, reply).map(|parts| self.message(&incoming, parts));
        Ok(Answer::Value(said.unwrap_or_else(|| seen.view.answer(self.version))))
    }

    /// Waits, within bounds, until a task that was answered has taken its answer.
    async fn moved_on(&self, id: &TaskId, ear: &mut Ear) -> Result<(), Refused> {
        let gateway = &self.door.gateway;
        let Some(first) = look(gateway, self.who, id).await? else { return Ok(()) };
        let began = tokio::time::Instant::now();
        while began.elapsed() < STOPS_WITHIN {
            let Some(seen) = look(gateway, self.who, id).await? else { return Ok(()) };
            let asked = |seen: &Seen| (seen.view.since.clone(), seen.asks.as_ref().map(|asks| asks.id.clone()));
            if !seen.view.state.is_interrupted() || asked(&seen) != asked(&first) {
                return Ok(());
            }
            ear.hear(gateway, &id.session).await;
        }
        Ok(())
    }

    async fn stream(&self, params: &RawValue) -> Result<Answer, Refused> {
        let incoming = Incoming::read(params, self.version)?;
        let mut ear = Ear::open(&self.door.gateway);
        let push = self.read_push(&incoming)?;
        let (id, reply, no) = match self.take(&incoming).await? {
            Begun::Task(id, reply) => (id, reply, None),
            Begun::Refused(id, envelope) => (id, TextReply::Task, Some(envelope)),
            Begun::Said(envelope) => return Ok(only(self.message(&incoming, &[Part::Data(envelope)]))),
        };
        self.keep_push(&id, push);
        if reply == TextReply::Message {
            let there = |state: State| state.is_terminal() || state.is_interrupted();
            let seen = wait(&self.door.gateway, self.who, &id, &mut ear, None, there).await?;
            if let Some(parts) = said(&seen, reply) {
                return Ok(only(self.message(&incoming, parts)));
            }
        }
        if incoming.task.is_some() {
            self.moved_on(&id, &mut ear).await?;
        }
        let first = wait(&self.door.gateway, self.who, &id, &mut ear, None, |_| true).await?;
        Ok(self.follow(told_instead(first, no.as_deref()), ear))
    }

    fn follow(&self, first: Seen, ear: Ear) -> Answer {
        let (to, events) = mpsc::channel(EVENTS_MAX);
        let (gateway, who) = (self.door.gateway.clone(), self.who.clone());
        let manner = Manner { version: self.version, ends_asking: self.ends_asking };
        tokio::spawn(tell(gateway, who, first, ear, manner, to));
        Answer::Stream(events)
    }

    /// An answer without a task.
    fn message(&self, incoming: &Incoming<'_>, parts: &[Part]) -> String {
        let parts: Vec<String> = parts.iter().map(|part| part.json(self.version)).collect();
        let parts = parts.join(",");
        let context = incoming.context.clone().unwrap_or_else(|| format!("ctx_{}", mint::token()));
        let (id, context) = (quoted(&format!("msg_{}", mint::token())), quoted(&context));
        let said =
            |role: &str| format!("\"messageId\":{id},\"contextId\":{context},\"role\":\"{role}\",\"parts\":[{parts}]");
        match self.version {
            Version::V1 => format!("{{\"message\":{{{}}}}}", said("ROLE_AGENT")),
            Version::V03 => format!("{{\"kind\":\"message\",{}}}", said("agent")),
        }
    }

    /// The task that parameters name.
    pub(super) async fn find(&self, params: &RawValue) -> Result<Seen, Refused> {
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let id = params["id"].as_str().filter(|id| !id.is_empty());
        let id = TaskId::parse(id.ok_or_else(|| Refused::of(Trouble::InvalidParams, "`id` names the task"))?);
        if params.get("historyLength").is_some_and(|length| !length.is_null() && length.as_u64().is_none()) {
            return Err(Refused::of(Trouble::InvalidParams, "`historyLength` is a whole number, 0 or more"));
        }
        look(&self.door.gateway, self.who, &id).await?.ok_or_else(|| id.unknown())
    }

    async fn cancel(&self, params: &RawValue) -> Result<Answer, Refused> {
        let gateway = &self.door.gateway;
        let mut ear = Ear::open(gateway);
        let seen = self.find(params).await?;
        if seen.view.state.is_terminal() || seen.ended {
            let words = format!("the task `{}` is over, or only a person can tell what became of it", seen.view.id);
            let refused = Refused::of(Trouble::TaskNotCancelable, words);
            return Err(refused.with("state", seen.view.state.name(self.version)));
        }
        let stops = driver::stop(gateway, &seen.id.session, &seen.call).await.map_err(|error| unavailable(&error))?;
        if !stops {
            let words = "nobody drives the task any more";
            return Err(Refused::of(Trouble::TaskNotCancelable, words));
        }
        let there = State::is_terminal;
        let seen = wait(gateway, self.who, &seen.id, &mut ear, Some(STOPS_WITHIN), there).await?;
        Ok(Answer::Value(seen.view.task(self.version, true)))
    }
}

/// What a message says of a task that was done, where one is wanted.
fn said(seen: &Seen, reply: TextReply) -> Option<&[Part]> {
    let parts = seen.view.artifacts.first().map(|(_, parts)| parts.as_slice());
    parts.filter(|_| reply == TextReply::Message && seen.view.state == State::Completed)
}

/// A task that was refused, with what could be done instead.
fn told_instead(mut seen: Seen, no: Option<&RawValue>) -> Seen {
    if let Some(no) = no.filter(|_| seen.view.state == State::Rejected) {
        seen.view.says = reply::failure(no);
    }
    seen
}

/// A stream of one.
fn only(event: String) -> Answer {
    let (to, events) = mpsc::channel(1);
    // There is room for one.
    let _ = to.try_send(event);
    Answer::Stream(events)
}
