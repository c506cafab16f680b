//! How policies, and what is said of principals, are settled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amends_core::Principal;
use serde::Deserialize;

use super::ConfigError;
use super::settle::invalid;
use crate::policy::{Policies, PolicyText};
use crate::router::Patterns;

/// `[policy]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySpec {
    /// Files with Cedar policies. Without any, and without `text`, every call is permitted.
    pub files: Vec<PathBuf>,
    /// Policies that are written here.
    pub text: Option<String>,
}

/// `[principals.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrincipalSpec {
    /// The groups it is in, for policies.
    pub groups: Vec<String>,
    /// The tools it may call, by their served names; `*` stands for anything. The default is all of them.
    pub tools: Option<Vec<String>>,
}

/// The tools that principals are limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlists {
    of: BTreeMap<Principal, Option<Patterns>>,
}

impl Allowlists {
    pub(super) fn settle(principals: &BTreeMap<String, PrincipalSpec>) -> Result<Self, ConfigError> {
        let mut of = BTreeMap::new();
        for (name, spec) in principals {
            let Some(tools) = &spec.tools else { continue };
            if tools.iter().any(String::is_empty) {
                return Err(invalid(&format!("principals.{name}.tools"), "names tools, or patterns with `*`".into()));
            }
            let patterns = Patterns { expose: tools.clone(), hide: Vec::new() };
            of.insert(Principal::from(name.as_str()), (!tools.is_empty()).then_some(patterns));
        }
        Ok(Self { of })
    }

    /// Whether that principal may call that tool.
    pub fn allow(&self, principal: &Principal, tool: &str) -> bool {
        match self.of.get(principal) {
            None => true,
            // An empty list allows nothing.
            Some(None) => false,
            Some(Some(patterns)) => patterns.shows(tool),
        }
    }
}

impl PolicySpec {
    /// Its files are beside the configuration, unless they say where they are.
    pub(super) fn look_beside(&mut self, folder: &Path) {
        for file in &mut self.files {
            *file = folder.join(&*file);
        }
    }

    /// The policies; nothing where there are none.
    pub(super) fn settle(
        self,
        principals: &BTreeMap<String, PrincipalSpec>,
    ) -> Result<Option<Arc<Policies>>, ConfigError> {
        if self.files.is_empty() && self.text.is_none() {
            return Ok(None);
        }
        let mut texts = self.files.iter().map(|file| PolicyText::read(file)).collect::<Result<Vec<_>, _>>()?;
        texts.extend(self.text.map(|text| PolicyText::of("policy.text", text)));
        let groups = principals.iter().map(|(name, spec)| (Principal::from(name.as_str()), spec.groups.clone()));
        Policies::read(texts, groups.collect()).map(|policies| Some(Arc::new(policies)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};
    use super::*;

    #[test]
    fn a_principal_is_limited_to_what_is_listed() {
        let text = "[principals.ada]\ntools = [\"shop__get_*\"]\n[principals.bob]\ntools = []\n[principals.eve]\n";
        let config = settle(Spec::parse(text, "test").unwrap()).unwrap();
        let allowed = |principal: &str, tool: &str| config.allowlists.allow(&Principal::from(principal), tool);
        assert!(allowed("ada", "shop__get_order") && !allowed("ada", "shop__issue_refund"));
        assert!(!allowed("bob", "shop__get_order"));
        assert!(allowed("eve", "shop__issue_refund") && allowed("somebody", "shop__issue_refund"));
    }

    #[test]
    fn policies_are_read_with_the_file_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("amends.toml");
        std::fs::write(&file, "[policy]\nfiles = [\"a.cedar\"]\ntext = 'forbid (principal, action, resource);'\n")
            .unwrap();
        let refused = super::super::Config::load(&file).unwrap_err().to_string();
        assert!(refused.contains("a.cedar"), "{refused}");
        std::fs::write(folder.path().join("a.cedar"), "permit (principal, action, resource);").unwrap();
        let config = super::super::Config::load(&file).unwrap();
        assert_eq!(config.policies.unwrap().ids(), ["a.cedar#1", "policy.text#1"]);
    }
}
