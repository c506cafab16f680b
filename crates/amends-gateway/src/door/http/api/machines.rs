//! Machines, and the walks through them.

use std::sync::Arc;

use amends_core::id::MachineName;
use amends_core::machine::Machine;
use amends_core::machine::graph::Marks;
use amends_ledger::Trace;
use serde_json::{Value, json};

use super::problem::Problem;
use crate::gateway::Gateway;
use crate::walks::steps::{history, next_body, state_body};
use crate::walks::{self, Recorded};

/// Every machine that is declared.
pub(crate) fn list(gateway: &Arc<Gateway>) -> Vec<Value> {
    gateway.config().machines.declared().map(described).collect()
}

fn described(machine: &Machine) -> Value {
    json!({
        "machine": machine.name(),
        "description": machine.description(),
        "initial": machine.initial(),
        "states": machine.states(),
        "terminal": machine.states().into_iter().filter(|state| machine.is_terminal(state)).collect::<Vec<_>>(),
        "actions": machine.actions().map(|(name, _)| name).collect::<Vec<_>>(),
    })
}

/// A machine as a picture.
pub(crate) fn picture(gateway: &Arc<Gateway>, name: &str) -> Result<String, Problem> {
    let config = gateway.config();
    let machine = config.machines.get(&MachineName::new(name)).ok_or_else(|| Problem::not_found("machine"))?;
    Ok(machine.svg(&Marks::default()))
}

/// The walk of a trace.
pub(crate) async fn walk(gateway: &Arc<Gateway>, trace: &Trace) -> Result<Recorded, Problem> {
    let found = if trace.cut > 0 { None } else { walks::recorded(&gateway.ledger, trace).await? };
    found.ok_or_else(|| Problem::not_found("walk"))
}

/// Where a walk is, what may be done next, and what was done.
pub(crate) fn told(trace: &Trace, walk: &Recorded) -> Value {
    json!({
        "session": trace.session,
        "state": state_body(&walk.view, &walk.names),
        "next": next_body(&walk.view, &walk.names),
        "moves": history(trace.events.iter().map(|stored| &stored.event)),
    })
}
