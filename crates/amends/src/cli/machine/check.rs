//! `amends machine check`: what is wrong with the machines of a configuration, and what about them may surprise.

use std::process::ExitCode;

use amends_core::machine::{Finding, Weight};
use amends_gateway::config::{ConfigError, Source};
use anyhow::Result;
use serde_json::{Value, json};

use super::CheckArgs;
use crate::cli::finding::{of_error, to_json};
use crate::cli::outcome::print;

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode> {
    let source = Source::read(&args.file)?;
    let file = args.file.display().to_string();
    let (found, machines) = match source.settle_wrap() {
        Ok(config) => {
            let found = config.look_at_machines(|tool| config.facts(tool.as_str()));
            let names = config.machines.declared().map(|machine| machine.name().as_str().to_owned());
            (source.in_order(found), names.collect::<Vec<_>>())
        }
        Err(ConfigError::Machines(wrong)) => {
            let found: Vec<_> = wrong.findings().map(|(line, finding)| (line, finding.clone())).collect();
            (found, Vec::new())
        }
        Err(error) => return refused(args, &file, &error),
    };
    let valid = found.iter().all(|(_, finding)| finding.weight != Weight::Error);
    if args.json {
        let found: Vec<Value> = found.iter().map(|(line, finding)| to_json(*line, finding)).collect();
        let said = json!({ "file": file, "valid": valid, "machines": machines, "findings": found });
        print(&serde_json::to_string_pretty(&said)?)?;
    } else {
        let mut lines: Vec<String> = found.iter().map(|(line, finding)| words(&file, *line, finding)).collect();
        lines.push(match (valid, machines.as_slice()) {
            (false, _) => format!("{file}: its machines cannot be served"),
            (true, []) => format!("{file}: it declares no machine"),
            (true, names) => format!("{file}: `{}` can be served", names.join("`, `")),
        });
        print(&lines.join("\n"))?;
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The file says something else that cannot be.
fn refused(args: &CheckArgs, file: &str, error: &ConfigError) -> Result<ExitCode> {
    if args.json {
        let other = || {
            let (line, code, message) = (error.line(), error.code(), error.to_string());
            vec![json!({
                "machine": null, "action": null, "at": "", "line": line, "level": "error", "error": true, "code": code,
                "message": message, "fix": "",
            })]
        };
        let found = of_error(error).unwrap_or_else(other);
        let said = json!({ "file": file, "valid": false, "machines": [], "findings": found });
        print(&serde_json::to_string_pretty(&said)?)?;
    } else {
        print(&format!("error: {error}\n{file}: its machines cannot be served"))?;
    }
    Ok(ExitCode::from(1))
}

fn words(file: &str, line: Option<usize>, finding: &Finding) -> String {
    let weight = match finding.weight {
        Weight::Error => "error",
        Weight::Warning => "warning",
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{file}{line}: {weight}: {finding}")
}
