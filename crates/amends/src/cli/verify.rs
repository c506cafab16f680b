//! `amends verify`: recompute every chain, decide again, and compare with what was signed.

mod selftest;

use std::path::PathBuf;
use std::process::ExitCode;

use amends_gateway::proven;
use amends_ledger::VerifyOptions;
use amends_ledger::anchor::Anchor;
use anyhow::{Context, Result, bail};
use clap::Args;

use super::key::KeyArgs;
use super::ledger::LedgerArgs;
use super::outcome::print;

/// The flags of `amends verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Checkpoints that were kept elsewhere. The default is the file beside the ledger, which proves less.
    #[arg(long, value_name = "FILE")]
    anchor: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Make a ledger, touch it in every way we know of, and say which ones are found.
    #[arg(long, conflicts_with_all = ["anchor", "key", "ledger", "config"])]
    selftest: bool,
}

pub(super) async fn verify(args: VerifyArgs) -> Result<ExitCode> {
    if args.selftest {
        return selftest::run(args.json).await;
    }
    let config = args.ledger.config()?;
    let key = args.key.verifier(&config)?;
    // Before the ledger is opened: what is written from now on can only be more than the anchor says.
    let anchor = match (&args.anchor, &config.anchor) {
        (Some(file), _) => Some(Anchor::read(file).with_context(|| format!("cannot read `{}`", file.display()))?),
        (None, Some(file)) if file.exists() => {
            Some(Anchor::read(file).with_context(|| format!("cannot read `{}`", file.display()))?)
        }
        (None, _) => None,
    };
    if args.anchor.is_some() && key.is_none() {
        bail!("the anchor's signatures cannot be checked without a key; name it with --key");
    }
    let ledger = args.ledger.open().await?;
    let verified = amends_ledger::verify(&*ledger, VerifyOptions { anchor, key }).await?;
    if args.json {
        print(&serde_json::to_string_pretty(&proven::json(&verified))?)?;
    } else {
        print(&proven::text(&verified))?;
    }
    Ok(if verified.is_consistent() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
