//! `amends grants`: what people said yes to beforehand.

use std::process::ExitCode;

use amends_core::{Digest, Fact};
use amends_ledger::{Grant, Ledger};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::{now, utc};

/// How much of a grant's name is shown: enough to tell it from the others.
const SHOWN: usize = 16;

/// The flags of `amends grants`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  amends grants\n  amends grants --revoke 3f0c9a…")]
pub(super) struct GrantsArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Take back the one whose name begins like this.
    #[arg(long, value_name = "NAME")]
    revoke: Option<String>,
    /// How many to list.
    #[arg(long, default_value_t = 200)]
    limit: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// A grant with what its call's trace tells of it.
struct Told {
    grant: Grant,
    tool: Option<String>,
    principal: Option<String>,
    view: Option<String>,
    by: Vec<String>,
}

pub(super) async fn grants(args: GrantsArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let found = ledger.grants(now(), args.limit).await?;
    if let Some(name) = &args.revoke {
        return revoke(&*ledger, &found, name, args.json).await;
    }
    let mut told = Vec::new();
    for grant in found {
        told.push(tell(&*ledger, grant).await?);
    }
    if args.json {
        let told: Vec<Value> = told.iter().map(Told::json).collect();
        print(&serde_json::to_string_pretty(&json!({ "grants": told }))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if told.is_empty() {
        eprintln!("nothing is granted beforehand");
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = told.iter().map(Told::line).collect();
    print(lines.join("\n\n").trim_end())?;
    Ok(ExitCode::SUCCESS)
}

async fn revoke(ledger: &dyn Ledger, found: &[Grant], name: &str, as_json: bool) -> Result<ExitCode> {
    let named: Vec<&Grant> = found.iter().filter(|grant| shown(&grant.held.name).starts_with(name)).collect();
    let grant = match named.as_slice() {
        [grant] => grant,
        [] => bail!("nothing that is granted has a name that begins with `{name}`; `amends grants` lists what is"),
        several => bail!("{} grants have a name that begins with `{name}`", several.len()),
    };
    let done = ledger.revoke(&grant.held.name).await?;
    let words = if done { "taken back" } else { "too late: a call has spent it" };
    if as_json {
        print(&json!({ "name": shown(&grant.held.name), "revoked": done }).to_string())?;
    } else {
        print(words)?;
    }
    Ok(ExitCode::from(u8::from(!done)))
}

/// What the trace of the call to which it was given tells of a grant. Of one whose session was forgotten only its name is left.
async fn tell(ledger: &dyn Ledger, grant: Grant) -> Result<Told> {
    let mut told = Told { tool: None, principal: None, view: None, by: Vec::new(), grant };
    let Some(trace) = ledger.trace(&told.grant.held.session).await? else { return Ok(told) };
    let mut asked = Vec::new();
    for stored in &trace.events {
        match &stored.event.fact {
            Fact::CallReceived { received, .. } if received.call == told.grant.held.call => {
                told.tool = Some(received.tool.to_string());
                told.principal = Some(received.principal.to_string());
                told.view.clone_from(&received.view);
            }
            Fact::InteractionOpened { interaction } if interaction.call == told.grant.held.call => {
                asked.push(interaction.id.clone());
            }
            Fact::InteractionAnswered { interaction, answer, .. } if asked.contains(interaction) => {
                told.by.push(answer.by.clone());
            }
            _ => {}
        }
    }
    Ok(told)
}

impl Told {
    fn json(&self) -> Value {
        let held = &self.grant.held;
        json!({
            "name": shown(&held.name), "for": self.scope(), "tool": self.tool, "principal": self.principal,
            "view": self.view, "by": self.by, "since": held.since, "until": self.grant.until,
            "session": held.session, "call": held.call,
        })
    }

    fn line(&self) -> String {
        let held = &self.grant.held;
        let until = self.grant.until.map_or_else(|| "until it is taken back".into(), |at| format!("until {}", utc(at)));
        let tool = self.tool.as_deref().unwrap_or("a call that was forgotten");
        let view = self.view.as_ref().map(|view| format!(" {view}")).unwrap_or_default();
        let by = if self.by.is_empty() { String::new() } else { format!(", by {}", self.by.join(" and ")) };
        let whose = self.principal.as_ref().map(|principal| format!(" for `{principal}`")).unwrap_or_default();
        let name = &shown(&held.name)[..SHOWN.min(shown(&held.name).len())];
        format!("{name}\n  `{tool}`{view}{whose}\n  good for {}, {until}{by}", self.scope())
    }

    fn scope(&self) -> &'static str {
        if self.grant.held.is_standing() { "these arguments" } else { "the next equal call" }
    }
}

/// A name as it is shown: without what all of a kind begin with.
fn shown(name: &Digest) -> &str {
    name.as_str().strip_prefix("grant:").unwrap_or(name.as_str())
}
