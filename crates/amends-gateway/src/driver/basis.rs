//! What a call is based on: which reads, and what they said.

use amends_core::contract::Contract;
use amends_core::evidence::{Evidence, EvidenceSource};
use amends_core::limits::EVIDENCE_MAX;
use amends_core::{Digest, EffectKind, Refusal, RefusalKind, ToolName};
use amends_ledger::{digest, exactly};
use amends_wire::mcp::ToolCall;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::catalogue::Listing;

/// One read that a call is based on, with the arguments it is read with.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    pub(super) evidence: Evidence,
    pub(super) args: Map<String, Value>,
}

/// One entry of `amends/evidence`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    hash: String,
}

/// The reads a call is based on: those its contract names, with the hashes that the call names for them, and whatever else
/// the call names.
pub(super) fn gather(
    listing: &Listing,
    contract: &Contract,
    arguments: &Value,
    named: Option<&RawValue>,
) -> Result<Vec<Basis>, Box<Refusal>> {
    let named: Vec<Named> = match named {
        None => Vec::new(),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
            let shape = "a list of objects with `tool`, `args` and `hash`";
            refused(format!("`amends/evidence` must be {shape}: {error}"))
        })?,
    };
    let mut bases = Vec::new();
    for reading in &contract.evidence {
        let mut args = Map::new();
        for (name, expression) in &reading.args {
            let value = expression.evaluate(&[("args", arguments)]);
            args.insert(name.clone(), value.map_err(|error| refused(format!("what it is based on: {error}")))?);
        }
        bases.push(basis(&reading.tool, args, None));
    }
    for Named { tool, args, hash } in named {
        let reads = |tool: &str| listing.find(tool).is_some_and(|tool| tool.rules.contract.effect == EffectKind::Read);
        if !reads(&tool) {
            return Err(refused(format!("`amends/evidence` names `{tool}`, which is not a tool that only reads")));
        }
        let named = basis(&tool, args, Some(Digest::new(hash)));
        match bases.iter_mut().find(|basis| basis.evidence.reference == named.evidence.reference) {
            Some(declared) => *declared = named,
            None => bases.push(named),
        }
    }
    if bases.len() > EVIDENCE_MAX {
        return Err(refused(format!("a call may be based on {EVIDENCE_MAX} reads at most")));
    }
    Ok(bases)
}

/// The arguments with which the evidence of an open call is read, from its parameters as they were kept.
pub(super) fn of_call(listing: &Listing, contract: &Contract, params: &str) -> Vec<Map<String, Value>> {
    let raw = serde_json::from_str::<&RawValue>(params).ok();
    let Some(call) = raw.and_then(|raw| ToolCall::parse(Some(raw)).ok()) else { return Vec::new() };
    let arguments = call.arguments().map_or("{}", |raw| raw.get());
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::Object(Map::new()));
    let named = call.meta().ok().and_then(|meta| meta.evidence);
    let bases = gather(listing, contract, &arguments, named).unwrap_or_default();
    bases.into_iter().map(|basis| basis.args).collect()
}

fn basis(tool: &str, args: Map<String, Value>, hash: Option<Digest>) -> Basis {
    let from = if hash.is_some() { EvidenceSource::Call } else { EvidenceSource::Fresh };
    let reference = reference(tool, &args);
    Basis { evidence: Evidence { tool: ToolName::new(tool), reference, hash, from }, args }
}

/// The digest by which a read of that tool with those arguments is known.
pub(super) fn reference(tool: &str, args: &Map<String, Value>) -> Digest {
    let read = serde_json::json!([tool, args]);
    digest(&exactly(&read))
}

fn refused(message: String) -> Box<Refusal> {
    Box::new(Refusal::of(RefusalKind::InvalidArgument, message))
}
