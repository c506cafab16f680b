//! `amends verify`: recompute every chain.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::ledger::LedgerArgs;
use super::outcome::print;

/// The flags of `amends verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn verify(args: VerifyArgs) -> Result<ExitCode> {
    let verified = args.ledger.open().await?.verify().await?;
    let consistent = verified.faults.is_empty();
    if args.json {
        let faults: Vec<_> = verified
            .faults
            .iter()
            .map(|fault| {
                json!({
                    "session": fault.session, "seq": fault.seq, "kind": format!("{:?}", fault.kind), "words": fault.words,
                })
            })
            .collect();
        let report = json!({
            "consistent": consistent, "completeness": "not proven", "sessions": verified.sessions,
            "events": verified.events, "faults": faults,
        });
        print(&serde_json::to_string_pretty(&report)?)?;
    } else if consistent {
        let (sessions, events) = (verified.sessions, verified.events);
        print(&format!(
            "consistent; completeness not proven: {events} events in {sessions} sessions, every chain recomputed"
        ))?;
    } else {
        for fault in &verified.faults {
            let seq = fault.seq.map(|seq| format!(" at event {seq}")).unwrap_or_default();
            print(&format!("{}{seq}: {:?}: {}", fault.session, fault.kind, fault.words))?;
        }
        print(&format!("NOT consistent: {} faults in {} events", verified.faults.len(), verified.events))?;
    }
    Ok(if consistent { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
