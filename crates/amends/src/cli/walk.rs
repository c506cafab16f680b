//! `amends walk ID`: where a walk through a machine is, and what was done in it.

mod diff;
mod tail;

use std::process::ExitCode;
use std::sync::Arc;

use amends_core::{Fact, SessionId};
use amends_gateway::walks;
use amends_gateway::walks::steps::{Entry, history, moves, next_body, state_body};
use amends_ledger::{Ledger, Trace};
use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::utc;

/// The flags of `amends walk`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct WalkArgs {
    #[command(subcommand)]
    command: Option<WalkCommand>,
    /// The walk (`ses_…`).
    #[arg(required = true)]
    id: Option<String>,
    /// What to show of it.
    #[arg(value_enum, default_value_t = Show::Next)]
    what: Show,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum WalkCommand {
    /// Show what is done in a walk as it happens.
    Tail(tail::TailArgs),
    /// Compare two walks, and say where they first differ.
    ///
    /// Exits with 0 where they are the same, and 1 where they differ.
    Diff(diff::DiffArgs),
}

/// What to show of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    /// What may be done now.
    Next,
    /// What was done.
    History,
    /// The state and its fields.
    State,
    /// The machine as a Mermaid diagram, with where the walk is.
    Graph,
}

pub(super) async fn walk(args: WalkArgs) -> Result<ExitCode> {
    match args.command {
        Some(WalkCommand::Tail(args)) => return tail::tail(args).await,
        Some(WalkCommand::Diff(args)) => return diff::diff(args).await,
        None => {}
    }
    let ledger = args.ledger.open().await?;
    let id = args.id.unwrap_or_default();
    let trace = found(&ledger, &id).await?;
    let shown = match args.what {
        Show::History => {
            let entries = history(trace.events.iter().map(|stored| &stored.event));
            let text = entries.iter().map(line).collect::<Vec<_>>().join("\n");
            let text = if text.is_empty() { "nothing was done yet".to_owned() } else { text };
            (json!({ "session": trace.session, "moves": entries }), text)
        }
        Show::Next | Show::State | Show::Graph => seen(&ledger, &trace, args.what).await?,
    };
    let text = if args.json { serde_json::to_string_pretty(&shown.0)? } else { shown.1 };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The trace of a walk.
async fn found(ledger: &Arc<dyn Ledger>, id: &str) -> Result<Trace> {
    let trace = ledger.trace(&SessionId::new(id)).await?;
    let Some(trace) = trace else {
        bail!("there is no `{id}` in this ledger; `amends sessions` lists what there is");
    };
    if trace.cut > 0 {
        bail!("`{id}` is retired: what was done in it was dropped");
    }
    if !trace.events.iter().any(|stored| matches!(stored.event.fact, Fact::WalkBegan { .. })) {
        bail!("`{id}` walks through no machine; `amends trace` shows it");
    }
    Ok(trace)
}

/// Where a walk is, as it is seen from its trace and its fields.
async fn seen(ledger: &Arc<dyn Ledger>, trace: &Trace, what: Show) -> Result<(Value, String)> {
    let recorded = walks::recorded(ledger, trace).await?;
    let Some(recorded) = recorded else {
        return Err(anyhow!("`{}` walks through no machine; `amends trace` shows it", trace.session));
    };
    let view = &recorded.view;
    Ok(match what {
        Show::State => {
            let body = state_body(view, &recorded.names);
            let mut text =
                format!("{}  `{}` in `{}` after {}\n", view.session, view.machine, view.state, moves(view.seq));
            for (name, value) in &view.fields {
                text.push_str(&format!("{name} = {value}\n"));
            }
            (body, text.trim_end().to_owned())
        }
        Show::Graph => {
            let picture = recorded.mermaid();
            (json!({ "session": view.session, "mermaid": picture }), picture.trim_end().to_owned())
        }
        Show::Next | Show::History => {
            let body = next_body(view, &recorded.names);
            let mut text = body["next_hint"].as_str().unwrap_or_default().to_owned();
            for next in &view.next {
                let about = next.description.as_ref().map(|about| format!("  {about}")).unwrap_or_default();
                text.push_str(&format!("\n{}{about}", next.action));
                if let Some(schema) = &next.schema {
                    text.push_str(&format!("\n    {schema}"));
                }
            }
            (body, text)
        }
    })
}

/// A move in a line.
fn line(entry: &Entry) -> String {
    let seq = entry.seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
    let action = entry.action.as_ref().map_or("(reset)", |action| action.as_str());
    let inputs = entry.inputs.as_ref().map(|inputs| format!("  {inputs}")).unwrap_or_default();
    let said = entry.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{seq:>5}  {}  {action:<20}  {}{said}{inputs}", utc(entry.at), entry.words())
}
