//! The door of programs that have the gateway inside themselves: no socket, the same calls.

use std::sync::Arc;

use amends_core::{Principal, RefusalKind, SessionId};
pub use amends_wire::mcp::call::{DEADLINE, KEY};
use amends_wire::mcp::{Receipt, ToolCall};
use amends_wire::scan::Scanner;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::waiting::Waiting;
use super::walk::{self, Asker, Came, OwnWalks, Stray};
use crate::driver::{Listener, SessionHandle, Wish};
use crate::gateway::Gateway;

const DOOR: &str = "rust";

/// An agent in this process. It has a session of its own, as one has that is connected.
#[derive(Debug)]
pub struct Inside {
    gateway: Arc<Gateway>,
    principal: Principal,
    session: SessionHandle,
    walks: OwnWalks,
}

/// What an agent in this process is told.
#[derive(Debug)]
pub struct Told {
    /// The envelope.
    pub envelope: Value,
    /// The proof that it is recorded.
    pub receipt: Option<Receipt>,
}

impl Inside {
    /// An agent of that name.
    pub fn new(gateway: &Arc<Gateway>, principal: Principal) -> Self {
        let session = gateway.open_session(principal.clone(), DOOR);
        Self { gateway: gateway.clone(), principal, session, walks: OwnWalks::default() }
    }

    /// Its session.
    pub fn session(&self) -> &SessionId {
        &self.session.id
    }

    /// Calls a tool, and waits for how that ends; nothing where the gateway stops first. Whoever drops this before has gone, as
    /// one whose connection broke.
    pub async fn call(&self, tool: &str, arguments: &Value, meta: Map<String, Value>) -> Option<Told> {
        let (handle, instead) = match self.hand_in(tool, arguments, meta).await {
            Came::Answered(answered) => {
                let envelope = answered.rendered.envelope_json();
                return Some(Told { envelope, receipt: answered.receipt });
            }
            Came::Handed(handle, instead) => (handle, instead),
        };
        let mut waiting = Waiting::new(handle);
        let mut answered = walk::dressed(&self.gateway, waiting.answer().await, instead);
        let envelope = answered.rendered.envelope_json();
        if let Some(delivery) = answered.delivery.take() {
            delivery.confirm();
        }
        Some(Told { envelope, receipt: answered.receipt })
    }

    async fn hand_in(&self, tool: &str, arguments: &Value, meta: Map<String, Value>) -> Came {
        let limits = self.gateway.config().limits;
        let refused = |kind, words: String| {
            let refusal = Box::new(amends_core::Refusal::of(kind, words));
            let wish = Wish::Unreadable { requested: tool.to_owned(), refusal };
            Came::Handed(self.session.call(wish, Listener::of_the_answer()), None)
        };
        let params = serde_json::json!({ "name": tool, "arguments": arguments, "_meta": meta }).to_string();
        if params.len() > limits.body_bytes {
            return refused(RefusalKind::TooLarge, format!("the call is larger than {} bytes", limits.body_bytes));
        }
        if let Err(deep) = Scanner::new(limits.depth).feed(params.as_bytes()) {
            return refused(RefusalKind::TooLarge, deep.to_string());
        }
        let call = match serde_json::from_str::<&RawValue>(&params).map(|raw| ToolCall::parse(Some(raw))) {
            Ok(Ok(call)) => call,
            Ok(Err(error)) => return refused(error.kind(), error.to_string()),
            Err(error) => return refused(RefusalKind::InvalidArgument, error.to_string()),
        };
        let (gateway, principal, session) = (&self.gateway, &self.principal, &self.session);
        let asker = Asker { gateway, principal, door: DOOR, session, own: Some(&self.walks) };
        let Some(wanted) = walk::wanted(&self.gateway, &call) else {
            return match walk::stray(&asker, &call, Listener::of_the_answer()).await {
                Stray::Came(came) => came,
                Stray::Passes(listener, moved) => {
                    let wish = Wish::Call { params: &params, call: &call };
                    Came::Handed(self.session.call(wish, listener), moved)
                }
            };
        };
        walk::call(&asker, &call, wanted, Listener::of_the_answer()).await
    }
}
