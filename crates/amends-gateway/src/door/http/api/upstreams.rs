//! Whom we call, how they are, and what their tools are held to.

use std::sync::Arc;

use amends_wire::mcp::lists::Kind;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::health;
use super::problem::Problem;
use crate::catalogue::ServedTool;
use crate::clock;
use crate::config::{Config, Source};
use crate::gateway::Gateway;
use crate::rulebook::{self, Row};
use crate::upstream::Upstream;

/// An upstream and how it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UpstreamSeen {
    pub(crate) name: String,
    /// `starting`, `ready` or `down`.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) tools: usize,
    pub(crate) listed: bool,
    /// How many attempts it has right now, and how many calls wait for it.
    pub(crate) calls: usize,
    pub(crate) waiting: usize,
    pub(crate) breaker: Breaker,
    /// What is left of its retry budget, in thousandths of a token.
    pub(crate) retry_budget_milli: u32,
}

/// Whether it is left alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Breaker {
    pub(crate) open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) tools_open: usize,
}

/// Every upstream, in the order of the names.
pub(crate) fn upstreams(gateway: &Arc<Gateway>) -> Vec<UpstreamSeen> {
    let listing = gateway.catalogue.now();
    let seen = |upstream: &Arc<Upstream>| {
        let state = health::of(upstream);
        let now = clock::now();
        let trouble = upstream.restraint.trouble(now);
        let at_once = upstream.config.concurrency;
        let calls = at_once.saturating_sub(upstream.permits.available_permits());
        let places = at_once.saturating_add(upstream.config.queue);
        let taken = places.saturating_sub(upstream.places.available_permits());
        UpstreamSeen {
            name: upstream.name.to_string(),
            state: state["state"].as_str().unwrap_or_default().to_owned(),
            reason: state["reason"].as_str().map(str::to_owned),
            tools: listing.tools().filter(|tool| tool.upstream.name == upstream.name).count(),
            listed: listing.has(&upstream.name, Kind::Tools),
            calls,
            waiting: taken.saturating_sub(calls),
            breaker: Breaker {
                open: trouble.open,
                retry_after_ms: upstream.restraint.open_until(now).map(|until| until.since_ms(now)),
                tools_open: trouble.tools_open,
            },
            retry_budget_milli: trouble.budget_milli,
        }
    };
    gateway.upstreams().values().map(seen).collect()
}

/// Every tool in a line, in the order of the names.
pub(crate) fn tools(gateway: &Arc<Gateway>) -> Vec<Value> {
    gateway.catalogue.now().tools().map(|tool| tool_line(tool)).collect()
}

fn tool_line(tool: &ServedTool) -> Value {
    let contract = &tool.rules.contract;
    json!({
        "tool": tool.name, "upstream": tool.upstream.name, "local": tool.local, "effect": contract.effect,
        "declared": contract.declared, "reversible": contract.reverse.is_some(), "rules": tool.rules_hash,
    })
}

/// One tool with its contract, and each of its rules with where it comes from.
pub(crate) fn tool(gateway: &Arc<Gateway>, name: &str) -> Result<Value, Problem> {
    let listing = gateway.catalogue.now();
    let tool = listing.find(name).ok_or_else(|| Problem::not_found("tool"))?;
    let mut seen = tool_line(tool);
    seen["contract"] = json!(tool.rules.contract);
    seen["playbook"] = json!(rows(&gateway.config(), tool).iter().flat_map(Row::to_json).collect::<Vec<_>>());
    seen["release"] = json!(tool.rules.playbook.release());
    Ok(seen)
}

/// The rules that are in force for a tool.
pub(crate) fn rows(config: &Config, tool: &ServedTool) -> Vec<Row> {
    let nowhere = Source::of(String::new(), "");
    let rules = &tool.rules;
    rulebook::of(tool.name.as_str(), &rules.contract, &rules.playbook, &nowhere, config.release.as_ref())
}

/// The rules that are in force for every tool, and the release they are of.
pub(crate) fn playbook(gateway: &Arc<Gateway>) -> Value {
    let config = gateway.config();
    let listing = gateway.catalogue.now();
    let of = |tool: &Arc<ServedTool>| {
        let rules: Vec<Value> = rows(&config, tool).iter().flat_map(Row::to_json).collect();
        json!({ "tool": tool.name, "rules": rules })
    };
    json!({
        "release": config.release.as_ref().map(|released| json!(released.release)),
        "tools": listing.tools().map(of).collect::<Vec<_>>(),
    })
}
