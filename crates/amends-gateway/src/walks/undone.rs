//! What was undone of a walk: that is recorded where it was undone, and the walk hears of it.

use std::sync::Arc;

use amends_core::{CallId, Digest, Dispatcher, Gates, ReversalState, SessionId, Timestamp};
use amends_ledger::{Error, Ledger, ReversalRow};

use super::no_rules;
use crate::clock;
use crate::driver::{Mail, raise_walk};
use crate::gateway::Gateway;

/// Tells the driver of a walk what of it was undone, by an operator or with a token: that is recorded elsewhere.
pub(super) async fn tell_undone(gateway: &Gateway, session: &SessionId, tell: impl FnOnce(Mail)) {
    let undone = undone(gateway, session).await;
    if !undone.is_empty() {
        tell(Mail::Undone(undone));
    }
}

/// Tells the walk whose write was undone just now. One that nobody drives is taken up where people were told otherwise of it;
/// any other hears of it when somebody looks at it.
pub(crate) async fn undone_with(gateway: Arc<Gateway>, token: Digest) {
    let Ok(Some(row)) = gateway.ledger.reversal(&token).await else { return };
    let mail = match gateway.driver_of(&row.session) {
        Some(mail) => Some(mail),
        None if tells_otherwise(&gateway, &row).await => raise_walk(&gateway, &row.session).await.ok().flatten(),
        None => None,
    };
    if let Some(mail) = mail {
        tell_undone(&gateway, &row.session, |told| drop(mail.send(told))).await;
    }
}

/// Tells the walk whose write is known just now not to have been undone, where that was in doubt.
pub(crate) async fn not_undone_with(gateway: Arc<Gateway>, token: Digest) {
    let Ok(Some(row)) = gateway.ledger.reversal(&token).await else { return };
    let mail = match gateway.driver_of(&row.session) {
        Some(mail) => Some(mail),
        None if doubts(&gateway, &row).await => raise_walk(&gateway, &row.session).await.ok().flatten(),
        None => None,
    };
    if let Some(mail) = mail {
        // Should its driver end just now, whoever takes the walk up next says that it is in doubt.
        let _ = mail.send(Mail::NotUndone(row.call));
    }
}

/// Whether a walk was given up that says of what was undone that it was not.
async fn tells_otherwise(gateway: &Gateway, row: &ReversalRow) -> bool {
    let folded = folded(gateway, row).await;
    folded.is_some_and(|folded| folded.undone_late(std::slice::from_ref(&row.call)).is_some())
}

/// Whether a walk was given up that says of what was not undone that it may be.
async fn doubts(gateway: &Gateway, row: &ReversalRow) -> bool {
    folded(gateway, row).await.is_some_and(|folded| folded.not_undone_late(&row.call).is_some())
}

async fn folded(gateway: &Gateway, row: &ReversalRow) -> Option<Dispatcher> {
    let trace = gateway.ledger.trace(&row.session).await.ok().flatten()?;
    let events = trace.events.iter().map(|stored| &stored.event);
    Dispatcher::restore(events, |_| Some(Arc::new(no_rules()))).ok()
}

/// A write of a walk that was undone.
#[derive(Clone, Debug)]
pub(crate) struct Undone {
    pub(crate) call: CallId,
    /// When it was made.
    pub(crate) made: Timestamp,
}

/// A walk that was given up, with what was undone of it late: its driver records that with its next turn.
pub(super) fn hindsight(mut folded: Dispatcher, undone: &[Undone]) -> Dispatcher {
    let calls: Vec<CallId> = undone.iter().map(|undone| undone.call.clone()).collect();
    if let Some(late) = folded.undone_late(&calls) {
        // Nothing is done about it here.
        let _ = folded.handle(clock::now(), &Gates::default(), late);
    }
    folded
}

/// The writes of a session that were undone since. What undid itself when it failed was never done.
pub(super) async fn undone(gateway: &Gateway, session: &SessionId) -> Vec<Undone> {
    if !gateway.catalogue.now().machines().reverses() {
        return Vec::new();
    }
    // What cannot be looked up is said the next time.
    undone_in(&gateway.ledger, session).await.unwrap_or_default()
}

pub(super) async fn undone_in(ledger: &Arc<dyn Ledger>, session: &SessionId) -> Result<Vec<Undone>, Error> {
    let rows = ledger.reversals_of(session).await?;
    let by_another = |row: &ReversalRow| row.state == ReversalState::Redeemed && row.by.as_ref() != Some(&row.call);
    Ok(rows.into_iter().filter(by_another).map(|row| Undone { call: row.call, made: row.minted }).collect())
}
