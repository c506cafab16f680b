//! `amends doctor`: looks for trouble, and changes nothing.

mod auth;
mod client;
mod disk;
mod finding;
mod ledger;
mod port;
mod system;
mod upstream;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amends_core::UpstreamName;
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, LedgerConfig, LedgerPlace, Source};
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::outcome::print;
use super::stamp::now;
use finding::{Finding, Level};

const EXAMPLES: &str = "\
Examples:
  amends doctor                           this machine, ./amends.toml if it is there, the ledger, the clients
  amends doctor --config amends.toml      also its port and its upstreams
  amends doctor --no-start --json         for programs, without starting the upstreams

It starts the upstreams and asks for their tools, but calls none; it reads the ledger, but records nothing; it writes a
file beside the ledger to time the disk, and removes it.

Exit codes: 0 nothing is bad (warnings or not), 1 something is, 2 it could not look.";

/// The flags of `amends doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArgs {
    /// The configuration file. The default is ./amends.toml, if it is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Do not start the upstreams.
    #[arg(long)]
    no_start: bool,
    /// How many seconds an upstream may take until it has listed its tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

pub(super) async fn doctor(args: DoctorArgs) -> Result<ExitCode> {
    let here = PathBuf::from("amends.toml");
    let file = args.config.clone().or_else(|| here.exists().then_some(here));
    let mut found = system::look(Config::without_file().limits.calls);
    let config = match &file {
        None => Ok(None),
        Some(file) => configured(file, &mut found),
    };
    match config {
        Ok(Some(config)) => found.extend(all(&config, &args).await?),
        Ok(None) => found.extend(without_file().await?),
        Err(error) => {
            let advice = "`amends check` says more; nothing that depends on it was looked at";
            found.push(Finding::bad("configuration", error.to_string(), advice));
        }
    }
    let worst = found.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    print(&if args.json { as_json(&found, worst)? } else { as_text(&found) })?;
    Ok(if worst == Level::Bad { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Reads the configuration. One that cannot be opened is the caller's mistake, one that is wrong is a finding.
fn configured(file: &Path, found: &mut Vec<Finding>) -> Result<Option<Config>, ConfigError> {
    let mut config = Source::read(file)?.settle_wrap()?;
    // The wrapped server's command is in a client's configuration, not here.
    config.upstreams.remove(&UpstreamName::new("wrapped"));
    found.push(Finding::ok("configuration", format!("{} is valid", file.display())));
    Ok(Some(config))
}

async fn all(config: &Config, args: &DoctorArgs) -> Result<Vec<Finding>> {
    let mut found = port::look(config.http).await;
    found.extend(auth::look(config).await);
    if !args.no_start {
        found.extend(upstream::look(config, Duration::from_secs(args.wait)).await?);
    }
    found.extend(disk::look(&config.ledger));
    found.extend(ledger::look(&config.ledger, now()).await);
    found.extend(client::look(config.http, Path::new(".")));
    Ok(found)
}

/// What can be looked at where nothing is configured: the ledger that `wrap` keeps, and the clients.
async fn without_file() -> Result<Vec<Finding>> {
    let config = Config::without_file();
    let mut found = vec![Finding::ok("configuration", "there is no file; `amends init` writes one")];
    found.extend(port::look(config.http).await);
    let path = super::ledger::wrapped()?;
    let place = LedgerConfig::at(LedgerPlace::Sqlite(path));
    found.extend(disk::look(&place));
    found.extend(ledger::look(&place, now()).await);
    found.extend(client::look(config.http, Path::new(".")));
    Ok(found)
}

fn as_json(found: &[Finding], worst: Level) -> Result<String> {
    let findings: Vec<_> = found.iter().map(Finding::to_json).collect();
    Ok(serde_json::to_string_pretty(&json!({ "worst": worst.as_str(), "findings": findings }))?)
}

fn as_text(found: &[Finding]) -> String {
    let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let count = |level: Level| found.iter().filter(|finding| finding.level == level).count();
    let lines: Vec<String> = found.iter().map(|finding| finding.line(coloured)).collect();
    format!(
        "{}\n\n{} bad, {} to look at, {} ok",
        lines.join("\n"),
        count(Level::Bad),
        count(Level::Warn),
        count(Level::Ok)
    )
}
