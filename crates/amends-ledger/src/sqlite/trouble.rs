//! What can go wrong with SQLite, and how its values are read and written.

use std::fmt::{self, Display, Formatter};

use amends_core::Timestamp;
use rusqlite::{ErrorCode, Row};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::chain::Link;
use crate::error::Error;

/// Why something was not done inside a transaction. The two are kept apart since a refusal leaves the transaction whole.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It was refused; nothing was written for it.
    Refused(Error),
    /// SQLite failed; nothing of the transaction can be relied upon.
    Broken(rusqlite::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Broken(error) => unavailable(&error),
        }
    }
}

/// A failure of SQLite as the caller sees it.
pub(super) fn unavailable(error: &rusqlite::Error) -> Error {
    Error::Unavailable { reason: error.to_string() }
}

/// Whether another process is in the way.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A number as SQLite keeps it. What does not fit is as good as endless.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A time as SQLite keeps it.
pub(super) fn ms(time: Timestamp) -> i64 {
    number(time.ms())
}

/// A stored number.
pub(super) fn read_number(stored: i64) -> Result<u64, Error> {
    u64::try_from(stored)
        .map_err(|_| Error::Corrupt { reason: format!("`{stored}` is stored where a count should be") })
}

/// A stored time.
pub(super) fn read_ms(stored: i64) -> Result<Timestamp, Error> {
    read_number(stored).map(Timestamp::from_ms)
}

/// A stored link of a chain.
pub(super) fn read_link(stored: &[u8]) -> Result<Link, Error> {
    Link::stored(stored)
        .ok_or_else(|| Error::Corrupt { reason: format!("{} bytes are stored where a hash should be", stored.len()) })
}

/// A stored word of one of the closed lists.
pub(super) fn read_word<'a, T: Deserialize<'a>>(stored: &'a str) -> Result<T, Error> {
    T::deserialize(StrDeserializer::<WordError>::new(stored))
        .map_err(|error| Error::Corrupt { reason: format!("`{stored}` is stored as a word: {error}") })
}

/// A word of one of the closed lists as it is stored.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    struct Word<'a, T>(&'a T);
    impl<T: Serialize> Display for Word<'_, T> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }
    Word(value).to_string()
}

/// A stored text.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Trouble> {
    let value = row.get_ref(column)?;
    Ok(value.as_str().map_err(rusqlite::Error::from)?)
}

/// Something stored as JSON.
pub(super) fn read_json<T: DeserializeOwned>(stored: &str) -> Result<T, Error> {
    serde_json::from_str(stored)
        .map_err(|error| Error::Corrupt { reason: format!("what is stored as JSON cannot be read: {error}") })
}

/// Something as JSON.
pub(super) fn write_json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::Corrupt { reason: format!("it cannot be written as JSON: {error}") })
}
