//! `amends check`: validate a configuration, and explain what it means.

mod auth;
mod doubt;
mod fit;
mod machine;
mod origin;
mod policy;
mod refused;
mod tool;
mod upstream;
mod warnings;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amends_core::machine::Machines;
use amends_core::{EffectKind, UpstreamName};
use amends_gateway::Config;
use amends_gateway::config::{ConfigError, Reach, Released, Source, UpstreamConfig};
use amends_gateway::rulebook;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::outcome::print;
use super::policy::known;
use super::{finding, live};
use auth::CheckedAuth;
use fit::Fit;
use machine::CheckedMachine;
use origin::Keys;
use policy::CheckedPolicies;
use refused::Refused;
use tool::Checked;
pub(super) use tool::home;
use upstream::CheckedUpstream;

const EXAMPLES: &str = "\
Examples:
  amends check --config amends.toml           what each section means, where each value comes from, and what is missing
  amends check --config amends.toml --json    the same for programs: one rule for each verdict and code
  amends check --config amends.toml --live    also start the upstreams, and compare with the tools they offer
  amends check --config wrap.toml --live -- python3 shop.py    the same for a server that `amends wrap` starts

Exit codes: 0 the file is valid (warnings or not), 1 it is not, or does not fit what the upstreams offer, 2 it could not be
read.";

/// The flags of `amends check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The configuration file, of `serve`, `up` or `wrap`.
    #[arg(long, value_name = "FILE", default_value = "amends.toml")]
    config: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Start the upstreams, ask for their tools, and compare. No tool is called.
    #[arg(long)]
    live: bool,
    /// With --live: how many seconds an upstream may take until it has listed its tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// With --live: the command of the server that `amends wrap` would start.
    #[arg(last = true, value_name = "COMMAND", requires = "live")]
    command: Vec<String>,
}

pub(super) async fn check(args: CheckArgs) -> Result<ExitCode> {
    let source = Source::read(&args.config)?;
    let file = args.config.display().to_string();
    // A file for `wrap` leaves the wrapped server's command to the command line.
    let explained = match source.settle_wrap().and_then(|config| Explained::of(config, &source)) {
        Ok(explained) => explained,
        Err(error) => {
            let refused = Refused::of(&file, &source, &error);
            if args.json {
                print(&serde_json::to_string_pretty(&refused.to_json())?)?;
            } else {
                eprintln!("{}", refused.as_text());
            }
            return Ok(ExitCode::from(1));
        }
    };
    let fit = if args.live { Some(compare(&source, &args).await?) } else { None };
    let sound = explained.policies.as_ref().is_none_or(|policies| policies.problems() == 0);
    let fits = sound && fit.as_ref().is_none_or(|fit| fit.problems.is_empty());
    print(&if args.json { explained.as_json(&file, fit.as_ref())? } else { explained.as_text(&file, fit.as_ref()) })?;
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Starts the upstreams and compares what they offer with what is declared.
async fn compare(source: &Source, args: &CheckArgs) -> Result<Fit> {
    let mut config = source.settle_wrap()?;
    let wrapped = UpstreamName::new("wrapped");
    if args.command.is_empty() {
        if config.upstreams.remove(&wrapped).is_some() {
            eprintln!("amends: name the wrapped server's command after `--` to look at it as well");
        }
    } else {
        let upstream = config.upstreams.remove(&wrapped).unwrap_or_else(UpstreamConfig::undeclared);
        config.upstreams = [(wrapped, under_wrap(upstream, &args.command))].into();
    }
    // Without its machines, every tool is served: those that only machines reach are looked at as well.
    let open = Config { machines: Machines::default(), ..Config::clone(&config) };
    let seen = live::look(open, Duration::from_secs(args.wait)).await?;
    let mut fit = fit::compare(&config, &seen, &source.lines())?;
    if let Some(policies) = &config.policies {
        policy::compare(policies, &known::listed(&config, &seen)?, &mut fit);
    }
    Ok(fit)
}

/// The upstream as `amends wrap` would have it.
fn under_wrap(mut upstream: UpstreamConfig, command: &[String]) -> UpstreamConfig {
    let (env, cwd) = match upstream.reach {
        Reach::Stdio { env, cwd, .. } => (env, cwd),
        Reach::Http { .. } | Reach::OpenApi(_) | Reach::A2a { .. } | Reach::Functions(_) => Default::default(),
    };
    upstream.reach = Reach::Stdio { command: command.to_vec(), env, env_pass: Vec::new(), cwd, inherit_env: true };
    upstream.prefix = String::new();
    upstream
}

/// What a configuration means.
struct Explained {
    auth: CheckedAuth,
    upstreams: Vec<CheckedUpstream>,
    tools: Vec<Checked>,
    machines: Vec<CheckedMachine>,
    policies: Option<CheckedPolicies>,
    /// The released rules that apply.
    release: Option<Released>,
    /// Why payloads rest in the clear, if they do.
    unsealed: Option<String>,
}

impl Explained {
    /// What each section means, and what is worth knowing beside that.
    fn of(config: Config, source: &Source) -> Result<Self, ConfigError> {
        let keys = Keys::of(source.text());
        let mut tools = Vec::new();
        for (name, tool) in &config.tools {
            tools.push(Checked::declared(&config, source, &keys, name, tool)?);
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
                tools.push(Checked::rest(&config, source, &keys, name.as_str(), upstream, *effect)?);
            }
        }
        let upstreams =
            config.upstreams.iter().map(|(name, upstream)| CheckedUpstream::of(name.as_str(), upstream, &keys));
        let machines = config.machines.declared().map(|machine| CheckedMachine::of(&config, source, machine)).collect();
        Ok(Self {
            auth: CheckedAuth::of(&config),
            upstreams: upstreams.collect(),
            tools,
            machines,
            policies: CheckedPolicies::of(&config)?,
            unsealed: config.ledger.unsealed(),
            release: config.release,
        })
    }

    /// What is worth a second look, each with its section, but for machines.
    fn warnings(&self) -> Vec<String> {
        let ledger = self.unsealed.iter().map(|words| format!("`ledger`: {words}"));
        let auth = self.auth.warnings.iter().map(|words| format!("`auth`: {words}"));
        let upstreams = self.upstreams.iter().flat_map(CheckedUpstream::named_warnings);
        let tools = self.tools.iter().flat_map(Checked::named_warnings);
        let policies = self.policies.iter().flat_map(CheckedPolicies::said);
        ledger.chain(auth).chain(upstreams).chain(tools).chain(policies).collect()
    }

    fn as_json(&self, file: &str, fit: Option<&Fit>) -> Result<String> {
        let tools: Result<Vec<Value>, _> = self.tools.iter().map(Checked::to_json).collect();
        let upstreams: Vec<Value> = self.upstreams.iter().map(CheckedUpstream::to_json).collect();
        let mut checked = json!({ "file": file, "valid": self.policies.as_ref().is_none_or(|policies| policies.problems() == 0), "upstreams": upstreams, "tools": tools? });
        if !self.machines.is_empty() {
            checked["machines"] = self.machines.iter().map(CheckedMachine::to_json).collect();
        }
        if let Some(policies) = &self.policies {
            checked["policies"] = policies.to_json();
        }
        if let Some(Released { release, by, at, .. }) = &self.release {
            checked["release"] = json!({ "version": release.version, "hash": release.hash, "by": by, "at": at });
        }
        if self.auth.is_worth_a_word() {
            checked["auth"] = self.auth.to_json();
        }
        let warnings: Vec<&String> = self.unsealed.iter().chain(&self.auth.warnings).collect();
        if !warnings.is_empty() {
            checked["warnings"] = json!(warnings);
        }
        if let Some(fit) = fit {
            checked["live"] = fit.to_json();
        }
        Ok(serde_json::to_string_pretty(&checked)?)
    }

    fn as_text(&self, file: &str, fit: Option<&Fit>) -> String {
        let of_tools = self.tools.iter().map(|tool| tool.warnings.len()).sum::<usize>();
        let of_upstreams = self.upstreams.iter().map(|upstream| upstream.warnings.len()).sum::<usize>();
        let of_machines = self.machines.iter().map(|machine| machine.warnings.len()).sum::<usize>();
        let of_policies = self.policies.as_ref().map_or(0, CheckedPolicies::warnings);
        let others = usize::from(self.unsealed.is_some()) + self.auth.warnings.len();
        let warnings = of_tools + of_upstreams + of_machines + of_policies + others;
        let problems = self.policies.as_ref().map_or(0, CheckedPolicies::problems);
        let valid = if problems == 0 { "valid".to_owned() } else { counted(problems, "problem") };
        let mut text = format!("{file}: {valid}, {}\n", counted(warnings, "warning"));
        if let Some(Released { release, by, at, rules, .. }) = &self.release {
            let (file, version, hash) = (rules.source().origin(), release.version, &release.hash);
            text.push_str(&format!(
                "released rules: version {version}, released by {by} at {at}, {file}\n  hash {hash}\n"
            ));
        }
        if let Some(words) = &self.unsealed {
            text.push_str(&format!("\nledger\n  warning: {words}\n"));
        }
        if self.auth.is_worth_a_word() {
            text.push('\n');
            self.auth.write(&mut text);
        }
        for upstream in &self.upstreams {
            text.push('\n');
            upstream.write(&mut text);
        }
        for tool in &self.tools {
            text.push('\n');
            tool.write(&mut text);
        }
        for machine in &self.machines {
            text.push('\n');
            machine.write(&mut text);
        }
        if let Some(policies) = &self.policies {
            policies.write(&mut text);
        }
        if let Some(fit) = fit {
            fit.write(&mut text);
        }
        text.push_str("\nby default  whatever no section above says otherwise\n");
        for row in rulebook::shipped() {
            text.push_str(&format!("  {}\n", row.line()));
        }
        text.push_str("\nA write is sent again only where nothing was done, whatever these rules say.");
        text
    }
}

fn counted(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
