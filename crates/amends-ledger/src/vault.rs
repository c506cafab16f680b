//! What keeps payloads from being read by whoever reads the store.
//!
//! Payloads (arguments of open calls, answers for repeats, the arguments of an undoing, letters) are sealed before a store
//! sees them and opened after it gave them back, so that no store can forget to.

use crate::append::{Append, StoredAnswer, StoredArguments};
use crate::error::Error;
use crate::letter::{Letter, LetterState};
use crate::reversals::ReversalRow;

/// Seals and opens the payloads of a ledger.
#[derive(Debug, Default)]
pub struct Vault {}

impl Vault {
    /// A vault that leaves everything as it is.
    pub fn unlocked() -> Self {
        Self {}
    }

    /// Seals the payloads of a step.
    pub(crate) fn seal(&self, append: Append) -> Result<Append, Error> {
        Ok(append)
    }

    /// Seals a letter.
    pub(crate) fn seal_letter(&self, letter: Letter) -> Result<Letter, Error> {
        Ok(letter)
    }

    /// Opens a letter.
    pub(crate) fn open_letter(&self, letter: Letter) -> Result<Letter, Error> {
        Ok(letter)
    }

    /// Opens the reply to a letter.
    pub(crate) fn open_reply(&self, state: LetterState) -> Result<LetterState, Error> {
        Ok(state)
    }

    /// Seals the reply to a letter.
    pub(crate) fn seal_reply(&self, body: serde_json::Value) -> Result<serde_json::Value, Error> {
        Ok(body)
    }

    /// Opens an answer.
    pub(crate) fn open_answer(&self, answer: StoredAnswer) -> Result<StoredAnswer, Error> {
        Ok(answer)
    }

    /// Opens arguments.
    pub(crate) fn open_arguments(&self, arguments: StoredArguments) -> Result<StoredArguments, Error> {
        Ok(arguments)
    }

    /// Opens how a write is undone.
    pub(crate) fn open_reversal(&self, row: ReversalRow) -> Result<ReversalRow, Error> {
        Ok(row)
    }
}
