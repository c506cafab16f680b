//! Which key checks signatures.

use amends_gateway::config::LedgerConfig;
use amends_gateway::key;
use amends_ledger::note::NoteVerifier;
use anyhow::{Context, Result};
use clap::Args;

/// Which key checks signatures.
#[derive(Clone, Debug, Args)]
pub(super) struct KeyArgs {
    /// The key that checks signatures, or a file that holds it. The default is the one beside the ledger.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl KeyArgs {
    /// The key that was named.
    pub(super) fn named(&self) -> Result<Option<NoteVerifier>> {
        let Some(named) = &self.key else {
            return Ok(None);
        };
        if let Ok(key) = NoteVerifier::parse(named) {
            return Ok(Some(key));
        }
        let text = std::fs::read_to_string(named)
            .with_context(|| format!("`{named}` is neither a key nor a file that can be read"))?;
        Ok(Some(NoteVerifier::parse(&text).with_context(|| format!("`{named}` holds no key"))?))
    }

    /// The key that was named, else the one that is found beside the ledger.
    pub(super) fn verifier(&self, config: &LedgerConfig) -> Result<Option<NoteVerifier>> {
        match self.named()? {
            Some(key) => Ok(Some(key)),
            None => Ok(key::verifier(config)?),
        }
    }
}
