//! One tool of a configuration, explained.

use std::fmt::Write;

use amends_core::contract::{Contract, Place};
use amends_core::{EffectKind, Playbook};
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, Source, ToolConfig, UpstreamConfig};
use amends_gateway::rulebook::{self, Row, span};
use serde_json::{Value, json};

use super::doubt;
use super::origin::{Keys, Origin};
use super::warnings;

/// One tool of a configuration, or the rest of an upstream's, explained.
pub(super) struct Checked {
    /// Its served name, or what the rest of the tools' names begin with.
    name: String,
    upstream: Option<String>,
    contract: Contract,
    origins: Vec<(&'static str, Origin)>,
    rows: Vec<Row>,
    /// What is worth a second look.
    pub(super) warnings: Vec<String>,
}

impl Checked {
    /// A tool that has a section.
    pub(super) fn declared(
        config: &Config,
        source: &Source,
        keys: &Keys,
        name: &str,
        tool: &ToolConfig,
    ) -> Result<Self, ConfigError> {
        let home = home(config, name);
        let nowhere = UpstreamConfig::undeclared();
        let upstream = home.map_or(&nowhere, |(_, upstream)| upstream);
        let contract = tool.contract(name, upstream, config.repeat_window)?;
        let playbook = tool.playbook(name, &contract)?;
        let rows = rulebook::of(name, &contract, &playbook, source, config.release.as_ref());
        let mut warnings = warnings::of(config, home.map(|(_, upstream)| upstream), &contract, &rows);
        if tool.spec().key.is_some() && contract.key.is_none() {
            warnings.push(format!("`key` has no meaning for a tool that is `{}`", contract.effect.as_str()));
        }
        if contract.key.is_some() && tool.spec().key.as_ref().is_some_and(|key| key.window.is_none()) {
            warnings.push("the key has no `window`: 24h is assumed, and nobody said so".to_owned());
        }
        let upstream = home.map(|(name, _)| name.to_owned());
        let origins = origins(|key| keys.of_tool(name, upstream.as_deref(), key), keys);
        Ok(Self { name: name.to_owned(), upstream, contract, origins, rows, warnings })
    }

    /// The tools of an upstream that no section names.
    pub(super) fn rest(
        config: &Config,
        source: &Source,
        keys: &Keys,
        name: &str,
        upstream: &UpstreamConfig,
        (effect, by): (EffectKind, &str),
    ) -> Result<Self, ConfigError> {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut contract = Contract::undeclared(ms(upstream.timeout), ms(upstream.deadline), ms(config.repeat_window));
        contract.rejects_before_effect.clone_from(&upstream.rejects_before_effect);
        contract.effect = effect;
        let playbook: Playbook = config.undeclared_playbook("", &contract)?;
        let prefix = if name == "wrapped" { "" } else { upstream.prefix.as_str() };
        Ok(Self {
            name: format!("{prefix}*{by}"),
            upstream: Some(name.to_owned()),
            rows: rulebook::of("", &contract, &playbook, source, config.release.as_ref()),
            contract,
            origins: origins(|key| keys.of_tool("", Some(name), key), keys),
            warnings: Vec::new(),
        })
    }

    /// Its warnings, with its section.
    pub(super) fn named_warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|words| format!("`tools.{}`: {words}", self.name))
    }

    pub(super) fn to_json(&self) -> serde_json::Result<Value> {
        let rules: Vec<Value> = self.rows.iter().flat_map(Row::to_json).collect();
        Ok(json!({
            "tool": self.name,
            "upstream": self.upstream,
            "contract": serde_json::to_value(&self.contract)?,
            "origins": self.origins.iter().map(|(key, origin)| ((*key).to_owned(), origin.to_json())).collect::<serde_json::Map<_, _>>(),
            "in_doubt": doubt::words(&self.contract),
            "rules": rules,
            "warnings": self.warnings,
        }))
    }

    pub(super) fn write(&self, text: &mut String) {
        let rest = if self.contract.declared { "" } else { ", every tool that no section names" };
        let upstream = self.upstream.as_ref().map(|name| format!(" of `{name}`")).unwrap_or_default();
        let _ = writeln!(text, "{}  {}{upstream}{rest}", self.name, self.contract.effect.as_str());
        let _ = writeln!(text, "  contract  {}", terms(&self.contract, |key| self.origin(key)));
        let _ = writeln!(text, "  in doubt  {}", doubt::words(&self.contract));
        for row in self.rows.iter().filter(|row| row.is_written()) {
            let _ = writeln!(text, "  {}", row.line());
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "  warning   {warning}");
        }
    }
}

impl Checked {
    /// Where a value comes from, in words behind it.
    fn origin(&self, key: &str) -> String {
        self.origins.iter().find(|(known, _)| *known == key).map(|(_, origin)| origin.words()).unwrap_or_default()
    }
}

/// Where each value of a contract comes from.
fn origins(of: impl Fn(&str) -> Origin, keys: &Keys) -> Vec<(&'static str, Origin)> {
    let own = [
        "effect",
        "timeout",
        "deadline",
        "key",
        "status",
        "settles_within",
        "object",
        "rejects_before_effect",
        "reverse",
        "evidence",
        "queue",
        "approval",
        "answer_within",
        "input_within",
        "answer",
    ];
    let mut origins: Vec<_> = own.into_iter().map(|key| (key, of(key))).collect();
    origins.push(("repeat_window", keys.of_section("repeats", "window")));
    origins
}

/// The upstream whose prefix the name begins with; the longest prefix counts.
pub(in crate::cli) fn home<'a>(config: &'a Config, name: &str) -> Option<(&'a str, &'a UpstreamConfig)> {
    let upstreams = config.upstreams.iter();
    upstreams
        .map(|(upstream, settled)| {
            let prefix = if upstream.as_str() == "wrapped" { "" } else { settled.prefix.as_str() };
            (upstream.as_str(), settled, prefix)
        })
        .filter(|(_, _, prefix)| name.starts_with(prefix))
        .max_by_key(|(_, _, prefix)| prefix.len())
        .map(|(upstream, settled, _)| (upstream, settled))
}

/// What was settled, in one line, and where each of it comes from.
fn terms(contract: &Contract, from: impl Fn(&str) -> String) -> String {
    let mut terms = vec![
        format!("timeout {} {}", span(contract.timeout_ms), from("timeout")),
        format!("deadline {} {}", span(contract.deadline_ms), from("deadline")),
    ];
    if let Some(key) = &contract.key {
        let place = match &key.place {
            Place::Argument(name) => format!("argument `{name}`"),
            Place::Header(name) => format!("header `{name}`"),
            Place::Meta(name) => format!("`_meta` field `{name}`"),
        };
        let durable = if key.durable { ", durable" } else { "" };
        terms.push(format!("key in {place} for {}{durable} {}", span(key.window_ms), from("key")));
    }
    if let Some(status) = &contract.status {
        let by = if status.by_key { "by key" } else { "against a baseline" };
        terms.push(format!("status from `{}` {by} {}", status.tool, from("status")));
    }
    if let Some(settles) = contract.settles_within_ms {
        terms.push(format!("settles within {} {}", span(settles), from("settles_within")));
    }
    if let Some(approval) = &contract.approval {
        let persons = if approval.persons == 1 { "a person" } else { "several persons" };
        terms.push(format!("{persons} on `{}` must say yes first {}", approval.queue, from("approval")));
    }
    if contract.object.is_some() {
        terms.push(format!("one write at a time to its `object` {}", from("object")));
    }
    if !contract.rejects_before_effect.is_empty() {
        let statuses: Vec<String> = contract.rejects_before_effect.iter().map(u16::to_string).collect();
        terms.push(format!("rejects before effect with {} {}", statuses.join(", "), from("rejects_before_effect")));
    }
    if let Some(reverse) = &contract.reverse {
        terms.push(format!("undone by `{}` within {} {}", reverse.tool, span(reverse.within_ms), from("reverse")));
    }
    for reading in &contract.evidence {
        terms.push(format!("rests on `{}` {}", reading.tool, from("evidence")));
    }
    terms.join("; ")
}
