//! Looking at a task: what its id is good for after the line to it was lost, or the process that had it died.

use std::time::{Duration, Instant};

use amends_wire::a2a::State;
use amends_wire::a2a::agent::{Method, Task, is_gone};
use amends_wire::object::quoted;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::line::{self, Heard};
use super::{Known, Shared, failure, soon};
use crate::upstream::exchange::{AgentFault, Fault, Reply};
use crate::upstream::http::pool::Departure;

/// How often a task is looked at: twice as late each time, up to the last.
pub(super) const LOOK_AFTER: Duration = Duration::from_millis(200);
pub(super) const LOOK_AFTER_MAX: Duration = Duration::from_secs(3);

/// Looks at a task once.
pub(super) async fn get(shared: &Shared, known: &Known, id: &str, send_by: Instant) -> Result<Task, Fault> {
    let params = format!("{{\"id\":{}}}", quoted(id));
    let departure = Departure::default();
    let asked = line::call(shared, known, Method::Get, &params, send_by, &departure);
    let heard = tokio::time::timeout(line::WITHIN, asked).await.map_err(|_| Fault::Lost)??;
    match heard {
        Heard::Result(result) => Task::read(&result).ok_or_else(|| Fault::Unreadable { start: String::new() }),
        Heard::Error(error) => Err(Fault::Agent(AgentFault::Error(error))),
        Heard::Stream(_) => Err(Fault::Unreadable { start: String::new() }),
    }
}

/// `get_task`: where a task is, and whether what it should do was done. With `wait` it is answered once the task is over or waits for somebody.
pub(super) async fn look(
    shared: &Shared,
    known: &Known,
    arguments: &str,
    send_by: Instant,
    mut abort: oneshot::Receiver<()>,
) -> Reply {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let Some(id) = arguments["id"].as_str().filter(|id| !id.is_empty()) else {
        return failure(amends_wire::message::INVALID_PARAMS, "`id` names the task".into());
    };
    let waits = arguments["wait"].as_bool().unwrap_or(false);
    let mut after = LOOK_AFTER;
    let mut first = Some(send_by);
    loop {
        let task = tokio::select! {
            task = get(shared, known, id, first.take().unwrap_or_else(soon)) => task,
            _ = &mut abort => return Reply::Fault(Fault::Lost),
        };
        let task = match task {
            Ok(task) => task,
            Err(Fault::Agent(AgentFault::Error(error))) => {
                let data: Value =
                    error.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
                // One that is not known any more may have been done, or not.
                return match is_gone(error.code, &data) {
                    true => Reply::Result(
                        json!({ "content": [], "structuredContent": { "id": id, "known": false, "happened": false } })
                            .to_string()
                            .into(),
                    ),
                    false => Reply::Fault(Fault::Agent(AgentFault::Error(error))),
                };
            }
            Err(fault) => return Reply::Fault(fault),
        };
        // One that waits for somebody may wait for ever.
        let over = task.state.is_some_and(|state| state.is_terminal() || state.is_interrupted());
        if over || !waits {
            return Reply::Result(told(&task).to_string().into());
        }
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            _ = &mut abort => return Reply::Result(told(&task).to_string().into()),
        }
        after = (after * 2).min(LOOK_AFTER_MAX);
    }
}

/// A task as the result of a look. `happened` is there where its state tells.
fn told(task: &Task) -> Value {
    let result = task.result();
    let state = task.state.map(|state| state.name(amends_wire::a2a::Version::V1));
    let mut said = json!({ "id": task.id, "context": task.context, "known": true, "state": state });
    match task.state {
        Some(State::Completed) => said["happened"] = true.into(),
        // It did not do what it should, and nothing more will be known by looking. Whether it did a part of it is not said.
        Some(State::Failed | State::Canceled | State::Rejected | State::InputRequired | State::AuthRequired) => {
            said["happened"] = false.into();
        }
        Some(State::Submitted | State::Working) | None => {}
    }
    if let Some(given) = result.get("structuredContent") {
        said["result"] = given.clone();
    }
    let mut content = result["content"].clone();
    if content.as_array().is_none_or(Vec::is_empty) {
        content = json!([{ "type": "text", "text": said.to_string() }]);
    }
    json!({ "content": content, "structuredContent": said })
}
