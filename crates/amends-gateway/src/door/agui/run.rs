//! A run: its steps one after the other, until one is not done, somebody must answer, or somebody stops it.

use std::sync::Arc;

use amends_core::{Code, RefusalKind};
use amends_wire::agui::event::{Event, Interrupt, Outcome};
use amends_wire::agui::plan::{MEMBER, Status, Step, Waiting};
use amends_wire::agui::reply::{Goes, goes, result};
use amends_wire::mcp::{ClientTraits, Dialect, Era};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

use super::DOOR;
use super::order::Order;
use super::questions;
use super::runs::Place;
use super::step::{Came, asks};
use super::teller::{Gone, Teller};
use crate::door::{mcp, walk};
use crate::driver::{Answered, CallHandle, Delivery, SessionHandle};
use crate::gateway::Gateway;
use crate::mint;

/// Answers are read by whoever runs the plan, in our own words.
const TRAITS: ClientTraits = ClientTraits { era: Era::Modern, validates_errors: false, dialect: Dialect::Amends };

/// What a client is told when this process ends.
const STOPS: &str = "the gateway stops; run it again: what was begun is found";

/// A run that goes on.
pub(super) struct Run<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) order: Order,
    pub(super) session: SessionHandle,
    pub(super) place: Place,
    /// The No that the move which waited ended with.
    pub(super) no: Option<RefusalKind>,
    /// Whom to tell that an answer has arrived, once that is known.
    delivered: Vec<Delivery>,
}

/// Runs to the end and tells how it goes. What comes back is whom to tell that the answers have arrived, once that is known.
pub(crate) async fn run(gateway: &Arc<Gateway>, order: Order, place: Place, to: mpsc::Sender<Bytes>) -> Vec<Delivery> {
    let session = gateway.open_session(order.principal.clone(), DOOR);
    let mut run = Run { gateway, order, session, place, no: None, delivered: Vec::new() };
    match run.through(to).await {
        Ok(()) => run.delivered,
        // Nobody knows what of it was read.
        Err(Gone) => Vec::new(),
    }
}

/// How the run goes on after a step.
enum Then {
    On,
    Ends(Outcome),
    Fails(Code, String),
}

impl Run<'_> {
    async fn through(&mut self, to: mpsc::Sender<Bytes>) -> Result<(), Gone> {
        let mut teller = Teller::begin(to, self.order.thread.clone(), self.order.run.clone()).await?;
        let mut state = std::mem::take(&mut self.order.state);
        state.insert(MEMBER.to_owned(), serde_json::json!(self.order.plan));
        teller.tell(Event::StateSnapshot { snapshot: Value::Object(state) }).await?;
        let mut inputs = None;
        if let Some(given) = self.order.given.take() {
            let mut open: Vec<_> = given.open.iter().map(|(interaction, why)| (interaction, *why)).collect();
            let next = tokio::select! {
                next = given.acted_on(self.gateway) => next,
                () = self.place.ended() => return teller.fail(Code::LifecycleFailure, STOPS.to_owned()).await,
            };
            open.extend(next.iter().map(|interaction| (interaction, None)));
            let waits = self.order.plan.next().map(|n| self.order.plan.steps[n].clone());
            if let (false, Some(step)) = (open.is_empty(), waits)
                && let Came::Asks(interrupts, waiting) = asks(&step, open.into_iter())
            {
                let delta = self.order.plan.wait(Some(waiting));
                teller.changed(delta).await?;
                return teller.finish(Outcome::Interrupt { interrupts }, None).await;
            }
            if self.order.plan.machine.is_some() {
                // A move that was refused is over: wished for again, it would be asked about again.
                self.no = given.no(self.gateway).await;
            }
            let sealed = self.order.plan.waiting.as_ref().and_then(|waiting| waiting.state.clone());
            inputs = given.inputs.zip(sealed);
        }
        while let Some(n) = self.order.plan.next() {
            if self.place.is_ending() {
                return teller.fail(Code::LifecycleFailure, STOPS.to_owned()).await;
            }
            if self.place.is_stopped() {
                return teller.finish(Outcome::Cancelled, Some(self.order.plan.told())).await;
            }
            match self.step(&mut teller, n, inputs.take()).await? {
                Then::On => {}
                Then::Ends(outcome) => return teller.finish(outcome, Some(self.order.plan.told())).await,
                Then::Fails(code, message) => return teller.fail(code, message).await,
            }
        }
        teller.finish(Outcome::Success, Some(self.order.plan.told())).await
    }

    /// Makes a step, and tells of it.
    async fn step(&mut self, teller: &mut Teller, n: usize, inputs: Option<(String, String)>) -> Result<Then, Gone> {
        let step = self.order.plan.steps[n].clone();
        teller.step(&step.name).await?;
        // The client knows a call that waited.
        if step.status == Status::Pending {
            let id = || step.id.clone();
            teller.tell(Event::ToolCallStart { tool_call_id: id(), tool_call_name: step.name.clone() }).await?;
            teller.tell(Event::ToolCallArgs { tool_call_id: id(), delta: step.args.clone() }).await?;
            teller.tell(Event::ToolCallEnd { tool_call_id: id() }).await?;
        }
        match self.make(teller, &step, inputs).await? {
            Came::Answered(answered, handle) => self.answered(teller, n, &step, *answered, handle).await,
            Came::Asks(interrupts, waiting) => self.asks(teller, n, interrupts, waiting).await,
            Came::Nothing => Ok(Then::Fails(Code::LifecycleFailure, STOPS.to_owned())),
        }
    }

    async fn asks(
        &mut self,
        teller: &mut Teller,
        n: usize,
        interrupts: Vec<Interrupt>,
        waiting: Waiting,
    ) -> Result<Then, Gone> {
        let mut delta = vec![self.order.plan.mark(n, Status::Waiting)];
        if interrupts.is_empty() {
            // It was answered in this very moment. The next run finds what came of it.
            let words = "a person was asked, and the question is gone; run it again".to_owned();
            return Ok(Then::Fails(Code::ResourceBusy, words));
        }
        delta.extend(self.order.plan.wait(Some(waiting)));
        delta.extend(self.looked().await);
        teller.changed(delta).await?;
        Ok(Then::Ends(Outcome::Interrupt { interrupts }))
    }

    async fn answered(
        &mut self,
        teller: &mut Teller,
        n: usize,
        step: &Step,
        mut answered: Answered,
        handle: Option<CallHandle>,
    ) -> Result<Then, Gone> {
        let envelope = answered.rendered.envelope_json();
        let how = goes(&envelope);
        if let (Goes::Asks(_), Some(handle)) = (&how, &handle) {
            let people = questions::about(self.gateway, &handle.session().id, &handle.id).await;
            if let Came::Asks(interrupts, waiting) = asks(step, people.iter().map(|one| (one, None)))
                && !interrupts.is_empty()
            {
                return self.asks(teller, n, interrupts, waiting).await;
            }
        }
        let (message, _) = mcp::render("0", &answered, TRAITS);
        teller.tell(result(&step.id, format!("msg_{}", mint::token()), &message, &envelope)).await?;
        if let (Some(delivery), Some(handle)) = (answered.delivery.take(), &handle) {
            self.delivered.push(delivery.keeping(handle.session()));
        }
        let status = match &how {
            Goes::On => Status::Done,
            Goes::Cancelled => Status::Cancelled,
            Goes::Stops | Goes::Fails { .. } | Goes::Asks(_) => Status::Failed,
        };
        let mut delta = vec![self.order.plan.mark(n, status)];
        delta.extend(self.order.plan.wait(None));
        delta.extend(self.looked().await);
        teller.close().await?;
        teller.changed(delta).await?;
        Ok(match how {
            Goes::On => Then::On,
            Goes::Cancelled => Then::Ends(Outcome::Cancelled),
            _ if self.place.is_stopped() => Then::Ends(Outcome::Cancelled),
            Goes::Stops => Then::Ends(Outcome::Success),
            Goes::Fails { code, message } => Then::Fails(code, message),
            Goes::Asks(_) => {
                let message = envelope["error"]["message"].as_str().unwrap_or("somebody must answer first").to_owned();
                let code = envelope["error"]["code"].as_str().and_then(Code::parse).unwrap_or(Code::Forbidden);
                Then::Fails(code, message)
            }
        })
    }

    /// The change that says where the walk is, in a run through a machine.
    async fn looked(&mut self) -> Option<amends_wire::agui::event::Change> {
        let machine = self.order.plan.machine.clone()?;
        let view = walk::view(self.gateway, &self.order.principal, &self.order.walks, &machine).await.ok()?;
        let shown = walk::shown(&view);
        Some(self.order.plan.walk(shown))
    }
}
