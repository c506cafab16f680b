//! `amends walk diff A B`: two walks side by side.

use std::process::ExitCode;

use amends_gateway::walks::steps::{Entry, history};
use amends_ledger::Trace;
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::super::ledger::LedgerArgs;
use super::super::outcome::print;
use super::found;

/// How many characters of a digest are shown.
const DIGEST_CHARS: usize = 12;

/// The flags of `amends walk diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// A walk (`ses_…`).
    a: String,
    /// Another.
    b: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn diff(args: DiffArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let (a, b) = (made(&found(&ledger, &args.a).await?), made(&found(&ledger, &args.b).await?));
    let length = a.len().max(b.len());
    let first = (0..length).find_map(|n| Some((n, difference(a.get(n), b.get(n))?)));
    if args.json {
        let difference = first.map(|(n, what)| json!({ "move": n + 1, "what": what }));
        print(&serde_json::to_string_pretty(&json!({ "a": a, "b": b, "first_difference": difference }))?)?;
    } else {
        let mut text = format!("{:>5}  {:<44}  {:<44}\n", "MOVE", args.a, args.b);
        for n in 0..length {
            let mark = if first.is_some_and(|(at, _)| at == n) { '*' } else { ' ' };
            text.push_str(&format!("{mark}{:>4}  {:<44}  {:<44}\n", n + 1, cell(a.get(n)), cell(b.get(n))));
        }
        text.push_str(&match first {
            Some((n, what)) => format!("they first differ in the {what} of move {}", n + 1),
            None => format!("they are the same: {length} moves"),
        });
        print(&text)?;
    }
    Ok(if first.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The moves that were made in a walk.
fn made(trace: &Trace) -> Vec<Entry> {
    let entries = history(trace.events.iter().map(|stored| &stored.event));
    entries.into_iter().filter(|entry| entry.seq.is_some()).collect()
}

/// In what two moves differ, if they do.
fn difference(a: Option<&Entry>, b: Option<&Entry>) -> Option<&'static str> {
    let (Some(a), Some(b)) = (a, b) else { return Some("action") };
    if a.action != b.action {
        Some("action")
    } else if a.inputs_digest != b.inputs_digest {
        Some("inputs")
    } else if a.to != b.to || a.enters != b.enters {
        Some("state")
    } else {
        None
    }
}

fn cell(entry: Option<&Entry>) -> String {
    let Some(entry) = entry else { return "-".to_owned() };
    let action = entry.action.as_ref().map_or("(reset)", |action| action.as_str());
    let digest: String = entry.inputs_digest.as_str().chars().take(DIGEST_CHARS).collect();
    format!("{action} {digest} {}", entry.words())
}
