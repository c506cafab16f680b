//! A call that waits for a person, as a task, for a client that asked for one or understands them.
//!
//! Nothing is kept of a task: it is its call, and where it stands is what the trace says. So whichever process is asked says the same,
//! also after a restart.

use std::time::Duration;

use amends_core::envelope::{Body, Trouble};
use amends_core::{
    CallId, Envelope, Fact, InteractionId, Principal, Refusal, RefusalKind, SessionId, Timestamp, ToolName,
};
use amends_ledger::{Error, StoredAnswer};
use amends_wire::a2a::{State, life};
use amends_wire::mcp::{Era, tasks};
use amends_wire::message::{self, Message};
use amends_wire::splice::Splice;
use serde_json::{Value, json};

use super::{Answer, Asked, Client, render};
use crate::driver::{self, Answered, Form, Rendered};
use crate::gateway::Gateway;
use crate::router::task;
use crate::told::utc;

/// What stands for an upstream in the names of tasks of our own. No upstream has that name.
pub(super) const OWN: &str = "";
/// How often a client had better look.
const POLL_MS: u64 = 2_000;
/// How often a task is looked at while a client waits for its end.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// For how long a client that wants a task stopped waits for that to be so.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// A task: a call of a session.
struct Named {
    session: SessionId,
    call: CallId,
}

/// A task as it is seen now.
struct Seen {
    state: State,
    begun: Timestamp,
    since: Timestamp,
    tool: ToolName,
    /// Whom it waits for, in words.
    waits: Option<String>,
    refusal: Option<Refusal>,
    stored: Option<StoredAnswer>,
}

/// Whether an answer says that a person is asked, and by which question.
pub(super) fn asked(answered: &Answered) -> Option<InteractionId> {
    let Form::Envelope { envelope, .. } = &answered.rendered.form else { return None };
    let error = envelope.error().filter(|error| error.kind == RefusalKind::AwaitingPerson.as_str())?;
    error.interaction.clone()
}

/// The handle of the call that a question is about, in the shape of the client's era; nothing where it is not the client's.
pub(super) async fn handle(client: &Client, era: Era, asked: &InteractionId) -> Option<String> {
    let entry = client.gateway.ledger.interaction(asked).await.ok().flatten()?;
    let interaction = entry.interaction;
    let named = Named { session: interaction.session, call: interaction.call };
    let seen = look(&client.gateway, &client.principal, &named).await.ok().flatten()?;
    let task = shown(&seen, &given(client, &named), era);
    Some(match era {
        Era::Legacy => json!({ "task": task }).to_string(),
        Era::Modern => {
            let mut flat = task;
            flat["resultType"] = json!("task");
            flat.to_string()
        }
    })
}

/// Answers a request about a task of our own.
pub(super) async fn answer(client: &Client, asked: &Asked, id: &str) -> Answer {
    let unknown = || Answer::error(asked, message::INVALID_PARAMS, "there is no such task", None);
    let Some((session, call)) = id.split_once('.') else { return unknown() };
    let named = Named { session: SessionId::new(session), call: CallId::new(call) };
    let era = client.era(asked);
    let gateway = &client.gateway;
    let ended = match asked.method.as_str() {
        "tasks/result" => until_over(client, &named, None).await,
        "tasks/cancel" => match driver::stop(gateway, &named.session, &named.call).await {
            Ok(_) => until_over(client, &named, Some(STOPS_WITHIN)).await,
            Err(error) => Err(error),
        },
        _ => look(gateway, &client.principal, &named).await,
    };
    let seen = match ended {
        Ok(Some(seen)) => seen,
        Ok(None) => return unknown(),
        Err(error) => {
            tracing::warn!(%error, "a task could not be looked at");
            return Answer::error(asked, message::INTERNAL_ERROR, "the ledger cannot be read; ask again", None);
        }
    };
    let given = given(client, &named);
    match (asked.method.as_str(), era) {
        ("tasks/result", _) => Answer::result(asked, &related(&result(client, asked, &seen), &given)),
        ("tasks/get" | "tasks/cancel", Era::Legacy) => Answer::result(asked, &shown(&seen, &given, era).to_string()),
        ("tasks/get", Era::Modern) => {
            let mut task = shown(&seen, &given, era);
            task["resultType"] = json!("complete");
            if task["status"] == "completed" {
                task["result"] = serde_json::from_str(&result(client, asked, &seen)).unwrap_or(Value::Null);
            }
            Answer::result(asked, &task.to_string())
        }
        // Nobody waits for what the client could bring, and that it is stopped is looked for with `tasks/get`.
        _ => Answer::result(asked, r#"{"resultType":"complete"}"#),
    }
}

/// The id under which a client knows a task of ours.
fn given(client: &Client, named: &Named) -> String {
    let own = amends_core::UpstreamName::new(OWN);
    task::give(&client.gateway.secret, &client.principal, &own, &format!("{}.{}", named.session, named.call))
}

async fn until_over(client: &Client, named: &Named, within: Option<Duration>) -> Result<Option<Seen>, Error> {
    let began = tokio::time::Instant::now();
    loop {
        let seen = look(&client.gateway, &client.principal, named).await?;
        let over = seen.as_ref().is_none_or(|seen| seen.state.is_terminal());
        if over || within.is_some_and(|within| began.elapsed() >= within) {
            return Ok(seen);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Looks at a task; nothing where there is none, or it is another's.
async fn look(gateway: &Gateway, who: &Principal, named: &Named) -> Result<Option<Seen>, Error> {
    let Some(trace) = gateway.ledger.trace(&named.session).await? else { return Ok(None) };
    let events = || trace.events.iter().map(|stored| &stored.event);
    let Some(life) = life(events(), Some(&named.call)).filter(|life| life.principal == who) else { return Ok(None) };
    let received = events().find_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } if received.call == named.call => Some(event.at),
        _ => None,
    });
    Ok(Some(Seen {
        state: life.state,
        begun: received.unwrap_or(life.since),
        since: life.since,
        tool: life.tool.clone(),
        waits: life.asks.map(|asks| asks.question.clone()),
        refusal: life.refusal.cloned(),
        stored: gateway.ledger.answer(&named.call).await?,
    }))
}

/// A task in the words of an era. In the stateless one, `input_required` says what the client itself has to bring.
fn shown(seen: &Seen, id: &str, era: Era) -> Value {
    let status = match (seen.state, era) {
        (State::Submitted | State::Working, _) => "working",
        (State::InputRequired | State::AuthRequired, Era::Legacy) => "input_required",
        (State::InputRequired | State::AuthRequired, Era::Modern) => "working",
        (State::Completed, _) => "completed",
        (State::Canceled, _) => "cancelled",
        // What a tool answers is the end of its task, whatever it says.
        (State::Failed | State::Rejected, Era::Modern) => "completed",
        (State::Failed | State::Rejected, Era::Legacy) => "failed",
    };
    let time = |at: Timestamp| format!("{}Z", utc(at).replace(' ', "T"));
    let mut task = json!({
        "taskId": id,
        "status": status,
        "createdAt": time(seen.begun),
        "lastUpdatedAt": time(seen.since),
    });
    if let Some(waits) = &seen.waits {
        task["statusMessage"] = json!(format!("a person is asked: {waits}"));
    }
    let (ttl, poll) = match era {
        Era::Legacy => ("ttl", "pollInterval"),
        Era::Modern => ("ttlMs", "pollIntervalMs"),
    };
    task[ttl] = Value::Null;
    task[poll] = json!(POLL_MS);
    task
}

/// What the call gave, as it would have been answered.
fn result(client: &Client, asked: &Asked, seen: &Seen) -> String {
    let tool = seen.tool.as_str();
    let envelope = |refusal: &Refusal| {
        let error = Box::new(Trouble::refused(tool, refusal));
        let form = Form::Envelope { envelope: Box::new(Envelope::of(Body::Refused { error })), payload: None };
        Rendered { form, replayed: false }
    };
    let rendered = match (&seen.stored, &seen.refusal) {
        (Some(stored), _) => driver::fetched(stored),
        (None, Some(refusal)) => envelope(refusal),
        (None, None) => {
            let words = format!("`{tool}` is over; what it gave is not kept any more");
            envelope(&Refusal::of(RefusalKind::StaleState, words))
        }
    };
    let declares_output = client.gateway.catalogue.now().find(tool).is_some_and(|tool| tool.output.is_some());
    let answered = Answered { rendered, receipt: None, last: true, delivery: None, declares_output };
    let traits = client.said(asked).traits.speaking(client.gateway.config().dialect);
    let (text, _) = render("0", &answered, traits);
    match Message::parse(&text) {
        Ok(Message::Success { result, .. }) => result.get().to_owned(),
        _ => "{}".to_owned(),
    }
}

/// A result that says of which task it is.
fn related(result: &str, id: &str) -> String {
    let meta = amends_wire::object::Object::parse(result).and_then(|result| result.get("_meta"));
    let of = json!({ "taskId": id }).to_string();
    let whole = match meta {
        Some(meta) => {
            let mut splice = Splice::new(meta.get());
            splice.set_member(meta.get(), tasks::RELATED, of).map(|()| splice.finish()).ok()
        }
        None => Some(json!({ tasks::RELATED: { "taskId": id } }).to_string()),
    };
    let mut splice = Splice::new(result);
    match whole.map(|meta| splice.set_member(result, "_meta", meta)) {
        Some(Ok(())) => splice.finish(),
        _ => result.to_owned(),
    }
}
