//! Where a walk is, what may be done there, and what came of a move: what the doors show of a walk.

use amends_core::dispatcher::walk::{Look, Standing};
use amends_core::machine::{Machine, Position};
use amends_core::{SessionId, Timestamp};
use serde_json::{Map, Value};

pub use amends_wire::mcp::steps::{Given, Moved, Next, View, Waits};

/// Where a walk is, with the fields of the machine it is in. Nothing where that machine is not known.
pub fn view(session: &SessionId, look: &Look<'_>, fields: Map<String, Value>, now: Timestamp) -> Option<View> {
    let frame = look.frames.last()?;
    let machine = look.machines.get(&frame.machine)?;
    // By the machines it is shown in, which may be others than it was in.
    let over = look.given_up.is_some() || (look.frames.len() == 1 && machine.is_terminal(&frame.state));
    let at = Position { state: frame.state.clone(), fields, seq: frame.moves, taken: frame.taken.clone() };
    let later = look.later.iter().find(|(_, until)| *until > now);
    // What could be taken next is of no use in a walk that was given up.
    let given_up = look.given_up.clone().map(Waits::GivenUp);
    let (next, waits) = match look.standing {
        Standing::Open(action) => {
            let asked = look.open.as_ref().is_some_and(|open| open.asked);
            (Vec::new(), Some(Waits::Open { action: action.to_string(), asked }))
        }
        Standing::InDoubt(action) => {
            (Vec::new(), Some(Waits::Unsettled { action: action.to_string(), done: false, asked: look.asked }))
        }
        Standing::Done(action) => {
            let again = named(machine, action.as_str()).into_iter().collect();
            (again, Some(Waits::Unsettled { action: action.to_string(), done: true, asked: false }))
        }
        // Only beginning again leads on, and what its agent cannot do.
        Standing::Unclear(action) => (Vec::new(), Some(Waits::Unclear { action: action.to_string() })),
        Standing::Unknown(action) => {
            let again = named(machine, action.as_str()).into_iter().collect();
            (again, Some(Waits::Unknown { action: action.to_string() }))
        }
        // Its time is over: it can only begin again.
        Standing::Free if look.ends.is_some_and(|ends| ends <= now) => (Vec::new(), None),
        Standing::Free => {
            let legal = look.moves(&at, now).into_iter().filter_map(|legal| named(machine, legal.name.as_str()));
            let waits =
                later.map(|(action, until)| Waits::Later { action: action.to_string(), not_before_ms: until.ms() });
            (legal.collect(), waits)
        }
    };
    Some(View {
        session: session.clone(),
        root: look.root.clone(),
        machine: frame.machine.clone(),
        state: at.state,
        seq: look.moves,
        fields: at.fields,
        over,
        next: if over { Vec::new() } else { next },
        waits: given_up.or(waits),
        frames: look.frames.to_vec(),
        halves: look.halves.clone(),
    })
}

fn named(machine: &Machine, action: &str) -> Option<Next> {
    let (name, action) = machine.action(action)?;
    let (description, schema) = (action.description.clone(), action.input.clone());
    Some(Next { action: name.to_string(), description, schema })
}
