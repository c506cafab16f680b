//! `amends golden`: recorded calls kept as stories, and told again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use amends_core::{CallId, Fact, Rules};
use amends_gateway::hindsight::{Change, Recorded};
use amends_ledger::digest;
use amends_sim::golden::{Golden, difference, of_call};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::json;

use super::ledger::LedgerArgs;
use super::outcome::print;

const EXAMPLES: &str = "\
Examples:
  amends golden add call_abc… --name refund-lost     keep a recorded call as goldens/refund-lost.toml
  amends golden run goldens                          tell every golden again, by the rules it was kept with
  amends golden run goldens --config amends.toml     the same by today's rules: what belongs into CI
  amends golden run goldens --update                 write the new ends down; read the difference like code

A golden holds the shape of a call and not its content: no arguments, no results, no principal, no words of an upstream.

Exit codes of run: 0 every golden ends as it is written, 1 one does not, 2 one could not be told.";

/// The flags of `amends golden`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GoldenArgs {
    #[command(subcommand)]
    command: GoldenCommand,
}

#[derive(Debug, Subcommand)]
enum GoldenCommand {
    /// Keep a recorded call as a golden.
    Add(AddArgs),
    /// Tell goldens again, and compare.
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// A call (`call_…`) that is over.
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The golden's name. The default is the tool and how it ended.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder to keep it in.
    #[arg(long, value_name = "DIR", default_value = "goldens")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Folders of goldens, or single ones.
    #[arg(required = true, value_name = "DIR")]
    places: Vec<PathBuf>,
    /// The configuration whose rules they are told by, rather than those they were kept with.
    #[arg(long, value_name = "FILE", conflicts_with = "playbook")]
    config: Option<PathBuf>,
    /// Rules that are laid over those they were kept with: a fragment of a configuration.
    #[arg(long, value_name = "FILE")]
    playbook: Option<PathBuf>,
    /// Write the ends down as they are told.
    #[arg(long)]
    update: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn golden(args: GoldenArgs) -> Result<ExitCode> {
    match args.command {
        GoldenCommand::Add(args) => add(args).await,
        GoldenCommand::Run(args) => run(&args),
    }
}

async fn add(args: AddArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let call = CallId::new(args.id.as_str());
    let recorded = match ledger.session_of(&call).await? {
        Some(session) => Recorded::read(&ledger, &session).await?,
        None => None,
    };
    let Some(recorded) = recorded else {
        bail!("there is no call `{call}` in this ledger; `amends trace ses_…` shows a session's calls");
    };
    let received = recorded.events.iter().find_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } if received.call == call => Some(received),
        _ => None,
    });
    let received = received.with_context(|| format!("the beginning of `{call}` is no longer kept"))?;
    let rules =
        recorded.rules.get(&received.rules).with_context(|| format!("the rules of `{call}` are no longer kept"))?;
    let end = recorded.paths().remove(&call).and_then(|path| path.end);
    let ended = end.map_or_else(String::new, amends_core::dispatcher::redecide::CallEnd::words);
    let text = of_call(&recorded.events, &call, rules, &format!("A recorded call of `{}`: {ended}.", received.tool))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = args.name.unwrap_or_else(|| {
        let end = ended.split(' ').next().unwrap_or("ended");
        format!("{}_{end}_{}", received.tool, &digest(text.as_bytes()).as_str()[..6])
    });
    let name: String = name.trim_end_matches(".toml").chars().map(plain).collect();
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make `{}`", args.dir.display()))?;
    let path = args.dir.join(format!("{name}.toml"));
    ensure!(!path.exists(), "`{}` is there already; choose another --name", path.display());
    std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    print(&path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// One golden, told again.
pub(super) struct Told {
    /// The file.
    pub(super) file: PathBuf,
    /// Where it ends otherwise than is written; nothing where it ends the same.
    pub(super) difference: Option<String>,
    /// Why it is told by its own rules after all, where others were asked for.
    pub(super) note: Option<String>,
    rewritten: String,
}

fn run(args: &RunArgs) -> Result<ExitCode> {
    let change = match (&args.config, &args.playbook) {
        (Some(file), _) => Some(Change::read_config(file)?),
        (None, Some(file)) => Some(Change::read(file)?),
        (None, None) => None,
    };
    let told = tell(&args.places, change.as_ref())?;
    let failed: Vec<&Told> = told.iter().filter(|told| told.difference.is_some()).collect();
    if args.update {
        for told in &failed {
            std::fs::write(&told.file, &told.rewritten)
                .with_context(|| format!("cannot write `{}`", told.file.display()))?;
        }
    }
    if args.json {
        let goldens: Vec<_> = told
            .iter()
            .map(|told| json!({ "file": told.file, "same": told.difference.is_none(), "difference": told.difference, "note": told.note }))
            .collect();
        print(&serde_json::to_string_pretty(&json!({ "goldens": goldens, "failed": failed.len() }))?)?;
    } else {
        for told in &told {
            let note = told.note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
            match &told.difference {
                None => print(&format!("same       {}{note}", told.file.display()))?,
                Some(difference) => print(&format!("OTHERWISE  {}{note}\n{difference}", told.file.display()))?,
            }
        }
        let update = if args.update && !failed.is_empty() { "; their ends were written anew" } else { "" };
        print(&format!("{} goldens, {} end otherwise{update}", told.len(), failed.len()))?;
    }
    Ok(if failed.is_empty() || args.update { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Tells every golden of those folders, under a change where there is one.
pub(super) fn tell(places: &[PathBuf], change: Option<&Change>) -> Result<Vec<Told>> {
    let files = files(places)?;
    ensure!(!files.is_empty(), "there are no goldens (`*.toml`) there; `amends golden add call_…` makes one");
    files.into_iter().map(|file| one(file, change)).collect()
}

fn one(file: PathBuf, change: Option<&Change>) -> Result<Told> {
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let named = || format!("`{}` cannot be told", file.display());
    let golden = Golden::read(&text).with_context(named)?;
    let own = golden.rules().with_context(named)?;
    let (rules, note) = governed(&golden, &own, change)?;
    let told = golden.tell(&rules).with_context(named)?;
    let difference = difference(golden.expected().unwrap_or_default(), &told);
    Ok(Told { file, difference, note, rewritten: golden.with_end(&told) })
}

fn governed(golden: &Golden, own: &Arc<Rules>, change: Option<&Change>) -> Result<(Arc<Rules>, Option<String>)> {
    let by_its_own = |why: &str| Ok((own.clone(), Some(format!("by its own rules: {why}"))));
    let Some(change) = change else { return Ok((own.clone(), None)) };
    let Some((tool, upstream)) = golden.tool() else { return by_its_own("it names no recorded tool") };
    match change.rules(tool, upstream, own)? {
        Some(rules) => Ok((rules, None)),
        None => by_its_own("the configuration does not have its upstream"),
    }
}

/// The goldens of those places, in the order of their names.
pub(super) fn files(places: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for place in places {
        if place.is_file() {
            files.push(place.clone());
            continue;
        }
        let entries = std::fs::read_dir(place).with_context(|| format!("cannot list `{}`", place.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The digest of a folder's goldens: their names and all they say.
pub(super) fn hash(folder: &Path) -> Result<String> {
    let mut all = Vec::new();
    for file in files(&[folder.to_owned()])? {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        all.extend_from_slice(format!("{name}\n{}\n", digest(&text)).as_bytes());
    }
    Ok(digest(&all).to_string())
}
