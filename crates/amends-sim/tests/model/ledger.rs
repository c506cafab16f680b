//! The ledger's rules for claims and tokens, as a value that can be hashed. A step is recorded whole or not at all.

use std::collections::BTreeMap;

use amends_core::claim::ClaimKind;
use amends_core::{
    CallId, ClaimChange, ClaimState, Digest, Held, ReversalChange, ReversalState, SessionId, Step, Timestamp,
};

/// Why a step is not recorded.
#[derive(Debug)]
pub(crate) enum Refused {
    Held(Box<Held>),
    Spent,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    held: Held,
    until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
struct Token {
    state: ReversalState,
    call: CallId,
    by: Option<CallId>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ledger {
    claims: BTreeMap<Digest, Row>,
    tokens: BTreeMap<Digest, Token>,
}

impl Ledger {
    /// Where a token stands.
    pub(crate) fn token(&self, token: &str) -> Option<ReversalState> {
        self.tokens.get(&Digest::new(token)).map(|token| token.state)
    }

    /// What a step leaves of the claims and tokens; a flawed driver has it change none.
    pub(crate) fn after(&self, step: &Step, session: &SessionId, ignore: bool) -> Result<Self, Refused> {
        let mut left = self.clone();
        let at = step.events.last().map_or(Timestamp::default(), |event| event.at);
        for change in step.claims.iter().filter(|_| !ignore) {
            left.claim(change, session, at)?;
        }
        for change in step.reversals.iter().filter(|_| !ignore) {
            left.reversal(change)?;
        }
        Ok(left)
    }

    fn claim(&mut self, change: &ClaimChange, session: &SessionId, at: Timestamp) -> Result<(), Refused> {
        let (name, call) = match change {
            ClaimChange::Take { claim, call, .. } => (&claim.name, call),
            ClaimChange::Settle { name, call, .. }
            | ClaimChange::Grant { name, call, .. }
            | ClaimChange::Release { name, call } => (name, call),
            // No call of this model needs a yes.
            ClaimChange::Absent { .. } => return Ok(()),
        };
        let row = self.claims.get(name).cloned();
        let ours = row.as_ref().is_some_and(|row| row.held.call == *call);
        match change {
            ClaimChange::Take { claim, call, effect_key, since, over } => {
                if let Some(row) = &row {
                    let expired = row.until.is_some_and(|until| until <= at);
                    let free = ours || expired || over.as_ref() == Some(&row.held.call);
                    match claim.kind {
                        _ if free => {}
                        ClaimKind::ArgumentsIfFree => return Ok(()),
                        _ => return Err(Refused::Held(Box::new(row.held.clone()))),
                    }
                }
                let held = Held {
                    name: name.clone(),
                    session: session.clone(),
                    call: call.clone(),
                    state: ClaimState::InFlight,
                    fingerprint: claim.fingerprint.clone(),
                    effect_key: effect_key.clone(),
                    since: row.filter(|_| ours).map_or(*since, |row| row.held.since.min(*since)),
                };
                self.claims.insert(name.clone(), Row { held, until: None });
            }
            ClaimChange::Settle { state, until, .. } if ours => {
                if let Some(row) = self.claims.get_mut(name) {
                    row.held.state = *state;
                    row.until = *until;
                }
            }
            ClaimChange::Release { .. } if ours => drop(self.claims.remove(name)),
            ClaimChange::Settle { .. }
            | ClaimChange::Grant { .. }
            | ClaimChange::Absent { .. }
            | ClaimChange::Release { .. } => {}
        }
        Ok(())
    }

    fn reversal(&mut self, change: &ReversalChange) -> Result<(), Refused> {
        use ReversalState::{Armed, Minted, Redeemed, Redeeming, Void};
        if let ReversalChange::Mint { token, call } = change {
            let row = self.tokens.entry(token.clone()).or_insert(Token { state: Void, call: call.clone(), by: None });
            if row.state == Void && row.call == *call {
                row.state = Minted;
            }
            return Ok(());
        }
        let (ReversalChange::Mint { token, .. }
        | ReversalChange::Arm { token, .. }
        | ReversalChange::Void { token }
        | ReversalChange::Redeem { token, .. }
        | ReversalChange::Rearm { token, .. }
        | ReversalChange::Spend { token, .. }) = change;
        let Some(row) = self.tokens.get_mut(token) else {
            let redeems = matches!(change, ReversalChange::Redeem { .. });
            return if redeems { Err(Refused::Spent) } else { Ok(()) };
        };
        let redeeming = |by: &CallId| row.state == Redeeming && row.by.as_ref() == Some(by);
        match change {
            ReversalChange::Arm { .. } if matches!(row.state, Minted | Armed | Void) => row.state = Armed,
            ReversalChange::Void { .. } if row.state != Redeemed => row.state = Void,
            ReversalChange::Redeem { by, .. } if redeeming(by) => {}
            ReversalChange::Redeem { by, .. } if row.state == Armed => {
                row.state = Redeeming;
                row.by = Some(by.clone());
            }
            ReversalChange::Redeem { .. } => return Err(Refused::Spent),
            ReversalChange::Rearm { by, .. } if redeeming(by) => {
                row.state = Armed;
                row.by = None;
            }
            ReversalChange::Spend { by, .. } if row.state != Redeemed => {
                row.state = Redeemed;
                row.by = Some(by.clone());
            }
            _ => {}
        }
        Ok(())
    }
}
