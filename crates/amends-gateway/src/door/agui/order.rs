//! What a run is to do, found out before it begins: what is wrong with it is still an HTTP error.

use std::sync::Arc;

use amends_core::{Principal, Refusal};
use amends_wire::agui::input::{Input, unfit};
use amends_wire::agui::plan::Plan;

use super::answers::{self, Given};
use crate::door::walk::{self, OwnWalks};
use crate::gateway::Gateway;

/// A run that can begin.
#[derive(Debug)]
pub(crate) struct Order {
    /// The conversation.
    pub(crate) thread: String,
    /// The run.
    pub(crate) run: String,
    pub(super) principal: Principal,
    /// What the client carries that is its own.
    pub(super) state: serde_json::Map<String, serde_json::Value>,
    pub(super) plan: Plan,
    /// What was answered, where it goes on with another run.
    pub(super) given: Option<Given>,
    pub(super) walks: OwnWalks,
    /// What goes on with every call, as `_meta` of it.
    pub(super) meta: serde_json::Map<String, serde_json::Value>,
}

/// Finds out what a run is to do, and takes what it answers.
pub(crate) async fn prepare(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    input: Input,
    meta: serde_json::Map<String, serde_json::Value>,
) -> Result<Order, Box<Refusal>> {
    let Input { thread, run, state, carried, wanted, answers } = input;
    let waits = carried.as_ref().is_some_and(Plan::waits);
    let walks = OwnWalks::default();
    // The same in every process that knows the ledger's secret, and nobody else's.
    walks.known_by(&serde_json::json!(["agui", principal, thread]).to_string());
    let (mut plan, goes_on) = match (answers.is_empty(), carried, wanted) {
        (false, Some(carried), _) if waits => (carried, true),
        (false, _, Some(wanted)) if wanted.machine.is_some() || wanted.steps.iter().all(|step| step.keyed) => {
            (wanted, true)
        }
        (false, ..) => {
            let expected = "`state` as it was given with the interrupts, or a plan whose calls have ids";
            return Err(unfit("resume", expected, None));
        }
        (true, _, _) if waits => return Err(unfit("resume", "an answer for each interrupt that is open", None)),
        (true, _, Some(wanted)) => (wanted, false),
        (true, _, None) => return Err(unfit("forwardedProps.amends", "what is to be run", None)),
    };
    if let Some(machine) = &plan.machine {
        let view = walk::view(gateway, principal, &walks, machine).await?;
        plan.walk = Some(walk::shown(&view));
    }
    let given = match goes_on {
        true => Some(answers::take(gateway, principal, &plan, &answers).await?),
        false => None,
    };
    Ok(Order { thread, run, principal: principal.clone(), state, plan, given, walks, meta })
}
