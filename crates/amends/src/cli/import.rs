//! `amends import`: the sessions of an export, taken in as they were.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use amends_gateway::open_ledger;
use amends_ledger::chain::read_rules;
use amends_ledger::{Ledger, MemoryLedger, Node, SessionRow, Trace};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::export::line::{BadLine, Exported, Reader};
use super::export::{clear_progress, progress};
use super::ledger::{self, LedgerArgs};
use super::outcome::print;

const EXAMPLES: &str = "\
Example:
  amends import all.jsonl --ledger sqlite:elsewhere.db

Every chain is recomputed before the first session is kept. Sessions that are there already are left as they are.

Exit codes: 0 everything is there, 1 the file is damaged or differs from what is there (nothing was kept), 2 it could not be read.";

/// The flags of `amends import`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// The file, as `amends export` wrote it.
    file: PathBuf,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What was found in the file.
#[derive(Default)]
struct Counted {
    taken: u64,
    there: u64,
}

pub(super) async fn import(args: ImportArgs) -> Result<ExitCode> {
    let config = args.ledger.config()?;
    ledger::make_room(&config.place)?;
    let ledger = open_ledger(&config).await?;
    // Twice: nothing is kept of a file that is damaged anywhere, and it need not fit into memory.
    if let Err(bad) = check(&*ledger, &args).await? {
        if args.json {
            print(&json!({ "imported": false, "line": bad.line, "error": bad.reason }).to_string())?;
        } else {
            eprintln!("amends: `{}`: {bad}; nothing was kept", args.file.display());
        }
        return Ok(ExitCode::from(1));
    }
    let mut reader = open(&args)?;
    let mut counted = Counted::default();
    while let Some(exported) = reader.next()? {
        let (row, trace) = match exported {
            Exported::Rules(hash, body) => {
                ledger.import_rules(hash, body).await?;
                continue;
            }
            // What calls gave is for reading; a ledger keeps it for repeats, and nobody repeats a call that was made elsewhere.
            Exported::Session(row, trace, _) => (*row, trace),
        };
        if ledger.import(row, trace).await? {
            counted.taken += 1;
        } else {
            counted.there += 1;
        }
        progress(counted.taken + counted.there);
    }
    clear_progress();
    let Counted { taken, there } = counted;
    if args.json {
        print(&json!({ "imported": true, "sessions": taken, "there_already": there }).to_string())?;
    } else {
        print(&format!("{taken} sessions taken in, {there} were there already"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open(args: &ImportArgs) -> Result<Reader<BufReader<File>>> {
    let file = File::open(&args.file).with_context(|| format!("cannot read `{}`", args.file.display()))?;
    Ok(Reader::new(BufReader::new(file)))
}

/// Reads the whole file, recomputes every chain, and compares what is there already.
async fn check(ledger: &dyn Ledger, args: &ImportArgs) -> Result<Result<(), BadLine>> {
    let mut reader = open(args)?;
    loop {
        let exported = match reader.next() {
            Ok(Some(exported)) => exported,
            Ok(None) => return Ok(Ok(())),
            Err(bad) => return Ok(Err(bad)),
        };
        let line = reader.line();
        let (row, trace) = match exported {
            Exported::Session(row, trace, _) => (*row, trace),
            Exported::Rules(hash, body) if read_rules(&body, &hash).is_some() => continue,
            Exported::Rules(hash, _) => {
                return Ok(Err(BadLine { line, reason: format!("the rules `{hash}` are others") }));
            }
        };
        let there = ledger.trace(&row.session).await?;
        if let Err(reason) = checked(row, trace, there).await {
            return Ok(Err(BadLine { line, reason }));
        }
    }
}

/// Whether a session is sound and does not differ from the one that is there.
async fn checked(row: SessionRow, trace: Trace, there: Option<Trace>) -> Result<(), String> {
    if let Some(there) = there {
        let differs = there.cut != trace.cut || there.events != trace.events;
        if differs {
            return Err(format!("`{}` is there already, and is not the same", row.session));
        }
    }
    // A ledger that nobody keeps checks it as any other would.
    let node = Node { id: "check".into(), place: String::new(), lease_ms: 1_000 };
    MemoryLedger::new(node).import(row, trace).await.map_err(|error| error.to_string())?;
    Ok(())
}
