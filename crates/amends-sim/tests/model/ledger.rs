//! What the ledger holds of claims and tokens, as a value that can be hashed. What a step does to them is decided by the ledger's own
//! rules, as every store has it. A step is recorded whole or not at all.

use std::collections::BTreeMap;

use amends_core::{Digest, Held, ReversalState, SessionId, Step, Timestamp};
use amends_ledger::{ClaimRow, Error, ReversalRow, decide_claims, decide_reversals};

/// Why a step is not recorded.
#[derive(Debug)]
pub(crate) enum Refused {
    Held(Box<Held>),
    Spent,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ledger {
    claims: BTreeMap<Digest, ClaimRow>,
    tokens: BTreeMap<Digest, ReversalRow>,
}

impl Ledger {
    /// Where a token stands.
    pub(crate) fn token(&self, token: &str) -> Option<ReversalState> {
        self.tokens.get(&Digest::new(token)).map(|token| token.state)
    }

    /// What a step leaves of the claims and tokens; a flawed driver has it change none.
    pub(crate) fn after(&self, step: &Step, session: &SessionId, ignore: bool) -> Result<Self, Refused> {
        let mut left = self.clone();
        if ignore {
            return Ok(left);
        }
        let at = step.events.last().map_or(Timestamp::default(), |event| event.at);
        let claim = |name: &Digest| Ok(self.claims.get(name).cloned());
        for (name, row) in decide_claims(step.claims.clone(), session, at, claim).map_err(refused)? {
            match row {
                Some(row) => drop(left.claims.insert(name, row)),
                None => drop(left.claims.remove(&name)),
            }
        }
        let token = |token: &Digest| Ok(self.tokens.get(token).cloned());
        for row in decide_reversals(step.reversals.clone(), Vec::new(), session, at, token).map_err(refused)? {
            left.tokens.insert(row.token.clone(), row);
        }
        Ok(left)
    }
}

fn refused(error: Error) -> Refused {
    match error {
        Error::Held(held) => Refused::Held(held),
        Error::Spent { .. } => Refused::Spent,
        other => panic!("the rules for claims and tokens say nothing else: {other}"),
    }
}
