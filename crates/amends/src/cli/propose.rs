//! `amends propose`: a change of the rules, with all that is needed to judge it.

mod page;
mod proposal;

use std::path::PathBuf;
use std::process::ExitCode;

use amends_gateway::config::Fragment;
use amends_gateway::hindsight::{self, Change};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::golden;
use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::{now, utc};
use super::whatif::{since, walk};

pub(super) use proposal::Proposal;

const EXAMPLES: &str = "\
Examples:
  amends propose --playbook fragment.toml -o proposal.json
  amends propose --playbook fragment.toml --since 30d --goldens goldens -o proposal.json

It writes proposal.json for `amends release` and proposal.md for the person who decides. Nothing is applied.

Exit codes: 0 it was written, 1 the rules are refused, 2 the command could not do its work.";

/// The flags of `amends propose`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ProposeArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The changed rules: a fragment of a configuration.
    #[arg(long, value_name = "FILE")]
    playbook: PathBuf,
    /// How far to look back, such as `12h` or `30d`.
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    since: String,
    /// A folder of goldens to tell under the change.
    #[arg(long, value_name = "DIR")]
    goldens: Option<PathBuf>,
    /// Where to write it: a `.json` file; the readable page is beside it.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub(super) async fn propose(args: ProposeArgs) -> Result<ExitCode> {
    ensure!(
        args.output.extension().is_some_and(|extension| extension == "json"),
        "name a `.json` file with -o; the readable page is written beside it as `.md`"
    );
    let fragment = match Fragment::read(&args.playbook) {
        Ok(fragment) => fragment,
        Err(error @ amends_gateway::config::ConfigError::Unreadable { .. }) => return Err(error.into()),
        Err(error) => {
            eprintln!(
                "amends: {error}\namends: a proposal changes rules: [retry…], [tools.NAME.retry…], [tools.NAME.playbook…]"
            );
            return Ok(ExitCode::from(1));
        }
    };
    let text = fragment.source().text().to_owned();
    let hash = fragment.hash().clone();
    let change = match Change::Fragment(fragment).released_in(args.ledger.config_file()) {
        Ok(change) => change,
        Err(error @ amends_gateway::config::ConfigError::Unreadable { .. }) => return Err(error.into()),
        Err(error) => {
            eprintln!("amends: {error}");
            return Ok(ExitCode::from(1));
        }
    };
    let ledger = args.ledger.open().await?;
    let found = match walk(&ledger, &change, since(&args.since)?, 5).await? {
        Ok(found) => found,
        Err(error) => {
            eprintln!("amends: {error}");
            return Ok(ExitCode::from(1));
        }
    };
    let goldens = match &args.goldens {
        Some(folder) => told(folder, &change)?,
        None => Value::Null,
    };
    let body = json!({
        "proposal": 1,
        "made_at": utc(now()),
        "playbook": { "file": args.playbook, "hash": hash, "text": text },
        "observed": proposal::observed(&found.observed),
        "change": proposal::changes(&found, &change)?,
        "whatif": hindsight::json(&found),
        "goldens": goldens,
    });
    let proposal = Proposal::seal(body)?;
    let page = args.output.with_extension("md");
    write(&args.output, &serde_json::to_string_pretty(proposal.value())?)?;
    write(&page, &page::page(proposal.value(), &hindsight::text(&found)))?;
    print(&format!(
        "{} and {}\nA person reads the page and decides: amends release {} --by NAME",
        args.output.display(),
        page.display(),
        args.output.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn told(folder: &PathBuf, change: &Change) -> Result<Value> {
    if !folder.is_dir() {
        bail!("`{}` is not a folder of goldens", folder.display());
    }
    let told = golden::tell(std::slice::from_ref(folder), Some(change))?;
    let failed: Vec<Value> = told
        .iter()
        .filter_map(|told| Some(json!({ "file": told.file, "difference": told.difference.as_ref()? })))
        .collect();
    Ok(json!({ "folder": folder, "hash": golden::hash(folder)?, "run": told.len(), "failed": failed }))
}

fn write(path: &PathBuf, text: &str) -> Result<()> {
    std::fs::write(path, format!("{}\n", text.trim_end())).with_context(|| format!("cannot write `{}`", path.display()))
}
