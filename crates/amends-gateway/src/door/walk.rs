//! What every door does for machines: it finds out which of our tools is called, and shows what can be read of a walk.

mod look;
mod no;
mod own;
mod stray;

use std::sync::Arc;

use amends_core::failure::bounded;
use amends_core::id::MachineName;
use amends_core::nearest::nearest;
use amends_core::refusal::ArgumentFault;
use amends_core::{Principal, Refusal, RefusalKind, SessionId, Way};
use amends_wire::mcp::steps::{Moved, Names, View, Wanted, What, action_of, read, read_action, session_of, state_body};
use amends_wire::mcp::{Returned, ToolCall};
use amends_wire::schema::PRESENT;
use serde_json::Value;

pub(crate) use look::{Shown, look, look_own};
pub(crate) use own::OwnWalks;
pub(crate) use stray::{Stray, stray};

use crate::catalogue::schema;
use crate::driver::{self, Answered, CallHandle, Form, Listener, MoveTold, SessionHandle, told};
use crate::gateway::Gateway;
use crate::walks::{self, Of, Order, Which, Wish};
use look::{nowhere, unbegun};
use no::{again_with, of_a_walk, one_of, to_be_named, to_be_placed, unfit};

/// Who calls, as far as machines need to know.
pub(crate) struct Asker<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) principal: &'a Principal,
    pub(crate) door: &'static str,
    /// Where what is refused before a walk is known is recorded.
    pub(crate) session: &'a SessionHandle,
    /// The walks of its connection; nothing where it has none.
    pub(crate) own: Option<&'a OwnWalks>,
}

/// What came of a call of one of our tools.
pub(crate) enum Came {
    /// It is on its way. A refusal of it that knows no walk says what could be done in this one.
    Handed(CallHandle, Option<Box<Moved>>),
    /// It is answered.
    Answered(Box<Answered>),
}

/// Does what a call of one of our tools wants.
pub(crate) async fn call(
    asker: &Asker<'_>,
    call: &ToolCall<'_>,
    wanted: Result<Wanted, Box<Refusal>>,
    listener: Listener,
) -> Came {
    let meta = match call.meta() {
        Ok(meta) => meta,
        Err(error) => {
            let instead = asker.instead(call).await;
            return asker.refused(call.name(), Box::new(error.refusal()), instead);
        }
    };
    let named = |session: Option<String>| session.or_else(|| meta.session.clone()).map(SessionId::new);
    // An agent that is answered with a question calls the same again.
    let comes_back = listener.way == Way::Return;
    let subject =
        || (call.name().to_owned(), call.arguments().map_or("{}", serde_json::value::RawValue::get).to_owned());
    let order =
        |what| Order { what, key: meta.key.clone(), deadline_ms: meta.deadline_ms, subject: comes_back.then(subject) };
    match wanted {
        Ok(Wanted::Look { session, what }) => match asker.look(named(session), what).await {
            Ok(shown) => Came::Answered(Box::new(shown.answered(call.name()))),
            Err(refusal) => asker.refused(call.name(), refusal, asker.unbegun(call.name())),
        },
        Ok(Wanted::Step { machine, action, inputs, session, expect_seq }) => {
            // The tool of an action says whose it is; elsewhere whoever calls may.
            let names = asker.gateway.catalogue.now().machines().names().clone();
            let tool = names.find_action(call.name()).map(|(machine, _)| Of::Tool(machine.clone()));
            let of = tool.or_else(|| machine.as_deref().map(|machine| Of::Walk(MachineName::new(machine))));
            let order = order(Wish::Step { action: action.clone(), inputs, expect_seq, of });
            asker.step(call.name(), machine.as_deref(), named(session), &action, order, listener).await
        }
        Ok(Wanted::Reset { session }) => asker.known(call.name(), named(session), order(Wish::Reset), listener).await,
        Ok(Wanted::Cancel { session }) => asker.known(call.name(), named(session), order(Wish::Cancel), listener).await,
        Ok(Wanted::Fork { session, seq }) => {
            asker.known(call.name(), named(session), order(Wish::Fork(seq)), listener).await
        }
        Err(refusal) => {
            let action = action_of(call.arguments()).unwrap_or_else(|| call.name().to_owned());
            let session = named(session_of(call.arguments()));
            let meant = session.clone().or_else(|| asker.own.and_then(|own| own.meant(asker.gateway)));
            let view = match meant {
                Some(meant) => walks::look(asker.gateway, asker.principal, &meant).await,
                None => return asker.refused(&action, refusal, asker.unbegun(&action)),
            };
            match view {
                Ok(view) => {
                    let moved = Moved::at(&action, view);
                    asker.refused(&action, refusal, Some(Box::new(moved)))
                }
                Err(_) if session.is_none() => asker.refused(&action, refusal, asker.unbegun(&action)),
                Err(unknown) => asker.refused(&action, unknown, asker.unbegun(&action)),
            }
        }
    }
}

/// Goes on with a move whose agent was asked something.
pub(crate) async fn return_to(
    asker: &Asker<'_>,
    call: &ToolCall<'_>,
    params: &str,
    returned: &Returned<'_>,
    listener: Listener,
) -> Came {
    match asker.session.go_on_in_walk(params, returned, listener).await {
        Ok(handle) => Came::Handed(handle, None),
        Err(refusal) => {
            let instead = asker.instead(call).await;
            asker.refused(call.name(), refusal, instead)
        }
    }
}

impl Asker<'_> {
    /// An action in the walk that was named, in that of the connection, or in a new one.
    async fn step(
        &self,
        tool: &str,
        machine: Option<&str>,
        session: Option<SessionId>,
        action: &str,
        order: Order,
        listener: Listener,
    ) -> Came {
        if let Some(session) = session {
            return self.hand_in(action, Which::Known(session), order, listener).await;
        }
        // An action of a machine that another runs is taken in the walk that is in it.
        let config = self.gateway.config();
        let run = machine.filter(|name| self.roots().iter().all(|root| root.as_str() != *name));
        let run = run.is_some_and(|name| config.machines.get(&MachineName::new(name)).is_some());
        let machine = machine.filter(|_| !run);
        let gave = matches!(&order.what, Wish::Step { inputs, .. } if !inputs.value.is_empty());
        let no_root = |refusal| match run {
            true => self.refused(tool, to_be_placed(tool, action), self.unbegun(action)),
            false => {
                self.refused(tool, to_be_named(refusal, tool, action, gave, self.roots().len()), self.unbegun(action))
            }
        };
        let Some(own) = self.own else {
            return match root(self.gateway, machine) {
                Ok(root) => self.hand_in(action, Which::New(root), order, listener).await,
                Err(refusal) => no_root(refusal),
            };
        };
        let _one_at_a_time = own.beginning.lock().await;
        if let (None, Some(last)) = (machine, own.last()) {
            return self.hand_in(action, Which::Known(last), order, listener).await;
        }
        let root = match root(self.gateway, machine) {
            Ok(root) => root,
            Err(refusal) => return no_root(refusal),
        };
        let which = own.through(self.gateway, &root);
        let came = self.hand_in(action, which, order, listener).await;
        if let Came::Handed(handle, None) = &came {
            own.uses(Some(&root), &handle.session().id);
        }
        came
    }

    /// Something in a walk that has begun.
    async fn known(&self, tool: &str, session: Option<SessionId>, order: Order, listener: Listener) -> Came {
        let own = || self.own.and_then(|own| own.meant(self.gateway));
        let session = match session {
            Some(session) => Some(session),
            None => match own() {
                Some(own) => walks::look(self.gateway, self.principal, &own).await.is_ok().then_some(own),
                None => None,
            },
        };
        match session {
            Some(session) => self.hand_in(tool, Which::Known(session), order, listener).await,
            None => {
                let words = "no walk has begun here; name one with `session`".to_owned();
                let mut refusal = unfit(words, "session", PRESENT, None, Vec::new());
                // Another walk is not what was asked for.
                refusal.recovery = Some(of_a_walk(tool, &order.what));
                self.refused(tool, refusal, self.unbegun(tool))
            }
        }
    }

    /// Shows something of the walk that was named, else of the own one, else of one that has not begun.
    async fn look(&self, session: Option<SessionId>, what: What) -> Result<Shown, Box<Refusal>> {
        look_own(self.gateway, self.principal, session, self.own, what).await
    }

    async fn hand_in(&self, requested: &str, which: Which, order: Order, listener: Listener) -> Came {
        let known = match &which {
            Which::Known(id) | Which::Own(id, _) => Some(id.clone()),
            Which::New(_) => None,
        };
        let forks = matches!(order.what, Wish::Fork(_));
        let mut refusal = match walks::order(self.gateway, self.principal, self.door, which, order, listener).await {
            Ok(handle) => return Came::Handed(handle, None),
            Err(refusal) => refusal,
        };
        let view = match &known {
            Some(id) if refusal.kind != RefusalKind::UnknownName => {
                walks::look(self.gateway, self.principal, id).await.ok()
            }
            _ => None,
        };
        if known.is_some() && view.is_none() && refusal.kind == RefusalKind::StoreUnavailable {
            // Where a walk is cannot be told while the ledger is away; where another would begin is not the question.
            return Came::Answered(Box::new(told::answered(told::refused_move(requested, &refusal))));
        }
        // Only the point is to be said otherwise: what else does not fit has its own way on.
        let seq = refusal.details.iter().any(|fault| fault.field == "seq");
        if let (true, Some(view), true) = (forks, &view, seq) {
            refusal.recovery = Some(again_with(requested, &view.session, "seq"));
        }
        let moved = view.map(|view| Box::new(Moved::at(requested, view)));
        self.refused(requested, refusal, moved.or_else(|| self.unbegun(requested)))
    }

    /// Says no where there is no walk to say it in, and records that.
    fn refused(&self, requested: &str, mut refusal: Box<Refusal>, instead: Option<Box<Moved>>) -> Came {
        if refusal.kind == RefusalKind::UnknownName && refusal.details.is_empty() {
            let expected = "a walk of yours, as an answer named it".to_owned();
            refusal.details = vec![ArgumentFault { field: "session".into(), expected, got: None, nearest: Vec::new() }];
        }
        let wish = driver::Wish::Unreadable { requested: requested.to_owned(), refusal };
        // Its context is the walk it was about, by which that is found when it is looked for as a task.
        let walk = instead.as_ref().map(|moved| moved.view.session.to_string()).filter(|walk| !walk.is_empty());
        let task = walk.map(|walk| driver::Task { context: Some(walk) });
        Came::Handed(self.session.call(wish, Listener { task, ..Listener::of_the_answer() }), instead)
    }

    fn roots(&self) -> Vec<MachineName> {
        self.gateway.catalogue.now().machines().roots().to_vec()
    }

    /// What could be done instead of a call that is not well formed.
    async fn instead(&self, call: &ToolCall<'_>) -> Option<Box<Moved>> {
        let session = session_of(call.arguments());
        instead(self.gateway, self.principal, self.own, call.name(), session.as_deref()).await
    }

    /// Where a walk would begin.
    fn unbegun(&self, action: &str) -> Option<Box<Moved>> {
        beginning(self.gateway, action)
    }
}

/// What could be done instead of a call that could not even be read, where that tool is one of ours for machines: in the walk
/// it names, else in that of the connection, else where one would begin.
pub(crate) async fn instead(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    own: Option<&OwnWalks>,
    tool: &str,
    session: Option<&str>,
) -> Option<Box<Moved>> {
    let listing = gateway.catalogue.now();
    let names = listing.machines().names();
    if names.find(tool).is_none() && names.find_action(tool).is_none() {
        return None;
    }
    let meant = session.map(SessionId::new).or_else(|| own.and_then(|own| own.meant(gateway)));
    if let Some(meant) = meant
        && let Ok(view) = walks::look(gateway, principal, &meant).await
    {
        return Some(Box::new(Moved::at(tool, view)));
    }
    beginning(gateway, tool)
}

/// What could be done instead of a message that names no tool: in the walk of its connection, where one has begun.
pub(crate) async fn instead_here(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    own: Option<&OwnWalks>,
) -> Option<Box<Moved>> {
    let meant = own?.meant(gateway)?;
    let view = walks::look(gateway, principal, &meant).await.ok()?;
    Some(Box::new(Moved::at("", view)))
}

/// The same for a call that was refused before, by what is recorded of it: the walk that was its context, and what it asked for.
pub(crate) async fn instead_of_refused(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    context: Option<&str>,
    requested: &str,
) -> Option<Box<Moved>> {
    if let Some(walk) = context.filter(|context| context.starts_with("ses_"))
        && let Ok(view) = walks::look(gateway, principal, &SessionId::new(walk)).await
    {
        return Some(Box::new(Moved::at(requested, view)));
    }
    let (config, listing) = (gateway.config(), gateway.catalogue.now());
    let machines = listing.machines();
    let acts = || config.machines.all().any(|machine| machine.action(requested).is_some());
    let near = || listing.find(requested).is_none() && !nearest(requested, machines.listed()).is_empty();
    (machines.encloses(requested) || acts() || near()).then(|| beginning(gateway, requested)).flatten()
}

/// Where a walk would begin: at the beginning of the only machine there is, or of one of several.
fn beginning(gateway: &Gateway, action: &str) -> Option<Box<Moved>> {
    let (config, listing) = (gateway.config(), gateway.catalogue.now());
    let machines: Vec<_> = listing.machines().roots().iter().filter_map(|name| config.machines.get(name)).collect();
    let view = match machines.as_slice() {
        [] => return None,
        [only] => unbegun(only),
        several => nowhere(several, listing.machines().names()),
    };
    Some(Box::new(Moved::at(action, view)))
}

/// An answer as it goes out: a refusal that knows no walk says where one would begin.
pub(crate) fn dressed(gateway: &Gateway, mut answered: Answered, instead: Option<Box<Moved>>) -> Answered {
    let Some(moved) = instead else { return answered };
    answered.rendered.form = match answered.rendered.form {
        Form::Envelope { envelope, payload: None } if envelope.error().is_some() => {
            let names = gateway.catalogue.now().machines().names().clone();
            Form::Moved(Box::new(MoveTold::of(*envelope, *moved, names)))
        }
        other => other,
    };
    answered
}

/// What a call wants of a walk, if it calls one of our tools for machines.
pub(crate) fn wanted(gateway: &Gateway, call: &ToolCall<'_>) -> Option<Result<Wanted, Box<Refusal>>> {
    let listing = gateway.catalogue.now();
    let names = listing.machines().names();
    // Where no machine is declared, a walk through one that was may be named all the same.
    let named = || session_of(call.arguments()).is_some() || call.meta().is_ok_and(|meta| meta.session.is_some());
    if listing.machines().is_empty() && !named() {
        return None;
    }
    if let Some(tool) = names.find(call.name()) {
        return Some(read(tool, call.name(), call.arguments()));
    }
    let (machine, action) = names.find_action(call.name())?;
    let config = gateway.config();
    let (_, declared) = config.machines.get(machine)?.action(action.as_str())?;
    let schema = schema(declared, |tool| listing.find(tool.as_str()).cloned());
    Some(read_action(call.name(), machine.as_str(), action.as_str(), schema.as_ref(), call.arguments()))
}

/// Where the walk of a connection through that machine is; where it would begin, while it has not.
pub(crate) async fn view(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    own: &OwnWalks,
    machine: &str,
) -> Result<View, Box<Refusal>> {
    let root = root(gateway, Some(machine))?;
    let begun = match own.through(gateway, &root) {
        Which::Known(id) | Which::Own(id, _) => match walks::look(gateway, principal, &id).await {
            Err(refusal) if refusal.kind == RefusalKind::UnknownName => None,
            looked => Some(looked?),
        },
        Which::New(_) => None,
    };
    let config = gateway.config();
    let view = begun.or_else(|| config.machines.get(&root).map(unbegun));
    view.ok_or_else(|| Box::new(Refusal::of(RefusalKind::SchemaDrift, format!("`{root}` is not declared any more"))))
}

/// Where a walk is and what may be done there, as data.
pub(crate) fn shown(view: &View) -> Value {
    // Whoever reads this takes actions by their own names, whatever tools they have.
    let mut shown = state_body(view, &Names::default());
    shown["valid_next_actions"] = view.legal().into();
    shown
}

/// The machine that a walk begins with: the one that was named, or the only one.
pub(crate) fn root(gateway: &Gateway, named: Option<&str>) -> Result<MachineName, Box<Refusal>> {
    let listing = gateway.catalogue.now();
    let roots = listing.machines().roots();
    let known: Vec<&str> = roots.iter().map(MachineName::as_str).collect();
    match named {
        Some(named) => match roots.iter().find(|root| root.as_str() == named) {
            Some(root) => Ok(root.clone()),
            None => {
                let near = nearest(named, known.iter().copied());
                let words = format!("there is no machine `{}` to begin with", bounded(named));
                Err(unfit(words, "machine", &one_of(&known), Some(named), near))
            }
        },
        None => match roots {
            [only] => Ok(only.clone()),
            _ => {
                let words = "there are several machines: say with which one to begin".to_owned();
                Err(unfit(words, "machine", PRESENT, None, known.iter().map(|name| (*name).to_owned()).collect()))
            }
        },
    }
}
