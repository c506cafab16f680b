//! `amends trace ID`: a session's or a call's timeline.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use amends_core::playbook::Release;
use amends_core::{CallId, Fact, SessionId};
use amends_gateway::told::{sentence, utc};
use amends_ledger::{Ledger, StoredEvent, Trace};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::remote::RemoteArgs;

/// The flags of `amends trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// A session (`ses_…`) or a call (`call_…`).
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The released rules that calls began under.
type Releases = BTreeMap<CallId, Release>;

pub(super) async fn trace(args: TraceArgs) -> Result<ExitCode> {
    let call = args.id.starts_with("call_").then(|| CallId::new(args.id.as_str()));
    let remote = args.remote.named(&args.ledger)?;
    let ledger = if remote.is_none() { Some(args.ledger.open().await?) } else { None };
    let trace = match (&remote, &ledger) {
        (Some(remote), _) => Some(remote.trace(&args.id).await?),
        (None, Some(ledger)) => found(ledger, call.as_ref(), &args.id).await?,
        (None, None) => None,
    };
    let Some(trace) = trace else {
        bail!("there is no `{}` in this ledger; `amends sessions` lists what there is", args.id);
    };
    let about = |stored: &&StoredEvent| match (&call, stored.event.fact.call()) {
        (Some(wanted), Some(found)) => wanted == found,
        (Some(_), None) => false,
        (None, _) => true,
    };
    // What is left of a retired session is about all of its calls.
    let events: Vec<&StoredEvent> = trace.events.iter().filter(|stored| trace.cut > 0 || about(stored)).collect();
    let mut releases = BTreeMap::new();
    for stored in &events {
        // A gateway that is asked does not give out the rules a call had.
        if let Fact::CallReceived { received, .. } = &stored.event.fact
            && let Some(ledger) = &ledger
            && let Some(rules) = ledger.rules(&received.rules).await?
            && let Some(release) = rules.playbook.release()
        {
            releases.insert(received.call.clone(), release.clone());
        }
    }
    let text = if args.json { as_json(&trace, &events, &releases)? } else { as_text(&trace, &events, &releases) };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The trace of that session, or of that call's.
async fn found(ledger: &Arc<dyn Ledger>, call: Option<&CallId>, id: &str) -> Result<Option<Trace>> {
    let session = match call {
        Some(call) => ledger.session_of(call).await?,
        None => Some(SessionId::new(id)),
    };
    Ok(match session {
        Some(session) => ledger.trace(&session).await?,
        None => None,
    })
}

fn as_json(trace: &Trace, events: &[&StoredEvent], releases: &Releases) -> Result<String> {
    let with_hash = |stored: &&StoredEvent| -> Result<Value> {
        let mut event = serde_json::to_value(&stored.event)?;
        event["hash"] = json!(stored.hash);
        if let Fact::CallReceived { received, .. } = &stored.event.fact
            && let Some(release) = releases.get(&received.call)
        {
            event["release"] = json!(release);
        }
        Ok(event)
    };
    let retries = retries(events);
    let events: Result<Vec<Value>> = events.iter().map(with_hash).collect();
    Ok(serde_json::to_string_pretty(
        &json!({ "session": trace.session, "cut": trace.cut, "retries": retries, "events": events? }),
    )?)
}

/// How often something was sent again.
fn retries(events: &[&StoredEvent]) -> usize {
    events.iter().filter(|stored| stored.event.fact.is_retry()).count()
}

fn as_text(trace: &Trace, events: &[&StoredEvent], releases: &Releases) -> String {
    let Some(first) = events.first() else { return format!("{}: no events", trace.session) };
    let began = first.event.at;
    let mut text = format!("{}  began {} UTC\n", trace.session, utc(began));
    if trace.cut > 0 {
        text = format!("{}  retired {} UTC; its first {} events were dropped\n", trace.session, utc(began), trace.cut);
    }
    for stored in events {
        let after = stored.event.at.since_ms(began);
        let (what, mut about) = sentence(&stored.event);
        if let Fact::CallReceived { received, .. } = &stored.event.fact
            && let Some(Release { version, hash }) = releases.get(&received.call)
        {
            about.push_str(&format!(", under release {version} ({})", &hash.as_str()[..hash.as_str().len().min(12)]));
        }
        text.push_str(&format!("{:>5}  +{:>7} ms  {what:<18} {about}\n", stored.event.seq, after));
    }
    text.push_str(&format!("retries  {}\n", retries(events)));
    if let Some(last) = trace.events.last() {
        text.push_str(&format!("receipt  {} at event {}", last.hash, last.event.seq));
    }
    text
}
