//! What the operator allows: allowlists, policies, private data, what may be spent.

use amends_core::gates::{Cost, Gates};
use amends_core::privacy::Category;
use amends_core::{Principal, Refusal, RefusalKind, Tenant, Timestamp};
use serde_json::Value;

use crate::catalogue::ServedTool;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::identity::shown;
use crate::policy::{Asked, Decided, Origin, ToolFacts, stricter};
use crate::spending::Reserved;

/// Who calls, and from where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) principal: &'a Principal,
    pub(super) origin: Origin<'a>,
    /// Whether the call counts as one of its principal's. One that is made for another wish does not: that was counted.
    pub(super) counts: bool,
    /// Whether it is judged by what is allowed to agents.
    pub(super) judged: bool,
    /// Whether what a read gives is kept like what a write does, and found by its repeat.
    pub(super) keeps: bool,
}

/// What is wanted, and when.
pub(super) struct Wanted<'a> {
    pub(super) tool: &'a ServedTool,
    /// The arguments as they were written.
    pub(super) arguments: &'a str,
    /// The same, where they were read.
    pub(super) read: Option<&'a Value>,
    pub(super) now: Timestamp,
}

/// Whether the arguments of that tool's calls are looked at before they are sent.
pub(super) fn reads_arguments(config: &Config, caller: &Caller<'_>, tool: &ServedTool) -> bool {
    caller.judged && (config.policies.is_some() || config.cost.counts(tool.name.as_str()))
}

/// Adds to the gates what the operator's rules say of a call: a No, or who must say yes, and what it costs. What is set aside of a
/// principal's day is given back with what is returned here.
pub(super) fn judge(
    gateway: &Gateway,
    config: &Config,
    caller: &Caller<'_>,
    wanted: &Wanted<'_>,
    gates: &mut Gates,
) -> Option<Reserved> {
    if !caller.judged || gates.refusal.is_some() {
        return None;
    }
    if let Some(refusal) = unlisted(config, caller, wanted.tool) {
        gates.refusal = Some(Box::new(refusal));
        return None;
    }
    ruled(config, caller, wanted, gates);
    if gates.refusal.is_none() {
        gates.refusal = private(config, wanted).map(Box::new);
    }
    if gates.refusal.is_some() {
        return None;
    }
    match spent(gateway, config, caller, wanted, gates) {
        Ok(reserved) => reserved,
        Err(refusal) => {
            gates.refusal = Some(refusal);
            None
        }
    }
}

/// The refusal of a tool that is not among those its principal is limited to.
fn unlisted(config: &Config, caller: &Caller<'_>, tool: &ServedTool) -> Option<Refusal> {
    if config.allowlists.allow(caller.principal, tool.name.as_str()) {
        return None;
    }
    let words = format!("`{}` is not among the tools that are allowed here; nothing was sent", tool.name);
    let hint = format!("`{}` would have to be allowed by whoever runs the gateway", tool.name);
    Some(Refusal { widening_hint: Some(hint), ..Refusal::of(RefusalKind::AllowlistViolation, words) })
}

/// What the policies say.
fn ruled(config: &Config, caller: &Caller<'_>, wanted: &Wanted<'_>, gates: &mut Gates) {
    let Some(policies) = &config.policies else { return };
    let (tool, contract) = (wanted.tool, &wanted.tool.rules.contract);
    let facts = ToolFacts {
        name: tool.name.as_str(),
        upstream: tool.upstream.name.as_str(),
        effect: contract.effect,
        reversible: contract.reverse.is_some(),
        declared: contract.declared,
        shape: &tool.shape,
    };
    let tenant = caller.principal.tenant();
    let asked = Asked {
        principal: caller.principal,
        tenant: tenant.as_ref().map(Tenant::as_str),
        tool: facts,
        // Arguments that could not be read were refused.
        arguments: wanted.read.unwrap_or(&Value::Null),
        origin: caller.origin,
        scopes: &shown::scopes(),
        now: wanted.now,
    };
    match policies.decide(&asked) {
        Decided::Permitted { .. } => {}
        Decided::Approval(approval) => {
            let approval = match gates.approval.take() {
                Some(before) => stricter(*before, *approval),
                None => *approval,
            };
            gates.approval = Some(Box::new(approval));
        }
        Decided::Denied(mut ruling) => {
            // What a policy could not be evaluated for may quote what was sent.
            let mask = config.privacy.of(tool.name.as_str());
            let quoted = wanted.read.map(|arguments| mask.quoted_of_arguments(arguments)).unwrap_or_default();
            ruling.reasons.iter_mut().for_each(|reason| *reason = mask.text_without(reason, &quoted));
            let words = format!(
                "`{}` may not be called like this, and asking in other words does not change that; nothing was sent",
                tool.name
            );
            gates.refusal = Some(Box::new(Refusal::of(RefusalKind::PolicyBlocked, words)));
            gates.ruling = Some(ruling);
        }
    }
}

/// The refusal of arguments that hold what that tool is not to be sent. Only what kind of thing it is is said of it.
fn private(config: &Config, wanted: &Wanted<'_>) -> Option<Refusal> {
    let tool = &wanted.tool.name;
    let found = config.pii.of(tool.as_str()).arguments.finds(wanted.arguments);
    let found: Vec<&str> = found.into_iter().map(Category::as_str).collect();
    if found.is_empty() {
        return None;
    }
    let kinds = found.join("`, `");
    let words =
        format!("the arguments hold `{kinds}`, which `{tool}` is not to be sent; leave it out; nothing was sent");
    let hint = format!("`{tool}` would have to be declared to take `{kinds}`");
    Some(Refusal { widening_hint: Some(hint), ..Refusal::of(RefusalKind::PiiBlocked, words) })
}

/// What the call costs. What is left for its session and for its principal's day is the dispatcher's to compare: it knows
/// whether the call is a repeat, which costs nothing.
fn spent(
    gateway: &Gateway,
    config: &Config,
    caller: &Caller<'_>,
    wanted: &Wanted<'_>,
    gates: &mut Gates,
) -> Result<Option<Reserved>, Box<Refusal>> {
    let tool = &wanted.tool.name;
    let cost = config.cost.of(tool.as_str(), wanted.read.unwrap_or(&Value::Null)).map_err(|error| {
        let words = format!("what `{tool}` would cost cannot be told: {error}");
        Box::new(Refusal::of(RefusalKind::InvalidArgument, words))
    })?;
    let Some(milli) = cost else { return Ok(None) };
    let reserved =
        config.cost.day_max_milli.map(|most| gateway.spending.reserve(caller.principal, milli, most, wanted.now));
    let (reserved, day_left_milli) = match reserved {
        Some(Ok(reserved)) => (Some(reserved), None),
        Some(Err(left)) => (None, Some(left)),
        None => (None, None),
    };
    gates.cost = Some(Cost { milli, session_max_milli: config.cost.session_max_milli, day_left_milli });
    Ok(reserved)
}
