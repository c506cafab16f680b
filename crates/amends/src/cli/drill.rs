//! `amends drill`: every declared tool against every fault, in a simulation with the real dispatcher.

mod live;
mod subjects;
mod table;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use amends_sim::drill::{self, Assume, Drilled, Subject};
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args};

use super::outcome::print;

const EXAMPLES: &str = "\
Examples:
  amends drill                                     the demo's tools
  amends drill --config amends.toml                the tools that a configuration declares, with its playbooks
  amends drill --config amends.toml --tool pay --pairs    one tool, every pair of faults in a row of its own
  amends drill --config amends.toml --json         one JSON document, for a script
  amends drill --live                              the same faults in earnest: a real gateway before the demo shop
  amends drill --assume upstream-forgets-keys      what happens if an upstream does not keep its word

What is drilled is what `[tools.…]` declares. Each fault meets the first send; in a pair, the second meets whatever is
attempted next: a resend, a status read, the agent's repeat, an undoing. Every row is run with an agent that heeds what it is
told and with one that always asks again, and, where a person is asked, with one who answers and one who never does.

Exit codes: 0 every promise holds, 1 a promise would break, 2 the drill could not be held.";

/// The flags of `amends drill`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DrillArgs {
    /// The configuration whose tools are drilled; the demo's without it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only this tool, by its served name. May be given more than once.
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// List every pair of faults, rather than the worst of them.
    #[arg(long, overrides_with = "no_pairs")]
    pairs: bool,
    /// Leave out pairs of faults.
    #[arg(long, action = ArgAction::SetTrue)]
    no_pairs: bool,
    /// Assume that the upstream is not what its contract says.
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(Assume::ALL.map(Assume::name)))]
    assume: Option<String>,
    /// Also make one real call for each of the demo shop's tools and scripted faults, and compare with the shop's book.
    #[arg(long, conflicts_with_all = ["config", "assume"])]
    live: bool,
    /// The number that all chance comes from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn drill(args: DrillArgs) -> Result<ExitCode> {
    let config = subjects::config(args.config.as_deref())?;
    let subjects = subjects::subjects(&config, &args.tool)?;
    let assume = args.assume.as_deref().and_then(Assume::named);
    let (pairs, seed) = (!args.no_pairs, args.seed);
    // On a thread of its own: nothing in a simulation waits, and a runtime would make its tasks give way.
    let drilled: Vec<Drilled> = tokio::task::spawn_blocking(move || {
        let all = subjects.len();
        let one = |(n, subject): (usize, &Subject)| {
            progress(n, all, subject.tool.as_str());
            drill::drill(subject, assume, pairs, seed)
        };
        let drilled = subjects.iter().enumerate().map(one).collect();
        progress(all, all, "");
        drilled
    })
    .await?;
    let tools = args.tool.clone();
    let live = if args.live { tokio::task::spawn_blocking(move || live::live(&tools)).await?? } else { Vec::new() };
    if args.json {
        print(&serde_json::to_string_pretty(&table::json(&drilled, &live, assume, args.seed))?)?;
    } else {
        print(table::text(&drilled, &live, assume, args.pairs).trim_end())?;
    }
    let holds = drilled.iter().flat_map(Drilled::rows).all(|row| row.broken.is_none());
    let holds = holds && live.iter().all(|row| row.broken.is_none());
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Says how far it is, to somebody who watches.
fn progress(done: usize, all: usize, tool: &str) {
    let mut err = std::io::stderr().lock();
    if !err.is_terminal() {
        return;
    }
    let bar: String = (0..all).map(|n| if n < done { '#' } else { '.' }).collect();
    // Nobody to watch is no reason to stop.
    let _ = write!(err, "\r\x1b[K").and_then(|()| match done == all {
        true => Ok(()),
        false => write!(err, "[{bar}] {done}/{all} {tool}"),
    });
    let _ = err.flush();
}
