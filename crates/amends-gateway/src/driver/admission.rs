//! From a wish to a call: what the gates say of it, and the names by which a repeat would find it.

use std::sync::Arc;

use amends_core::attempt::Payload;
use amends_core::claim::{Claim, ClaimKind};
use amends_core::contract::{Contract, Place};
use amends_core::failure::bounded;
use amends_core::gates::Patience;
use amends_core::limits::ANSWER_WITHIN_MS;
use amends_core::nearest::nearest;
use amends_core::refusal::ArgumentFault;
use amends_core::{
    Call, CallKey, Digest, Gates, Playbook, Principal, Recovery, Refusal, RefusalKind, Rules, Timestamp, ToolName,
    UpstreamName,
};
use amends_ledger::{digest, exactly, keyed_digest};
use amends_wire::mcp::ToolCall;
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use amends_wire::twice::{self, Read};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::permission::{self, Caller};
use super::{basis, sign_in, undo};
use crate::catalogue::{Listing, ServedTool};
use crate::clock;
use crate::equal;
use crate::gateway::Gateway;
use crate::mint;
use crate::restraint::Occupied;
use crate::spending::Reserved;

/// How long arguments are at most to be shown in the trace.
const VIEWED_BYTES_MAX: usize = 256 << 10;

/// What a door hands over.
#[derive(Debug)]
pub enum Wish<'a> {
    /// A call that could be read.
    Call {
        /// Its parameters, as they were written.
        params: &'a str,
        /// The same, read.
        call: &'a ToolCall<'a>,
    },
    /// A message that could not be, with the reason.
    Unreadable {
        /// What was asked for, as far as it can be told.
        requested: String,
        /// Why it is refused.
        refusal: Box<Refusal>,
    },
}

/// A call ready to be handed to the dispatcher.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) call: Box<Call>,
    pub(super) gates: Gates,
    /// The arguments with which each piece of evidence is read.
    pub(super) evidence: Vec<Map<String, Value>>,
    pub(super) tool: Option<Arc<ServedTool>>,
    pub(super) params: Arc<str>,
    pub(super) room: Option<Occupied>,
    pub(super) place: Option<tokio::sync::OwnedSemaphorePermit>,
    pub(super) reserved: Option<Reserved>,
}

/// Samples the gates for a wish and makes a call of it.
pub(super) fn admit(gateway: &Gateway, caller: &Caller<'_>, wish: Wish<'_>) -> Admitted {
    let principal = caller.principal;
    match wish {
        Wish::Unreadable { requested, refusal } => refused(principal, &requested, *refusal),
        Wish::Call { params, call } => {
            if let Some(masked) = masked(gateway, caller, params, call)
                && let Ok(raw) = serde_json::from_str(&masked)
                && let Ok(call) = ToolCall::parse(Some(raw))
            {
                return admit_call(gateway, caller, &masked, &call);
            }
            admit_call(gateway, caller, params, call)
        }
    }
}

/// The parameters of a call without what its tool is not to be sent, where the operator wants that masked.
fn masked(gateway: &Gateway, caller: &Caller<'_>, params: &str, call: &ToolCall<'_>) -> Option<String> {
    let (config, arguments) = (gateway.config(), call.arguments()?.get());
    let sieve = &config.pii.of(call.name()).masks;
    let (masked, _) = sieve.masked(arguments, || serde_json::from_str(arguments).ok()).filter(|_| caller.judged)?;
    let mut splice = Splice::new(params);
    splice.set_member(params, "arguments", masked).ok()?;
    Some(splice.finish())
}

fn admit_call(gateway: &Gateway, caller: &Caller<'_>, params: &str, call: &ToolCall<'_>) -> Admitted {
    let principal = caller.principal;
    let listing = gateway.catalogue.now();
    let Some(tool) = listing.find(call.name()) else {
        let refusal = unknown(gateway, &listing, call.name());
        return refused(principal, call.name(), refusal);
    };
    let arguments = call.arguments().map_or("{}", |raw| raw.get());
    let meta = match call.meta() {
        Ok(meta) => meta,
        Err(error) => return refused(principal, call.name(), error.refusal()),
    };
    let now = clock::now();
    let mut gates = Gates::default();
    let reads = tool.rules.contract.effect.is_read();
    let config = gateway.config();
    gates.approval.clone_from(&tool.rules.contract.approval);
    let looked_at = tool.input.is_some() || permission::reads_arguments(&config, caller, tool);
    let parsed = (looked_at || !reads).then(|| twice::read(arguments));
    if let (true, Some(Err(error))) = (looked_at, &parsed) {
        // JSON allows more than can be checked: numbers beyond all range, halves of characters.
        let words = format!("the arguments of `{}` cannot be checked: {error}", tool.name);
        gates.refusal = Some(Box::new(Refusal::of(RefusalKind::InvalidArgument, words)));
    }
    let (value, twice) = parsed.and_then(Result::ok).map_or((None, None), |read| (Some(read.value), read.twice));
    let ruled = tool.rules.contract.declared || permission::reads_arguments(&config, caller, tool);
    if let Some(at) = twice.as_ref().filter(|_| ruled) {
        // What is judged and shown to a person would not be what its tool takes.
        gates.refusal = Some(Box::new(given_twice(&tool.name, at)));
    }
    if let (Some(schema), Some(value)) = (&tool.input, &value)
        && let Some(refusal) = schema.refusal(tool.name.as_str(), value)
    {
        gates.refusal = Some(Box::new(refusal));
    }
    if !gateway.recording.load(std::sync::atomic::Ordering::Relaxed) {
        let mut refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot record, so nothing is sent");
        refusal.retry_after_ms = Some(5000);
        gates.refusal = Some(Box::new(refusal));
    }
    let limits = config.limits;
    if let Some(refusal) = caller.counts.then(|| too_often(gateway, principal)).flatten() {
        gates.refusal.get_or_insert(Box::new(refusal));
    }
    // A session is told from another by its id, as a principal is.
    let session_rate = limits.session_rate.filter(|_| caller.counts);
    let session = || Principal::from(caller.origin.session);
    if session_rate.is_some()
        && let Err(wait_ms) = gateway.session_rates.take(&session(), session_rate, now)
    {
        let mut refusal = Refusal::of(RefusalKind::RateLimited, "these are more calls than one session may make");
        refusal.retry_after_ms = Some(wait_ms);
        gates.refusal.get_or_insert(Box::new(refusal));
    }
    let room = match (principal.tenant(), limits.tenant_calls) {
        (Some(tenant), Some(most)) => gateway.room.take_for(tenant, limits.calls, most),
        _ => gateway.room.take(limits.calls),
    };
    if room.is_none() {
        let mut refusal = Refusal::of(RefusalKind::RateLimited, "the gateway has too many open calls");
        refusal.retry_after_ms = Some(1000);
        gates.refusal.get_or_insert(Box::new(refusal));
    }
    let place = tool.upstream.places.clone().try_acquire_owned().ok();
    if place.is_none() {
        let words = format!("too many calls wait for `{}`", tool.upstream.name);
        let mut refusal = Refusal::of(RefusalKind::RateLimited, words);
        refusal.retry_after_ms = Some(1000);
        gates.refusal.get_or_insert(Box::new(refusal));
    }
    if let Some(refusal) = gateway.pins.refusal(tool) {
        gates.refusal = Some(Box::new(refusal));
    }
    if tool.upstream.lacks_credential() {
        let words =
            format!("`{}` wants to be shown a credential that is not there; nothing was sent", tool.upstream.name);
        gates.refusal = Some(Box::new(Refusal::of(RefusalKind::MissingCredential, words)));
    }
    let wish = permission::Wanted { tool, arguments, read: value.as_ref(), now };
    let reserved = permission::judge(gateway, &config, caller, &wish, &mut gates);
    if gates.refusal.is_none() {
        gates.refusal = breaker_open(tool, now).map(Box::new);
    }
    if !reads && let Some(run) = tool.upstream.run() {
        gates.runs.insert(tool.upstream.name.clone(), run);
    }
    let contract = &tool.rules.contract;
    let agent_waits = meta.deadline_ms.unwrap_or(contract.deadline_ms).min(contract.deadline_ms);
    let id = mint::call();
    ask_first(gateway, contract, &mut gates);
    // Whatever a person is asked about is found by its repeat, also where it only reads.
    let unsigned = sign_in::account(gateway, tool).is_some_and(|account| account.shown().is_none());
    if unsigned {
        gates.patience.get_or_insert_with(|| Box::new(patience(&config.people.patience, contract)));
    }
    let is_found = gates.approval.is_some() || caller.keeps || unsigned;
    let value = value.or_else(|| is_found.then(|| serde_json::from_str(arguments).ok()).flatten());
    let (fingerprint, mut claims) = if reads && !is_found {
        (keyed_digest(&gateway.secret, &[b"read", arguments.as_bytes()]), Vec::new())
    } else {
        let value = value.as_ref().filter(|_| twice.is_none());
        let named = value.map_or_else(|| arguments.as_bytes().to_vec(), |value| named(contract, value, arguments));
        claims(gateway, principal, tool, meta.key.as_deref(), &named)
    };
    let known = value.clone().unwrap_or_else(|| Value::Object(Map::new()));
    match object(gateway, tool, &known) {
        Ok(Some(name)) => {
            claims.push(Claim { name, fingerprint: fingerprint.clone(), kind: ClaimKind::Object });
        }
        Ok(None) => {}
        Err(refusal) => drop(gates.refusal.get_or_insert(refusal)),
    }
    let bases = match basis::gather(&listing, contract, &known, meta.evidence) {
        Ok(bases) if !reads => bases,
        Ok(_) => Vec::new(),
        Err(refusal) => {
            gates.refusal.get_or_insert(refusal);
            Vec::new()
        }
    };
    let token = || undo::token_digest(&undo::token(&gateway.secret, &id));
    let reversal = (!reads && contract.reverse.is_some()).then(token);
    let view = view(gateway, tool, arguments, value.as_ref());
    Admitted {
        call: Box::new(Call {
            effect_key: if reads { String::new() } else { mint::effect_key(&id) },
            id,
            tool: tool.name.clone(),
            upstream: tool.upstream.name.clone(),
            rules: tool.rules.clone(),
            rules_hash: tool.rules_hash.clone(),
            arguments: Payload { digest: fingerprint, size: arguments.len() as u64 },
            principal: principal.clone(),
            deadline: now + agent_waits,
            key: meta.key.map(CallKey),
            claims,
            repeat_of: None,
            evidence: bases.iter().map(|basis| basis.evidence.clone()).collect(),
            reversal,
            redeems: None,
            view,
            leg: None,
        }),
        evidence: bases.into_iter().map(|basis| basis.args).collect(),
        gates,
        tool: Some(tool.clone()),
        params: params.into(),
        room,
        place,
        reserved,
    }
}

/// The refusal of a principal that wants more than it may at once; else that is counted.
pub(crate) fn too_often(gateway: &Gateway, principal: &Principal) -> Option<Refusal> {
    let wait_ms = gateway.rates.take(principal, gateway.config().limits.rate, clock::now()).err()?;
    let refusal = Refusal::of(RefusalKind::RateLimited, "these are more calls than one may make here");
    Some(Refusal { retry_after_ms: Some(wait_ms), ..refusal })
}

/// Who must say yes to the call, as the contract and the queue say, and how the wait for that is spent.
fn ask_first(gateway: &Gateway, contract: &Contract, gates: &mut Gates) {
    let Some(approval) = gates.approval.take().or_else(|| contract.approval.clone()) else { return };
    let config = gateway.config();
    gates.approval = Some(Box::new(config.people.approval(&approval)));
    gates.patience = Some(Box::new(patience(&config.people.patience, contract)));
}

/// How the wait for a yes is spent. What the tool says of a person's time counts before what is said of all.
fn patience(people: &Patience, contract: &Contract) -> Patience {
    let own = contract.answer_within_ms != ANSWER_WITHIN_MS;
    Patience { answer_within_ms: people.answer_within_ms.filter(|_| !own), ..people.clone() }
}

/// What is shown of a call's arguments in the trace, where that is recorded and they are not too long to be looked at.
fn view(gateway: &Gateway, tool: &ServedTool, arguments: &str, read: Option<&Value>) -> Option<String> {
    let config = gateway.config();
    let mask = config.privacy.of(tool.name.as_str());
    if !mask.shows_arguments() || arguments.len() > VIEWED_BYTES_MAX {
        return None;
    }
    match read {
        Some(value) => Some(mask.view(value)),
        None => serde_json::from_str(arguments).ok().map(|value: Value| mask.view(&value)),
    }
}

fn given_twice(tool: &ToolName, at: &[String]) -> Refusal {
    let field = bounded(&at.join("."));
    let words = format!("`{field}` is given twice to `{tool}`, which may take either; nothing was sent");
    let refusal = Refusal::of(RefusalKind::InvalidArgument, words);
    let (expected, got) = ("to be given once".to_owned(), Some("the same name twice".to_owned()));
    Refusal { details: vec![ArgumentFault { field, expected, got, nearest: Vec::new() }], ..refusal }
}

/// The name of what a call writes, where its contract says so.
fn object(gateway: &Gateway, tool: &ServedTool, arguments: &Value) -> Result<Option<Digest>, Box<Refusal>> {
    let contract = &tool.rules.contract;
    let Some(expression) = contract.object.as_ref().filter(|_| !contract.effect.is_read()) else {
        return Ok(None);
    };
    let value = expression.evaluate(&[("args", arguments)]).map_err(|error| {
        let message = format!("what `{}` writes cannot be told: {error}", tool.name);
        Box::new(Refusal::of(RefusalKind::InvalidArgument, message))
    })?;
    let bytes = exactly(&value);
    Ok(Some(keyed_digest(&gateway.secret, &[b"object", tool.upstream.identity().as_bytes(), &bytes])))
}

/// The arguments without the key field, in their canonical form: what makes two calls equal.
fn named(contract: &Contract, arguments: &Value, text: &str) -> Vec<u8> {
    let key_field = contract.key.as_ref().and_then(|key| match &key.place {
        Place::Argument(name) => Some(name.as_str()),
        Place::Header(_) | Place::Meta(_) => None,
    });
    match (key_field, arguments) {
        (Some(field), Value::Object(members)) if members.contains_key(field) => {
            let mut members = members.clone();
            members.remove(field);
            equal::form(&members, text)
        }
        _ => equal::form(arguments, text),
    }
}

/// Whether claims are those of a call of that tool with those parameters: the tool then lives where it lived.
pub(super) fn is_for(
    gateway: &Gateway,
    principal: &Principal,
    tool: &ServedTool,
    params: &str,
    held: &[Claim],
) -> bool {
    let params = Object::parse(params);
    let text = params.as_ref().and_then(|params| params.get("arguments")).map_or("{}", RawValue::get);
    let named = match twice::read(text) {
        Ok(Read { value, twice: None }) => named(&tool.rules.contract, &value, text),
        Ok(_) | Err(_) => text.as_bytes().to_vec(),
    };
    let (name, _) = claims(gateway, principal, tool, None, &named);
    held.iter().any(|claim| claim.name == name)
}

fn claims(
    gateway: &Gateway,
    principal: &Principal,
    tool: &ServedTool,
    key: Option<&str>,
    named: &[u8],
) -> (Digest, Vec<Claim>) {
    let identity = tool.upstream.identity();
    let name = |kind: &str, what: &[u8]| {
        let who = [kind.as_bytes(), principal.as_str().as_bytes(), identity.as_bytes(), tool.local.as_bytes(), what];
        keyed_digest(&gateway.secret, &who)
    };
    let arguments = name("arguments", named);
    let fingerprint = arguments.clone();
    let claim = |name, kind| Claim { name, fingerprint: fingerprint.clone(), kind };
    let claims = match key {
        Some(key) => {
            vec![claim(name("key", key.as_bytes()), ClaimKind::Key), claim(arguments, ClaimKind::ArgumentsIfFree)]
        }
        None => vec![claim(arguments, ClaimKind::Arguments)],
    };
    (fingerprint, claims)
}

/// The refusal of a call whose upstream or tool failed too often. It comes last: what passes may be the one call that finds out.
fn breaker_open(tool: &ServedTool, now: Timestamp) -> Option<Refusal> {
    let contract = &tool.rules.contract;
    let until = tool.upstream.restraint.pass(now, &tool.name, contract.effect, contract.timeout_ms).err()?;
    let words = format!("`{}` failed too often and is left alone for a while; nothing was sent", tool.upstream.name);
    let mut refusal = Refusal::of(RefusalKind::BreakerOpen, words);
    refusal.retry_after_ms = Some(until.since_ms(now));
    Some(refusal)
}

/// The refusal of a name that an upstream may turn out to have whose tools are not known yet; nothing where it is known, or nobody may.
pub(super) fn not_known_yet(gateway: &Gateway, listing: &Listing, name: &str) -> Option<Refusal> {
    if listing.find(name).is_some() {
        return None;
    }
    // Only one whose names begin like this one may turn out to have it.
    let upstreams = gateway.upstreams();
    let missing: Vec<&str> = upstreams
        .values()
        .filter(|upstream| !listing.has_listed(&upstream.name) && name.starts_with(&upstream.config.prefix))
        .map(|upstream| upstream.name.as_str())
        .collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("the tools of `{}` are not known yet", missing.join("`, `"));
    let mut refusal = Refusal::of(RefusalKind::IndexNotReady, message);
    refusal.retry_after_ms = Some(2000);
    Some(refusal)
}

fn unknown(gateway: &Gateway, listing: &Listing, name: &str) -> Refusal {
    if let Some(refusal) = not_known_yet(gateway, listing, name) {
        return refusal;
    }
    let near = nearest(name, listing.names());
    let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let shown: String = name.chars().take(64).collect();
    let mut refusal = Refusal::of(RefusalKind::UnknownName, format!("there is no tool `{shown}`{hint}"));
    refusal.recovery = Some(Recovery { fuzzy_matches: near, ..Recovery::default() });
    refusal
}

/// A call that is refused before anything is known of its tool.
pub(super) fn refused(principal: &Principal, requested: &str, refusal: Refusal) -> Admitted {
    let requested: String = requested.chars().take(128).collect();
    let rules = Rules { contract: Contract::undeclared(0, 0, 0), playbook: Playbook::default() };
    let canonical = serde_json_canonicalizer::to_vec(&rules).unwrap_or_default();
    Admitted {
        call: Box::new(Call {
            id: mint::call(),
            tool: ToolName::new(requested),
            upstream: UpstreamName::new(""),
            rules_hash: digest(&canonical),
            rules: Arc::new(rules),
            arguments: Payload { digest: digest(b""), size: 0 },
            principal: principal.clone(),
            deadline: clock::now(),
            key: None,
            claims: Vec::new(),
            effect_key: String::new(),
            repeat_of: None,
            evidence: Vec::new(),
            reversal: None,
            redeems: None,
            view: None,
            leg: None,
        }),
        gates: Gates { refusal: Some(Box::new(refusal)), ..Gates::default() },
        evidence: Vec::new(),
        tool: None,
        params: "{}".into(),
        room: None,
        place: None,
        reserved: None,
    }
}
