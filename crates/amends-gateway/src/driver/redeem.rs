//! Redeeming a token: the call that undoes a write, made from what the ledger kept of it.

use amends_core::{CallId, Digest, Fact, Principal, Redeems, Refusal, RefusalKind, ReversalState, Timestamp};
use amends_ledger::{Error, ReversalRow, StoredUndo, Trace};
use amends_wire::mcp::ToolCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::admission::{self, Admitted, Wish};
use super::listener::Listener;
use super::permission::Caller;
use super::session::Mail;
use super::{CallHandle, SessionHandle, undo};
use crate::clock;
use crate::gateway::Gateway;
use crate::identity::shown;
use crate::mint;

/// The tool of ours that redeems a token.
pub const REVERSE_TOOL: &str = "amends_reverse";

/// Who redeems a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeemer {
    /// The agent itself, which may redeem only what it was given.
    Agent,
    /// Whoever runs the gateway.
    Operator,
}

impl SessionHandle {
    /// Redeems a token: calls the tool that undoes the write it stands for.
    pub fn redeem(&self, token: Option<&str>, redeemer: Redeemer, listener: Listener) -> CallHandle {
        let (answer_to, answer) = oneshot::channel();
        let id = mint::call();
        let made = self.gateway.deliveries.now();
        let (handle, user, call) = (self.clone(), self.user.clone(), id.clone());
        let token = token.map(undo::token_digest);
        let redeeming = async move {
            let found = match &token {
                Some(token) => theirs(&handle.gateway, &handle.principal, redeemer, token).await,
                None => Ok(None),
            };
            // What an operator undoes is no call of an agent's, whatever the policies say of agents.
            let judged = redeemer == Redeemer::Agent;
            let caller = Caller { judged, ..handle.caller() };
            let admitted = admitted(&handle.gateway, &caller, call, found);
            // The driver ends only after every user is gone.
            let _ = user.mail.send(Mail::call(admitted, made, answer_to, listener));
        };
        tokio::spawn(shown::with(shown::scopes(), redeeming));
        CallHandle { requested: REVERSE_TOOL.to_owned(), ..self.waiting(id, answer) }
    }
}

/// The token, if that principal may know of it. Another's is as good as none, and looks the same.
async fn theirs(
    gateway: &Gateway,
    principal: &Principal,
    redeemer: Redeemer,
    token: &Digest,
) -> Result<Option<ReversalRow>, Error> {
    let Some(row) = gateway.ledger.reversal(token).await? else { return Ok(None) };
    let owner = match (redeemer, &row.undo) {
        (Redeemer::Operator, _) => return Ok(Some(row)),
        (Redeemer::Agent, Some(undo)) => Some(undo.principal.clone()),
        // How it would be undone is not known yet, or no more; whose it is, its session says.
        (Redeemer::Agent, None) => gateway.ledger.trace(&row.session).await?.and_then(|trace| owner(&trace)),
    };
    Ok(owner.is_some_and(|owner| owner == *principal).then_some(row))
}

/// Whose a session is.
fn owner(trace: &Trace) -> Option<Principal> {
    match trace.events.first().map(|stored| &stored.event.fact) {
        Some(Fact::SessionOpened { principal, .. } | Fact::SessionRetired { principal, .. }) => Some(principal.clone()),
        _ => None,
    }
}

fn admitted(gateway: &Gateway, caller: &Caller<'_>, id: CallId, found: Result<Option<ReversalRow>, Error>) -> Admitted {
    let principal = caller.principal;
    let row = match found {
        Ok(row) => row,
        Err(error) => {
            tracing::warn!(%error, "a token could not be looked up");
            let refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is undone");
            return admission::refused(principal, REVERSE_TOOL, refusal);
        }
    };
    match redeemable(row, clock::now()) {
        Err(refusal) => admission::refused(principal, REVERSE_TOOL, *refusal),
        Ok((redeems, undo)) => {
            let arguments: Map<String, Value> = serde_json::from_slice(&undo.arguments).unwrap_or_default();
            // Two writes may be undone by equal calls: it is its token that makes an undoing the same as another.
            let meta = serde_json::json!({ "amends/key": format!("reversal/{}", redeems.token) });
            let params = serde_json::json!({ "name": undo.tool, "arguments": arguments, "_meta": meta }).to_string();
            let parsed = serde_json::from_str::<&RawValue>(&params).ok();
            let Some(call) = parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok()) else {
                let refusal = refused("it cannot be told how to undo it");
                return admission::refused(principal, REVERSE_TOOL, *refusal);
            };
            let mut admitted = admission::admit(gateway, caller, Wish::Call { params: &params, call: &call });
            admitted.call.effect_key = mint::effect_key(&id);
            admitted.call.id = id;
            admitted.call.redeems = Some(redeems);
            if !caller.judged {
                // A person asked for it.
                admitted.gates.approval = None;
            }
            admitted
        }
    }
}

/// The token and what it undoes, if it can be redeemed now.
fn redeemable(row: Option<ReversalRow>, now: Timestamp) -> Result<(Redeems, StoredUndo), Box<Refusal>> {
    let row = row.ok_or_else(|| refused("there is no such token"))?;
    match row.state {
        ReversalState::Minted => Err(refused("what it would undo is still in doubt, and is settled first")),
        ReversalState::Void => Err(refused("nothing was done that could be undone")),
        ReversalState::Redeemed => Err(refused("it was redeemed already; what it stands for is undone")),
        ReversalState::Armed if row.until.is_some_and(|until| until <= now) => Err(refused("its time is over")),
        // An undoing that is on its way is joined, and one that ended in doubt is gone on with; else the ledger says no.
        ReversalState::Armed | ReversalState::Redeeming => {
            let undo = row.undo.ok_or_else(|| refused("it cannot be told how to undo it"))?;
            Ok((Redeems { token: row.token, session: row.session, call: row.call }, undo))
        }
    }
}

/// The refusal of a token that a step found spent when it should be recorded.
pub(super) fn spent() -> Box<Refusal> {
    refused("it is being redeemed, or was redeemed, by another call")
}

fn refused(why: &str) -> Box<Refusal> {
    Box::new(Refusal::of(RefusalKind::ReversalRefused, format!("the token is not redeemed: {why}")))
}
