//! What can go wrong with PostgreSQL.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use crate::error::Error;

/// Why something was not done inside a transaction.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It was refused; nothing was written for it.
    Refused(Error),
    /// A row was no longer as it had been read: somebody else was quicker.
    Raced,
    /// PostgreSQL failed, or could not be reached.
    Broken(tokio_postgres::Error),
    /// PostgreSQL did not answer in time.
    Silent,
    /// PostgreSQL could not be connected to.
    Away(Error),
}

impl Trouble {
    /// Whether the same may go well when it is done again: nothing of it was done, and somebody was in the way.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Raced => true,
            Self::Broken(error) => matches!(error.code().map(SqlState::code), Some("40001" | "40P01")),
            Self::Refused(_) | Self::Silent | Self::Away(_) => false,
        }
    }

    /// Whether PostgreSQL took part in it: it said what is wrong, and goes on listening.
    pub(super) fn is_told(&self) -> bool {
        let Self::Broken(error) = self else {
            return matches!(self, Self::Raced | Self::Refused(_));
        };
        let class = error.code().map(|code| &code.code()[..2]);
        // 08: the connection broke. 25: it cannot be written there. 53: it has no room. 57: it is being stopped. 58: its disk
        // fails. F0, XX: it is damaged. 40003 does not say whether it was done.
        class.is_some_and(|class| !matches!(class, "08" | "25" | "53" | "57" | "58" | "F0" | "XX"))
            && error.code().is_some_and(|code| code.code() != "40003")
    }

    /// The same as whoever waited for that one piece of work is told.
    pub(super) fn told(self) -> Error {
        match &self {
            Self::Broken(error) if self.is_told() => {
                let code = error.code().map(SqlState::code).unwrap_or_default();
                match (&code[..code.len().min(2)], error.as_db_error().and_then(|db| db.table())) {
                    ("23", Some("events")) => {
                        Error::Corrupt { reason: "events are there after the session's end".into() }
                    }
                    ("22" | "23" | "54", _) => Error::Corrupt { reason: words(error) },
                    _ => self.into(),
                }
            }
            _ => self.into(),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        let reason = match trouble {
            Trouble::Refused(error) | Trouble::Away(error) => return error,
            Trouble::Raced => "others kept writing the same rows".into(),
            Trouble::Broken(error) => words(&error),
            Trouble::Silent => "PostgreSQL does not answer".into(),
        };
        Self::Unavailable { reason }
    }
}

/// What PostgreSQL said, or why it could not be heard.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("PostgreSQL says: {} ({})", said.message(), said.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
