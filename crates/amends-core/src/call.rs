//! An agent's wish to use one tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attempt::Payload;
use crate::claim::{Claim, Held};
use crate::contract::Contract;
use crate::evidence::Evidence;
use crate::id::{CallId, Digest, Principal, ToolName, UpstreamName};
use crate::playbook::Playbook;
use crate::reversal::Redeems;
use crate::time::Timestamp;
use crate::walk::LegOf;

/// What governs a tool's calls: its contract and its playbook. An open call keeps those it began with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// What the operator declared.
    pub contract: Contract,
    /// What is done about each verdict.
    pub playbook: Playbook,
}

/// The agent's own key for a call, as it sent it in `amends/key`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallKey(pub String);

/// An agent's wish to use one tool, as the door handed it over. The arguments pass by; their digest is here.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id, minted by the driver.
    pub id: CallId,
    /// The tool as the agent named it.
    pub tool: ToolName,
    /// Where the tool lives.
    pub upstream: UpstreamName,
    /// What governs it.
    pub rules: Arc<Rules>,
    /// The digest of those rules, by which the ledger keeps them.
    pub rules_hash: Digest,
    /// The digest and size of its arguments.
    pub arguments: Payload,
    /// Who calls.
    pub principal: Principal,
    /// How long the agent waits.
    pub deadline: Timestamp,
    /// The agent's own key.
    pub key: Option<CallKey>,
    /// The names by which a repeat would find it; none for a read.
    pub claims: Vec<Claim>,
    /// The key minted for its effect.
    pub effect_key: String,
    /// The call that this one repeats, or that writes to the same object, where the ledger said so.
    pub repeat_of: Option<Held>,
    /// The facts it is based on.
    pub evidence: Vec<Evidence>,
    /// The digest of the token that undoes it, for a reversible write.
    pub reversal: Option<Digest>,
    /// The token it redeems.
    pub redeems: Option<Redeems>,
    /// What its arguments say, as far as it may be shown; nothing where that is not recorded.
    pub view: Option<String>,
    /// The move it is made for.
    pub leg: Option<LegOf>,
}

/// A call as the trace keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Its id.
    pub call: CallId,
    /// The tool as the agent named it.
    pub tool: ToolName,
    /// Where the tool lives.
    pub upstream: UpstreamName,
    /// The digest of the rules that govern it.
    pub rules: Digest,
    /// The digest and size of its arguments.
    pub arguments: Payload,
    /// Who calls.
    pub principal: Principal,
    /// How long the agent waits.
    pub deadline: Timestamp,
    /// The agent's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<CallKey>,
    /// The names by which a repeat would find it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The key minted for its effect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect_key: String,
    /// The call that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_of: Option<Held>,
    /// The facts it is based on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The digest of the token that undoes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversal: Option<Digest>,
    /// The token it redeems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeems: Option<Redeems>,
    /// What its arguments say, as far as it may be shown: JSON with what is private masked, cut to a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// The move it is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg: Option<LegOf>,
    /// Whether it changes nothing, where it is made for a move: a walk outlives the rules of its calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
}

impl Call {
    /// The call as the trace keeps it.
    pub fn received(&self) -> Received {
        Received {
            call: self.id.clone(),
            tool: self.tool.clone(),
            upstream: self.upstream.clone(),
            rules: self.rules_hash.clone(),
            arguments: self.arguments.clone(),
            principal: self.principal.clone(),
            deadline: self.deadline,
            key: self.key.clone(),
            claims: self.claims.clone(),
            effect_key: self.effect_key.clone(),
            repeat_of: self.repeat_of.clone(),
            evidence: self.evidence.clone(),
            reversal: self.reversal.clone(),
            redeems: self.redeems.clone(),
            view: self.view.clone(),
            leg: self.leg.clone(),
            reads: self.leg.is_some() && self.rules.contract.effect.is_read(),
        }
    }
}
