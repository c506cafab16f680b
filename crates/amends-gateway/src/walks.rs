//! The walks of this process: whose they are, where they are, and what is taken in them.

pub mod view;

use std::sync::Arc;

use amends_core::id::MachineName;
use amends_core::{Principal, Refusal, RefusalKind, SessionId};
use amends_wire::mcp::steps::Inputs;

use crate::driver::{CallHandle, Listener};
use crate::gateway::Gateway;
use view::View;

/// What an agent wants done in a walk.
#[derive(Debug)]
pub struct Order {
    /// What.
    pub what: Wish,
    /// The agent's own key.
    pub key: Option<String>,
    /// How long the agent waits, where it says so.
    pub deadline_ms: Option<u64>,
    /// What a door found wrong with it: it is refused, and that is recorded in the walk.
    pub refusal: Option<Box<Refusal>>,
}

/// What is wanted of a walk.
#[derive(Debug)]
pub enum Wish {
    /// An action taken.
    Step {
        /// The action.
        action: String,
        /// Its inputs.
        inputs: Inputs,
        /// How many moves the agent thinks were made.
        expect_seq: Option<u64>,
    },
    /// The walk begun again.
    Reset,
    /// Another walk, begun at a past point: after that many moves, or where it is now.
    Fork(Option<u64>),
    /// The move that is being made, stopped.
    Cancel,
}

/// Which walk is meant.
#[derive(Clone, Debug)]
pub enum Which {
    /// That one, if it is the principal's.
    Known(SessionId),
    /// A new one, through that machine.
    New(MachineName),
}

/// Hands in what an agent wants done in a walk. The session of the handle is the walk's own. A walk that is another's is unknown.
pub async fn order(
    _gateway: &Arc<Gateway>,
    _principal: &Principal,
    _door: &'static str,
    _which: Which,
    _order: Order,
    _listener: Listener,
) -> Result<CallHandle, Box<Refusal>> {
    Err(unknown())
}

/// Where a walk of that principal is.
pub async fn look(_gateway: &Arc<Gateway>, _principal: &Principal, _session: &SessionId) -> Result<View, Box<Refusal>> {
    Err(unknown())
}

fn unknown() -> Box<Refusal> {
    Box::new(Refusal::of(RefusalKind::UnknownName, "there is no such walk"))
}
