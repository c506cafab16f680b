//! What can be read of a walk, through any door.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::envelope::{Body, Data};
use amends_core::id::{MachineName, StateName};
use amends_core::machine::Machine;
use amends_core::machine::graph::{self, Marks};
use amends_core::walk::Frame;
use amends_core::{Envelope, Outcome, Principal, Refusal, RefusalKind, SessionId};
use amends_wire::mcp::steps::{Moved, Names, Next, View, What, hint, history, next_body, state_body};
use serde_json::{Map, Value, json};

use super::OwnWalks;
use crate::driver::{Answered, Form, MoveTold, Rendered};
use crate::gateway::Gateway;
use crate::walks::{self, drift::Seen};

/// How many moves or events of a walk an answer tells.
const TOLD_MAX: usize = 500;
/// How many bytes they may have.
const TOLD_BYTES_MAX: usize = 256 << 10;

/// What of a walk was asked for: data, or a text of its own type, with where the walk is.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    value: Value,
    view: View,
    names: Arc<Names>,
}

impl Shown {
    /// As the text of a resource.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            data => data.to_string(),
        }
    }

    /// As the answer of a tool. Nothing was done for it, so that nothing is recorded.
    pub(super) fn answered(self, tool: &str) -> Answered {
        let Self { value, view, names } = self;
        let lead = hint(&view, &names);
        let envelope = Envelope::of(Body::Success { outcome: Outcome::Succeeded, data: Data::Shown { lead, value } });
        let form = Form::Moved(Box::new(MoveTold::of(envelope, Moved::at(tool, view), names)));
        let rendered = Rendered { form, replayed: false };
        Answered { rendered, receipt: None, last: true, delivery: None, declares_output: false }
    }
}

/// Shows something of the walk that was named, else of the connection's, else of one that has not begun.
pub(crate) async fn look_own(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    session: Option<SessionId>,
    own: Option<&OwnWalks>,
    what: What,
) -> Result<Shown, Box<Refusal>> {
    if session.is_some() {
        return look(gateway, principal, session, what).await;
    }
    match look(gateway, principal, own.and_then(|own| own.meant(gateway)), what).await {
        Err(refusal) if refusal.kind == RefusalKind::UnknownName => look(gateway, principal, None, what).await,
        shown => shown,
    }
}

/// Shows something of a walk: of the named one, else of one that has not begun.
pub(crate) async fn look(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    session: Option<SessionId>,
    what: What,
) -> Result<Shown, Box<Refusal>> {
    let listing = gateway.catalogue.now();
    let names = listing.machines().names();
    let Some(session) = session else { return Ok(before(gateway, what)) };
    let Seen { view, machines } = walks::look_at(gateway, principal, &session).await?;
    let value = match what {
        What::Next => next_body(&view, names),
        What::State => state_body(&view, names),
        What::Graph | What::GraphMermaid | What::GraphDot => {
            let machine = machines.get(&view.machine).ok_or_else(|| gone(&view.machine))?;
            drawn(machine, &view, what)
        }
        What::History | What::Trace => told(gateway, &session, what).await?,
    };
    Ok(Shown { value, view, names: names.clone() })
}

/// What is shown where no walk has begun: where each machine would begin.
fn before(gateway: &Gateway, what: What) -> Shown {
    let listing = gateway.catalogue.now();
    let config = gateway.config();
    let machines: Vec<&Machine> =
        listing.machines().roots().iter().filter_map(|name| config.machines.get(name)).collect();
    let names = listing.machines().names();
    let each = |show: &dyn Fn(&View) -> Value| match machines.as_slice() {
        [only] => show(&unbegun(only)),
        several => {
            let shown = several.iter().map(|machine| (machine.name().to_string(), show(&unbegun(machine))));
            json!({ "machines": shown.collect::<Map<_, _>>() })
        }
    };
    let value = match what {
        What::Next => each(&|view| next_body(view, names)),
        What::State => each(&|view| state_body(view, names)),
        What::History => json!({ "moves": [] }),
        What::Trace => json!({ "events": [] }),
        What::Graph | What::GraphMermaid | What::GraphDot => match machines.as_slice() {
            [only] => drawn(only, &unbegun(only), what),
            several => drawn_together(several, what),
        },
    };
    let view = match machines.as_slice() {
        [only] => unbegun(only),
        several => nowhere(several, names),
    };
    Shown { value, view, names: names.clone() }
}

/// A walk that has not begun: it has no handle yet.
pub(super) fn unbegun(machine: &Machine) -> View {
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
        halves: Vec::new(),
        state: at.state,
        fields: at.fields,
    }
}

/// A walk that has not begun, and could through any of those machines.
pub(super) fn nowhere(machines: &[&Machine], names: &Names) -> View {
    let mut next: BTreeMap<String, Next> = BTreeMap::new();
    for view in machines.iter().map(|machine| unbegun(machine)) {
        for legal in view.next {
            let action = names.called(&view.machine, &legal.action).to_owned();
            let same = |known: &Next| known.schema == legal.schema;
            match next.get_mut(&action) {
                // Which inputs it takes depends on the machine.
                Some(known) if !same(known) => known.schema = None,
                Some(_) => {}
                None => drop(next.insert(action.clone(), Next { action, ..legal })),
            }
        }
    }
    View {
        session: SessionId::new(""),
        root: MachineName::new(""),
        machine: MachineName::new(""),
        state: StateName::new(""),
        seq: 0,
        fields: Map::new(),
        over: false,
        next: next.into_values().collect(),
        waits: None,
        frames: Vec::new(),
        halves: Vec::new(),
    }
}

fn drawn(machine: &Machine, view: &View, what: What) -> Value {
    let taken = view.frames.last().map(|frame| frame.taken.keys().cloned().collect()).unwrap_or_default();
    let marks = Marks { now: Some(view.state.clone()), taken };
    Value::String(match what {
        What::GraphMermaid => machine.mermaid(&marks),
        What::GraphDot => machine.dot(&marks),
        What::Graph | What::Next | What::History | What::State | What::Trace => machine.svg(&marks),
    })
}

/// Each of several machines, where it would begin.
fn drawn_together(machines: &[&Machine], what: What) -> Value {
    let begins = |machine: &Machine| Marks { now: Some(machine.initial().clone()), ..Marks::default() };
    let each = |draw: &dyn Fn(&Machine, &Marks) -> String| {
        machines.iter().map(|machine| draw(machine, &begins(machine))).collect::<Vec<_>>().join("\n")
    };
    Value::String(match what {
        What::GraphMermaid => each(&|machine, marks| format!("%% {}\n{}", machine.name(), machine.mermaid(marks))),
        What::GraphDot => each(&|machine, marks| machine.dot(marks)),
        What::Graph | What::Next | What::History | What::State | What::Trace => {
            let all: Vec<(&Machine, Marks)> = machines.iter().map(|machine| (*machine, begins(machine))).collect();
            graph::together(&all)
        }
    })
}

fn gone(machine: &MachineName) -> Box<Refusal> {
    let words = format!("the machine `{machine}` is not declared any more, so that it cannot be drawn");
    Box::new(Refusal::of(RefusalKind::SchemaDrift, words))
}

/// What the ledger tells of a walk.
async fn told(gateway: &Gateway, session: &SessionId, what: What) -> Result<Value, Box<Refusal>> {
    let unread = |error: amends_ledger::Error| {
        tracing::warn!(%error, "a walk could not be read");
        Box::new(Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read"))
    };
    let trace = gateway.ledger.trace(session).await.map_err(unread)?;
    let events = trace.map(|trace| trace.events).unwrap_or_default();
    let ((member, told), left_out) = match what {
        What::History => {
            let moves = history(events.iter().map(|stored| &stored.event));
            let newest = newest(moves.iter().rev().map(|entry| serde_json::to_value(entry).unwrap_or_default()));
            let left_out = moves.len() - newest.len();
            (("moves", newest), left_out)
        }
        _ => {
            let shown = |stored: &amends_ledger::StoredEvent| {
                let mut event = serde_json::to_value(&stored.event).unwrap_or_default();
                event["hash"] = json!(stored.hash);
                event
            };
            let newest = newest(events.iter().rev().map(shown));
            let left_out = events.len() - newest.len();
            (("events", newest), left_out)
        }
    };
    let mut body = json!({ "session": session, member: told });
    if left_out > 0 {
        let words = format!("the {left_out} oldest are left out; `amends trace {session}` has all of them");
        (body["left_out"], body["note"]) = (left_out.into(), words.into());
    }
    Ok(body)
}

/// The newest of what is told of a walk, oldest first, as many as go into an answer.
fn newest(told: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut size = 0;
    let fits = |value: &Value| {
        // One is told however large it is.
        let first = size == 0;
        size += value.to_string().len();
        first || size <= TOLD_BYTES_MAX
    };
    let mut kept: Vec<Value> = told.take(TOLD_MAX).take_while(fits).collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_told_and_never_more_than_an_answer_holds() {
        let all: Vec<Value> = (0..2_000).map(|n| json!(n)).collect();
        let told = newest(all.iter().rev().cloned());
        assert_eq!((told.len(), told.first(), told.last()), (TOLD_MAX, Some(&json!(1_500)), Some(&json!(1_999))));
        let large = json!("x".repeat(TOLD_BYTES_MAX / 3));
        assert_eq!(newest(std::iter::repeat_n(large, 9)).len(), 2);
        assert_eq!(newest(std::iter::once(json!("x".repeat(TOLD_BYTES_MAX)))).len(), 1);
    }
}
