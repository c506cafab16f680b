//! `amends tools`: the tools that were seen, what they are pinned to, and what became of them since.

mod difference;

use std::process::ExitCode;

use amends_gateway::pin;
use amends_ledger::{Ledger, PinnedTool};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::utc;
use difference::{difference, shown};

/// How many tools are listed.
const TOOLS_MAX: usize = 10_000;

/// The flags of `amends tools`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  amends tools\n  amends tools --json\n  amends tools diff shop__issue_refund\n  amends tools approve shop__issue_refund"
)]
pub(super) struct ToolsArgs {
    #[command(subcommand)]
    command: Option<ToolsCommand>,
    #[command(flatten)]
    listed: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// Show what a tool became since it was pinned.
    Diff(NamedArgs),
    /// Show it, and pin the tool to what it became; a gateway that refuses it calls it again within seconds.
    Approve(ApproveArgs),
}

#[derive(Debug, Args)]
struct NamedArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The tool as agents know it, or `UPSTREAM/TOOL`.
    name: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    #[command(flatten)]
    named: NamedArgs,
    /// Who approves. The default is the user's name.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(super) async fn tools(args: ToolsArgs) -> Result<ExitCode> {
    match args.command {
        None => list(args.listed).await,
        Some(ToolsCommand::Diff(named)) => diff(named).await,
        Some(ToolsCommand::Approve(args)) => approve(args).await,
    }
}

async fn list(args: ListArgs) -> Result<ExitCode> {
    let pins = args.ledger.open().await?.pins(None, TOOLS_MAX).await?;
    if args.json {
        let rows: Vec<Value> = pins.iter().map(row).collect();
        print(&serde_json::to_string_pretty(&json!({ "tools": rows }))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if pins.is_empty() {
        eprintln!("no gateway has seen a tool on this ledger yet");
        return Ok(ExitCode::SUCCESS);
    }
    let width = pins.iter().map(|pin| shown(&pin.served).chars().count()).max().unwrap_or_default().min(64);
    let mut text = String::new();
    for pin in &pins {
        let state = match &pin.seen {
            None => format!("as pinned {}", utc(pin.pinned.at)),
            Some(seen) => format!("DRIFTED {} from what was pinned {}", utc(seen.at), utc(pin.pinned.at)),
        };
        text.push_str(&format!("{:width$}  {}  {state}\n", shown(&pin.served), shown(&pin.upstream)));
    }
    print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

async fn diff(args: NamedArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let pin = find(&*ledger, &args.name).await?;
    if args.json {
        print(&serde_json::to_string_pretty(&row(&pin))?)?;
    } else if pin.seen.is_some() {
        print(&difference(&pin))?;
    } else {
        print(&format!("`{}` is as it was pinned {}", shown(&pin.served), utc(pin.pinned.at)))?;
    }
    // As of any comparison: 1 says that there is a difference.
    Ok(ExitCode::from(u8::from(pin.seen.is_some())))
}

async fn approve(args: ApproveArgs) -> Result<ExitCode> {
    let ledger = args.named.ledger.open().await?;
    let pin = find(&*ledger, &args.named.name).await?;
    let name = shown(&pin.served);
    if pin.seen.is_none() {
        bail!("`{name}` is as it was pinned {}; there is nothing to approve", utc(pin.pinned.at));
    }
    let (was, told) = (row(&pin), difference(&pin));
    let by = args.by.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "operator".into());
    if !pin::approve(&*ledger, pin, &by).await? {
        bail!("`{name}` changed while it was being approved; look at it again");
    }
    if args.named.json {
        print(&json!({ "approved": was, "by": by }).to_string())?;
    } else {
        print(&format!("{told}\n\napproved by {by}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The one tool of that name.
async fn find(ledger: &dyn Ledger, name: &str) -> Result<PinnedTool> {
    let pins = ledger.pins(None, TOOLS_MAX).await?;
    let full = |pin: &PinnedTool| format!("{}/{}", pin.upstream, pin.tool);
    let mut named: Vec<PinnedTool> = pins.into_iter().filter(|pin| pin.served == name || full(pin) == name).collect();
    // The same name may have been served by several upstreams over time; one that drifted is meant first.
    if named.len() > 1 && named.iter().filter(|pin| pin.seen.is_some()).count() == 1 {
        named.retain(|pin| pin.seen.is_some());
    }
    match (named.pop(), named.is_empty()) {
        (Some(pin), true) => Ok(pin),
        (Some(pin), false) => {
            let names: Vec<String> = named.iter().chain([&pin]).map(full).collect();
            bail!("`{name}` is more than one tool: `{}`", names.join("`, `"))
        }
        (None, _) => bail!("no gateway has seen a tool `{name}` on this ledger; `amends tools` lists those it has"),
    }
}

fn row(pin: &PinnedTool) -> Value {
    let text = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut row = json!({
        "tool": pin.served,
        "upstream": pin.upstream,
        "local": pin.tool,
        "state": if pin.seen.is_some() { "drifted" } else { "pinned" },
        "pinned": { "digest": pin.pinned.digest, "at": pin.pinned.at, "definition": text(&pin.pinned.text) },
    });
    if let Some(seen) = &pin.seen {
        row["seen"] = json!({ "digest": seen.digest, "at": seen.at, "definition": text(&seen.text) });
    }
    row
}
