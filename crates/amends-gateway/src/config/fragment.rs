//! A piece of a configuration that holds nothing but rules.

use std::collections::BTreeMap;
use std::path::Path;

use amends_core::contract::Contract;
use amends_core::playbook::{Layers, PlaybookSpec, RetryLayer};
use amends_core::{Digest, EffectKind, Playbook, Rules};
use serde::Deserialize;

use super::retry::{SharedRetrySpec, ToolRetrySpec};
use super::spec::{self, Spec};
use super::{ConfigError, Source};

/// A piece of a configuration that holds nothing but rules: `[retry…]`, `[tools.NAME.retry…]` and
/// `[tools.NAME.playbook…]`, written as in the whole file. It can be laid over rules that are settled.
#[derive(Clone, Debug)]
pub struct Fragment {
    source: Source,
    rules: RulesSpec,
    hash: Digest,
}

/// The rules of a fragment as they are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RulesSpec {
    retry: SharedRetrySpec,
    tools: BTreeMap<String, ToolRulesSpec>,
}

/// `[tools.NAME]` of a fragment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolRulesSpec {
    playbook: PlaybookSpec,
    retry: ToolRetrySpec,
}

impl Fragment {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::of(Source::read(path)?)
    }

    /// Reads a text.
    pub fn of(source: Source) -> Result<Self, ConfigError> {
        let rules: RulesSpec = spec::parse(source.text(), source.origin())?;
        let hash = hash_of(source.text(), &[]);
        let fragment = Self { source, rules, hash };
        fragment.check()?;
        Ok(fragment)
    }

    pub(super) fn new(source: Source, rules: RulesSpec, hash: Digest) -> Self {
        Self { source, rules, hash }
    }

    /// Whether a text holds rules and nothing else, so that it is a fragment rather than a whole configuration.
    pub fn is_one(text: &str) -> bool {
        let Ok(table) = toml::from_str::<toml::Table>(text) else { return false };
        let only = |table: &toml::Table, keys: &[&str]| table.keys().all(|key| keys.contains(&key.as_str()));
        let tools = table.get("tools").and_then(toml::Value::as_table);
        let rules_only = |tool: &toml::Value| tool.as_table().is_some_and(|tool| only(tool, &["playbook", "retry"]));
        only(&table, &["retry", "tools"]) && tools.is_none_or(|tools| tools.values().all(rules_only))
    }

    /// What is wrong whatever the tools are: names that are none, pairs that are forbidden for any tool.
    fn check(&self) -> Result<(), ConfigError> {
        let mut lenient = Contract { effect: EffectKind::Read, ..Contract::undeclared(0, 0, 0) };
        let undo = amends_core::contract::Reverse { tool: String::new(), args: BTreeMap::new(), within_ms: 0 };
        lenient.reverse = Some(undo);
        for tool in self.rules.tools.keys().map(String::as_str).chain([""]) {
            self.laid(tool, &Playbook::default(), &lenient)?;
        }
        Ok(())
    }

    /// The rules of a tool with this laid over them. What stands in a nearer place stays as it is.
    pub fn amend(&self, tool: &str, rules: &Rules) -> Result<Rules, ConfigError> {
        let playbook = self.laid(tool, &rules.playbook, &rules.contract)?;
        Ok(Rules { contract: rules.contract.clone(), playbook })
    }

    fn laid(&self, tool: &str, playbook: &Playbook, contract: &Contract) -> Result<Playbook, ConfigError> {
        let shared = self.rules.retry.layer();
        let own = self.rules.tools.get(tool);
        let none = PlaybookSpec::new();
        let (own, rules) = own.map_or_else(|| (RetryLayer::default(), &none), |own| (own.retry.layer(), &own.playbook));
        let layers = Layers { tool, shared: &shared, own: &own, rules };
        playbook.amended(layers, contract).map_err(|refused| self.source.placed(refused.into()))
    }

    /// The tools that have rules of their own in it.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.rules.tools.keys().map(String::as_str)
    }

    /// The digest of what it says, whatever its comments and its layout.
    pub fn hash(&self) -> &Digest {
        &self.hash
    }

    /// Its text, and where each key stands in it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Lays it over what is written in a whole configuration: the same section is replaced.
    pub(super) fn lay_over(&self, spec: &mut Spec) -> Result<(), ConfigError> {
        let retry = self.rules.retry.clone();
        spec.retry.class.extend(retry.class);
        spec.retry.verdict.extend(retry.verdict);
        for (name, rules) in &self.rules.tools {
            let Some(tool) = spec.tools.get_mut(name) else {
                let reason = "has rules in the release, and the configuration does not declare it".to_owned();
                return Err(self.source.placed(ConfigError::Invalid { key: format!("tools.{name}"), reason }));
            };
            tool.playbook.get_or_insert_default().extend(rules.playbook.clone());
            tool.retry.lay(rules.retry.clone());
        }
        Ok(())
    }
}

/// The digest of a text's TOML without those top-level keys.
pub(super) fn hash_of(text: &str, without: &[&str]) -> Digest {
    let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
    table.retain(|key, _| !without.contains(&key));
    amends_ledger::digest(&serde_json_canonicalizer::to_vec(&table).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str) -> Result<Fragment, ConfigError> {
        Fragment::of(Source::of(text.to_owned(), "f.toml"))
    }

    #[test]
    fn only_rules_make_a_fragment() {
        assert!(Fragment::is_one("[retry.class.ProviderTransient]\nmax_attempts = 2"));
        assert!(Fragment::is_one("[tools.a.playbook.in_doubt]\ncompensation = \"surface\""));
        assert!(!Fragment::is_one("[tools.a]\neffect = \"read\""));
        assert!(!Fragment::is_one("[ledger]\nurl = \"memory:\""));
    }

    #[test]
    fn what_is_forbidden_is_refused_with_its_line_for_the_contract_it_meets() {
        let refused = fragment("\n[tools.a.playbook.in_doubt]\ncompensation = \"wait\"").unwrap_err().to_string();
        assert!(refused.starts_with("f.toml:2: `tools.a.playbook.in_doubt`"), "{refused}");
        let text = "[tools.a.playbook.unclassified]\ncompensation = \"retry_with_backoff\"";
        let fits_reads = fragment(text).unwrap();
        let rules = |effect| Rules {
            contract: Contract { effect, ..Contract::undeclared(1, 1, 1) },
            playbook: Playbook::default(),
        };
        assert!(fits_reads.amend("a", &rules(EffectKind::Read)).is_ok());
        let refused = fits_reads.amend("a", &rules(EffectKind::Write)).unwrap_err().to_string();
        assert!(refused.starts_with("f.toml:1: "), "{refused}");
    }

    #[test]
    fn the_hash_is_of_what_is_said() {
        let one = fragment("# a word\n[retry.class.ProviderTransient]\nmax_attempts = 2").unwrap();
        let same = fragment("[retry]\nclass.ProviderTransient = { max_attempts = 2 }").unwrap();
        let other = fragment("[retry.class.ProviderTransient]\nmax_attempts = 3").unwrap();
        assert_eq!(one.hash(), same.hash());
        assert_ne!(one.hash(), other.hash());
    }
}
