//! The configuration: any text is taken, or refused with the place of its mistake.

use amends_core::Rules;
use amends_gateway::config::{Mistake, Spec, settle};
use amends_gateway::{Config, ConfigError};

/// Reads the bytes as a configuration.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let settled = Spec::parse(&text, "amends.toml").and_then(settle);
    match settled {
        Ok(config) => usable(&config),
        Err(error) => refused(&error, &text),
    }
}

/// What was settled gives rules for every tool at every upstream, and the ledger gives those rules back as they were.
fn usable(config: &Config) {
    for (name, tool) in &config.tools {
        for upstream in config.upstreams.values() {
            let contract =
                tool.contract(name, upstream, config.repeat_window).expect("it was checked against any upstream");
            let playbook = tool.playbook(name, &contract).expect("it was checked against any upstream");
            let rules = Rules { contract, playbook };
            let kept = serde_json::to_string(&rules).expect("rules can be kept");
            let found: Rules = serde_json::from_str(&kept).unwrap_or_else(|error| panic!("{error}: {kept}"));
            assert_eq!(found, rules);
        }
    }
}

/// The refusal names the line or the key.
fn refused(error: &ConfigError, text: &str) {
    match error {
        ConfigError::Malformed { line, reason, .. } => {
            assert!((1..=text.matches('\n').count() + 1).contains(line), "{error}");
            assert!(!reason.is_empty(), "{error}");
        }
        ConfigError::Misread(misread) => {
            let lines = 1..=text.matches('\n').count() + 1;
            assert!(!misread.mistakes().is_empty(), "{error}");
            let placed = |mistake: &Mistake| lines.contains(&mistake.line) && !mistake.message.is_empty();
            assert!(misread.mistakes().iter().all(placed), "{error}");
        }
        ConfigError::Invalid { key, reason } => assert!(!key.is_empty() && !reason.is_empty(), "{error}"),
        ConfigError::Playbook(_) => {
            assert!(["playbook", "retry", "\\"].iter().any(|word| text.contains(word)), "{error}");
        }
        ConfigError::Machines(wrong) => {
            let lines = 1..=text.matches('\n').count() + 1;
            assert!(wrong.findings().count() > 0, "{error}");
            assert!(wrong.findings().all(|(line, _)| line.is_none_or(|line| lines.contains(&line))), "{error}");
        }
        ConfigError::Document(_) => assert!(text.contains("openapi") || text.contains('\\'), "{error}"),
        ConfigError::Cycle { key, tool, path, .. } => {
            assert!(!key.is_empty() && path.last() == Some(tool), "{error}");
        }
        ConfigError::Unreadable { .. } => panic!("no file was read"),
    }
}
