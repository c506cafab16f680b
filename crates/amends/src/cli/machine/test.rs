//! `amends machine test`: tell scenarios with faked tools, and compare.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use amends_core::{Rules, ToolName};
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, UpstreamConfig};
use amends_sim::scenario::{Cast, Mistake, Recording, Report, Scenario, ScenarioError, tell};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::TestArgs;
use crate::cli::export::line::{Exported, Reader};
use crate::cli::outcome::print;

pub(super) fn test(args: &TestArgs) -> Result<ExitCode> {
    let mut told = Vec::new();
    let mut untold = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        match told_by(file) {
            Ok(report) => told.push((name, report)),
            // The others are told all the same.
            Err(error) => untold.push((name, error)),
        }
    }
    let passed = told.iter().filter(|(_, report)| report.passed()).count();
    let all = args.files.len();
    if args.json {
        let mut scenarios: Vec<Value> = told.iter().map(|(file, report)| to_json(file, report)).collect();
        scenarios.extend(untold.iter().map(|(file, error)| untold_json(file, error)));
        let said = json!({ "passed": passed == all, "scenarios": scenarios });
        print(&serde_json::to_string_pretty(&said)?)?;
    } else {
        let mut text = String::new();
        for (file, report) in &told {
            let word = if report.passed() { "as written" } else { "goes otherwise" };
            let story = if report.story.is_empty() { String::new() } else { format!(": {}", report.story) };
            text.push_str(&format!("{file}: {word}{story}\n{}", report.differences()));
        }
        for (file, error) in &untold {
            let said = match mistakes(error) {
                [] | [_] => format!(" {error:#}"),
                many => many.iter().map(|mistake| format!("\n  {mistake}")).collect(),
            };
            text.push_str(&format!("{file}: cannot be told:{said}\n"));
        }
        print(&format!("{text}{passed} of {all} go as written"))?;
    }
    Ok(match (untold.is_empty(), passed == all) {
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(1),
        (false, _) => ExitCode::from(2),
    })
}

fn told_by(file: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(file)?;
    let scenario = Scenario::read(&text)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let config = Config::load_wrap(&folder.join(&scenario.config))?;
    let exported = match &scenario.export {
        Some(export) => recordings(&folder.join(export))?,
        None => Vec::new(),
    };
    let tools = config.machine_tools();
    for tool in &tools {
        rules(&config, tool)?;
    }
    let cast = Cast {
        machines: &config.machines,
        rules: &|tool| Arc::new(rules(&config, tool).unwrap_or_else(|_| undeclared(&config))),
        recorded: &|call| exported.iter().find_map(|session| session.sent(call)),
    };
    Ok(tell(&scenario, &cast)?)
}

/// What governs a tool's calls, as it would if its upstream were there.
fn rules(config: &Config, tool: &ToolName) -> Result<Rules, ConfigError> {
    let fitting = config.upstreams.values().filter(|upstream| tool.as_str().starts_with(&upstream.prefix));
    let nowhere = UpstreamConfig::undeclared();
    let upstream = fitting.max_by_key(|upstream| upstream.prefix.len()).unwrap_or(&nowhere);
    config.rules(tool.as_str(), upstream, upstream.promised(tool.as_str()).unwrap_or_default())
}

fn undeclared(config: &Config) -> Rules {
    let name = ToolName::new("");
    rules(config, &name)
        .expect("a tool of which nothing is declared has rules: the configuration was settled with them")
}

/// The sessions of an export.
fn recordings(file: &Path) -> Result<Vec<Recording>> {
    let opened = File::open(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let mut reader = Reader::new(BufReader::new(opened));
    let mut sessions = Vec::new();
    while let Some(exported) = reader.next().with_context(|| format!("`{}`", file.display()))? {
        if let Exported::Session(_, trace, gave) = exported {
            let events = trace.events.into_iter().map(|stored| stored.event).collect();
            sessions.push(Recording { events, gave });
        }
    }
    Ok(sessions)
}

/// What is wrong with the text of a scenario, where that is why it cannot be told.
fn mistakes(error: &anyhow::Error) -> &[Mistake] {
    match error.downcast_ref() {
        Some(ScenarioError::Malformed(mistakes)) => mistakes,
        Some(ScenarioError::Senseless { .. } | ScenarioError::Uncalled { .. } | ScenarioError::Unknown { .. })
        | None => &[],
    }
}

fn untold_json(file: &str, error: &anyhow::Error) -> Value {
    let mut said = json!({ "file": file, "passed": false, "error": format!("{error:#}") });
    let mistake = |Mistake { line, reason }: &Mistake| json!({ "line": line, "message": reason });
    let mistakes: Vec<Value> = mistakes(error).iter().map(mistake).collect();
    if !mistakes.is_empty() {
        said["mistakes"] = Value::Array(mistakes);
    }
    said
}

fn to_json(file: &str, report: &Report) -> Value {
    json!({ "file": file, "story": report.story, "passed": report.passed(), "steps": report.steps })
}
