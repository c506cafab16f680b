//! `tools/call`: a call is handed to the session; what is said on its account goes out before its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{Refusal, RefusalKind, Way};
use amends_wire::mcp::steps::{Moved, session_of};
use amends_wire::mcp::{Era, Meta, Returned, ToolCall, tasks};
use amends_wire::message::Message;
use amends_wire::object::Object;
use amends_wire::scan::Scanned;
use tokio::task::JoinSet;

use super::{
    Answer, Asked, Client, Outbox, ProgressRelay, Question, Running, logging, render, render_protocol_error, waiting,
};
use crate::door::walk::{self, Asker, Came, Stray};
use crate::driver::{CallHandle, Listener, Wish};
use crate::upstream::{self, Aside, AsideSender, Asking, RpcFault, Said};

/// How long it may take to tell an upstream what the client answered, where nobody else says.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// Makes the call and waits for its answer.
pub(super) async fn call(client: Arc<Client>, asked: Asked, outbox: Outbox, mut running: Running) -> Option<Answer> {
    if let Some(wrapped) = client.wrapped() {
        wrapped.meet(&client, &asked).await;
    }
    if let Some(wrapped) = client.wrapped() {
        wrapped.list_first(&client, &asked).await;
    }
    let parsed = ToolCall::parse(asked.params.as_deref());
    let meta = parsed.as_ref().ok().and_then(|call| call.meta().ok());
    let params = asked.text().unwrap_or("{}");
    let dialect = amends_wire::mcp::call::dialect(params).unwrap_or(client.gateway.config().dialect);
    let traits = client.said(&asked).traits.speaking(dialect);
    let (asides_to, mut asides) = upstream::asides();
    let mut relay = relay(meta.as_ref(), &outbox);
    // Until the end of the call, its upstream says as much as is wanted.
    let _hearing = match &parsed {
        Ok(call) if outbox.is_open() => logging::hears(&client, &asked, call.name(), &asides_to).await,
        _ => None,
    };
    let listener = listener(&client, &asked, &outbox, relay.is_some(), asides_to);
    let own = parsed.as_ref().ok().and_then(|call| Some((call, walk::wanted(&client.gateway, call)?)));
    let mut instead = None;
    let handle = match (&parsed, Returned::read(params)) {
        (_, returned) if own.is_some() => {
            let (call, wanted) = own?;
            let own = client.own_walks(traits.era);
            let (gateway, principal, door) = (&client.gateway, &client.principal, client.door());
            let asker = Asker { gateway, principal, door, session: client.session(), own };
            let came = match returned {
                Ok(Some(returned)) => walk::return_to(&asker, call, params, &returned, listener).await,
                Ok(None) => walk::call(&asker, call, wanted, listener).await,
                Err(bad) => {
                    let refusal = Box::new(Refusal::of(RefusalKind::InvalidArgument, bad.to_string()));
                    walk::call(&asker, call, Err(refusal), listener).await
                }
            };
            match came {
                Came::Handed(handle, moved) => {
                    instead = moved;
                    if own.is_some_and(|own| own.last().as_ref() == Some(&handle.session().id)) {
                        client.walks(&handle.session().id);
                    }
                    handle
                }
                Came::Answered(answered) => {
                    let (message, code) = render(&asked.id, &answered, traits);
                    return Some(Answer { message, code, delivery: None, begun: None });
                }
            }
        }
        (Ok(call), Ok(Some(returned))) => client.session().go_on(params, call, &returned, listener).await,
        (Ok(call), Ok(None)) => 'handed: {
            let own = client.own_walks(traits.era);
            let (gateway, principal, door) = (&client.gateway, &client.principal, client.door());
            let asker = Asker { gateway, principal, door, session: client.session(), own };
            let listener = match walk::stray(&asker, call, listener).await {
                Stray::Passes(listener, moved) => {
                    instead = moved;
                    listener
                }
                Stray::Came(Came::Handed(handle, moved)) => {
                    instead = moved;
                    break 'handed handle;
                }
                Stray::Came(Came::Answered(answered)) => {
                    let (message, code) = render(&asked.id, &answered, traits);
                    return Some(Answer { message, code, delivery: None, begun: None });
                }
            };
            if let Some(decision) = meta.as_ref().and_then(|meta| meta.decision.as_ref()) {
                client.session().decide(decision).await;
            }
            client.session().call(Wish::Call { params, call }, listener)
        }
        (Ok(call), Err(bad)) => {
            let refusal = Refusal::of(RefusalKind::InvalidArgument, bad.to_string());
            let wish = Wish::Unreadable { requested: call.name().to_owned(), refusal: Box::new(refusal) };
            client.session().call(wish, Listener::of_the_answer())
        }
        (Err(error), _) => {
            instead = instead_of(&client, traits.era, params).await;
            client.session().call(unread(error.refusal()), Listener::of_the_answer())
        }
    };
    let mut open = Open(Some(handle));
    // Dropped with the call, it takes every question back.
    let mut questions = JoinSet::new();
    loop {
        let handle = open.0.as_mut()?;
        tokio::select! {
            biased;
            Some(aside) = asides.recv() => {
                if let Err(reason) = say(aside, &mut relay, &outbox, &mut running, &mut questions).await {
                    open.stop(reason, running);
                    return None;
                }
            }
            answer = &mut handle.answer => {
                let answer = answer.unwrap_or_else(|_| handle.broken());
                let handle = open.0.take();
                while let Ok(aside) = asides.try_recv() {
                    // Too late to be stopped: the answer is there, and its repeat would find it.
                    let _ = say(aside, &mut relay, &outbox, &mut running, &mut questions).await;
                }
                let answered = walk::dressed(&client.gateway, answer, instead.take());
                let (mut message, code) = render(&asked.id, &answered, traits);
                let mut begun = None;
                if tasks::wanted(params) {
                    if let Some((renamed, task)) = super::tasks::begun(&message, &client, &asked, &parsed) {
                        message = renamed;
                        begun = task.map(Box::new);
                    }
                    if let Some(person) = waiting::asked(&answered)
                        && let Some(task) = waiting::handle(&client, traits.era, &person).await
                    {
                        message = amends_wire::message::success(&asked.id, &task);
                    }
                }
                let delivery = answered.delivery.zip(handle).map(|(delivery, handle)| delivery.keeping(handle.session()));
                return Some(Answer { message, code, delivery, begun });
            }
            reason = running.stopped() => {
                open.stop(reason, running);
                return None;
            }
        }
    }
}

fn relay(meta: Option<&Meta<'_>>, outbox: &Outbox) -> Option<ProgressRelay> {
    let token = meta.and_then(|meta| meta.progress_token).filter(|_| outbox.is_open());
    token.map(|token| ProgressRelay::new(token.get().to_owned()))
}

/// What can be said to a client before its answer, and how it can be asked something.
fn listener(client: &Client, asked: &Asked, outbox: &Outbox, progress: bool, to: AsideSender) -> Listener {
    let said = client.said(asked);
    let way = match (said.traits.era, outbox.is_open()) {
        // A request that stands alone is answered with the questions, and comes back.
        (Era::Modern, _) => Way::Return,
        (Era::Legacy, true) => Way::Line,
        (Era::Legacy, false) => Way::Closed,
    };
    Listener {
        asides: outbox.is_open().then_some(to),
        progress,
        notes: logging::wanted(client, asked, said.traits.era).filter(|_| outbox.is_open()),
        way,
        capabilities: said.capabilities.map(|raw| raw.get().to_owned()),
        task: None,
        takes_tasks: client.wrapped().is_none() && asked.text().is_some_and(tasks::wanted),
    }
}

/// Passes on what is said, unless the client wants the call stopped before there is room for it.
async fn say(
    aside: Aside,
    relay: &mut Option<ProgressRelay>,
    outbox: &Outbox,
    running: &mut Running,
    questions: &mut JoinSet<()>,
) -> Result<(), CancelReason> {
    let line = match aside {
        Aside::Progress(progress) => relay.as_mut().and_then(|relay| relay.notification(&progress)),
        Aside::Notification { line, .. } => Some(line),
        Aside::Named(_) => None,
        Aside::Question(asking) => {
            // Put one after the other, so that they come in the order they were asked in, and waited for all at once.
            let put = tokio::select! {
                biased;
                put = outbox.ask(&asking.method, asking.params.as_deref()) => put,
                reason = running.stopped() => return Err(reason),
            };
            if let Some(question) = put {
                questions.spawn(answered(question, asking));
            }
            None
        }
    };
    let Some(line) = line else { return Ok(()) };
    tokio::select! {
        biased;
        _ = outbox.send(line) => Ok(()),
        reason = running.stopped() => Err(reason),
    }
}

/// Hands over what a client says to a question. One that nobody waits for any more is taken back.
pub(super) async fn answered(question: Question, asking: Asking) {
    let Asking { mut answer, withdrawn, .. } = asking;
    let message = tokio::select! {
        biased;
        message = question.answered(Some(withdrawn)) => message,
        () = answer.closed() => None,
    };
    let Some(message) = message else { return };
    let said = match Message::parse(&message) {
        Ok(Message::Success { result, .. }) => Ok(result.get().to_owned()),
        Ok(Message::Failure { error, .. }) => Err(RpcFault {
            code: error.code,
            message: error.message.into_owned(),
            data: error.data.map(|data| data.get().to_owned()),
        }),
        Ok(Message::Request { .. } | Message::Notification { .. }) | Err(_) => return,
    };
    let _ = answer.send(Said { answer: said, send_by: Instant::now() + TOLD_WITHIN });
}

/// A call that a client waits for. Dropped before its answer, it says that the client is gone.
struct Open(Option<CallHandle>);

impl Open {
    /// Stops the call. It still runs until it is settled, though nobody waits for its answer: its repeat finds it.
    fn stop(&mut self, reason: CancelReason, running: Running) {
        if let Some(handle) = self.0.take() {
            handle.cancel(reason);
            tokio::spawn(async move {
                let _ = handle.answer.await;
                drop(running);
            });
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.cancel(CancelReason::Disconnected);
        }
    }
}

/// Says no to a message that could not be read, and records that. What can be told of it says what may be done instead.
pub async fn refuse(client: &Client, scanned: &Scanned, code: i64, refusal: Refusal) -> String {
    let handle = client.session().call(unread(refusal), Listener::of_the_answer());
    let instead = match &scanned.tool {
        Some(tool) => instead(client, Era::Legacy, tool, scanned.session.as_deref()).await,
        None => walk::instead_here(&client.gateway, &client.principal, client.own_walks(Era::Legacy)).await,
    };
    match handle.answer.await {
        Ok(answered) => render_protocol_error(scanned.id(), code, &walk::dressed(&client.gateway, answered, instead)),
        Err(_) => amends_wire::message::failure(scanned.id(), code, "the message was refused", None),
    }
}

/// The same for a call that is not well formed, by what can be read of it.
async fn instead_of(client: &Client, era: Era, params: &str) -> Option<Box<Moved>> {
    let params = Object::parse(params);
    let Some(tool) = params.as_ref().and_then(|params| params.string("name")) else {
        return walk::instead_here(&client.gateway, &client.principal, client.own_walks(era)).await;
    };
    let session = session_of(params.as_ref().and_then(|params| params.get("arguments")));
    instead(client, era, &tool, session.as_deref()).await
}

/// What could be done instead of a call of that tool, where it is one of ours for machines.
async fn instead(client: &Client, era: Era, tool: &str, session: Option<&str>) -> Option<Box<Moved>> {
    walk::instead(&client.gateway, &client.principal, client.own_walks(era), tool, session).await
}

/// A wish that could not be read.
fn unread(refusal: Refusal) -> Wish<'static> {
    Wish::Unreadable { requested: String::new(), refusal: Box::new(refusal) }
}
