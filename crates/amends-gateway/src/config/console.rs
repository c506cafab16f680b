//! Whether there is a console, and who may sign in at it.

use std::path::PathBuf;

use super::KeySource;
use super::spec::ConsoleSpec;

/// The console of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// Whether there are pages and an API.
    pub enabled: bool,
    /// Where the token of an operator is read from.
    pub token: Option<KeySource>,
    /// The folder that proposals are written to.
    pub proposals: PathBuf,
}

impl ConsoleConfig {
    pub(super) fn settle(spec: ConsoleSpec) -> Self {
        Self {
            enabled: spec.enabled.unwrap_or(true),
            token: spec.token,
            proposals: spec.proposals.unwrap_or_else(|| "amends-proposals".into()),
        }
    }

    /// Whether it has no token of its own to sign in with.
    pub(super) fn has_link(&self) -> bool {
        self.enabled && self.token.is_none()
    }
}
