//! What can go wrong with SQLite, and how its texts are read.

use rusqlite::{ErrorCode, Row};

use crate::error::Error;
pub(super) use crate::stored::{ms, number, read_json, read_link, read_ms, read_number, read_word, word, write_json};

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

/// A stored text.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Trouble> {
    let value = row.get_ref(column)?;
    Ok(value.as_str().map_err(rusqlite::Error::from)?)
}
