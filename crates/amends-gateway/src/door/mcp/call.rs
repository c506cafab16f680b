//! `tools/call`: a call is handed to the session, its progress goes out before its answer.

use std::sync::Arc;

use amends_core::Refusal;
use amends_core::dispatcher::cancel::CancelReason;
use amends_wire::mcp::ToolCall;
use tokio::sync::mpsc;

use super::{Answer, Asked, Client, Outbox, ProgressRelay, Running, render, render_protocol_error};
use crate::driver::{CallHandle, Wish};
use crate::upstream::Progress;

/// Makes the call and waits for its answer.
pub(super) async fn call(client: Arc<Client>, asked: Asked, outbox: Outbox, mut running: Running) -> Option<Answer> {
    if let Some(wrapped) = client.wrapped() {
        wrapped.list_first(&client, &asked).await;
    }
    let parsed = ToolCall::parse(asked.params.as_deref());
    let meta = parsed.as_ref().ok().and_then(|call| call.meta().ok());
    let dialect = meta.as_ref().and_then(|meta| meta.dialect).unwrap_or(client.gateway.config.dialect);
    let traits = client.said(&asked).traits.speaking(dialect);
    let token = meta.and_then(|meta| meta.progress_token).filter(|_| outbox.is_open());
    let mut relay = token.map(|token| ProgressRelay::new(token.get().to_owned()));
    let (progress_to, mut progress) = mpsc::unbounded_channel();
    let handle = match &parsed {
        Ok(call) => {
            let params = asked.text().unwrap_or("{}");
            client.session().call(Wish::Call { params, call }, relay.is_some().then_some(progress_to))
        }
        Err(error) => client.session().call(unread(error.refusal()), None),
    };
    let mut open = Open(Some(handle));
    loop {
        let handle = open.0.as_mut()?;
        tokio::select! {
            biased;
            Some(reported) = progress.recv(), if relay.is_some() => {
                if let Err(reason) = report(&mut relay, &reported, &outbox, &mut running).await {
                    open.stop(reason, running);
                    return None;
                }
            }
            answer = &mut handle.answer => {
                let handle = open.0.take();
                while let Ok(reported) = progress.try_recv() {
                    // Too late to be stopped: the answer is there, and its repeat would find it.
                    let _ = report(&mut relay, &reported, &outbox, &mut running).await;
                }
                let answered = answer.ok()?;
                let message = render(&asked.id, &answered, traits);
                let delivery = answered.delivery.zip(handle).map(|(delivery, handle)| delivery.keeping(handle.session()));
                return Some(Answer { message, code: None, delivery });
            }
            reason = running.stopped() => {
                open.stop(reason, running);
                return None;
            }
        }
    }
}

/// Passes progress on, unless the client wants the call stopped before there is room for it.
async fn report(
    relay: &mut Option<ProgressRelay>,
    progress: &Progress,
    outbox: &Outbox,
    running: &mut Running,
) -> Result<(), CancelReason> {
    let Some(line) = relay.as_mut().and_then(|relay| relay.notification(progress)) else { return Ok(()) };
    tokio::select! {
        biased;
        _ = outbox.send(line) => Ok(()),
        reason = running.stopped() => Err(reason),
    }
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

/// Says no to a message that could not be read, and records that.
pub async fn refuse(client: &Client, id: Option<&str>, code: i64, refusal: Refusal) -> String {
    let handle = client.session().call(unread(refusal), None);
    match handle.answer.await {
        Ok(answered) => render_protocol_error(id, code, &answered),
        Err(_) => amends_wire::message::failure(id, code, "the message was refused", None),
    }
}

/// A wish that could not be read.
fn unread(refusal: Refusal) -> Wish<'static> {
    Wish::Unreadable { requested: String::new(), refusal: Box::new(refusal) }
}
