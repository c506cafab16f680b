//! The walks of this process: whose they are, where they are, and what is taken in them.

pub mod view;

use std::sync::Arc;

use amends_core::{Event, Principal, Refusal, RefusalKind, SessionId};
use serde_json::Value;

use crate::gateway::Gateway;
use view::View;

/// Where a walk of that principal is.
pub async fn look(_gateway: &Arc<Gateway>, _principal: &Principal, _session: &SessionId) -> Result<View, Box<Refusal>> {
    Err(Box::new(Refusal::of(RefusalKind::UnknownName, "there is no such walk")))
}

/// What was done in a walk.
pub fn history<'a>(_events: impl IntoIterator<Item = &'a Event>) -> Vec<Value> {
    Vec::new()
}
