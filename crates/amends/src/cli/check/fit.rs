//! Whether a configuration fits what its upstreams offer right now.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::contract::{Contract, Place};
use amends_core::expression::Expression;
use amends_core::machine::{Finding, Machine, ToolFacts, Weight};
use amends_core::nearest::nearest;
use amends_core::{EffectKind, ToolName};
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, UpstreamConfig};
use serde_json::{Value, json};

use super::tool::home;
use crate::cli::live::{Absence, LiveTool, Seen};

/// How many tools without a section are named.
const NAMED_MAX: usize = 20;

/// What was found by comparing.
#[derive(Debug)]
pub(super) struct Fit {
    /// What each upstream said, in words.
    pub(super) upstreams: Vec<(String, String)>,
    /// What cannot work.
    pub(super) problems: Vec<String>,
    /// What is worth a second look.
    pub(super) warnings: Vec<String>,
    /// Tools that are served and have no section.
    pub(super) undeclared: Vec<String>,
}

/// Where a key of the configuration is written.
type Lines<'a> = dyn Fn(&str) -> Option<usize> + 'a;

/// Compares a configuration with what its upstreams offer.
pub(super) fn compare(config: &Config, seen: &BTreeMap<String, Seen>, line: &Lines<'_>) -> Result<Fit, ConfigError> {
    let mut fit = Fit { upstreams: Vec::new(), problems: Vec::new(), warnings: Vec::new(), undeclared: Vec::new() };
    let mut served: BTreeMap<&str, &LiveTool> = BTreeMap::new();
    for (name, seen) in seen {
        let words = match seen {
            Seen::Up(presence) => {
                served.extend(presence.tools.iter().map(|tool| (tool.served.as_str(), tool)));
                format!(
                    "{}, {} tools, greeted in {} ms, listed in {} ms",
                    presence.era,
                    presence.tools.len(),
                    presence.greeted_ms,
                    presence.listed_ms
                )
            }
            Seen::Down(Absence { reason, .. }) => {
                fit.problems.push(format!("upstream `{name}` does not answer: {reason}"));
                format!("does not answer: {reason}")
            }
        };
        fit.upstreams.push((name.clone(), words));
    }
    let is_known = |tool: &str| home(config, tool).is_none_or(|(name, _)| matches!(seen.get(name), Some(Seen::Up(_))));
    for (name, tool) in &config.tools {
        let nowhere = UpstreamConfig::undeclared();
        let upstream = home(config, name).map_or(&nowhere, |(_, upstream)| upstream);
        let contract = tool.contract(name, upstream, config.repeat_window)?;
        match served.get(name.as_str()) {
            Some(live) => own(name, &contract, live, &mut fit),
            None if is_known(name) => {
                let near = nearest(name, served.keys().copied());
                let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                fit.problems.push(format!("`{name}` is declared, and no upstream offers it{hint}"));
                continue;
            }
            None => {}
        }
        for (part, other, args) in others(&contract) {
            match served.get(other) {
                Some(live) => arguments(name, part, other, args, live, &mut fit),
                None if is_known(other) => {
                    fit.problems.push(format!("`{name}`: `{other}`, named by `{part}`, is offered by no upstream"));
                }
                None => {}
            }
        }
    }
    machines(config, &served, is_known, line, &mut fit);
    let declared: BTreeSet<&str> = config.tools.keys().map(String::as_str).collect();
    fit.undeclared = served.keys().filter(|name| !declared.contains(*name)).map(|name| (*name).to_owned()).collect();
    Ok(fit)
}

/// Whether the machines' tools are there, and take what they are given.
fn machines(
    config: &Config,
    served: &BTreeMap<&str, &LiveTool>,
    is_known: impl Fn(&str) -> bool,
    line: &Lines<'_>,
    fit: &mut Fit,
) {
    for tool in config.machine_tools().into_iter().map(ToolName::as_str) {
        if !served.contains_key(tool) && is_known(tool) {
            let near = nearest(tool, served.keys().copied());
            let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            fit.problems.push(format!("`{tool}`, used by a machine, is offered by no upstream{hint}"));
        }
    }
    let facts = |tool: &ToolName| {
        let hinted = |live: &&LiveTool| live.entry.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
        let trusted = home(config, tool.as_str()).is_some_and(|(_, upstream)| upstream.trust_hints);
        config.facts(tool.as_str()).or_else(|| {
            let reads = trusted && served.get(tool.as_str()).and_then(hinted) == Some(true);
            served.contains_key(tool.as_str()).then_some(ToolFacts { reads, reversible: false, undoes: false })
        })
    };
    let schema = |tool: &ToolName| {
        let mut schema = served.get(tool.as_str())?.entry.get("inputSchema")?.clone();
        // The key is ours to give.
        let key = config.tools.get(tool.as_str()).and_then(|tool| tool.spec().key.as_ref()?.argument.clone());
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str() != key.as_deref());
        }
        Some(schema)
    };
    let placed = |machine: &Machine, finding: &Finding| {
        let words = format!("machine `{}`: {finding}", machine.name());
        match line(&finding.clone().of(machine.name().as_str()).key()) {
            Some(line) => format!("line {line}: {words}"),
            None => words,
        }
    };
    for machine in config.machines.declared() {
        let found = config.machines.look(machine, facts).into_iter().chain(machine.misfits(schema));
        for finding in found.filter(|finding| finding.weight == Weight::Error) {
            fit.problems.push(placed(machine, &finding));
        }
        // What the file alone tells was said of it.
        let known = config.renamed(machine, |tool| config.facts(tool.as_str()));
        for finding in config.renamed(machine, facts).into_iter().filter(|finding| !known.contains(finding)) {
            fit.warnings.push(placed(machine, &finding));
        }
    }
}

/// The tools that a contract rests on, and the arguments it gives them.
fn others(contract: &Contract) -> Vec<(&'static str, &str, &BTreeMap<String, Expression>)> {
    let status = contract.status.iter().map(|status| ("status", status.tool.as_str(), &status.args));
    let reverse = contract.reverse.iter().map(|reverse| ("reverse", reverse.tool.as_str(), &reverse.args));
    let evidence = contract.evidence.iter().map(|reading| ("evidence", reading.tool.as_str(), &reading.args));
    status.chain(reverse).chain(evidence).collect()
}

/// What a tool's own listing says against its contract.
fn own(name: &str, contract: &Contract, live: &LiveTool, fit: &mut Fit) {
    let hint = |key: &str| live.entry.get("annotations")?.get(key)?.as_bool();
    if contract.effect == EffectKind::Read
        && (hint("readOnlyHint") == Some(false) || hint("destructiveHint") == Some(true))
    {
        fit.warnings.push(format!("`{name}` is declared as a `read`, and its server says that it is none"));
    }
    if let Some(Place::Argument(argument)) = contract.key.as_ref().map(|key| &key.place)
        && !takes(live, argument)
    {
        fit.problems.push(format!("`{name}`: its key goes into `{argument}`, which is none of its arguments"));
    }
}

/// Whether the arguments that a contract gives another tool are those it takes.
fn arguments(name: &str, part: &str, other: &str, args: &BTreeMap<String, Expression>, live: &LiveTool, fit: &mut Fit) {
    for argument in args.keys().filter(|argument| !takes(live, argument)) {
        let known = live.entry.pointer("/inputSchema/properties").and_then(Value::as_object);
        let near = nearest(argument, known.into_iter().flat_map(|known| known.keys().map(String::as_str)));
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        fit.problems.push(format!(
            "`{name}`: `{part}` gives `{other}` the argument `{argument}`, which it does not take{hint}"
        ));
    }
    let required = live.entry.pointer("/inputSchema/required").and_then(Value::as_array);
    for wanted in required.into_iter().flatten().filter_map(Value::as_str) {
        if !args.contains_key(wanted) {
            fit.problems.push(format!("`{name}`: `{part}` does not give `{other}` its `{wanted}`, which it needs"));
        }
    }
}

/// Whether a tool takes an argument of that name, as far as its schema says.
fn takes(live: &LiveTool, argument: &str) -> bool {
    let Some(schema) = live.entry.get("inputSchema") else { return true };
    let named = schema.get("properties").and_then(Value::as_object);
    let open = match schema.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(_) => true,
        // What a schema does not forbid it allows; but one that names its properties most likely means all of them.
        None => named.is_none_or(serde_json::Map::is_empty),
    };
    let composed =
        ["allOf", "anyOf", "oneOf", "$ref", "patternProperties"].iter().any(|key| schema.get(*key).is_some());
    open || composed || named.is_some_and(|named| named.contains_key(argument))
}

impl Fit {
    pub(super) fn write(&self, text: &mut String) {
        text.push_str("\nlive\n");
        for (name, words) in &self.upstreams {
            text.push_str(&format!("  upstream {name}  {}\n", visible(words)));
        }
        for problem in &self.problems {
            text.push_str(&format!("  problem   {}\n", visible(problem)));
        }
        for warning in &self.warnings {
            text.push_str(&format!("  warning   {}\n", visible(warning)));
        }
        if !self.undeclared.is_empty() {
            let named: Vec<String> = self.undeclared.iter().take(NAMED_MAX).map(|name| visible(name)).collect();
            let more = self.undeclared.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!("  no section, and so a write: {}{more}\n", named.join(", ")));
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let upstreams: serde_json::Map<String, Value> =
            self.upstreams.iter().map(|(name, words)| (name.clone(), json!(words))).collect();
        json!({ "upstreams": upstreams, "problems": self.problems, "warnings": self.warnings, "undeclared": self.undeclared })
    }
}

/// A text from outside on one line of a terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
