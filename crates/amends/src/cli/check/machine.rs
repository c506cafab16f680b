//! One machine of a configuration, explained.

use std::collections::BTreeSet;
use std::fmt::Write;

use amends_core::machine::graph::Marks;
use amends_core::machine::{Action, Does, Finding, Machine, Mode, Resolution, ToolUse};
use amends_gateway::Config;
use amends_gateway::config::Source;
use amends_gateway::rulebook::span;
use serde_json::{Value, json};

use super::tool::home;
use crate::cli::finding::to_json;

/// One machine, explained.
pub(super) struct CheckedMachine {
    name: String,
    line: Option<usize>,
    description: Option<String>,
    served: &'static str,
    states: usize,
    bounds: Vec<String>,
    actions: Vec<(String, String)>,
    /// The tools that are reached through it alone.
    enclosed: Vec<String>,
    drawing: String,
    /// What is worth a second look.
    pub(super) warnings: Vec<String>,
    /// The same for programs.
    findings: Vec<Value>,
}

impl CheckedMachine {
    pub(super) fn of(config: &Config, source: &Source, machine: &Machine) -> Self {
        let name = machine.name().as_str();
        let tools: BTreeSet<_> = machine.actions().flat_map(|(_, action)| action.tools()).collect();
        let enclosed = tools.into_iter().filter(|tool| {
            let reads = config.facts(tool.as_str()).is_some_and(|facts| facts.reads);
            let home = home(config, tool.as_str());
            !reads
                && home.is_some_and(|(_, upstream)| {
                    let local = tool.as_str().strip_prefix(&upstream.prefix).unwrap_or(tool.as_str());
                    config.encloses(tool, local, upstream)
                })
        });
        let enclosed = enclosed.map(|tool| tool.as_str().to_owned()).collect();
        let found = config.look_at_machine(machine, |tool| config.facts(tool.as_str()));
        let found = source.in_order(found.into_iter().map(|finding| finding.of(name)));
        let placed = |(line, finding): &(Option<usize>, Finding)| {
            let own = Finding { at: finding.at[1..].to_vec(), ..finding.clone() };
            line.map_or_else(|| own.to_string(), |line| format!("line {line}: {own}"))
        };
        Self {
            name: name.to_owned(),
            line: source.line(&format!("machines.{name}")),
            description: machine.description().map(str::to_owned),
            served: match machine.mode() {
                Mode::Step => "one tool for all actions",
                Mode::Tools => "one tool for each action",
            },
            states: machine.states().len(),
            bounds: bounds(machine),
            actions: machine.actions().map(|(name, action)| (name.as_str().to_owned(), words(action))).collect(),
            enclosed,
            drawing: machine.text(&Marks::default()),
            warnings: found.iter().map(placed).collect(),
            findings: found.iter().map(|(line, finding)| to_json(*line, finding)).collect(),
        }
    }

    pub(super) fn write(&self, text: &mut String) {
        // Writing into a text cannot fail.
        let _ = writeln!(
            text,
            "machine {}  {}, {} states, {} actions{}",
            self.name,
            self.served,
            self.states,
            self.actions.len(),
            self.line.map(|line| format!(" (line {line})")).unwrap_or_default()
        );
        if let Some(description) = &self.description {
            let _ = writeln!(text, "  about     {description}");
        }
        let bounds = if self.bounds.is_empty() { "none".to_owned() } else { self.bounds.join("; ") };
        let _ = writeln!(text, "  bounds    {bounds}");
        for (n, line) in self.drawing.lines().enumerate() {
            let _ = writeln!(text, "  {}  {line}", if n == 0 { "drawing " } else { "        " });
        }
        for (name, words) in &self.actions {
            let _ = writeln!(text, "  action    {name}: {words}");
        }
        if !self.enclosed.is_empty() {
            let _ = writeln!(text, "  only by   this machine are reached `{}`", self.enclosed.join("`, `"));
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "  warning   {warning}");
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let actions: serde_json::Map<String, Value> =
            self.actions.iter().map(|(name, words)| (name.clone(), json!(words))).collect();
        json!({
            "machine": self.name,
            "line": self.line,
            "description": self.description,
            "served": self.served,
            "states": self.states,
            "bounds": self.bounds,
            "actions": actions,
            "only_by_machine": self.enclosed,
            "drawing": self.drawing,
            "warnings": self.warnings,
            "findings": self.findings,
        })
    }
}

fn bounds(machine: &Machine) -> Vec<String> {
    let bounds = machine.bounds();
    let mut said = Vec::new();
    said.extend(bounds.steps_max.map(|steps| format!("{steps} actions in all")));
    said.extend(bounds.loops_max.map(|loops| format!("each action {loops} times")));
    said.extend(bounds.time_ms_max.map(|time| format!("{} in all, without people's time", span(time))));
    let times = machine.actions().filter_map(|(name, action)| Some((name, action.times_max?)));
    said.extend(times.map(|(name, times)| format!("`{name}` {times} times")));
    said
}

/// What an action does, in a line.
fn words(action: &Action) -> String {
    let mut words = Vec::new();
    words.extend(action.guard.iter().map(|guard| format!("if `{}`", guard.source())));
    words.extend(action.stage.setup.iter().map(|(name, used)| format!("first {} as `{name}`", call(used))));
    words.extend(action.stage.gate.iter().map(|gate| format!("goes on by `{}`", gate.source())));
    words.push(match &action.does {
        Does::Nothing => "moves".to_owned(),
        Does::Tool(used) => format!("calls {}", call(used)),
        Does::Function(name) => format!("runs the function `{name}`"),
        Does::Machine(name) => format!("runs the machine `{name}` to its end"),
        Does::Parallel(siblings) => {
            let calls: Vec<String> = siblings.values().map(call).collect();
            format!("calls {} at the same time", calls.join(" and "))
        }
        Does::Allowed(allowed) => {
            let tools: Vec<&str> = allowed.tools.iter().map(|tool| tool.as_str()).collect();
            let turns = allowed.turns_max.map(|turns| format!(", {turns} times at most")).unwrap_or_default();
            format!("lets the agent call `{}`{turns}, until it takes `complete`", tools.join("`, `"))
        }
    });
    words.extend(action.stage.assert.iter().map(|assert| format!("well done by `{}`", assert.source())));
    words.extend(action.stage.exit.iter().map(|(_, used)| format!("last {}", call(used))));
    words.extend(action.queue.iter().map(|queue| format!("`{queue}` approves it first")));
    if let Some(retry) = &action.stage.retry {
        let waits: Vec<String> = retry.backoff_ms.iter().map(|wait| span(*wait)).collect();
        words.push(format!("tried again after {}", waits.join(", ")));
    }
    words.extend(action.stage.resolution.map(|resolution| match resolution {
        Resolution::Skip => "passed over if it fails".to_owned(),
        Resolution::RetryLater { after_ms } => format!("can be taken again {} after it failed", span(after_ms)),
        Resolution::AbortWorkflow => "what was done is undone if it fails".to_owned(),
    }));
    words.extend(action.timeout_ms.map(|timeout| format!("timeout {}", span(timeout))));
    if !action.writes.is_empty() {
        let fields: Vec<&str> = action.writes.keys().map(String::as_str).collect();
        words.push(format!("writes `{}`", fields.join("`, `")));
    }
    words.join("; ")
}

fn call(used: &ToolUse) -> String {
    let args: Vec<String> = used.args.iter().map(|(name, value)| format!("{name}: {}", value.source())).collect();
    format!("`{}({})`", used.tool, args.join(", "))
}
