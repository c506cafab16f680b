//! From a configuration to the tools that are drilled.

use std::path::Path;
use std::sync::Arc;

use amends_core::nearest::nearest;
use amends_core::{EffectKind, ToolName, UpstreamName};
use amends_gateway::Config;
use amends_gateway::config::{Reach, UpstreamConfig};
use amends_sim::drill::Subject;
use anyhow::{Result, bail, ensure};

use crate::cli::demo;

/// The configuration to drill: that file's, or the demo's.
pub(super) fn config(file: Option<&Path>) -> Result<Config> {
    match file {
        // A configuration for `wrap` names no command; any other is read the same way as by `serve`.
        Some(file) => Ok(Config::load_wrap(file)?),
        None => demo::config(),
    }
}

/// The tools that a configuration declares, and for each upstream one that stands for all that it does not; or those of them that
/// are asked for.
pub(super) fn subjects(config: &Config, only: &[String]) -> Result<Vec<Subject>> {
    let others: Vec<(String, &UpstreamName, &UpstreamConfig)> =
        config.upstreams.iter().map(|(name, at)| (format!("{}*", at.prefix), name, at)).collect();
    let is_other = |name: &String| others.iter().any(|(other, ..)| other == name);
    for name in only {
        if !config.tools.contains_key(name) && !is_other(name) {
            let near = nearest(name, config.tools.keys().map(String::as_str));
            let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            bail!("the configuration declares no tool `{name}`{hint}");
        }
    }
    ensure!(
        !config.tools.is_empty(),
        "the configuration declares no tools (`[tools.NAME]`), so there is nothing to drill"
    );
    let wanted = |name: &String| only.is_empty() || only.contains(name);
    let mut subjects = Vec::new();
    for name in config.tools.keys().filter(|name| wanted(name)) {
        subjects.push(subject(config, name)?);
    }
    for (name, upstream, at) in others.iter().filter(|(name, ..)| wanted(name)) {
        subjects.push(of(config, name, ((*upstream).clone(), at))?);
    }
    Ok(subjects)
}

fn subject(config: &Config, name: &str) -> Result<Subject> {
    let undeclared = UpstreamConfig::undeclared();
    of(config, name, home(config, name).unwrap_or_else(|| (UpstreamName::new("?"), &undeclared)))
}

/// A tool at that upstream. Where nothing is declared of it, the worst is assumed.
fn of(config: &Config, name: &str, (upstream, at): (UpstreamName, &UpstreamConfig)) -> Result<Subject> {
    let rules = config.rules(name, at, EffectKind::Write)?;
    let undo = match &rules.contract.reverse {
        Some(reverse) => {
            let at = home(config, &reverse.tool).map_or(at, |(_, at)| at);
            Some(Arc::new(config.rules(&reverse.tool, at, EffectKind::Write)?))
        }
        None => None,
    };
    Ok(Subject {
        tool: ToolName::new(name),
        upstream,
        rules: Arc::new(rules),
        undo,
        translate: at.translate.clone(),
        restarts_seen: matches!(at.reach, Reach::Stdio { .. }),
    })
}

/// The upstream that serves a tool of that name: the one with the longest prefix that fits; a wrapped server has none.
fn home<'a>(config: &'a Config, name: &str) -> Option<(UpstreamName, &'a UpstreamConfig)> {
    let wrapped = UpstreamName::new("wrapped");
    let fits =
        |(upstream, at): &(&UpstreamName, &UpstreamConfig)| **upstream == wrapped || name.starts_with(&at.prefix);
    let length =
        |(upstream, at): &(&UpstreamName, &UpstreamConfig)| if **upstream == wrapped { 0 } else { at.prefix.len() };
    config.upstreams.iter().filter(fits).max_by_key(length).map(|(upstream, at)| (upstream.clone(), at))
}
