//! Agents that are called back: where, and when.
//!
//! What agents registered is kept by this process alone. Whoever depends on it looks at its tasks after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amends_core::Principal;
use amends_wire::a2a::message::Incoming;
use amends_wire::a2a::version::CURRENT;
use amends_wire::a2a::{Refused, Trouble, Version};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method as Verb, Request, Uri};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Asker;
use super::follow::{Ear, Manner, tell, wait};
use super::methods::Answer;
use super::task::{TaskId, look};
use crate::config::Access;
use crate::gateway::Gateway;
use crate::mint;
use crate::upstream::http::pool as connections;
use crate::upstream::http::pool::Departure;

/// How many addresses one task, and all of them, may have.
const OF_TASK_MAX: usize = 8;
const ALL_MAX: usize = 10_000;
const TEXT_BYTES_MAX: usize = 2_048;
/// How long whoever is called may take, and how often it is tried.
const WITHIN: Duration = Duration::from_secs(10);
const TRIES: u32 = 4;
/// The header with the agent's own token.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// Whom agents have called back, by task.
#[derive(Debug, Default)]
pub(in crate::door::http) struct Pushes(Mutex<HashMap<TaskId, Vec<Push>>>);

/// One address of one task. Dropped, nobody is called any more.
#[derive(Debug)]
struct Push {
    config: Config,
    caller: AbortHandle,
}

impl Drop for Push {
    fn drop(&mut self) {
        self.caller.abort();
    }
}

/// Where an agent is called back.
#[derive(Clone, Debug)]
pub(super) struct Config {
    id: String,
    url: String,
    token: Option<String>,
    /// A scheme, and what is shown under it.
    authentication: Option<(String, String)>,
}

impl Pushes {
    fn held(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<Push>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Config {
    fn read(given: &Value, allowed: &[String]) -> Result<Self, Refused> {
        let wrong = |words: &str| Refused::of(Trouble::InvalidParams, words);
        let text = |value: &Value| match value {
            Value::Null => Ok(None),
            Value::String(text) if text.len() > TEXT_BYTES_MAX => Err(wrong("a text is too long")),
            Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            _ => Err(wrong("a text is needed")),
        };
        let url = text(&given["url"])?.ok_or_else(|| wrong("`url` says where to call"))?;
        if !allowed.iter().any(|prefix| url.starts_with(prefix.as_str()))
            || url.contains('@')
            || url.parse::<Uri>().is_err()
        {
            let words = "nobody is called at that address from here; see `a2a.push`";
            return Err(Refused::of(Trouble::PushNotSupported, words));
        }
        let shown = &given["authentication"];
        // 0.3 had a list of schemes.
        let scheme = text(&shown["scheme"])?.or_else(|| shown["schemes"][0].as_str().map(str::to_owned));
        let authentication = scheme.zip(text(&shown["credentials"])?);
        let id = text(&given["id"])?.unwrap_or_else(|| format!("push_{}", mint::token()));
        Ok(Self { id, url, token: text(&given["token"])?, authentication })
    }

    /// It in the words of that version. What is shown to whoever is called is not shown again.
    fn json(&self, task: &str, version: Version) -> String {
        let mut config = json!({ "id": self.id, "url": self.url });
        if let Some(token) = &self.token {
            config["token"] = token.as_str().into();
        }
        match version {
            Version::V1 => {
                if let Some((scheme, _)) = &self.authentication {
                    config["authentication"] = json!({ "scheme": scheme });
                }
                config["taskId"] = task.into();
                config.to_string()
            }
            Version::V03 => {
                if let Some((scheme, _)) = &self.authentication {
                    config["authentication"] = json!({ "schemes": [scheme] });
                }
                json!({ "taskId": task, "pushNotificationConfig": config }).to_string()
            }
        }
    }
}

impl Asker<'_> {
    /// Where the task of a message is to be told of.
    pub(super) fn read_push(&self, incoming: &Incoming<'_>) -> Result<Option<Config>, Refused> {
        let Some(raw) = incoming.push else { return Ok(None) };
        let given: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        Config::read(&given, &self.allowed()?).map(Some)
    }

    /// Calls back from now on.
    pub(super) fn keep_push(&self, task: &TaskId, config: Option<Config>) {
        if let Some(config) = config {
            // There is room for the first of a task, unless there is none at all.
            let _ = self.register(task, config);
        }
    }

    fn allowed(&self) -> Result<Vec<String>, Refused> {
        let allowed = self.door.gateway.config().a2a.push.clone();
        if allowed.is_empty() {
            return Err(Refused::of(Trouble::PushNotSupported, "nobody is called back from here; see `a2a.push`"));
        }
        Ok(allowed)
    }

    fn register(&self, task: &TaskId, config: Config) -> Result<(), Refused> {
        let mut held = self.door.pushes.held();
        if held.values().map(Vec::len).sum::<usize>() >= ALL_MAX {
            // What was told to its end is only there to be looked at.
            held.retain(|_, own| {
                own.retain(|push| !push.caller.is_finished());
                !own.is_empty()
            });
        }
        let all: usize = held.values().map(Vec::len).sum();
        let own = held.entry(task.clone()).or_default();
        own.retain(|push| push.config.id != config.id);
        if own.len() >= OF_TASK_MAX || all >= ALL_MAX {
            let words = "there are too many addresses to call";
            return Err(Refused::of(Trouble::UnsupportedOperation, words));
        }
        let (gateway, who) = (self.door.gateway.clone(), self.who.clone());
        let called = call_back(gateway, who, task.clone(), config.clone(), self.version);
        let caller = tokio::spawn(called);
        own.push(Push { config, caller: caller.abort_handle() });
        Ok(())
    }

    pub(super) async fn push_create(&self, params: &RawValue) -> Result<Answer, Refused> {
        let allowed = self.allowed()?;
        let (params, task) = self.push_task(params).await?;
        let given = match self.version {
            Version::V1 => &params,
            Version::V03 => &params["pushNotificationConfig"],
        };
        let config = Config::read(given, &allowed)?;
        let text = config.json(&task.text(), self.version);
        self.register(&task, config)?;
        Ok(Answer::Value(text))
    }

    pub(super) async fn push_get(&self, params: &RawValue) -> Result<Answer, Refused> {
        self.allowed()?;
        let (params, task) = self.push_task(params).await?;
        let wanted = push_id(&params);
        let held = self.door.pushes.held();
        let own = held.get(&task).into_iter().flatten();
        let found = own.into_iter().find(|push| wanted.as_ref().is_none_or(|id| *id == push.config.id));
        match found {
            Some(push) => Ok(Answer::Value(push.config.json(&task.text(), self.version))),
            None => Err(Refused::of(Trouble::TaskNotFound, "nobody is called under that id")),
        }
    }

    pub(super) async fn push_list(&self, params: &RawValue) -> Result<Answer, Refused> {
        self.allowed()?;
        let (_, task) = self.push_task(params).await?;
        let held = self.door.pushes.held();
        let own = held.get(&task).into_iter().flatten();
        let configs: Vec<String> = own.map(|push| push.config.json(&task.text(), self.version)).collect();
        let configs = configs.join(",");
        Ok(Answer::Value(match self.version {
            Version::V1 => format!("{{\"configs\":[{configs}]}}"),
            Version::V03 => format!("[{configs}]"),
        }))
    }

    pub(super) async fn push_delete(&self, params: &RawValue) -> Result<Answer, Refused> {
        self.allowed()?;
        let (params, task) = self.push_task(params).await?;
        let id = push_id(&params).ok_or_else(|| Refused::of(Trouble::InvalidParams, "`id` says which address"))?;
        if let Some(own) = self.door.pushes.held().get_mut(&task) {
            own.retain(|push| push.config.id != id);
        }
        Ok(Answer::Value(match self.version {
            Version::V1 => "{}".to_owned(),
            Version::V03 => "null".to_owned(),
        }))
    }

    /// The task that parameters are about, which must be of whoever asks.
    async fn push_task(&self, params: &RawValue) -> Result<(Value, TaskId), Refused> {
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        // 0.3 named the task by `id` where it asked for an address.
        let named = params["taskId"].as_str().or_else(|| params["id"].as_str());
        let named = named.ok_or_else(|| Refused::of(Trouble::InvalidParams, "`taskId` names the task"))?;
        let task = TaskId::parse(named);
        look(&self.door.gateway, self.who, &task).await?.ok_or_else(|| task.unknown())?;
        Ok((params, task))
    }
}

fn push_id(params: &Value) -> Option<String> {
    let old = params["pushNotificationConfigId"].as_str();
    let new = params["taskId"].as_str().and_then(|_| params["id"].as_str());
    old.or(new).map(str::to_owned)
}

/// Calls at each change of a task, until it is over.
async fn call_back(gateway: Arc<Gateway>, who: Principal, task: TaskId, config: Config, version: Version) {
    let mut ear = Ear::open(&gateway);
    let Ok(first) = wait(&gateway, &who, &task, &mut ear, None, |_| true).await else { return };
    let (to, mut changes) = mpsc::channel(16);
    let manner = Manner { version, ends_asking: false };
    let telling = tell(gateway, who, first, ear, manner, to);
    let calling = async {
        while let Some(change) = changes.recv().await {
            if !post(&config, change).await {
                tracing::warn!(url = config.url, "an agent could not be called back");
                return;
            }
        }
    };
    tokio::join!(telling, calling);
}

/// Posts one change; `false` where nobody took it.
async fn post(config: &Config, body: String) -> bool {
    for n in 0..TRIES {
        if n > 0 {
            tokio::time::sleep(Duration::from_millis(250 << (2 * n))).await;
        }
        if matches!(tokio::time::timeout(WITHIN, posted(config, body.clone())).await, Ok(Some(true))) {
            return true;
        }
    }
    false
}

async fn posted(config: &Config, body: String) -> Option<bool> {
    let uri: Uri = config.url.parse().ok()?;
    let pool = connections(&uri, &Access::default()).ok()?;
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Verb::POST;
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(uri.authority()?.as_str()).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/a2a+json"));
    headers.insert(VERSION, HeaderValue::from_static(CURRENT));
    if let Some(token) = &config.token {
        headers.insert(TOKEN, HeaderValue::from_str(token).ok()?);
    }
    if let Some((scheme, credentials)) = &config.authentication {
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("{scheme} {credentials}")).ok()?);
    }
    let sent = pool.send(request, Instant::now() + WITHIN, &Departure::default()).await.ok()?;
    Some(sent.response.status().is_success())
}
