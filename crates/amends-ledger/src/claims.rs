//! What a step does to the claims, decided once for every store.

use amends_core::claim::ClaimKind;
use amends_core::{CallId, ClaimChange, ClaimState, Digest, Held, SessionId, Timestamp};

use crate::error::Error;

/// A claim as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    /// Who holds it, and since when.
    pub held: Held,
    /// What it is a claim of.
    pub kind: ClaimKind,
    /// When it ends by itself; never where nothing is said.
    pub until: Option<Timestamp>,
}

impl ClaimRow {
    /// Whether it counts as free at that time.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// What is left of a claim after a step: a row to write, or nothing.
pub type Left = (Digest, Option<ClaimRow>);

/// Decides what a step's changes leave of each claim it touches, without touching one: a step that is refused has changed
/// nothing. Later changes of a step see the earlier ones.
pub fn decide<E: From<Error>>(
    changes: Vec<ClaimChange>,
    session: &SessionId,
    at: Timestamp,
    mut stored: impl FnMut(&Digest) -> Result<Option<ClaimRow>, E>,
) -> Result<Vec<Left>, E> {
    let mut left: Vec<Left> = Vec::with_capacity(changes.len());
    for change in changes {
        let name = match &change {
            ClaimChange::Take { claim, .. } => &claim.name,
            ClaimChange::Settle { name, .. }
            | ClaimChange::Grant { name, .. }
            | ClaimChange::Absent { name }
            | ClaimChange::Release { name, .. } => name,
        };
        // A step touches a handful of claims, so looking through them is quicker than a map.
        let earlier = left.iter().position(|(touched, _)| touched == name);
        let row = match earlier {
            Some(index) => left[index].1.clone(),
            None => stored(name)?,
        };
        let Some(after) = change_one(change, row, session, at)? else {
            continue;
        };
        match earlier {
            Some(index) => left[index] = after,
            None => left.push(after),
        }
    }
    Ok(left)
}

/// What one change leaves of its claim; nothing where it leaves the claim alone.
fn change_one(
    change: ClaimChange,
    row: Option<ClaimRow>,
    session: &SessionId,
    at: Timestamp,
) -> Result<Option<Left>, Error> {
    let ours = |row: &Option<ClaimRow>, call: &CallId| row.as_ref().is_some_and(|row| row.held.call == *call);
    match change {
        ClaimChange::Take { claim, call, effect_key, since, over } => {
            let mut since = since;
            match row {
                // Taken twice by one call, it is held since the first time.
                Some(row) if row.held.call == call => since = since.min(row.held.since),
                Some(row) if row.is_over(at) => {}
                Some(row) if over.as_ref() == Some(&row.held.call) => {}
                Some(_) if claim.kind == ClaimKind::ArgumentsIfFree => return Ok(None),
                // What is said last of arguments counts.
                Some(row) if claim.kind == ClaimKind::Grant && row.kind == ClaimKind::Grant => {}
                Some(row) => return Err(Error::Held(Box::new(row.held))),
                None => {}
            }
            let held = Held {
                name: claim.name.clone(),
                session: session.clone(),
                call,
                state: ClaimState::InFlight,
                fingerprint: claim.fingerprint,
                effect_key,
                since,
            };
            Ok(Some((claim.name, Some(ClaimRow { held, kind: claim.kind, until: None }))))
        }
        ClaimChange::Settle { name, call, state, until } if ours(&row, &call) => {
            Ok(row.map(|row| (name, Some(ClaimRow { held: Held { state, ..row.held }, until, ..row }))))
        }
        ClaimChange::Grant { name, call, basis, until } if ours(&row, &call) => {
            let granted = |row: ClaimRow| {
                let held = Held { state: ClaimState::Granted, effect_key: basis, ..row.held };
                (name, Some(ClaimRow { held, until, ..row }))
            };
            Ok(row.map(granted))
        }
        ClaimChange::Absent { .. } => match row.filter(|row| !row.is_over(at)) {
            Some(row) => Err(Error::Held(Box::new(row.held))),
            None => Ok(None),
        },
        ClaimChange::Release { name, call } if ours(&row, &call) => Ok(Some((name, None))),
        ClaimChange::Settle { .. } | ClaimChange::Grant { .. } | ClaimChange::Release { .. } => Ok(None),
    }
}
