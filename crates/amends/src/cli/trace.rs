//! `amends trace ID`: a session's or a call's timeline.

use std::collections::BTreeMap;
use std::process::ExitCode;

use amends_core::gates::Ruling;
use amends_core::playbook::Release;
use amends_core::walk::Weighed;
use amends_core::{CallId, Event, Fact, Inquiry, SessionId};
use amends_ledger::{StoredEvent, Trace};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::utc;

/// The flags of `amends trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// A session (`ses_…`) or a call (`call_…`).
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The released rules that calls began under.
type Releases = BTreeMap<CallId, Release>;

pub(super) async fn trace(args: TraceArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let call = args.id.starts_with("call_").then(|| CallId::new(args.id.as_str()));
    let session = match &call {
        Some(call) => ledger.session_of(call).await?,
        None => Some(SessionId::new(args.id.as_str())),
    };
    let trace = match session {
        Some(session) => ledger.trace(&session).await?,
        None => None,
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
        if let Fact::CallReceived { received, .. } = &stored.event.fact
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
    events.iter().filter(|stored| matches!(stored.event.fact, Fact::FailureJudged { retry: Some(_), .. })).count()
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

/// What an upstream asks of the agent, by its kinds.
fn asks(inquiry: &Inquiry) -> String {
    match inquiry.asks.as_slice() {
        [] => "it to come back".to_owned(),
        asks => asks.iter().map(|ask| ask.kind.as_str()).collect::<Vec<_>>().join(", "),
    }
}

fn said(weighed: &Weighed) -> String {
    match weighed {
        Weighed::Proceed => "proceed".to_owned(),
        Weighed::Retry => "retry".to_owned(),
        Weighed::Skip => "skip".to_owned(),
        Weighed::Fail => "fail".to_owned(),
        Weighed::Arrives { arrival } => {
            let to: Vec<&str> = arrival.to.iter().map(|state| state.as_str()).collect();
            format!("it leads to {}", to.join(", then "))
        }
        Weighed::Unclear { why } => format!("unclear: {why}"),
    }
}

/// What the policies said, and why.
fn ruled(ruling: &Ruling) -> String {
    let by = match ruling.policies.as_slice() {
        [] => "no policy permits it".to_owned(),
        policies => format!("denied by policy `{}`", policies.join("`, `")),
    };
    let why = ruling.reasons.iter().map(|reason| format!("; {reason}")).collect::<String>();
    format!("{by}{why}")
}

/// What happened, in a word and a line.
pub(super) fn sentence(event: &Event) -> (&'static str, String) {
    let words = match &event.fact {
        Fact::SessionOpened { principal, door, .. } => format!("by {principal} through {door}"),
        Fact::CallReceived { received, gates } => {
            let key = received.key.as_ref().map(|key| format!(", key `{}`", key.0)).unwrap_or_default();
            let repeat = received.repeat_of.as_ref().map(|held| format!(", repeats {}", held.call)).unwrap_or_default();
            let view = received.view.as_ref().map(|view| format!("  {view}")).unwrap_or_default();
            let size = received.arguments.size;
            let ruling = gates.ruling.as_ref().map(|ruling| format!("  {}", ruled(ruling))).unwrap_or_default();
            format!("{}  `{}`, {size} bytes{key}{repeat}{view}{ruling}", received.call, received.tool)
        }
        Fact::CallRefused { refusal, .. } => format!("{}: {}", refusal.kind.as_str(), refusal.message),
        Fact::AttemptStarted { attempt, purpose, tool, .. } => {
            format!("attempt {} to {}: `{tool}`", attempt.n, purpose.as_str())
        }
        Fact::AttemptEnded { attempt, report, .. } => match &report.failure {
            Some(failure) => {
                let status = failure.status.map(|status| format!(" ({status})")).unwrap_or_default();
                let wait = failure.retry_after_ms.map(|ms| format!(", asks for {ms} ms")).unwrap_or_default();
                let code = failure.code.as_str();
                format!("attempt {}: {code}{status}, {}{wait}", attempt.n, report.certainty.as_str())
            }
            None if report.inquiry.is_some() => {
                let inquiry = report.inquiry.as_deref().map(asks).unwrap_or_default();
                format!("attempt {}: the upstream asks {inquiry}, {}", attempt.n, report.certainty.as_str())
            }
            None => {
                let happened = report.happened.map(|yes| if yes { ", it happened" } else { ", it did not happen" });
                format!("attempt {}: ok, {}{}", attempt.n, report.certainty.as_str(), happened.unwrap_or(""))
            }
        },
        Fact::AttemptTimedOut { attempt, certainty } => {
            format!("attempt {}: no answer in time, {}", attempt.n, certainty.as_str())
        }
        Fact::AttemptOrphaned { attempt, certainty } => {
            format!("attempt {}: found without a result, {}", attempt.n, certainty.as_str())
        }
        Fact::FailureJudged { attempt, verdict, compensation, rule, retry, held_back } => {
            let retry = retry.map(|n| format!(", further send {n}")).unwrap_or_default();
            let held = held_back.map(|by| format!(", held back by the {}", by.as_str())).unwrap_or_default();
            let (verdict, rule) = (verdict.as_str(), rule.as_str());
            format!("attempt {}: {verdict} -> {compensation} ({rule} rule){retry}{held}", attempt.n)
        }
        Fact::WaitBegan { until, next, .. } => {
            format!("{} ms, then {}", until.since_ms(event.at), next.as_str())
        }
        Fact::DoubtSettled { certainty, by, .. } => format!("{} by attempt {}", certainty.as_str(), by.n),
        Fact::InterimAnswered { .. } => "the agent was told; settling goes on".to_owned(),
        Fact::CallEnded { outcome, certainty, replayed, granted, .. } => {
            let replayed = if *replayed { ", the recorded answer of an equal call" } else { "" };
            let granted = if *granted { ", the next equal call may be sent" } else { "" };
            format!("{}, {}{replayed}{granted}", outcome.as_str(), certainty.as_str())
        }
        Fact::CallApproved { yes, interaction, of, .. } => {
            let asked = interaction.as_ref().map(|id| format!(", {id}")).unwrap_or_default();
            let of = of.as_ref().map(|call| format!(", given to {call}")).unwrap_or_default();
            format!("by {}{asked}{of}", yes.as_str())
        }
        Fact::EvidenceCompared { changed, .. } => match changed.as_slice() {
            [] => "as it was".to_owned(),
            changed => {
                let names: Vec<&str> = changed.iter().map(|changed| changed.reference.as_str()).collect();
                format!("changed: `{}`", names.join("`, `"))
            }
        },
        Fact::InteractionOpened { interaction } => {
            format!("{} on `{}`: {}", interaction.id, interaction.queue, interaction.question)
        }
        Fact::InteractionAnswered { interaction, answer, .. } => {
            let note = answer.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("{interaction}: {} by {}{note}", answer.choice, answer.by)
        }
        Fact::InteractionLapsed { interaction, default } => format!("{interaction}: nobody answered, {default}"),
        Fact::InteractionWithdrawn { interaction } => format!("{interaction}: pointless by now"),
        Fact::InquiryMade { attempt, inquiry, .. } => {
            format!("attempt {}: the upstream asks {}", attempt.n, asks(inquiry))
        }
        Fact::InquiryOpened { attempt, inquiry, due, .. } => {
            format!("inquiry {inquiry} of attempt {}: the agent has {} ms", attempt.n, due.since_ms(event.at))
        }
        Fact::InputsGiven { inquiry, inputs, .. } => format!("inquiry {inquiry}: {} bytes", inputs.size),
        Fact::InquiryWithdrawn { inquiry, .. } => format!("inquiry {inquiry}: the upstream took it back"),
        Fact::InquiryClosed { inquiry, why, .. } => format!("inquiry {inquiry}: {}", why.as_str()),
        Fact::DoubtResolved { call, certainty, .. } => format!("{call}: {}, a person says", certainty.as_str()),
        Fact::ReversalMinted { .. } | Fact::ReversalVoided { .. } => String::new(),
        Fact::ReversalArmed { until, .. } => format!("for {} ms", until.since_ms(event.at)),
        Fact::ReversalRefused { reason, .. } => reason.clone(),
        Fact::ReversalRedeemed { call, of, .. } => format!("{call} undid {of}"),
        Fact::CancelRequested { reason, .. } => match reason {
            amends_core::dispatcher::cancel::CancelReason::Asked => "the agent asked".to_owned(),
            amends_core::dispatcher::cancel::CancelReason::SessionEnded => "the agent ended its session".to_owned(),
            amends_core::dispatcher::cancel::CancelReason::Disconnected => "the agent is gone".to_owned(),
        },
        Fact::LateResult { attempt, report } => format!("attempt {}: {}", attempt.n, report.certainty.as_str()),
        Fact::SchemaDrifted { drift } => format!("`{}` of `{}`", drift.tool, drift.upstream),
        Fact::SchemaApproved { drift, by } => format!("`{}` of `{}` by {by}", drift.tool, drift.upstream),
        Fact::WalkBegan { beginning } => match &beginning.from {
            Some(fork) => format!("`{}`, from move {} of {}", beginning.machine, fork.seq, fork.session),
            None => format!("`{}`", beginning.machine),
        },
        Fact::WalkMigrated { hash, .. } => format!("under the declaration {hash}"),
        Fact::MoveReceived { taking, .. } => {
            let view = taking.view.as_ref().map(|view| format!("  {view}")).unwrap_or_default();
            let what = if taking.reset { "back to the beginning".to_owned() } else { format!("`{}`", taking.action) };
            format!("{}  {what}, {} bytes{view}", taking.id, taking.inputs.size)
        }
        Fact::MoveRefused { refusal, .. } => format!("{}: {}", refusal.kind.as_str(), refusal.message),
        Fact::MoveJoined { first, .. } => format!("the answer of {first}"),
        Fact::MoveWeighed { weighed, .. } => said(weighed),
        Fact::MoveWaits { until, attempt, .. } => format!("{} ms, then try {attempt}", until.since_ms(event.at)),
        Fact::MoveMade { action, from, to, enters, .. } => {
            let to: Vec<&str> = to.iter().map(|state| state.as_str()).collect();
            let enters = enters.as_ref().map(|machine| format!(", into `{machine}`")).unwrap_or_default();
            format!("`{action}`: `{from}` -> {}{enters}", to.join(", then "))
        }
        Fact::MoveEnded { outcome, certainty, .. } => format!("{}, {}", outcome.as_str(), certainty.as_str()),
        Fact::WalkReset { moves, .. } => format!("to its beginning, as move {moves}"),
        Fact::WalkAborted { .. } => "what was done in it is undone".to_owned(),
        Fact::WalkUnwound { undone, failed, .. } => format!("{undone} undone, {} not", failed.len()),
        Fact::Ignored { why } => why.clone(),
        Fact::SuppressedError { doing, reason } => format!("{doing}: {reason}"),
        Fact::SessionRetired { events, reason, .. } => format!("{events} events were dropped: {}", reason.as_str()),
        Fact::Ticked { .. } | Fact::Resumed { .. } | Fact::AnswerDelivered { .. } => String::new(),
    };
    (event.fact.name(), words)
}
