//! `amends sessions`: what happened lately.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::utc;

/// The flags of `amends sessions`.
#[derive(Debug, Args)]
pub(super) struct SessionsArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// How many to list.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn sessions(args: SessionsArgs) -> Result<ExitCode> {
    let rows = args.ledger.open().await?.sessions(args.limit).await?;
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "session": row.session, "principal": row.principal, "door": row.door, "opened": row.opened,
                    "updated": row.updated, "events": row.events, "open_calls": row.open_calls, "retired": row.cut > 0,
                })
            })
            .collect();
        print(&serde_json::to_string_pretty(&json!({ "sessions": rows }))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{:<28}  {:<23}  {:<10}  {:>6}  {:>4}\n", "SESSION", "LAST EVENT", "DOOR", "EVENTS", "OPEN");
    for row in rows {
        text.push_str(&format!(
            "{:<28}  {:<23}  {:<10}  {:>6}  {:>4}\n",
            row.session.as_str(),
            utc(row.updated),
            row.door,
            row.events,
            if row.cut > 0 { "gone".to_owned() } else { row.open_calls.to_string() }
        ));
    }
    print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
