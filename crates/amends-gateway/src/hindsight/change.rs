//! Rules to decide again by: a fragment laid over those that a call had, or a whole configuration's.

use std::path::Path;
use std::sync::Arc;

use amends_core::playbook::Origin;
use amends_core::{Code, Rules, ToolName, UpstreamName, Verdict};

use crate::config::{Config, ConfigError, Fragment, Source};

/// Rules to decide again by.
#[derive(Clone, Debug)]
pub enum Change {
    /// What it says is laid over the rules that each call had.
    Fragment(Fragment),
    /// Each call is governed as the gateway would govern it if those rules were released in the place of its release.
    Released {
        /// The rules.
        rules: Fragment,
        /// What the configuration means with them.
        config: Box<Config>,
        /// Its text.
        source: Source,
    },
    /// Each call is governed as the gateway would govern it today.
    Config {
        /// What it means.
        config: Box<Config>,
        /// Its text.
        source: Source,
    },
}

impl Change {
    /// Reads a file that is either.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let source = Source::read(path)?;
        if Fragment::is_one(source.text()) {
            return Ok(Self::Fragment(Fragment::of(source)?));
        }
        Self::config(source)
    }

    /// A fragment in the place of the release that a configuration names, where it names one: what that one said and this one
    /// does not is dropped then. Anything else is as it was.
    pub fn released_in(self, config: Option<&Path>) -> Result<Self, ConfigError> {
        let (Self::Fragment(rules), Some(path)) = (&self, config) else { return Ok(self) };
        let source = Source::read(path)?;
        match source.settle_released(rules)? {
            Some(config) => Ok(Self::Released { rules: rules.clone(), config: Box::new(config), source }),
            None => Ok(self),
        }
    }

    /// The rules alone, where they are a piece of a configuration.
    pub fn fragment(&self) -> Option<&Fragment> {
        match self {
            Self::Fragment(rules) | Self::Released { rules, .. } => Some(rules),
            Self::Config { .. } => None,
        }
    }

    /// Reads a whole configuration, of `serve`, `up` or `wrap`.
    pub fn read_config(path: &Path) -> Result<Self, ConfigError> {
        Self::config(Source::read(path)?)
    }

    fn config(source: Source) -> Result<Self, ConfigError> {
        Ok(Self::Config { config: Box::new(source.settle_wrap()?), source })
    }

    /// What governs that tool, which had those rules; nothing where the configuration does not serve it.
    pub fn rules(
        &self,
        tool: &ToolName,
        upstream: &UpstreamName,
        had: &Rules,
    ) -> Result<Option<Arc<Rules>>, ConfigError> {
        match self {
            Self::Fragment(fragment) => Ok(Some(Arc::new(fragment.amend(tool.as_str(), had)?))),
            Self::Config { config, .. } | Self::Released { config, .. } => {
                let Some(at) = config.upstreams.get(upstream) else { return Ok(None) };
                // What an upstream hinted is in the rules that the call had, where nobody had declared it.
                let hinted = if had.contract.declared { amends_core::EffectKind::Write } else { had.contract.effect };
                Ok(Some(Arc::new(config.rules(tool.as_str(), at, hinted)?)))
            }
        }
    }

    /// The file.
    pub fn file(&self) -> &str {
        match self {
            Self::Fragment(rules) | Self::Released { rules, .. } => rules.source().origin(),
            Self::Config { source, .. } => source.origin(),
        }
    }

    /// Where a rule of that origin stands.
    pub fn place(&self, origin: Origin, tool: &str, verdict: Verdict, code: Code) -> String {
        let Some(section) = origin.section(tool, verdict, code) else {
            return "the table we ship".to_owned();
        };
        let written = |source: &Source| {
            let line = source.line(&section).filter(|_| source.has(&section))?;
            Some(format!("[{section}], {}:{line}", source.origin()))
        };
        let found = match self {
            Self::Fragment(rules) => written(rules.source()),
            Self::Released { rules, source, .. } => written(rules.source()).or_else(|| written(source)),
            Self::Config { config, source } => {
                let released = config.release.as_ref().and_then(|released| written(released.rules.source()));
                released.or_else(|| written(source))
            }
        };
        found.unwrap_or_else(|| format!("[{section}], as it was"))
    }
}
