//! `amends verify`: recompute every chain, decide again, and compare with what was signed.

mod selftest;

use std::path::PathBuf;
use std::process::ExitCode;

use amends_ledger::anchor::Anchor;
use amends_ledger::{Fault, Verified, VerifyOptions};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::key::KeyArgs;
use super::ledger::LedgerArgs;
use super::outcome::print;

/// The flags of `amends verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Checkpoints that were kept elsewhere. The default is the file beside the ledger, which proves less.
    #[arg(long, value_name = "FILE")]
    anchor: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Make a ledger, touch it in every way we know of, and say which ones are found.
    #[arg(long, conflicts_with_all = ["anchor", "key", "ledger", "config"])]
    selftest: bool,
}

pub(super) async fn verify(args: VerifyArgs) -> Result<ExitCode> {
    if args.selftest {
        return selftest::run(args.json).await;
    }
    let config = args.ledger.config()?;
    let key = args.key.verifier(&config)?;
    // Before the ledger is opened: what is written from now on can only be more than the anchor says.
    let anchor = match (&args.anchor, &config.anchor) {
        (Some(file), _) => Some(Anchor::read(file).with_context(|| format!("cannot read `{}`", file.display()))?),
        (None, Some(file)) if file.exists() => {
            Some(Anchor::read(file).with_context(|| format!("cannot read `{}`", file.display()))?)
        }
        (None, _) => None,
    };
    if args.anchor.is_some() && key.is_none() {
        bail!("the anchor's signatures cannot be checked without a key; name it with --key");
    }
    let ledger = args.ledger.open().await?;
    let verified = amends_ledger::verify(&*ledger, VerifyOptions { anchor, key }).await?;
    if args.json {
        print(&serde_json::to_string_pretty(&as_json(&verified))?)?;
    } else {
        print(&as_text(&verified))?;
    }
    Ok(if verified.is_consistent() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn as_json(verified: &Verified) -> Value {
    let fault = |fault: &Fault| json!({ "kind": fault.kind.as_str(), "session": fault.session, "seq": fault.seq, "words": fault.words });
    let consistent = verified.is_consistent();
    let proven = verified.proven.filter(|_| consistent);
    json!({
        "consistent": consistent,
        "completeness": if proven.is_some() { "proven to the anchor's last checkpoint" } else { "not proven" },
        "proven": proven.map(|proven| json!({
            "entries": proven.size, "events": proven.events, "events_after": proven.beyond,
        })),
        "sessions": verified.sessions,
        "events": verified.events,
        "decided_again": verified.decided,
        "not_decidable_again": verified.undecidable,
        "decided_by_older": verified.older,
        "log_entries": verified.logged,
        "checkpoints": verified.checkpoints,
        "faults": verified.faults.iter().map(fault).collect::<Vec<_>>(),
        "faults_left_off": verified.left_off,
    })
}

fn as_text(verified: &Verified) -> String {
    let Verified { sessions, events, decided, undecidable, older, .. } = verified;
    let mut text = String::new();
    for fault in &verified.faults {
        let session = fault.session.as_ref().map_or("the ledger", |session| session.as_str());
        let seq = fault.seq.map(|seq| format!(" at event {seq}")).unwrap_or_default();
        text.push_str(&format!("{session}{seq}: {}: {}\n", fault.kind.as_str(), fault.words));
    }
    if !verified.is_consistent() {
        text.push_str(&format!("NOT consistent: {} faults in {events} events", verified.fault_count()));
        return text;
    }
    text.push_str(&match verified.proven {
        Some(proven) => format!(
            "consistent; complete up to the anchor's last checkpoint, which covers {} events; {} came after it",
            proven.events, proven.beyond
        ),
        None => "consistent; completeness not proven".to_owned(),
    });
    text.push_str(&format!(
        ": {events} events in {sessions} sessions, every chain recomputed, {decided} sessions decided again"
    ));
    if *undecidable > 0 {
        text.push_str(&format!(", {undecidable} not decidable again"));
    }
    if *older > 0 {
        text.push_str(&format!(", {older} decided by an older program and otherwise than today"));
    }
    text
}
