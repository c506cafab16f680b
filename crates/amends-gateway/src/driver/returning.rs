//! An agent comes back with what it was asked for: the call that waits goes on, wherever it waits.

use std::sync::Arc;

use amends_core::claim::ClaimState;
use amends_core::refusal::ArgumentFault;
use amends_core::{CallId, Fact, Held, InteractionId, Refusal, RefusalKind};
use amends_ledger::{Error, Form};
use amends_wire::mcp::inputs::{REQUEST_STATE, with_inputs};
use amends_wire::mcp::{Returned, ToolCall};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::admission::{self, Wish};
use super::answer::recorded;
use super::approval::{BY_PERSON, QUESTION, answered};
use super::inquiry::{Return, subject};
use super::listener::Listener;
use super::orphans::adopt;
use super::session::Mail;
use super::walk::told;
use super::{CallHandle, SessionHandle, User};
use crate::clock;
use crate::request_state::{RequestState, Waiting};

impl SessionHandle {
    /// Goes on with the call that the state names. A state that does not count is refused, and nothing is sent; one that was
    /// used finds what became of its call.
    pub async fn go_on(
        &self,
        params: &str,
        call: &ToolCall<'_>,
        returned: &Returned<'_>,
        listener: Listener,
    ) -> CallHandle {
        if self.gateway.catalogue.now().find(call.name()).is_none() {
            // It cannot go on while its tool is not known, and the state stays good.
            return self.call(Wish::Call { params, call }, listener);
        }
        let state = match self.opened(params, returned) {
            Ok(state) => state,
            Err(refusal) => return self.refuse(call.name(), *refusal),
        };
        let Some(waiting) = state.waiting else {
            return self.refuse(call.name(), stale("it names no call"));
        };
        if waiting.inquiry == BY_PERSON {
            return self.come_again(params, returned, state.theirs, listener).await;
        }
        // What it is asked next is brought by the listener of the request it comes back with.
        let (way, capabilities, task) = (listener.way, listener.capabilities.clone(), listener.task.clone());
        match self.hand_over(&waiting, state.theirs.clone(), params, listener).await {
            Ok(Some(handle)) => handle,
            Ok(None) => {
                let listener = Listener { way, capabilities, task, ..Listener::of_the_answer() };
                self.look_up(params, call, waiting, state.theirs, listener).await
            }
            Err(error) => {
                tracing::warn!(%error, "a call that waits could not be found");
                let refusal =
                    Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is sent");
                self.refuse(call.name(), Refusal { retry_after_ms: Some(5000), ..refusal })
            }
        }
    }

    /// An agent comes back for what a person says, or with that: its call is an equal one, which waits for the first or is sent.
    async fn come_again(
        &self,
        params: &str,
        returned: &Returned<'_>,
        asked: Option<String>,
        listener: Listener,
    ) -> CallHandle {
        if let (Some(asked), Some(said)) = (asked, returned.answer(QUESTION)) {
            let id = InteractionId::new(asked);
            answered(&self.gateway, &id, &self.principal, said.get()).await;
        }
        let params = with_inputs(params, None, None);
        let parsed = serde_json::from_str::<&RawValue>(&params).ok();
        match parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok()) {
            Some(call) => self.hand_in(Wish::Call { params: &params, call: &call }, listener, false),
            None => self.refuse("", stale("what it came with cannot be read")),
        }
    }

    /// Hands what the agent brings to whoever drives the call that waits; nothing where that is nobody here, or it is over.
    async fn hand_over(
        &self,
        waiting: &Waiting,
        theirs: Option<String>,
        params: &str,
        listener: Listener,
    ) -> Result<Option<CallHandle>, Error> {
        let (answer, answered) = oneshot::channel();
        let (taken, taking) = oneshot::channel();
        let (waiting, params) = (waiting.clone(), params.to_owned());
        let returned = Return { waiting: waiting.clone(), theirs, params, listener, answer, taken };
        let returned = Mail::Return(Box::new(returned));
        let mail = match self.gateway.driver_of(&waiting.session) {
            Some(driver) => {
                // A driver that ends just now takes nothing, which is seen below.
                let _ = driver.send(returned);
                driver
            }
            None => {
                adopt(&self.gateway, &waiting.session, Some(returned)).await?;
                let Some(driver) = self.gateway.driver_of(&waiting.session) else { return Ok(None) };
                driver
            }
        };
        let session = self.elsewhere(&waiting, mail);
        // Where the call is over, or its driver ends just now, nobody takes it.
        let Ok(id) = taking.await else { return Ok(None) };
        Ok(Some(session.waiting(id, answered)))
    }

    /// Goes on with the move that the state names. One that is over is not made again: its agent hears what became of it.
    pub(crate) async fn go_on_in_walk(
        &self,
        params: &str,
        returned: &Returned<'_>,
        listener: Listener,
    ) -> Result<CallHandle, Box<Refusal>> {
        let state = self.opened(params, returned)?;
        let Some(waiting) = state.waiting else { return Err(Box::new(stale("it names no call"))) };
        let gone_on = match self.hand_over(&waiting, state.theirs, params, listener).await {
            Ok(None) => self.became_of_move(&waiting).await,
            handed => handed,
        };
        match gone_on {
            Ok(Some(handle)) => Ok(handle),
            Ok(None) => Err(Box::new(stale("the move it was given for is over"))),
            Err(error) => {
                tracing::warn!(%error, "a move that waits could not be found");
                let refusal =
                    Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is sent");
                Err(Box::new(Refusal { retry_after_ms: Some(5000), ..refusal }))
            }
        }
    }

    /// What was said of the move that a call was made for; nothing where that is not kept.
    async fn became_of_move(&self, waiting: &Waiting) -> Result<Option<CallHandle>, Error> {
        let Some(trace) = self.gateway.ledger.trace(&waiting.session).await? else { return Ok(None) };
        let of = trace.events.iter().find_map(|stored| match &stored.event.fact {
            Fact::CallReceived { received, .. } if received.call == waiting.call => {
                received.leg.as_ref().map(|leg| leg.of.clone())
            }
            _ => None,
        });
        let Some(of) = of else { return Ok(None) };
        let ends = |fact: &Fact| matches!(fact, Fact::MoveEnded { of: ended, .. } if *ended == of);
        let rendered = match self.gateway.ledger.answer(&of).await? {
            Some(stored) if stored.form != Form::Asked => recorded(&stored, None),
            _ if trace.events.iter().any(|stored| ends(&stored.event.fact)) => return Ok(None),
            _ => told::refused("", &elsewhere()),
        };
        let (answer_to, answer) = oneshot::channel();
        // It is taken a line further on.
        let _ = answer_to.send(told::answered(rendered));
        Ok(Some(self.waiting(of, answer)))
    }

    /// The session of a call that waits, used by whoever came back to it.
    fn elsewhere(&self, waiting: &Waiting, mail: mpsc::UnboundedSender<Mail>) -> Self {
        // The same for one that has ended since.
        let _ = mail.send(Mail::Used);
        Self {
            id: waiting.session.clone(),
            gateway: self.gateway.clone(),
            principal: self.principal.clone(),
            door: self.door.clone(),
            user: Arc::new(User { mail }),
        }
    }

    /// What became of a call that is over, for an agent that used its state before. One that may wait at another node is
    /// looked for there.
    async fn look_up(
        &self,
        params: &str,
        call: &ToolCall<'_>,
        waiting: Waiting,
        theirs: Option<String>,
        listener: Listener,
    ) -> CallHandle {
        match self.gateway.ledger.answer(&waiting.call).await {
            Ok(Some(stored)) if stored.form != Form::Asked => self.repeat(params, call, &waiting, listener),
            Ok(_) => self.relayed(params, waiting, theirs, listener),
            Err(error) => {
                tracing::warn!(%error, "the answer of a call could not be read");
                let refusal =
                    Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is sent");
                self.refuse(call.name(), Refusal { retry_after_ms: Some(5000), ..refusal })
            }
        }
    }

    /// A call that repeats another one, and sends nothing: it gets the answer of that one.
    pub(super) fn repeat(
        &self,
        params: &str,
        call: &ToolCall<'_>,
        waiting: &Waiting,
        listener: Listener,
    ) -> CallHandle {
        let (answer_to, answer) = oneshot::channel();
        let made = self.gateway.deliveries.now();
        let mut admitted = admission::admit(&self.gateway, &self.caller(), Wish::Call { params, call });
        let fingerprint = admitted.call.arguments.digest.clone();
        admitted.call.claims.clear();
        admitted.call.reversal = None;
        admitted.call.repeat_of = Some(Held {
            name: fingerprint.clone(),
            session: waiting.session.clone(),
            call: waiting.call.clone(),
            state: ClaimState::Complete,
            fingerprint,
            effect_key: String::new(),
            since: clock::now(),
        });
        let id: CallId = admitted.call.id.clone();
        // The driver ends only after every handle is gone.
        let _ = self.user.mail.send(Mail::call(admitted, made, answer_to, listener));
        CallHandle { requested: call.name().to_owned(), ..self.waiting(id, answer) }
    }

    fn opened(&self, params: &str, returned: &Returned<'_>) -> Result<RequestState, Box<Refusal>> {
        let (name, arguments) = subject(params).unwrap_or_default();
        let asked = self.gateway.seal.asked("tools/call", &name, &arguments);
        let opened = self.gateway.seal.open(&returned.state, &self.principal, &asked, clock::now());
        opened.map_err(|refused| Box::new(stale(&refused.to_string())))
    }

    pub(super) fn refuse(&self, requested: &str, refusal: Refusal) -> CallHandle {
        let wish = Wish::Unreadable { requested: requested.to_owned(), refusal: Box::new(refusal) };
        self.call(wish, Listener::of_the_answer())
    }
}

/// The refusal of a state that does not count.
pub(super) fn stale(why: &str) -> Refusal {
    let message = format!("`requestState` does not count: {why}; nothing was sent for it");
    let expected = "the state that was given with the questions, while it is good".to_owned();
    let fault = ArgumentFault { field: REQUEST_STATE.to_owned(), expected, got: None, nearest: Vec::new() };
    Refusal { details: vec![fault], ..Refusal::of(RefusalKind::InvalidArgument, message) }
}

/// The refusal of a state whose call waits at a node that does not answer.
pub(super) fn elsewhere() -> Refusal {
    let message = "the call that waits for this is driven by another node, which does not answer; nothing was sent, come back soon";
    Refusal { retry_after_ms: Some(1000), ..Refusal::of(RefusalKind::InFlight, message) }
}
