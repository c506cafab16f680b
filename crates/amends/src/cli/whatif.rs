//! `amends whatif --playbook F`: what a change of the rules would have done to what happened.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use amends_core::Timestamp;
use amends_gateway::config::{ConfigError, Span};
use amends_gateway::hindsight::{self, Change, WhatIf, json, text};
use amends_ledger::Ledger;
use anyhow::{Result, anyhow};
use clap::Args;

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::now;

const EXAMPLES: &str = "\
Examples:
  amends whatif --playbook fragment.toml               last week's calls, with these rules laid over those they had
  amends whatif --playbook fragment.toml --since 30d --examples 10
  amends whatif --playbook amends.toml --json          the same for a whole configuration, for programs

With --config, a fragment is taken for the next release: where the configuration names one, what that one said and the fragment
does not repeat is dropped.

A fragment has the sections [retry…], [tools.NAME.retry…] and [tools.NAME.playbook…] of a configuration, and nothing else.
Nothing is written, and nothing is sent: recorded answers are fed in as far as they reach.

Exit codes: 0 it could be told, 1 the rules are refused, 2 the command could not do its work.";

/// The flags of `amends whatif`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WhatIfArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The changed rules: a fragment of a configuration, or a whole one.
    #[arg(long, value_name = "FILE")]
    playbook: PathBuf,
    /// How far to look back, such as `12h` or `30d`.
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    since: String,
    /// How many calls to name for each kind of difference.
    #[arg(long, value_name = "N", default_value_t = 3)]
    examples: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn whatif(args: WhatIfArgs) -> Result<ExitCode> {
    let since = since(&args.since)?;
    let refused = |error: amends_gateway::config::ConfigError| {
        eprintln!("amends: {error}");
        Ok(ExitCode::from(1))
    };
    let change = match Change::read(&args.playbook).and_then(|change| change.released_in(args.ledger.config_file())) {
        Ok(change) => change,
        Err(error @ amends_gateway::config::ConfigError::Unreadable { .. }) => return Err(error.into()),
        Err(error) => return refused(error),
    };
    let ledger = args.ledger.open().await?;
    let found = match walk(&ledger, &change, since, args.examples).await? {
        Ok(found) => found,
        Err(error) => return refused(error),
    };
    print(&if args.json { serde_json::to_string_pretty(&json(&found))? } else { text(&found) })?;
    Ok(ExitCode::SUCCESS)
}

/// Decides every session again that began since then, and tells somebody who watches how far it is.
pub(super) async fn walk(
    ledger: &Arc<dyn Ledger>,
    change: &Change,
    since: Timestamp,
    examples: usize,
) -> Result<Result<WhatIf, ConfigError>> {
    let found = hindsight::walk(ledger, change, since, examples, progress).await;
    progress_over();
    Ok(found?)
}

/// Says how far it is, to somebody who watches.
fn progress(sessions: u64, events: u64) {
    let mut err = std::io::stderr().lock();
    if sessions.is_multiple_of(50) && err.is_terminal() {
        // Nobody to watch is no reason to stop.
        let _ = write!(err, "\r\x1b[K{sessions} sessions, {events} events decided again").and_then(|()| err.flush());
    }
}

fn progress_over() {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        // As above.
        let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
    }
}

/// The time that long ago.
pub(super) fn since(span: &str) -> Result<Timestamp> {
    let Span(back) =
        Span::parse(span).ok_or_else(|| anyhow!("`{span}` is not a length of time such as `12h` or `7d`"))?;
    Ok(now() - u64::try_from(back.as_millis()).unwrap_or(u64::MAX))
}
