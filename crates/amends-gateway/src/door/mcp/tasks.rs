//! Tasks of upstreams: their handles, what clients ask about them, and how they are, in the era of each side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::Principal;
use amends_wire::mcp::tasks::{self, Came};
use amends_wire::mcp::{CallError, Era, ToolCall, era};
use amends_wire::message::{self, Message};
use amends_wire::object::Object;
use amends_wire::splice::Splice;

use super::forward::{self, forward};
use super::methods::ASK_TIMEOUT;
use super::{Answer, Asked, Client, Outbox, waiting};
use crate::gateway::Gateway;
use crate::router::task;
use crate::upstream::{Reply, Request, RpcFault, Upstream};

/// How often a task of the stateless era is looked at for a client that waits for its result, where nothing else is said.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_SOON: Duration = Duration::from_millis(50);
const LOOK_LATE: Duration = Duration::from_secs(10);
/// How long an upstream may take to say what came of a task that is over.
const CAME_TIMEOUT: Duration = Duration::from_secs(30);

/// A task that a client with a session is being told of.
#[derive(Debug)]
pub struct Begun {
    client: Arc<Client>,
    upstream: Arc<Upstream>,
    id: String,
    given: String,
}

impl Begun {
    /// The client has been told of it, and hears how it is from now on.
    pub fn told(self) {
        let Self { client, upstream, id, given } = self;
        client.gateway.hub.begun(client.mailbox(), &upstream, &id, &given);
    }
}

/// An answer that is the handle of a task, in the client's shape and with an id of ours, by which it finds its upstream again;
/// nothing where it is none.
pub(super) fn begun(
    message: &str,
    client: &Arc<Client>,
    asked: &Asked,
    call: &Result<ToolCall<'_>, CallError>,
) -> Option<(String, Option<Begun>)> {
    let Ok(Message::Success { result, .. }) = Message::parse(message) else { return None };
    if client.wrapped().is_some() || !tasks::is_handle(result.get()) {
        return None;
    }
    let tool = client.gateway.catalogue.now().find(call.as_ref().ok()?.name()).cloned()?;
    let (upstream, era) = (tool.upstream.clone(), client.era(asked));
    let theirs = handle_id(result.get())?;
    let given = give(&client.gateway, &client.principal, &upstream, &theirs);
    let shaped = tasks::handle_in(result.get(), era);
    let renamed = tasks::renamed(shaped.as_deref().unwrap_or(result.get()), |_| given.clone());
    let mut splice = Splice::new(message);
    splice.replace(result.get(), renamed).ok()?;
    // Without a session nobody hears anything that was not asked for.
    let begun = (era == Era::Legacy).then(|| Begun { client: client.clone(), upstream, id: theirs, given });
    Some((splice.finish(), begun))
}

/// The id in a handle, in either era's shape.
fn handle_id(result: &str) -> Option<String> {
    let object = Object::parse(result)?;
    let nested = object.get("task").and_then(|task| Object::parse(task.get()));
    nested.as_ref().unwrap_or(&object).string("taskId").map(|id| id.into_owned())
}

/// The id under which a principal knows a task.
fn give(gateway: &Gateway, principal: &Principal, upstream: &Upstream, id: &str) -> String {
    task::give(&gateway.secret, principal, &upstream.name, id)
}

/// The upstream of a task that was given to that principal, and its own id of it; nothing where it was not.
pub(super) fn known(client: &Client, given: &str) -> Option<(Arc<Upstream>, String)> {
    let (upstream, id) = task::take(&client.gateway.secret, &client.principal, given)?;
    Some((client.gateway.upstreams().get(&upstream)?.clone(), id))
}

/// Passes a request about a task on to where the task is, under the id it has there.
pub(super) async fn pass(client: &Client, asked: &Asked, outbox: &Outbox) -> Answer {
    let given = tasks::id(asked.params.as_deref());
    let named = given.as_deref().and_then(|given| task::take(&client.gateway.secret, &client.principal, given));
    if let Some((_, id)) = named.filter(|(upstream, _)| upstream.as_str() == waiting::OWN) {
        return waiting::answer(client, asked, &id).await;
    }
    let found = given.as_deref().and_then(|given| known(client, given));
    let (Some((upstream, id)), Some(given), Some(params)) = (found, given, asked.text()) else {
        return Answer::error(asked, message::INVALID_PARAMS, "there is no such task", None);
    };
    let params = tasks::with_id(params, &id);
    let reply = forward(client, asked, outbox, &upstream, Some(&params), Some(id.clone())).await;
    let about = About { client, asked, upstream: &upstream, id: &id, given: &given };
    about.answer(reply).await
}

/// A request about a task.
struct About<'a> {
    client: &'a Client,
    asked: &'a Asked,
    upstream: &'a Arc<Upstream>,
    id: &'a str,
    given: &'a str,
}

impl About<'_> {
    /// The answer to it, in the words of the client's era whichever its upstream's are.
    async fn answer(&self, reply: Reply) -> Answer {
        let era = self.client.era(self.asked);
        let reply = match (self.asked.method.as_str(), era, reply) {
            // In the stateless era a task says itself what came of it, and nobody waits for that.
            ("tasks/result", _, Reply::Error(error)) if error.code == message::METHOD_NOT_FOUND => self.awaited().await,
            ("tasks/cancel", Era::Legacy, Reply::Result(result)) if task_id(&result).is_none() => self.look().await,
            ("tasks/cancel", Era::Modern, Reply::Result(result)) if task_id(&result).is_some() => {
                Reply::Result("{}".into())
            }
            (_, _, reply) => reply,
        };
        let text = match reply {
            Reply::Result(result) => String::from_utf8_lossy(&result).into_owned(),
            reply => return forward::failed(self.client, self.asked, self.upstream, reply),
        };
        let config = self.client.gateway.config();
        let mut text = config.pii.shared().task(&text).unwrap_or(text);
        if self.asked.method == "tasks/get" {
            text = self.told(text, era).await;
        }
        if era == Era::Legacy && self.asked.method != "tasks/result" {
            text = tasks::told_in(&text, era);
            self.follow(&text);
        }
        let text = match era {
            Era::Modern => era::stamped(&text, &self.asked.method, era),
            // What a task is kept for is no stamp.
            Era::Legacy if self.asked.method == "tasks/result" => era::unstamped(&text),
            Era::Legacy => text,
        };
        Answer::result(self.asked, &tasks::renamed(&text, |_| self.given.to_owned()))
    }

    /// A task as its client's era tells it.
    async fn told(&self, task: String, era: Era) -> String {
        match era {
            Era::Legacy => task,
            Era::Modern => whole(self.client, self.upstream, self.id, task).await,
        }
    }

    /// A client with a session that asks about a task hears how it is, from now on.
    fn follow(&self, task: &str) {
        let over = tasks::status_of(task).is_none_or(|status| tasks::is_over(&status));
        if !over {
            self.client.gateway.hub.hears_of(self.client.mailbox(), self.upstream, self.id, self.given);
        }
    }

    /// How the task is at its upstream.
    async fn look(&self) -> Reply {
        ask(self.upstream, "tasks/get", self.id).await
    }

    /// The result of a task of the stateless era, once it is over.
    async fn awaited(&self) -> Reply {
        let until = Instant::now() + ASK_TIMEOUT;
        // Ends with the task, or when nobody waits that long.
        loop {
            let task = match self.look().await {
                Reply::Result(task) => String::from_utf8_lossy(&task).into_owned(),
                reply => return reply,
            };
            match tasks::came(&task) {
                Some(Came::Result(result)) => return Reply::Result(tasks::related(&result, self.id).into()),
                Some(Came::Error(error)) => return Reply::Error(fault(&error)),
                None => {}
            }
            let (code, data) = (message::INTERNAL_ERROR, None);
            if tasks::status_of(&task).is_none_or(|status| tasks::is_over(&status)) {
                return Reply::Error(RpcFault { code, message: "the task ended without a result".into(), data });
            }
            if Instant::now() >= until {
                return Reply::Error(RpcFault { code, message: "the task is not over".into(), data });
            }
            tokio::time::sleep(pace(&task)).await;
        }
    }
}

/// How long to leave a task alone, as it says itself.
fn pace(task: &str) -> Duration {
    let said = Object::parse(task).and_then(|task| task.get("pollIntervalMs")?.get().parse().ok());
    said.map_or(LOOK_EVERY, Duration::from_millis).clamp(LOOK_SOON, LOOK_LATE)
}

fn task_id(result: &[u8]) -> Option<String> {
    Object::parse(std::str::from_utf8(result).ok()?)?.string("taskId").map(|id| id.into_owned())
}

/// What a listener is told of a task, with what came of it.
pub(super) async fn whole_line(client: &Client, line: &str) -> String {
    let Ok(Message::Notification { params: Some(params), .. }) = Message::parse(line) else { return line.to_owned() };
    let Some(given) = tasks::id(Some(params)) else { return line.to_owned() };
    let Some((upstream, id)) = known(client, &given) else { return line.to_owned() };
    let whole = with_what_came(client, &upstream, &id, params.get().to_owned()).await;
    let mut splice = Splice::new(line);
    match splice.replace(params.get(), whole) {
        Ok(()) => splice.finish(),
        Err(_) => line.to_owned(),
    }
}

/// A task in the words of the stateless era, with what came of it, where its upstream tells that only when it is asked.
pub(super) async fn whole(client: &Client, upstream: &Upstream, id: &str, task: String) -> String {
    if tasks::is_told_in(&task, Era::Modern) {
        return task;
    }
    with_what_came(client, upstream, id, tasks::told_in(&task, Era::Modern)).await
}

async fn with_what_came(client: &Client, upstream: &Upstream, id: &str, told: String) -> String {
    let status = tasks::status_of(&told).unwrap_or_default();
    // One of the stateless era said so itself.
    let silent = matches!(status.as_str(), "completed" | "failed") && tasks::came(&told).is_none();
    if !silent || upstream.era() == Some(Era::Modern) {
        return told;
    }
    let came = match ask(upstream, "tasks/result", id).await {
        Reply::Result(result) => {
            let result = String::from_utf8_lossy(&result).into_owned();
            let shown = client.gateway.config().pii.shared().task(&result);
            Came::Result(era::stamped(&shown.unwrap_or(result), "tools/call", Era::Modern))
        }
        Reply::Error(error) => Came::Error(written(&error)),
        Reply::Fault(fault) => {
            let message = format!("`{}` did not say what came of it: {fault}", upstream.name);
            Came::Error(written(&RpcFault { code: message::INTERNAL_ERROR, message, data: None }))
        }
    };
    tasks::with_came(&told, &came)
}

/// Asks an upstream about a task of its own, on nobody's line.
async fn ask(upstream: &Upstream, method: &str, id: &str) -> Reply {
    let params = tasks::with_id("{}", id);
    let params = match upstream.era() {
        Some(Era::Modern) => era::with_own_meta(Some(&params), era::MODERN),
        _ => params,
    };
    let request = Request {
        method: method.to_owned(),
        subject: Some(id.to_owned()),
        params: Some(params),
        headers: Vec::new(),
        asides: None,
        send_by: Instant::now() + CAME_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    let late = || Reply::Fault(crate::upstream::Fault::Lost);
    tokio::time::timeout(CAME_TIMEOUT, exchange.reply()).await.unwrap_or_else(|_| late())
}

fn written(error: &RpcFault) -> String {
    let mut written = serde_json::json!({ "code": error.code, "message": error.message });
    if let Some(data) = error.data.as_deref().and_then(|data| serde_json::from_str(data).ok()) {
        written["data"] = data;
    }
    written.to_string()
}

fn fault(error: &str) -> RpcFault {
    let error = Object::parse(error);
    let part = |name: &str| error.as_ref().and_then(|error| error.get(name)).map(|raw| raw.get().to_owned());
    let said = error.as_ref().and_then(|error| error.string("message")).map(|said| said.into_owned());
    RpcFault {
        code: part("code").and_then(|code| code.parse().ok()).unwrap_or(message::INTERNAL_ERROR),
        message: said.unwrap_or_else(|| "the task failed".to_owned()),
        data: part("data"),
    }
}
