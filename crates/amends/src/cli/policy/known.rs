//! The tools as far as they are known: as their upstreams list them, or as they are declared.

use std::collections::BTreeMap;
use std::time::Duration;

use amends_core::EffectKind;
use amends_core::machine::Machines;
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, UpstreamConfig};
use amends_gateway::policy::{KnownTool, Shape};
use anyhow::{Result, bail};
use serde_json::Value;

use crate::cli::check::home;
use crate::cli::live::{self, Seen};

/// The tools of a configuration: with `live`, as its upstreams list them within so many seconds, else those that are declared.
pub(super) async fn tools(config: &Config, live: Option<u64>) -> Result<Vec<KnownTool>> {
    let Some(wait) = live else { return Ok(declared(config)?) };
    // Without its machines, every tool is served: those that only machines reach are asked about as well.
    let open = Config { machines: Machines::default(), ..config.clone() };
    let seen = live::look(open, Duration::from_secs(wait)).await?;
    if let Some((name, Seen::Down(absence))) = seen.iter().find(|(_, seen)| matches!(seen, Seen::Down(_))) {
        bail!("upstream `{name}` does not answer: {}", absence.reason);
    }
    Ok(listed(config, &seen)?)
}

/// The tools that are declared. What they take is not known.
pub(in crate::cli) fn declared(config: &Config) -> Result<Vec<KnownTool>, ConfigError> {
    let tool = |name: &String| {
        let effect = effect(config, name, EffectKind::Write)?;
        Ok(KnownTool { name: name.clone(), effect, shape: Shape::Unknown })
    };
    config.tools.keys().map(tool).collect()
}

/// The tools that upstreams list.
pub(in crate::cli) fn listed(config: &Config, seen: &BTreeMap<String, Seen>) -> Result<Vec<KnownTool>, ConfigError> {
    let mut tools = Vec::new();
    for presence in seen.values().filter_map(|seen| match seen {
        Seen::Up(presence) => Some(presence),
        Seen::Down(_) => None,
    }) {
        for tool in &presence.tools {
            let hint = |name: &str| tool.entry.pointer(name).and_then(Value::as_bool) == Some(true);
            let hinted = match (hint("/annotations/readOnlyHint"), hint("/annotations/idempotentHint")) {
                (true, _) => EffectKind::Read,
                (false, true) => EffectKind::Idempotent,
                (false, false) => EffectKind::Write,
            };
            let shape = tool.entry.get("inputSchema").map(Shape::of_schema).unwrap_or_default();
            let effect = effect(config, &tool.served, hinted)?;
            tools.push(KnownTool { name: tool.served.clone(), effect, shape });
        }
    }
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tools)
}

fn effect(config: &Config, tool: &str, hinted: EffectKind) -> Result<EffectKind, ConfigError> {
    let nowhere = UpstreamConfig::undeclared();
    let upstream = home(config, tool).map_or(&nowhere, |(_, upstream)| upstream);
    Ok(config.rules(tool, upstream, hinted)?.contract.effect)
}
