//! What a step does to the reversal tokens, decided once for every store.

use amends_core::{CallId, Digest, Principal, ReversalChange, ReversalState, SessionId, Timestamp, ToolName};
use bytes::Bytes;

use crate::error::Error;

/// What is called to undo a write, kept while its token can be redeemed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUndo {
    /// The token's digest.
    pub token: Digest,
    /// The identity of the upstream that undoes it.
    pub place: String,
    /// Who may redeem it.
    pub principal: Principal,
    /// The tool that undoes it.
    pub tool: ToolName,
    /// The arguments to call it with.
    pub arguments: Bytes,
}

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReversalRow {
    /// The token's digest.
    pub token: Digest,
    /// The session of the write it undoes.
    pub session: SessionId,
    /// The write it undoes.
    pub call: CallId,
    /// Where it stands.
    pub state: ReversalState,
    /// When it was minted.
    pub minted: Timestamp,
    /// Until when it can be redeemed; nothing before it is armed. Whether that has passed is for the caller to look at.
    pub until: Option<Timestamp>,
    /// The call that redeems it, or did.
    pub by: Option<CallId>,
    /// How the write is undone. Dropped when the token is redeemed or void, and by a sweep after its time.
    pub undo: Option<StoredUndo>,
}

impl ReversalRow {
    /// Whether it still says how to undo a write whose time for that has passed.
    pub(crate) fn is_stale(&self, now: Timestamp) -> bool {
        self.undo.is_some() && self.state == ReversalState::Armed && self.until.is_some_and(|until| until <= now)
    }
}

/// Decides what a step's changes leave of each token it touches, without touching one. Later changes of a step see the
/// earlier ones. A token that is new is not among those stored.
pub fn decide<E: From<Error>>(
    changes: Vec<ReversalChange>,
    mut undo: Vec<StoredUndo>,
    session: &SessionId,
    at: Timestamp,
    mut stored: impl FnMut(&Digest) -> Result<Option<ReversalRow>, E>,
) -> Result<Vec<ReversalRow>, E> {
    let mut left: Vec<ReversalRow> = Vec::with_capacity(changes.len());
    for change in changes {
        let token = token(&change);
        let earlier = left.iter().position(|row| row.token == *token);
        let row = match earlier {
            Some(index) => Some(left[index].clone()),
            None => stored(token)?,
        };
        let beside = undo.iter().position(|undo| undo.token == *token);
        let armed = matches!(change, ReversalChange::Arm { .. });
        let beside = beside.filter(|_| armed).map(|index| undo.swap_remove(index));
        let Some(after) = change_one(change, row, beside, session, at)? else {
            continue;
        };
        match earlier {
            Some(index) => left[index] = after,
            None => left.push(after),
        }
    }
    Ok(left)
}

/// The token that a change is about.
pub(crate) fn token(change: &ReversalChange) -> &Digest {
    match change {
        ReversalChange::Mint { token, .. }
        | ReversalChange::Arm { token, .. }
        | ReversalChange::Void { token }
        | ReversalChange::Redeem { token, .. }
        | ReversalChange::Rearm { token, .. }
        | ReversalChange::Spend { token, .. } => token,
    }
}

/// What one change leaves of its token; nothing where it leaves the token alone.
///
/// Invariant: a token that was redeemed stays so, and one that a call is redeeming is not armed but by that call.
fn change_one(
    change: ReversalChange,
    row: Option<ReversalRow>,
    undo: Option<StoredUndo>,
    session: &SessionId,
    at: Timestamp,
) -> Result<Option<ReversalRow>, Error> {
    use ReversalState::{Armed, Minted, Redeemed, Redeeming, Void};
    let Some(row) = row else {
        return match change {
            ReversalChange::Mint { token, call } => Ok(Some(ReversalRow {
                token,
                session: session.clone(),
                call,
                state: Minted,
                minted: at,
                until: None,
                by: None,
                undo: None,
            })),
            ReversalChange::Redeem { token, .. } => Err(Error::Spent { token, state: None }),
            ReversalChange::Arm { .. }
            | ReversalChange::Void { .. }
            | ReversalChange::Rearm { .. }
            | ReversalChange::Spend { .. } => Ok(None),
        };
    };
    let state = row.state;
    let after = match change {
        // Its write is sent once more after an attempt that did nothing.
        ReversalChange::Mint { call, .. } if state == Void && row.call == call => {
            Some(ReversalRow { state: Minted, until: None, ..row })
        }
        ReversalChange::Mint { .. } => None,
        ReversalChange::Arm { until, .. } if matches!(state, Minted | Armed | Void) => {
            Some(ReversalRow { state: Armed, until: Some(until), undo: undo.or(row.undo), ..row })
        }
        ReversalChange::Arm { .. } => None,
        ReversalChange::Void { .. } if state != Redeemed => {
            Some(ReversalRow { state: Void, until: None, undo: None, ..row })
        }
        ReversalChange::Void { .. } => None,
        ReversalChange::Redeem { by, .. } if state == Redeeming && row.by.as_ref() == Some(&by) => None,
        ReversalChange::Redeem { by, over, .. }
            if state == Armed || (state == Redeeming && over.is_some() && over == row.by) =>
        {
            Some(ReversalRow { state: Redeeming, by: Some(by), ..row })
        }
        ReversalChange::Redeem { token, .. } => return Err(Error::Spent { token, state: Some(state) }),
        ReversalChange::Rearm { by, .. } if state == Redeeming && row.by.as_ref() == Some(&by) => {
            Some(ReversalRow { state: Armed, by: None, ..row })
        }
        ReversalChange::Rearm { .. } => None,
        // Whatever was thought of the token, its write is undone: nobody may undo it again.
        ReversalChange::Spend { by, .. } if state != Redeemed => {
            Some(ReversalRow { state: Redeemed, by: Some(by), undo: None, ..row })
        }
        ReversalChange::Spend { .. } => None,
    };
    Ok(after)
}
