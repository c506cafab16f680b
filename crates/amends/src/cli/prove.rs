//! `amends prove ID`: a proof that an event is in the ledger as it was signed, and `--check` of one without the ledger.

use std::path::PathBuf;
use std::process::ExitCode;

use amends_core::{CallId, Event, Fact, SessionId};
use amends_ledger::chain::Link;
use amends_ledger::proof::{Proof, ProofError};
use amends_ledger::{Ledger, StoredSession};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use super::key::KeyArgs;
use super::ledger::LedgerArgs;
use super::outcome::print;

/// How many sessions are read at a time while a hash is looked for.
const PAGE: usize = 256;

/// The flags of `amends prove`.
#[derive(Debug, Args)]
pub(super) struct ProveArgs {
    /// A call (`call_…`), a session (`ses_…`), or the hash in a receipt.
    #[arg(required_unless_present = "check")]
    id: Option<String>,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Check the proof in this file, with --key and without a ledger.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with_all = ["id", "ledger", "config"])]
    check: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
}

pub(super) async fn prove(args: ProveArgs) -> Result<ExitCode> {
    if let Some(file) = &args.check {
        return check(file, &args.key);
    }
    let id = args.id.unwrap_or_default();
    let ledger = args.ledger.open().await?;
    let Some((session, seq)) = find(&*ledger, &id).await? else {
        bail!("there is no `{id}` in this ledger; `amends sessions` lists what there is");
    };
    match Proof::of(&*ledger, &session, seq).await {
        Ok(proof) => print(&serde_json::to_string_pretty(&proof)?)?,
        Err(error @ ProofError::NotCovered) => bail!("`{id}`: {error}; `amends checkpoint` signs one now"),
        Err(error) => bail!("`{id}`: {error}; `amends verify` says what is wrong"),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(file: &PathBuf, key: &KeyArgs) -> Result<ExitCode> {
    let key = key.named()?.ok_or_else(|| anyhow!("name the key with --key"))?;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let proof: Proof = match serde_json::from_str(&text) {
        Ok(proof) => proof,
        Err(error) => {
            print(&format!("NOT proven: it is no proof: {error}"))?;
            return Ok(ExitCode::from(1));
        }
    };
    match proof.check(&key) {
        Ok(checkpoint) => {
            print(&format!(
                "proven: event {} of {} is in the log `{}` that `{}` signed at {} entries",
                proof.seq,
                proof.session,
                checkpoint.origin,
                key.name(),
                checkpoint.size
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print(&format!("NOT proven: {error}"))?;
            Ok(ExitCode::from(1))
        }
    }
}

/// The session that is meant, and the event: that of a call's end, a session's last one, or that of a receipt.
async fn find(ledger: &dyn Ledger, id: &str) -> Result<Option<(StoredSession, u64)>> {
    if let Some(hash) = Link::parse(id) {
        return with_hash(ledger, hash).await;
    }
    let call = id.starts_with("call_").then(|| CallId::new(id));
    let session = match &call {
        Some(call) => ledger.session_of(call).await?,
        None => Some(SessionId::new(id)),
    };
    let Some(session) = session else { return Ok(None) };
    let Some(session) = stored(ledger, &session).await? else { return Ok(None) };
    let seq = match &call {
        Some(call) => end_of(&session, call),
        None => session.records.last().map(|record| record.seq),
    };
    Ok(seq.map(|seq| (session, seq)))
}

/// The event with which a call ended, else the last that is about it.
fn end_of(session: &StoredSession, call: &CallId) -> Option<u64> {
    let events = session.records.iter().filter_map(|record| serde_json::from_slice::<Event>(&record.body).ok());
    let about: Vec<Event> = events.filter(|event| event.fact.call() == Some(call)).collect();
    let is_end = |event: &&Event| matches!(event.fact, Fact::CallEnded { .. } | Fact::CallRefused { .. });
    about.iter().find(is_end).or(about.last()).map(|event| event.seq)
}

async fn with_hash(ledger: &dyn Ledger, hash: Link) -> Result<Option<(StoredSession, u64)>> {
    let mut after: Option<SessionId> = None;
    // Ends when the sessions are through.
    loop {
        let page = ledger.stored(after.as_ref(), PAGE).await?;
        after = page.last().map(|session| session.session.clone());
        let through = page.len() < PAGE;
        for session in page {
            if let Some(record) = session.records.iter().find(|record| record.hash == hash.bytes()) {
                let seq = record.seq;
                return Ok(Some((session, seq)));
            }
        }
        if through {
            return Ok(None);
        }
    }
}

/// One session as it is stored. Sessions are given in the order of their ids, so it is the first after the id that ends
/// just before its own.
async fn stored(ledger: &dyn Ledger, session: &SessionId) -> Result<Option<StoredSession>> {
    let mut before = session.as_str().to_owned();
    let last = before.pop();
    let mut after: Option<SessionId> = last.filter(|_| !before.is_empty()).map(|_| SessionId::new(before.as_str()));
    // Ends when the ids are past the one that is looked for.
    loop {
        let page = ledger.stored(after.as_ref(), PAGE).await?;
        let past = page.len() < PAGE || page.last().is_some_and(|last| last.session >= *session);
        after = page.last().map(|session| session.session.clone());
        if let Some(found) = page.into_iter().find(|one| one.session == *session) {
            return Ok(Some(found));
        }
        if past {
            return Ok(None);
        }
    }
}
