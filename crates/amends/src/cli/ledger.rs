//! Which ledger a command means.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amends_core::privacy::Mask;
use amends_gateway::config::{LedgerConfig, LedgerPlace};
use amends_gateway::{Config, open_ledger};
use amends_ledger::Ledger;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

/// Which ledger to look at.
#[derive(Clone, Debug, Args)]
pub(super) struct LedgerArgs {
    /// The ledger, such as `sqlite:amends.db`. The default is ./amends.db, else the one that `wrap` keeps.
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// The configuration that names it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl LedgerArgs {
    /// Opens the ledger that is meant. It must exist: looking makes nothing.
    pub(super) async fn open(&self) -> Result<Arc<dyn Ledger>> {
        let config = self.config()?;
        if let LedgerPlace::Sqlite(path) = &config.place
            && !path.exists()
        {
            bail!("there is no ledger at `{}`; name one with --ledger sqlite:FILE", path.display());
        }
        Ok(open_ledger(&config).await?)
    }

    /// Whether a ledger was named at all.
    pub(super) fn is_named(&self) -> bool {
        self.ledger.is_some() || self.config.is_some()
    }

    /// The configuration that was named.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The ledger that is meant, and the keys that belong to it.
    pub(super) fn config(&self) -> Result<LedgerConfig> {
        match (&self.ledger, &self.config) {
            (Some(url), _) => Ok(LedgerConfig::at(parse(url)?)),
            (None, Some(file)) => Ok(Config::load_wrap(file)?.ledger),
            (None, None) => {
                let here = PathBuf::from("amends.db");
                Ok(LedgerConfig::at(LedgerPlace::Sqlite(if here.exists() { here } else { wrapped()? })))
            }
        }
    }
}

impl LedgerArgs {
    /// What is masked before it is recorded, as far as it is known here.
    pub(super) fn mask(&self) -> Result<Mask> {
        match &self.config {
            Some(file) => Ok(Config::load_wrap(file)?.privacy.shared().clone()),
            None => Ok(Mask::default()),
        }
    }
}

/// Reads a ledger's address.
pub(super) fn parse(url: &str) -> Result<LedgerPlace> {
    LedgerPlace::parse(url).ok_or_else(|| anyhow!("`{url}` is neither `sqlite:FILE`, `postgres://…` nor `memory:`"))
}

/// The ledger that `wrap` keeps in the user's data folder.
pub(super) fn wrapped() -> Result<PathBuf> {
    let folder = match (std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")) {
        (Some(data), _) if !data.is_empty() => PathBuf::from(data),
        (_, Some(home)) => PathBuf::from(home).join(".local/share"),
        _ => bail!("neither XDG_DATA_HOME nor HOME is set; name a ledger with --ledger sqlite:FILE"),
    };
    Ok(folder.join("amends").join("amends.db"))
}

/// Makes the folder of a ledger that is about to be opened.
pub(super) fn make_room(place: &LedgerPlace) -> Result<()> {
    if let LedgerPlace::Sqlite(path) = place
        && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    Ok(())
}
