//! What can be asked of the door, whichever binding asks it.

use std::time::Duration;

use amends_core::Tenant;
use amends_ledger::SessionRow;
use amends_wire::a2a::message::Incoming;
use amends_wire::a2a::{Refused, State, TaskView, Trouble, Version};
use amends_wire::object::quoted;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::begin::Begun;
use super::follow::{Ear, tell, wait};
use super::task::{Seen, TaskId, look};
use super::{Asker, DOOR, unavailable};
use crate::driver;
use crate::mint;

/// How long a wish to stop waits for what comes of it.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// How many sessions are looked through for a list.
const SESSIONS_MAX: usize = 2_000;
const PAGE: usize = 50;
const PAGE_MAX: usize = 100;
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
        let id = match self.take(&incoming).await? {
            Begun::Task(id) => id,
            Begun::Said(envelope) => return Ok(Answer::Value(self.message(&incoming, &envelope))),
        };
        self.keep_push(&id, push);
        // An answer takes a moment to be acted upon; until then the task waits as before, and nobody else waits for that.
        let before = incoming.task.is_some();
        let there = |state: State| incoming.at_once || state.is_terminal() || state.is_interrupted();
        if before && !incoming.at_once {
            self.moved_on(&id, &mut ear).await?;
        }
        let seen = wait(&self.door.gateway, self.who, &id, &mut ear, None, there).await?;
        Ok(Answer::Value(seen.view.answer(self.version)))
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
        let id = match self.take(&incoming).await? {
            Begun::Task(id) => id,
            Begun::Said(envelope) => {
                let (to, events) = mpsc::channel(1);
                // There is room for one.
                let _ = to.try_send(self.message(&incoming, &envelope));
                return Ok(Answer::Stream(events));
            }
        };
        self.keep_push(&id, push);
        if incoming.task.is_some() {
            self.moved_on(&id, &mut ear).await?;
        }
        let first = wait(&self.door.gateway, self.who, &id, &mut ear, None, |_| true).await?;
        Ok(self.follow(first, ear))
    }

    fn follow(&self, first: Seen, ear: Ear) -> Answer {
        let (to, events) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(tell(self.door.gateway.clone(), self.who.clone(), first, ear, self.version, to));
        Answer::Stream(events)
    }

    /// An answer without a task.
    fn message(&self, incoming: &Incoming<'_>, envelope: &RawValue) -> String {
        let part = amends_wire::a2a::Part::Data(envelope.to_owned()).json(self.version);
        let context = incoming.context.clone().unwrap_or_else(|| format!("ctx_{}", mint::token()));
        let (id, context) = (quoted(&format!("msg_{}", mint::token())), quoted(&context));
        let said =
            |role: &str| format!("\"messageId\":{id},\"contextId\":{context},\"role\":\"{role}\",\"parts\":[{part}]");
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

    async fn list(&self, params: &RawValue) -> Result<Answer, Refused> {
        let wrong = |words: &str| Refused::of(Trouble::InvalidParams, words);
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let text = |name: &str| params[name].as_str().filter(|text| !text.is_empty());
        let number = |name: &str| match &params[name] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| wrong(&format!("`{name}` is a whole number, 0 or more"))),
        };
        let state = match text("status").filter(|status| *status != "TASK_STATE_UNSPECIFIED") {
            Some(name) => Some(State::parse(name).ok_or_else(|| wrong("`status` is no state of a task"))?),
            None => None,
        };
        let size = match number("pageSize")? {
            None | Some(0) => PAGE,
            Some(size) if size as usize <= PAGE_MAX => size as usize,
            Some(_) => return Err(wrong(&format!("`pageSize` is {PAGE_MAX} at most"))),
        };
        number("historyLength")?;
        let skip: usize = match text("pageToken") {
            Some(token) => token.parse().map_err(|_| wrong("`pageToken` is not one that was given here"))?,
            None => 0,
        };
        let since = text("statusTimestampAfter").map(|since| since.replace(' ', "T"));
        let artifacts = params["includeArtifacts"].as_bool().unwrap_or(false);
        let mut views: Vec<TaskView> = Vec::new();
        for row in self.sessions().await? {
            let id = TaskId { session: row.session, call: None };
            let Some(seen) = look(&self.door.gateway, self.who, &id).await? else { continue };
            let fits = text("contextId").is_none_or(|context| context == seen.view.context)
                && state.is_none_or(|state| state == seen.view.state)
                && since.as_ref().is_none_or(|since| seen.view.since > *since);
            if fits {
                views.push(seen.view);
            }
        }
        views.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.id.cmp(&b.id)));
        let page: Vec<String> =
            views.iter().skip(skip).take(size).map(|view| view.task(self.version, artifacts)).collect();
        let next = if skip + page.len() < views.len() { (skip + page.len()).to_string() } else { String::new() };
        let (count, total) = (page.len(), views.len());
        let tasks = page.join(",");
        let text = format!(
            "{{\"tasks\":[{tasks}],\"nextPageToken\":{},\"pageSize\":{},\"totalSize\":{total}}}",
            quoted(&next),
            if count == 0 { size } else { count }
        );
        Ok(Answer::Value(text))
    }

    /// The newest sessions of whoever asks that came through this door.
    async fn sessions(&self) -> Result<Vec<SessionRow>, Refused> {
        let ledger = &self.door.gateway.ledger;
        let tenant: Option<Tenant> = self.who.tenant();
        let rows = match &tenant {
            Some(tenant) => ledger.sessions_of(tenant, SESSIONS_MAX).await,
            None => ledger.sessions(SESSIONS_MAX).await,
        };
        let own = |row: &SessionRow| row.door == DOOR && row.principal == *self.who && row.machine.is_none();
        Ok(rows.map_err(|error| unavailable(&error))?.into_iter().filter(own).collect())
    }
}
