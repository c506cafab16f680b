//! What takes long: deciding the ledger again, and verifying it. One at a time.

use std::sync::Arc;
use std::time::Duration;

use amends_ledger::anchor::Anchor;
use amends_ledger::{StoredCheckpoint, Verified, VerifyOptions};
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::fields::Fields;
use super::problem::Problem;
use crate::config::{ConfigError, Fragment, Source, Span};
use crate::gateway::Gateway;
use crate::hindsight::{self, Change, WhatIf};
use crate::{clock, key};

/// The longest fragment of rules.
const FRAGMENT_MAX: usize = 64 * 1024;
/// How far back a change is looked at.
const SINCE_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How long it may take.
const TIME_MAX: Duration = Duration::from_secs(120);
/// How many calls are named for each kind of difference.
const EXAMPLES: usize = 3;

static ROOM: Semaphore = Semaphore::const_new(1);

fn room() -> Result<SemaphorePermit<'static>, Problem> {
    ROOM.try_acquire().map_err(|_| Problem::busy())
}

fn too_long() -> Problem {
    Problem::of(
        StatusCode::SERVICE_UNAVAILABLE,
        "took_too_long",
        "it took too long; the command line has more patience",
    )
}

/// What a change of the rules would have done, and how it was written.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) text: String,
    pub(crate) whatif: WhatIf,
}

/// What a change of the rules would have done.
pub(crate) async fn whatif(gateway: &Arc<Gateway>, fields: &mut Fields) -> Result<Found, Problem> {
    let text = fields.needed("playbook", FRAGMENT_MAX)?;
    let since = fields.text("since")?.unwrap_or_else(|| "7d".to_owned());
    fields.finish()?;
    let span = Span::parse(&since).filter(|span| span.0 <= SINCE_MAX);
    let Span(back) =
        span.ok_or_else(|| Problem::field("since", "it is not a length of time such as `7d`, at most `90d`"))?;
    let refused = |error: ConfigError| Problem::field("playbook", error.to_string());
    let change = Change::Fragment(Fragment::of(Source::of(text.clone(), "playbook")).map_err(refused)?);
    let _room = room()?;
    let since = clock::now() - u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
    let walk = hindsight::walk(&gateway.ledger, &change, since, EXAMPLES, |_, _| {});
    let found = tokio::time::timeout(TIME_MAX, walk).await.map_err(|_| too_long())??;
    Ok(Found { text, whatif: found.map_err(refused)? })
}

/// What verifying the ledger says, against the checkpoints beside it.
pub(crate) async fn verify(gateway: &Arc<Gateway>) -> Result<Verified, Problem> {
    let _room = room()?;
    let config = gateway.config();
    let unusable = |words: String| Problem::of(StatusCode::SERVICE_UNAVAILABLE, "cannot_verify", words);
    let key = key::verifier(&config.ledger).map_err(|error| unusable(error.to_string()))?;
    let anchor = match &config.ledger.anchor {
        Some(file) if file.exists() => Some(Anchor::read(file).map_err(|error| unusable(error.to_string()))?),
        _ => None,
    };
    let verifying = amends_ledger::verify(&*gateway.ledger, VerifyOptions { anchor, key });
    Ok(tokio::time::timeout(TIME_MAX, verifying).await.map_err(|_| too_long())??)
}

/// The newest checkpoints first.
pub(crate) async fn checkpoints(gateway: &Arc<Gateway>, limit: usize) -> Result<Vec<StoredCheckpoint>, Problem> {
    Ok(gateway.ledger.checkpoints(limit).await?)
}

/// Signs what the ledger has become.
pub(crate) async fn sign(gateway: &Arc<Gateway>) -> Result<Option<StoredCheckpoint>, Problem> {
    let unsigned = |words: String| Problem::of(StatusCode::CONFLICT, "not_signed", words);
    let signer =
        gateway.signer().ok_or_else(|| unsigned("there is no signing key; see `ledger.signing_key`".into()))?;
    signer.sign().await.map_err(|error| unsigned(error.to_string()))
}

/// A checkpoint for a program.
pub(crate) fn checkpoint(of: &StoredCheckpoint) -> Value {
    json!({ "size": of.size, "at": of.at, "note": of.note })
}
