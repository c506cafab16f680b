//! The tokens, as the ledger keeps them: each change in the same transaction as the events it belongs to.

use std::collections::BTreeMap;

use amends_core::reversal::{ReversalChange, ReversalState};
use amends_core::{CallId, Digest, SessionId, Timestamp};

use crate::flaw::Flaw;

/// The table of tokens.
#[derive(Debug, Default)]
pub struct Tokens {
    rows: BTreeMap<Digest, Row>,
}

#[derive(Clone, Debug)]
struct Row {
    call: CallId,
    session: SessionId,
    minted: Timestamp,
    state: ReversalState,
    until: Timestamp,
    by: Option<CallId>,
}

/// The token of a call's write.
pub fn token_of(call: &CallId) -> Digest {
    Digest::new(format!("t-{call}"))
}

impl Tokens {
    /// Whether these changes can be made now. Gives the token whose redemption cannot begin.
    pub fn check(&self, changes: &[ReversalChange], now: Timestamp, flaw: Option<Flaw>) -> Result<(), Digest> {
        if flaw == Some(Flaw::RedeemUnchecked) {
            return Ok(());
        }
        for (n, change) in changes.iter().enumerate() {
            let ReversalChange::Redeem { token, by, over } = change else {
                continue;
            };
            let armed_here = |earlier: &ReversalChange| matches!(earlier, ReversalChange::Arm { token: armed, .. } if armed == token);
            let redeemable = self.rows.get(token).is_some_and(|row| match row.state {
                ReversalState::Armed => now < row.until || flaw == Some(Flaw::RedeemExpired),
                ReversalState::Redeeming => row.by.as_ref() == Some(by) || (over.is_some() && row.by == *over),
                ReversalState::Minted => flaw == Some(Flaw::UndoInDoubt),
                ReversalState::Redeemed | ReversalState::Void => false,
            });
            if !redeemable && !changes[..n].iter().any(armed_here) {
                return Err(token.clone());
            }
        }
        Ok(())
    }

    /// Makes these changes.
    pub fn apply(&mut self, session: &SessionId, changes: &[ReversalChange], now: Timestamp) {
        for change in changes {
            match change {
                ReversalChange::Mint { token, call } => {
                    let (call, session) = (call.clone(), session.clone());
                    let state = ReversalState::Minted;
                    let row = Row { call, session, minted: now, state, until: Timestamp::MAX, by: None };
                    self.rows.insert(token.clone(), row);
                }
                ReversalChange::Arm { token, until } => self.change(token, |row| {
                    row.state = ReversalState::Armed;
                    row.until = *until;
                }),
                ReversalChange::Void { token } => self.change(token, |row| row.state = ReversalState::Void),
                ReversalChange::Redeem { token, by, .. } => self.change(token, |row| {
                    row.state = ReversalState::Redeeming;
                    row.by = Some(by.clone());
                }),
                ReversalChange::Rearm { token, by } => self.change(token, |row| {
                    if row.by.as_ref() == Some(by) && row.state == ReversalState::Redeeming {
                        row.state = ReversalState::Armed;
                        row.by = None;
                    }
                }),
                ReversalChange::Spend { token, by } => self.change(token, |row| {
                    if row.by.as_ref() == Some(by) {
                        row.state = ReversalState::Redeemed;
                    }
                }),
            }
        }
    }

    /// The calls of a session since then whose tokens are armed, newest first: what unwinding it redeems.
    pub fn armed(&self, session: &SessionId, since: Timestamp) -> Vec<CallId> {
        let armed = |row: &&Row| row.session == *session && row.minted >= since && row.state == ReversalState::Armed;
        let mut calls: Vec<CallId> = self.rows.values().filter(armed).map(|row| row.call.clone()).collect();
        calls.sort_by(|a, b| b.cmp(a));
        calls
    }

    /// Whether what a call did is being undone.
    pub fn is_redeeming(&self, call: &CallId) -> bool {
        self.rows.get(&token_of(call)).is_some_and(|row| row.state == ReversalState::Redeeming)
    }

    /// Whether what a call did is undone.
    pub fn is_redeemed(&self, call: &CallId) -> bool {
        self.rows.get(&token_of(call)).is_some_and(|row| row.state == ReversalState::Redeemed)
    }

    /// The session of a token's write.
    pub fn session(&self, token: &Digest) -> Option<SessionId> {
        self.rows.get(token).map(|row| row.session.clone())
    }

    fn change(&mut self, token: &Digest, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.rows.get_mut(token) {
            change(row);
        }
    }
}
