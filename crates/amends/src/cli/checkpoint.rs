//! `amends checkpoint`: sign what the ledger has become, now.

use std::process::ExitCode;

use amends_gateway::{SignError, Signer, key};
use amends_ledger::origin;
use anyhow::{Result, anyhow};
use clap::Args;

use super::ledger::LedgerArgs;
use super::outcome::print;

/// The flags of `amends checkpoint`.
#[derive(Debug, Args)]
pub(super) struct CheckpointArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub(super) async fn checkpoint(args: CheckpointArgs) -> Result<ExitCode> {
    let config = args.ledger.config()?;
    let ledger = args.ledger.open().await?;
    let key = key::signing(&config, &origin(&ledger.secret()))?
        .ok_or_else(|| anyhow!("no signing key is named; set `signing_key` in `[ledger]`"))?;
    match Signer::new(ledger, key, config.anchor).sign().await {
        Ok(Some(newest)) => {
            print(newest.note.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(None) => {
            eprintln!("amends: the ledger is empty; there is nothing to sign");
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ (SignError::Forked(_) | SignError::Foreign(_))) => {
            eprintln!("amends: nothing was signed: {error}");
            Ok(ExitCode::from(1))
        }
        Err(error @ (SignError::Ledger(_) | SignError::Anchor { .. })) => Err(error.into()),
    }
}
