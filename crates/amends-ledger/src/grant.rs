//! What people said yes to beforehand.

use amends_core::{Held, Timestamp};

use crate::claims::ClaimRow;

/// A yes that a later call needs no other than.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name, the call to which it was given and that call's session, and what it is based on.
    pub held: Held,
    /// Until when it is good; until it is taken back where nothing is said.
    pub until: Option<Timestamp>,
}

impl Grant {
    pub(crate) fn of(row: ClaimRow) -> Self {
        Self { held: row.held, until: row.until }
    }
}
