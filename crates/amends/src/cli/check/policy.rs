//! Whether policies fit the tools.

use amends_gateway::Config;
use amends_gateway::config::ConfigError;
use amends_gateway::policy::{Finding, KnownTool, Level, Policies};
use serde_json::{Value, json};

use super::fit::Fit;
use crate::cli::policy::known;

/// The policies of a configuration, and what is wrong with them by what is declared of the tools.
pub(super) struct CheckedPolicies {
    origins: Vec<String>,
    count: usize,
    found: Vec<Finding>,
}

impl CheckedPolicies {
    pub(super) fn of(config: &Config) -> Result<Option<Self>, ConfigError> {
        let Some(policies) = &config.policies else { return Ok(None) };
        let tools = known::declared(config)?;
        // Without any tool there is nothing to check them by.
        let found = if tools.is_empty() { Vec::new() } else { policies.validate(&tools, false) };
        let origins = policies.texts().iter().map(|text| text.origin.clone()).collect();
        Ok(Some(Self { origins, count: policies.count(), found }))
    }

    pub(super) fn problems(&self) -> usize {
        self.found.iter().filter(|finding| finding.level == Level::Problem).count()
    }

    pub(super) fn warnings(&self) -> usize {
        self.found.len() - self.problems()
    }

    /// What is wrong with them and what is worth a second look.
    pub(super) fn said(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(said)
    }

    pub(super) fn to_json(&self) -> Value {
        let found: Vec<Value> = self.found.iter().map(finding_json).collect();
        json!({ "from": self.origins, "count": self.count, "findings": found })
    }

    pub(super) fn write(&self, text: &mut String) {
        let policies = if self.count == 1 { "1 policy" } else { &format!("{} policies", self.count) };
        text.push_str(&format!("\npolicies  {policies} from {}\n", self.origins.join(", ")));
        text.push_str("  what no policy permits is denied; `--live` checks them against what the tools take\n");
        for finding in &self.found {
            text.push_str(&format!("  {}: {}\n", word(finding.level), said(finding)));
        }
    }
}

/// Adds what is wrong with policies by what the upstreams offer.
pub(super) fn compare(policies: &Policies, tools: &[KnownTool], fit: &mut Fit) {
    for finding in policies.validate(tools, true) {
        match finding.level {
            Level::Problem => fit.problems.push(said(&finding)),
            Level::Warning => fit.warnings.push(said(&finding)),
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Problem => "problem",
        Level::Warning => "warning",
    }
}

fn said(finding: &Finding) -> String {
    let Finding { origin, line, column, policy, says, .. } = finding;
    format!("{origin}:{line}:{column}: policy `{policy}`: {says}")
}

fn finding_json(finding: &Finding) -> Value {
    let Finding { level, policy, origin, line, column, says } = finding;
    json!({ "level": word(*level), "policy": policy, "file": origin, "line": line, "column": column, "says": says })
}
