//! `amends check`: validate a configuration, and explain what it means.

mod doubt;
mod rows;
mod tool;
mod warnings;

use std::path::PathBuf;
use std::process::ExitCode;

use amends_core::EffectKind;
use amends_gateway::config::{ConfigError, Reach, Released, Source};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::outcome::print;
pub(super) use rows::done;
use tool::Checked;

const EXAMPLES: &str = "\
Examples:
  amends check --config amends.toml           what each tool's section means, and what is missing
  amends check --config amends.toml --json    the same for programs: one rule for each verdict and code

Exit codes: 0 the file is valid (warnings or not), 1 it is not, 2 it could not be read.";

/// The flags of `amends check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The configuration file, of `serve`, `up` or `wrap`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode> {
    let source = Source::read(&args.config)?;
    let file = args.config.display().to_string();
    match explained(&source) {
        Ok((tools, notes)) => {
            print(&if args.json { as_json(&file, &tools, &notes)? } else { as_text(&file, &tools, &notes) })?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            if args.json {
                print(&serde_json::to_string_pretty(&refused(&file, &error))?)?;
            } else {
                eprintln!("amends: {error}");
            }
            Ok(ExitCode::from(1))
        }
    }
}

/// What is worth knowing beside the tools.
struct Notes {
    /// The released rules that apply.
    release: Option<Released>,
    /// Why payloads rest in the clear, if they do.
    unsealed: Option<String>,
}

/// What each tool's section means, and what is worth knowing beside that.
fn explained(source: &Source) -> Result<(Vec<Checked>, Notes), ConfigError> {
    // A file for `wrap` leaves the wrapped server's command to the command line.
    let config = source.settle_wrap()?;
    let mut tools = Vec::new();
    for (name, tool) in &config.tools {
        tools.push(Checked::declared(&config, source, name, tool)?);
    }
    for (name, upstream) in &config.upstreams {
        // The methods of an API say what its operations do, where no section does.
        let by_method = matches!(upstream.reach, Reach::OpenApi(_)) && upstream.trust_hints;
        let rest: &[(EffectKind, &str)] = if by_method {
            &[
                (EffectKind::Read, " by GET or HEAD"),
                (EffectKind::Idempotent, " by PUT or DELETE"),
                (EffectKind::Write, " by POST or PATCH"),
            ]
        } else {
            &[(EffectKind::Write, "")]
        };
        for effect in rest {
            tools.push(Checked::rest(&config, source, name.as_str(), upstream, *effect)?);
        }
    }
    Ok((tools, Notes { unsealed: config.ledger.unsealed(), release: config.release }))
}

fn refused(file: &str, error: &ConfigError) -> Value {
    let line = match error {
        ConfigError::Malformed { line, .. } => Some(*line),
        ConfigError::Unreadable { .. }
        | ConfigError::Invalid { .. }
        | ConfigError::Document(_)
        | ConfigError::Playbook(_) => None,
    };
    json!({ "file": file, "valid": false, "line": line, "error": error.to_string() })
}

fn as_json(file: &str, tools: &[Checked], notes: &Notes) -> Result<String> {
    let shown: Result<Vec<Value>, _> = tools.iter().map(Checked::to_json).collect();
    let mut checked = json!({ "file": file, "valid": true, "tools": shown? });
    if let Some(Released { release, by, at, .. }) = &notes.release {
        checked["release"] = json!({ "version": release.version, "hash": release.hash, "by": by, "at": at });
    }
    if let Some(words) = &notes.unsealed {
        checked["warnings"] = json!([words]);
    }
    Ok(serde_json::to_string_pretty(&checked)?)
}

fn as_text(file: &str, tools: &[Checked], notes: &Notes) -> String {
    let warnings = tools.iter().map(|tool| tool.warnings.len()).sum::<usize>() + usize::from(notes.unsealed.is_some());
    let mut text = format!("{file}: valid, {}\n", counted(warnings, "warning"));
    if let Some(Released { release, by, at, rules, .. }) = &notes.release {
        let (file, version, hash) = (rules.source().origin(), release.version, &release.hash);
        text.push_str(&format!("released rules: version {version}, released by {by} at {at}, {file}\n  hash {hash}\n"));
    }
    if let Some(words) = &notes.unsealed {
        text.push_str(&format!("\nledger\n  warning: {words}\n"));
    }
    for tool in tools {
        text.push('\n');
        tool.write(&mut text);
    }
    text.push_str("\nby default  whatever no section above says otherwise\n");
    for row in rows::shipped() {
        text.push_str(&format!("  {}\n", row.line()));
    }
    text.push_str("\nA write is sent again only where nothing was done, whatever these rules say.");
    text
}

fn counted(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
