//! What every door does for machines: it finds out which of our tools is called, and shows what can be read of a walk.

use std::sync::Arc;

use amends_core::id::MachineName;
use amends_core::machine::Machine;
use amends_core::machine::graph::Marks;
use amends_core::refusal::ArgumentFault;
use amends_core::walk::Frame;
use amends_core::{Principal, Refusal, RefusalKind, SessionId};
use amends_wire::mcp::ToolCall;
use amends_wire::mcp::steps::{Next, View, Wanted, What, next_body, read, read_action, state_body};
use amends_wire::schema::PRESENT;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::walks;

/// What of a walk was asked for: data, or a text of its own type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    Data(Value),
    Text(String),
}

impl Shown {
    /// As the text of a resource.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Data(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// As the data of an answer.
    pub(crate) fn data(self) -> Value {
        match self {
            Self::Data(value) => value,
            Self::Text(text) => Value::String(text),
        }
    }
}

/// What a call wants of a walk, if it calls one of our tools for machines.
pub(crate) fn wanted(gateway: &Gateway, call: &ToolCall<'_>) -> Option<Result<Wanted, Box<Refusal>>> {
    let listing = gateway.catalogue.now();
    let names = listing.machines().names();
    if let Some(tool) = names.find(call.name()) {
        return Some(read(tool, call.name(), call.arguments()));
    }
    let (machine, action) = names.find_action(call.name())?;
    let config = gateway.config();
    let (_, declared) = config.machines.get(machine)?.action(action.as_str())?;
    Some(read_action(call.name(), machine.as_str(), action.as_str(), declared.input.as_ref(), call.arguments()))
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
                let near = amends_core::nearest::nearest(named, known.iter().copied());
                let words = format!("there is no machine `{}` to begin with", amends_core::failure::bounded(named));
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

fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

fn unfit(message: String, field: &str, expected: &str, got: Option<&str>, nearest: Vec<String>) -> Box<Refusal> {
    let mut refusal = Refusal::of(RefusalKind::ValidationFailed, message);
    let got = got.map(amends_core::failure::bounded);
    refusal.details = vec![ArgumentFault { field: field.to_owned(), expected: expected.to_owned(), got, nearest }];
    Box::new(refusal)
}

/// Shows something of a walk: of the named one, else of the own one, else of one that has not begun.
pub(crate) async fn look(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    session: Option<SessionId>,
    what: What,
) -> Result<Shown, Box<Refusal>> {
    let listing = gateway.catalogue.now();
    let names = listing.machines().names();
    let Some(session) = session else { return before(gateway, what) };
    let view = walks::look(gateway, principal, &session).await?;
    match what {
        What::Next => Ok(Shown::Data(next_body(&view, names))),
        What::State => Ok(Shown::Data(state_body(&view))),
        What::Graph | What::GraphMermaid | What::GraphDot => {
            let config = gateway.config();
            let machine = config.machines.get(&view.machine).ok_or_else(|| gone(&view.machine))?;
            Ok(drawn(machine, &view, what))
        }
        What::History | What::Trace => told(gateway, &session, what).await,
    }
}

/// What is shown where no walk has begun: where each machine would begin.
fn before(gateway: &Gateway, what: What) -> Result<Shown, Box<Refusal>> {
    let listing = gateway.catalogue.now();
    let config = gateway.config();
    let machines: Vec<&Machine> =
        listing.machines().roots().iter().filter_map(|name| config.machines.get(name)).collect();
    let names = listing.machines().names();
    let each = |show: &dyn Fn(&View) -> Value| match machines.as_slice() {
        [only] => show(&unbegun(only)),
        several => {
            let shown = several.iter().map(|machine| (machine.name().to_string(), show(&unbegun(machine))));
            json!({ "machines": shown.collect::<serde_json::Map<_, _>>() })
        }
    };
    match what {
        What::Next => Ok(Shown::Data(each(&|view| next_body(view, names)))),
        What::State => Ok(Shown::Data(each(&state_body))),
        What::History => Ok(Shown::Data(json!({ "moves": [] }))),
        What::Trace => Ok(Shown::Data(json!({ "events": [] }))),
        What::Graph | What::GraphMermaid | What::GraphDot => match machines.as_slice() {
            [only] => Ok(drawn(only, &unbegun(only), what)),
            _ => {
                let words = "there are several machines, and no walk has begun; name one with `session`".to_owned();
                Err(unfit(words, "session", PRESENT, None, Vec::new()))
            }
        },
    }
}

/// A walk that has not begun: it has no handle yet.
fn unbegun(machine: &Machine) -> View {
    let at = machine.begin();
    let next = machine.moves(&at).into_iter().map(|legal| Next {
        action: legal.name.to_string(),
        description: legal.action.description.clone(),
        schema: legal.action.input.clone(),
    });
    let (state, via) = (at.state.clone(), None);
    let frame = Frame { machine: machine.name().clone(), state, moves: 0, taken: [].into(), via };
    View {
        session: SessionId::new(""),
        root: machine.name().clone(),
        machine: machine.name().clone(),
        seq: 0,
        over: machine.is_terminal(&at.state),
        next: next.collect(),
        waits: None,
        frames: vec![frame],
        state: at.state,
        fields: at.fields,
    }
}

fn drawn(machine: &Machine, view: &View, what: What) -> Shown {
    let taken = view.frames.last().map(|frame| frame.taken.keys().cloned().collect()).unwrap_or_default();
    let now = (!view.session.as_str().is_empty()).then(|| view.state.clone());
    let marks = Marks { now, taken };
    Shown::Text(match what {
        What::GraphMermaid => machine.mermaid(&marks),
        What::GraphDot => machine.dot(&marks),
        What::Graph | What::Next | What::History | What::State | What::Trace => machine.svg(&marks),
    })
}

fn gone(machine: &MachineName) -> Box<Refusal> {
    let words = format!("the machine `{machine}` is not declared any more, so that it cannot be drawn");
    Box::new(Refusal::of(RefusalKind::SchemaDrift, words))
}

/// What the ledger tells of a walk.
async fn told(gateway: &Gateway, session: &SessionId, what: What) -> Result<Shown, Box<Refusal>> {
    let unread = |error: amends_ledger::Error| {
        tracing::warn!(%error, "a walk could not be read");
        Box::new(Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read"))
    };
    let trace = gateway.ledger.trace(session).await.map_err(unread)?;
    let events = trace.map(|trace| trace.events).unwrap_or_default();
    let told: Vec<Value> = match what {
        What::History => walks::history(events.iter().map(|stored| &stored.event)),
        _ => events
            .iter()
            .map(|stored| {
                let mut event = serde_json::to_value(&stored.event).unwrap_or_default();
                event["hash"] = json!(stored.hash);
                event
            })
            .collect(),
    };
    let member = if what == What::History { "moves" } else { "events" };
    Ok(Shown::Data(json!({ "session": session, member: told })))
}
