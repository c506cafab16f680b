//! The driver: it samples the gates, lets the dispatcher decide, appends, and only then acts.

mod admission;
mod answer;
mod approval;
mod attempt;
mod basis;
mod decision;
mod deliveries;
mod failpoint;
mod inquiry;
mod interrupted;
mod listener;
mod orphans;
mod permission;
mod post;
mod privacy;
mod question;
mod recover;
mod redeem;
mod relay;
mod retire;
mod returning;
mod session;
mod sign_in;
mod stop;
mod turn;
mod undo;
mod walk;

use std::sync::{Arc, OnceLock};

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::machine::Course;
use amends_core::walk::Beginning;
use amends_core::{CallId, Principal, SessionId, Way};
use tokio::sync::{mpsc, oneshot};

pub use admission::Wish;
pub(crate) use admission::too_often;
pub use answer::{Answered, Form, MoveTold, Rendered};
pub(crate) use answer::{fetched, kept};
pub(crate) use approval::BY_PERSON;
pub use listener::{Listener, Task};
pub use orphans::settle_orphans;
pub use post::{Request, read_post};
pub use redeem::{REVERSE_TOOL, Redeemer};
pub use retire::{Retirement, retire, retire_old};
pub(crate) use session::Mail;
pub(crate) use stop::stop;
pub use undo::token_digest;
pub use walk::gave;
pub(crate) use walk::{MoveWish, course, look_from_outside, past, raise_walk, since, told};

use crate::gateway::Gateway;
use crate::mint;
use crate::policy::Origin;
pub(crate) use deliveries::Deliveries;
use deliveries::Leaving;
use interrupted::{AfterFailure, drive};
use permission::Caller;
use session::Session;

/// The door of calls that the gateway makes by itself.
pub(crate) const GATEWAY: &str = "gateway";
/// How long the agent of a task is kept waiting for a person: as long as they take.
const TASK_HOLD_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// A session that somebody uses. Its driver lives as long as a handle or an open call.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    /// Its id.
    pub id: SessionId,
    gateway: Arc<Gateway>,
    principal: Principal,
    /// The door it is used through.
    door: Arc<str>,
    user: Arc<User>,
}

/// Somebody uses the session. When the last one is gone, its driver is told.
#[derive(Debug)]
struct User {
    mail: mpsc::UnboundedSender<Mail>,
}

impl Drop for User {
    fn drop(&mut self) {
        // The driver may have ended already, with its process.
        let _ = self.mail.send(Mail::Unused);
    }
}

/// A call on its way.
#[derive(Debug)]
pub struct CallHandle {
    /// Its id.
    pub id: CallId,
    /// Where its answer comes.
    pub answer: oneshot::Receiver<Answered>,
    session: SessionHandle,
    /// What was asked for.
    requested: String,
    /// Whether it changes nothing, whatever becomes of it.
    harmless: bool,
    /// The call that goes on in its place, once a person has answered what it asks.
    next: Arc<OnceLock<CallId>>,
    /// How to tell the node where it waits that it should stop, where that is another one.
    there: Option<mpsc::UnboundedSender<CancelReason>>,
}

/// Says that an answer has arrived, once that is known.
#[derive(Debug)]
pub struct Delivery {
    call: CallId,
    mail: mpsc::UnboundedSender<Mail>,
    deliveries: Arc<Deliveries>,
    leaving: Option<Leaving>,
    /// What arrives with it: the answers of people that led to this one.
    with: Vec<Delivery>,
    /// Kept while the delivery is not known, so that there is a driver to tell.
    user: Option<Arc<User>>,
}

impl SessionHandle {
    pub(crate) fn open(gateway: Arc<Gateway>, principal: Principal, door: &str) -> Self {
        let id = mint::session();
        let (mail, inbox) = mpsc::unbounded_channel();
        let session = Session::open(gateway.clone(), id.clone(), principal.clone(), door, mail.clone());
        let driven = gateway.drives(&id, mail.clone());
        drive(session, inbox, true, driven, AfterFailure::TakenUp, |_| {});
        Self { id, gateway, principal, door: door.into(), user: Arc::new(User { mail }) }
    }

    /// Begins a walk through a machine, in a session of its own.
    pub(crate) fn walk(
        gateway: &Arc<Gateway>,
        principal: &Principal,
        door: &str,
        id: SessionId,
        beginning: Beginning,
        course: Course,
    ) -> Self {
        let (mail, inbox) = mpsc::unbounded_channel();
        let mut session = Session::open(gateway.clone(), id.clone(), principal.clone(), door, mail.clone());
        session.begin_walk(beginning, course);
        let driven = gateway.drives(&id, mail.clone());
        drive(session, inbox, true, driven, AfterFailure::TakenUp, |_| {});
        let user = Arc::new(User { mail });
        Self { id, gateway: gateway.clone(), principal: principal.clone(), door: door.into(), user }
    }

    /// A session that is driven here, used by that principal.
    pub(crate) fn of_driver(
        gateway: &Arc<Gateway>,
        principal: &Principal,
        id: SessionId,
        mail: mpsc::UnboundedSender<Mail>,
    ) -> Option<Self> {
        mail.send(Mail::Used).ok()?;
        let user = Arc::new(User { mail });
        // It is a walk: its driver, which knows the door, makes its calls.
        let door = Arc::from("");
        Some(Self { id, gateway: gateway.clone(), principal: principal.clone(), door, user })
    }

    /// Sends something to its driver; it comes back where that has ended.
    pub(crate) fn post(&self, mail: Mail) -> Result<(), Mail> {
        self.user.mail.send(mail).map_err(|unsent| unsent.0)
    }

    /// A call of this session that waits for its answer there.
    pub(crate) fn waiting(&self, id: CallId, answer: oneshot::Receiver<Answered>) -> CallHandle {
        CallHandle {
            id,
            answer,
            session: self.clone(),
            requested: String::new(),
            harmless: false,
            next: Arc::default(),
            there: None,
        }
    }

    /// Hands in a call, for that listener. One that comes back is told at once that a person is asked.
    pub fn call(&self, wish: Wish<'_>, listener: Listener) -> CallHandle {
        let at_once = listener.way == Way::Return;
        self.hand_in(wish, listener, at_once)
    }

    /// Hands in a call. Where a person is asked, its agent is told at once, or is kept waiting for a while.
    fn hand_in(&self, wish: Wish<'_>, listener: Listener, at_once: bool) -> CallHandle {
        if let Wish::Call { call, .. } = &wish
            && call.name() == REVERSE_TOOL
            && self.gateway.catalogue.now().find(REVERSE_TOOL).is_none()
        {
            let arguments = call.arguments().and_then(|raw| serde_json::from_str::<serde_json::Value>(raw.get()).ok());
            let token = arguments.as_ref().and_then(|arguments| arguments.get("token")?.as_str());
            return self.redeem(token, Redeemer::Agent, listener);
        }
        if let Wish::Call { params, call } = &wish
            && !self.gateway.config().asks(call.name()).is_empty()
            && self.gateway.catalogue.now().find(call.name()).is_some()
        {
            // The handle of one question would be taken for that of the call.
            let listener = Listener { takes_tasks: false, ..listener };
            return self.ask_first(params, call.name(), listener, at_once);
        }
        self.hand_over_to_driver(wish, listener, at_once, None)
    }

    /// The same, whatever is asked of people before. `wanted` is what the agent called with, where that is something else.
    fn hand_over_to_driver(
        &self,
        wish: Wish<'_>,
        listener: Listener,
        at_once: bool,
        wanted: Option<(String, String)>,
    ) -> CallHandle {
        let wish = match &wish {
            Wish::Call { call, .. } => match self.only_in_machines(call.name()) {
                Some(refusal) => Wish::Unreadable { requested: call.name().to_owned(), refusal: Box::new(refusal) },
                None => wish,
            },
            Wish::Unreadable { .. } => wish,
        };
        let (answer_to, answer) = oneshot::channel();
        let made = self.gateway.deliveries.now();
        let mut admitted = self.admit(wish, listener.task.is_some());
        if let Some(patience) = admitted.gates.patience.as_mut() {
            // What an agent says of itself counts for either era, and can only make it shorter.
            let held = amends_wire::mcp::call::hold_ms(&admitted.params);
            patience.hold_ms = patience.hold_ms.min(held.unwrap_or(if at_once { 0 } else { u64::MAX }));
        }
        if let Some(task) = &listener.task {
            admitted.gates.context.clone_from(&task.context);
            let before = wanted.as_ref().map(|(tool, _)| amends_core::ToolName::new(tool.as_str()));
            admitted.gates.before = before.filter(|tool| *tool != admitted.call.tool);
            let usual = || Box::new(self.gateway.config().people.patience.clone());
            let patience = admitted.gates.patience.get_or_insert_with(usual);
            patience.goes_on = true;
            patience.hold_ms = TASK_HOLD_MS;
        }
        let mut listener = listener;
        listener.takes_tasks &= admitted.gates.patience.is_some();
        if let Some(patience) = admitted.gates.patience.as_mut().filter(|_| listener.takes_tasks) {
            // It is told at once, by a handle, and looks for the answer; what it is sent with asks nobody else for a task.
            (patience.goes_on, patience.hold_ms) = (true, 0);
            admitted.params = amends_wire::mcp::tasks::without(&admitted.params).into();
        }
        let id = admitted.call.id.clone();
        let requested = admitted.call.tool.to_string();
        let harmless = admitted.call.rules.contract.effect.is_read() || admitted.gates.refusal.is_some();
        let mut mail = Mail::call(admitted, made, answer_to, listener);
        if let Mail::Call { live, .. } = &mut mail {
            live.wanted = wanted;
        }
        // The driver ends only after every handle is gone.
        let _ = self.user.mail.send(mail);
        CallHandle { requested, harmless, ..self.waiting(id, answer) }
    }
}

impl SessionHandle {
    /// The refusal of a call of a tool that only machines call.
    fn only_in_machines(&self, tool: &str) -> Option<amends_core::Refusal> {
        let listing = self.gateway.catalogue.now();
        if !listing.machines().encloses(tool) {
            return None;
        }
        listing.machines().refusal(tool, &self.gateway.config().machines)
    }

    /// Samples the gates for a wish. What the headers of its request say of its trace becomes part of its parameters.
    fn admit(&self, wish: Wish<'_>, keeps: bool) -> admission::Admitted {
        let caller = Caller { keeps, ..self.caller() };
        if let (Wish::Call { params, .. }, Some(telemetry)) = (&wish, &self.gateway.telemetry)
            && let Some(params) = telemetry.with_headers(params)
            && let Ok(raw) = serde_json::from_str(&params)
            && let Ok(call) = amends_wire::mcp::ToolCall::parse(Some(raw))
        {
            let wish = Wish::Call { params: &params, call: &call };
            return admission::admit(&self.gateway, &caller, wish);
        }
        admission::admit(&self.gateway, &caller, wish)
    }

    /// Who calls through it.
    fn caller(&self) -> Caller<'_> {
        let origin = Origin { session: self.id.as_str(), door: &self.door, step: None };
        // What the gateway does by itself is nobody's to permit.
        let judged = &*self.door != GATEWAY;
        Caller { principal: &self.principal, origin, counts: judged, judged, keeps: false }
    }
}

impl CallHandle {
    /// The session it belongs to, which lives at least as long as this is kept.
    pub fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Asks for the call to be stopped.
    pub fn cancel(&self, reason: CancelReason) {
        if let Some(there) = &self.there {
            // Once it is answered, nothing is left to stop.
            let _ = there.send(reason);
            return;
        }
        for call in std::iter::once(&self.id).chain(self.next.get()) {
            let _ = self.session.user.mail.send(Mail::Cancel { call: call.clone(), reason });
        }
    }
}

impl Delivery {
    /// Keeps the session's driver until the delivery is known.
    pub fn keeping(mut self, session: &SessionHandle) -> Self {
        self.user = Some(session.user.clone());
        self
    }

    /// The answer begins to leave. From here on the agent may have read it before we know.
    pub fn leaves(&mut self) {
        self.leaving.get_or_insert_with(|| self.deliveries.begin(&self.call));
        self.with.iter_mut().for_each(Self::leaves);
    }

    /// The answer has arrived.
    pub fn confirm(mut self) {
        self.leaves();
        std::mem::take(&mut self.with).into_iter().for_each(Self::confirm);
        let _ = self.mail.send(Mail::Delivered { call: self.call, leaving: self.leaving });
    }
}
