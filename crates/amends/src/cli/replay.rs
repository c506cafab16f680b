//! `amends replay ID`: a recorded session decided again, and why it went as it did.

use std::path::PathBuf;
use std::process::ExitCode;

use amends_core::dispatcher::redecide::{Rerun, paths};
use amends_core::{CallId, Event, Fact, SessionId};
use amends_gateway::hindsight::{Again, Change, Recorded, end_in_words, events_of, first_difference};
use amends_gateway::told::sentence;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;

const EXAMPLES: &str = "\
Examples:
  amends replay call_abc…                            why it went as it did, and whether it would be decided so again
  amends replay call_abc… --config amends.toml       the same by today's rules: the first difference, and the new end
  amends replay ses_abc… --playbook fragment.toml    a whole session, with a changed rule laid over those it had

Exit codes: 0 its own rules decide it as it was recorded, 1 they do not (a bug, or the record was changed), 2 it could not be
decided again.";

/// The flags of `amends replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    /// A session (`ses_…`) or a call (`call_…`).
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Rules to compare with, laid over those that each call had: a fragment of a configuration.
    #[arg(long, value_name = "FILE")]
    playbook: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn replay(args: ReplayArgs) -> Result<ExitCode> {
    let change = match (&args.playbook, args.ledger.config_file()) {
        (Some(file), _) => Some(Change::read(file)?),
        (None, Some(file)) => Some(Change::read_config(file)?),
        (None, None) => None,
    };
    let ledger = args.ledger.open().await?;
    let wanted = args.id.starts_with("call_").then(|| CallId::new(args.id.as_str()));
    let session = match &wanted {
        Some(call) => ledger.session_of(call).await?,
        None => Some(SessionId::new(args.id.as_str())),
    };
    let recorded = match &session {
        Some(session) => Recorded::read(&ledger, session).await?,
        None => None,
    };
    let (Some(session), Some(recorded)) = (session, recorded) else {
        bail!("there is no `{}` in this ledger; `amends sessions` lists what there is", args.id);
    };
    let again = recorded.again();
    let under = match (&change, &again) {
        (Some(change), Again::Same) => Some((change, recorded.under(change)?)),
        _ => None,
    };
    let shown = Shown { session: &session, recorded: &recorded, wanted: wanted.as_ref(), again: &again, under };
    print(&if args.json { serde_json::to_string_pretty(&shown.json()?)? } else { shown.text() })?;
    Ok(match again {
        Again::Same => ExitCode::SUCCESS,
        Again::Otherwise(_) => ExitCode::from(1),
        Again::NotDecidable(_) => ExitCode::from(2),
    })
}

struct Shown<'a> {
    session: &'a SessionId,
    recorded: &'a Recorded,
    wanted: Option<&'a CallId>,
    again: &'a Again,
    under: Option<(&'a Change, Result<Rerun, String>)>,
}

impl Shown<'_> {
    fn calls(&self) -> Vec<CallId> {
        let calls = self.recorded.events.iter().filter_map(|event| match &event.fact {
            Fact::CallReceived { received, .. } => Some(received.call.clone()),
            _ => None,
        });
        calls.filter(|call| self.wanted.is_none_or(|wanted| wanted == call)).collect()
    }

    fn again_words(&self) -> String {
        match self.again {
            Again::Same => format!("the same, all {} events of the session", self.recorded.events.len()),
            Again::Otherwise(how) => {
                format!(
                    "NOT the same: {how}. Either this version decides otherwise, or the record was changed; `amends verify` tells which"
                )
            }
            Again::NotDecidable(why) => format!("not decidable again: {why}"),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.session);
        let paths_were = self.recorded.paths();
        for call in self.calls() {
            let Some(path) = paths_were.get(&call) else { continue };
            text.push_str(&format!("\n{call}  `{}` at `{}`\n", path.tool, path.upstream));
            for event in events_of(&self.recorded.events, &call) {
                let (what, about) = sentence(event);
                text.push_str(&format!("  +{:>7} ms  {what:<18} {about}\n", event.at.since_ms(path.at)));
            }
            text.push_str(&format!("  recorded    {}\n", end_in_words(Some(path), None)));
            if let Some((change, Ok(rerun))) = &self.under {
                text.push_str(&self.compared(&call, change, rerun));
            }
        }
        text.push_str(&format!("\nby its own rules: {}\n", self.again_words()));
        match &self.under {
            Some((change, Ok(rerun))) => {
                let same = if rerun.difference.is_none() { "the same" } else { "otherwise, as shown above" };
                text.push_str(&format!("by {}: {same}", change.file()));
            }
            Some((change, Err(why))) => text.push_str(&format!("by {}: not decidable: {why}", change.file())),
            None => text.push_str("by today's rules: not asked; name them with --config or --playbook"),
        }
        text
    }

    fn compared(&self, call: &CallId, change: &Change, rerun: &Rerun) -> String {
        let Some(first) = first_difference(&self.recorded.events, &rerun.events, call) else {
            return "  would be    the same\n".to_owned();
        };
        let paths_are = paths(&rerun.events);
        let said = |event: Option<&Event>| {
            event.map_or("nothing".to_owned(), |event| {
                let (what, about) = sentence(event);
                format!("{what} {about}")
            })
        };
        let mut text = format!("  would be    {}\n", end_in_words(paths_are.get(call), rerun.beyond.get(call)));
        text.push_str(&format!("  first recorded  {}\n", said(first.recorded)));
        text.push_str(&format!("  first otherwise {}\n", said(first.decided)));
        text.push_str(&format!("  because of      {}\n", self.because(call, change, first.because)));
        text
    }

    fn because(
        &self,
        call: &CallId,
        change: &Change,
        because: Option<(amends_core::Verdict, amends_core::Code, amends_core::playbook::Origin)>,
    ) -> String {
        let tool = self.recorded.paths().get(call).map(|path| path.tool.to_string()).unwrap_or_default();
        match because {
            Some((verdict, code, origin)) => change.place(origin, &tool, verdict, code),
            None => format!("[tools.{tool}], its contract"),
        }
    }

    fn json(&self) -> Result<Value> {
        let paths_were = self.recorded.paths();
        let mut calls = Vec::new();
        for call in self.calls() {
            let Some(path) = paths_were.get(&call) else { continue };
            let events = events_of(&self.recorded.events, &call);
            let mut shown = json!({
                "call": call, "tool": path.tool, "events": serde_json::to_value(events)?,
                "recorded": path_json(path),
            });
            if let Some((change, Ok(rerun))) = &self.under {
                let paths_are = paths(&rerun.events);
                let difference = first_difference(&self.recorded.events, &rerun.events, &call);
                shown["would_be"] = json!({
                    "same": difference.is_none(),
                    "path": paths_are.get(&call).map(path_json),
                    "beyond": rerun.beyond.get(&call).map(amends_core::dispatcher::redecide::Beyond::words),
                    "first_difference": difference.map(|first| json!({
                        "recorded": first.recorded, "decided": first.decided,
                        "because_of": self.because(&call, change, first.because),
                    })),
                });
            }
            calls.push(shown);
        }
        let (decidable, same) = match self.again {
            Again::Same => (true, true),
            Again::Otherwise(_) => (true, false),
            Again::NotDecidable(_) => (false, false),
        };
        let mut shown = json!({
            "session": self.session, "decidable": decidable, "same": same, "words": self.again_words(), "calls": calls,
        });
        if let Some((change, under)) = &self.under {
            shown["compared_with"] = json!({ "file": change.file(), "not_decidable": under.as_ref().err() });
        }
        Ok(shown)
    }
}

/// A call's path, for programs.
pub(super) fn path_json(path: &amends_core::dispatcher::redecide::CallPath) -> Value {
    json!({
        "end": path.end.map(amends_core::dispatcher::redecide::CallEnd::words), "sends": path.sends, "reads": path.reads,
        "asked": path.asked, "told_after_ms": path.told_after_ms,
    })
}
