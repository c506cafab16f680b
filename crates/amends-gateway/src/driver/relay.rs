//! An agent that comes back at another node than the one where its call waits: what it brings goes there by letter, sealed,
//! and what becomes of it comes back the same way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::envelope::{Body, Data};
use amends_core::{AttemptId, CallId, Envelope, Outcome, SessionId, Way};
use amends_ledger::{Error, Form as StoredForm, Letter, LetterId};
use amends_wire::mcp::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::answer::{self, Answered, Form, Rendered};
use super::inquiry::Return;
use super::listener::Listener;
use super::post::Request;
use super::returning::{elsewhere, stale};
use super::session::Mail;
use super::{CallHandle, SessionHandle};
use crate::clock;
use crate::gateway::Gateway;
use crate::request_state::Waiting;

/// The member of a reply that says what became of it. A lone `sealed` is what a ledger makes of a reply that it seals itself, and one that
/// does not would take ours for that.
const TOLD: &str = "told";
/// How often a reply is looked for where no hint comes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a living node takes at most to take a letter.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// How long it takes at most to reply once a session was let go.
const REPLIED_WITHIN: Duration = Duration::from_secs(2);

/// How long what is read takes at most to be recorded, on a ledger that is well.
const RECORDED_WITHIN: Duration = Duration::from_secs(2);

/// What an agent brought.
#[derive(Debug, Serialize, Deserialize)]
struct Brought {
    waiting: Waiting,
    theirs: Option<String>,
    /// The parameters of its new request.
    params: String,
    way: Way,
    capabilities: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// The call waits there no more.
    Nobody,
    /// It is asked the next thing.
    Asked { result: String },
    /// The call is over, with the upstream's own result.
    Forwarded { result: String, outcome: Outcome, declares_output: bool },
    /// The call is over, with an envelope.
    Enveloped { envelope: String, declares_output: bool },
}

impl SessionHandle {
    /// Sends what an agent brought to the node where its call waits.
    pub(super) fn relayed(
        &self,
        params: &str,
        waiting: Waiting,
        theirs: Option<String>,
        listener: Listener,
    ) -> CallHandle {
        let (mut answer_to, answer) = oneshot::channel();
        let (there, mut stops) = mpsc::unbounded_channel();
        let handle = CallHandle { there: Some(there), ..self.waiting(waiting.call.clone(), answer) };
        let Listener { way, capabilities, .. } = listener;
        let brought = Brought { waiting, theirs, params: params.to_owned(), way, capabilities };
        let session = self.clone();
        tokio::spawn(async move {
            let mut fetched = std::pin::pin!(session.fetched(&brought));
            let mut told = false;
            let answered = loop {
                tokio::select! {
                    answered = &mut fetched => break answered,
                    // Somebody wants it stopped and may still wait for what becomes of it.
                    Some(reason) = stops.recv(), if !told => {
                        told = true;
                        session.leave(&brought.waiting, reason).await;
                    }
                    () = answer_to.closed() => {
                        if !told {
                            let reason = stops.try_recv().unwrap_or(CancelReason::Disconnected);
                            session.leave(&brought.waiting, reason).await;
                        }
                        break None;
                    }
                }
            };
            if let Some(answered) = answered {
                // Whoever is gone finds it again by repeating.
                let _ = answer_to.send(answered);
            }
        });
        handle
    }

    /// What the node where the call waits says; nothing where this process ends.
    async fn fetched(&self, brought: &Brought) -> Option<Answered> {
        let parsed = serde_json::from_str::<&RawValue>(&brought.params).ok();
        let call = parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok())?;
        let refused = |refusal| self.refuse(call.name(), refusal).answer;
        let (rendered, declares_output) = match self.asked_there(brought).await {
            Ok(Some(Told::Asked { result })) => (Form::Asked { result: result.into() }, false),
            Ok(Some(Told::Nobody)) => return refused(stale("the call it was given for is over")).await.ok(),
            Ok(None) => return refused(elsewhere()).await.ok(),
            Err(error) => {
                tracing::warn!(%error, "a node where a call waits could not be reached");
                return refused(elsewhere()).await.ok();
            }
            Ok(Some(told)) => {
                // What was recorded is given as a repeat gets it, so that it is known when it has arrived.
                let stored = self.gateway.ledger.answer(&brought.waiting.call).await.ok().flatten();
                if stored.is_some_and(|stored| stored.form != StoredForm::Asked) {
                    let listener = Listener::of_the_answer();
                    return self.repeat(&brought.params, &call, &brought.waiting, listener).answer.await.ok();
                }
                ended(told, &brought.waiting.call)?
            }
        };
        let rendered = Rendered { form: rendered, replayed: false };
        Some(Answered { rendered, receipt: None, last: true, delivery: None, declares_output })
    }

    /// Posts what an agent brought and waits for the reply; nothing where nobody takes it, or its taker is gone.
    async fn asked_there(&self, brought: &Brought) -> Result<Option<Told>, Error> {
        let (ledger, session) = (&self.gateway.ledger, &brought.waiting.session);
        let Some(holder) = self.holder(session).await? else { return Ok(Some(Told::Nobody)) };
        let request = Request::Return { sealed: self.gateway.seal.close_letter(brought) };
        let id = self.posted(&holder, session, &request).await?;
        let (posted, mut let_go) = (Instant::now(), None);
        // Ends with a reply, or when whoever should give it does not take the letter or drives the session no more.
        loop {
            let hint = ledger.hint();
            match ledger.letter(id).await? {
                Some(state) => {
                    if let Some(reply) = state.reply {
                        // Nodes of earlier versions have another name for it.
                        let sealed = reply[TOLD].as_str().or_else(|| reply["sealed"].as_str()).unwrap_or_default();
                        return Ok(self.gateway.seal.open_letter(sealed));
                    }
                    if !state.taken && posted.elapsed() > TAKEN_WITHIN {
                        return Ok(None);
                    }
                    // A session whose last call is over is let go before the reply is written.
                    if ledger.holder(session).await?.as_ref() == Some(&holder) {
                        let_go = None;
                    } else if let_go.get_or_insert_with(Instant::now).elapsed() > REPLIED_WITHIN {
                        return Ok(None);
                    }
                }
                None => return Ok(None),
            }
            tokio::select! {
                () = hint => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Where letters for whoever drives a session are posted. What is read is asked about before it is recorded.
    async fn holder(&self, session: &SessionId) -> Result<Option<String>, Error> {
        let began = Instant::now();
        loop {
            let holder = self.gateway.ledger.holder(session).await?;
            if holder.is_some() || began.elapsed() > RECORDED_WITHIN {
                return Ok(holder);
            }
            tokio::time::sleep(RECORDED_WITHIN / 100).await;
        }
    }

    /// Tells the node where the call waits that its agent is gone again, or wants it stopped.
    async fn leave(&self, waiting: &Waiting, reason: CancelReason) {
        let Waiting { session, call, .. } = waiting;
        let Ok(Some(holder)) = self.gateway.ledger.holder(session).await else { return };
        let request = Request::Left { session: session.clone(), call: call.clone(), reason };
        if let Err(error) = self.posted(&holder, session, &request).await {
            tracing::warn!(%error, %call, "a node could not be told that the agent of a call is gone");
        }
    }

    async fn posted(&self, holder: &str, session: &SessionId, request: &Request) -> Result<LetterId, Error> {
        let body = serde_json::to_value(request).map_err(|error| Error::Corrupt { reason: error.to_string() })?;
        let letter = Letter { place: Some(holder.to_owned()), session: Some(session.clone()), body };
        self.gateway.ledger.post(letter, clock::now()).await
    }
}

/// An end that another node told, as its agent gets it.
fn ended(told: Told, call: &CallId) -> Option<(Form, bool)> {
    match told {
        Told::Forwarded { result, outcome, declares_output } => {
            // The bytes themselves are the data; this only says whose they are.
            let data = Data::Of(AttemptId { call: call.clone(), n: 1 });
            let envelope = Box::new(Envelope::of(Body::Success { outcome, data }));
            Some((Form::Forward { result: result.into(), envelope }, declares_output))
        }
        Told::Enveloped { envelope, declares_output } => {
            Some((Form::Stored { json: RawValue::from_string(envelope).ok()? }, declares_output))
        }
        Told::Nobody | Told::Asked { .. } => None,
    }
}

/// Goes on with a call that waits here, for an agent that came back elsewhere.
pub(super) async fn take_in(gateway: &Arc<Gateway>, sealed: &str) -> Value {
    let Some(brought) = gateway.seal.open_letter(sealed) else {
        return json!({ "error": "what the agent brought cannot be read" });
    };
    json!({ TOLD: gateway.seal.close_letter(&told(gateway, brought).await) })
}

async fn told(gateway: &Gateway, brought: Brought) -> Told {
    let Brought { waiting, theirs, params, way, capabilities } = brought;
    let Some(driver) = gateway.driver_of(&waiting.session) else { return Told::Nobody };
    let listener = Listener { asides: None, progress: false, notes: None, way, capabilities, task: None };
    let (answer, answered) = oneshot::channel();
    let (taken, taking) = oneshot::channel();
    let returned = Return { waiting, theirs, params, listener, answer, taken };
    // A driver that ends just now takes nothing, which is seen below.
    let _ = driver.send(Mail::Return(Box::new(returned)));
    if taking.await.is_err() {
        return Told::Nobody;
    }
    let Ok(Answered { rendered, declares_output, .. }) = answered.await else { return Told::Nobody };
    let outcome = match &rendered.form {
        Form::Forward { envelope, .. } => envelope.outcome(),
        _ => None,
    };
    let (form, body) = answer::store(&rendered);
    let body = String::from_utf8_lossy(&body).into_owned();
    match form {
        StoredForm::Asked => Told::Asked { result: body },
        StoredForm::Forward => {
            Told::Forwarded { result: body, outcome: outcome.unwrap_or(Outcome::Succeeded), declares_output }
        }
        StoredForm::Envelope => Told::Enveloped { envelope: body, declares_output },
    }
}

/// The agent of a call that waits or runs here is gone from where it came back, or stopped it there.
pub(super) fn leave(gateway: &Gateway, session: &SessionId, call: CallId, reason: CancelReason) -> Value {
    if let Some(driver) = gateway.driver_of(session) {
        // Should it end just now, nothing is left to stop.
        let _ = driver.send(Mail::Cancel { call, reason });
    }
    json!({ "heard": true })
}
