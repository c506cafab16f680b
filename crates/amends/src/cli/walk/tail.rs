//! `amends walk tail ID`: what is done in a walk, as it happens.

use std::process::ExitCode;
use std::time::Duration;

use amends_gateway::walks::steps::history;
use anyhow::Result;
use clap::Args;

use super::super::ledger::LedgerArgs;
use super::super::outcome::print;
use super::{found, line};

/// How often it is looked whether something was done.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// The flags of `amends walk tail`.
#[derive(Debug, Args)]
pub(super) struct TailArgs {
    /// The walk (`ses_…`).
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON, a line for each.
    #[arg(long)]
    json: bool,
}

/// Shows every move once it is over, until it is interrupted.
pub(super) async fn tail(args: TailArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let mut shown = 0;
    loop {
        let trace = found(&ledger, &args.id).await?;
        let entries = history(trace.events.iter().map(|stored| &stored.event));
        // A move that is being made is shown when it is over, and those after it after it.
        let over = |n: usize| entries.get(n).is_some_and(|entry| entry.outcome.is_some() || entry.repeats.is_some());
        while over(shown) {
            let entry = &entries[shown];
            print(&if args.json { serde_json::to_string(entry)? } else { line(entry) })?;
            shown += 1;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
