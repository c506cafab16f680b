//! How values are stored, the same in every database.

use std::fmt::{self, Display, Formatter};

use amends_core::Timestamp;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::chain::Link;
use crate::error::Error;

/// A number as a database keeps it. What does not fit is as good as endless.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A time as a database keeps it.
pub(crate) fn ms(time: Timestamp) -> i64 {
    number(time.ms())
}

/// A stored number.
pub(crate) fn read_number(stored: i64) -> Result<u64, Error> {
    u64::try_from(stored)
        .map_err(|_| Error::Corrupt { reason: format!("`{stored}` is stored where a count should be") })
}

/// A stored time.
pub(crate) fn read_ms(stored: i64) -> Result<Timestamp, Error> {
    read_number(stored).map(Timestamp::from_ms)
}

/// A stored link of a chain.
pub(crate) fn read_link(stored: &[u8]) -> Result<Link, Error> {
    Link::stored(stored)
        .ok_or_else(|| Error::Corrupt { reason: format!("{} bytes are stored where a hash should be", stored.len()) })
}

/// A stored word of one of the closed lists.
pub(crate) fn read_word<'a, T: Deserialize<'a>>(stored: &'a str) -> Result<T, Error> {
    T::deserialize(StrDeserializer::<WordError>::new(stored))
        .map_err(|error| Error::Corrupt { reason: format!("`{stored}` is stored as a word: {error}") })
}

/// A word of one of the closed lists as it is stored.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    struct Word<'a, T>(&'a T);
    impl<T: Serialize> Display for Word<'_, T> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }
    Word(value).to_string()
}

/// Something stored as JSON.
pub(crate) fn read_json<T: DeserializeOwned>(stored: &str) -> Result<T, Error> {
    serde_json::from_str(stored)
        .map_err(|error| Error::Corrupt { reason: format!("what is stored as JSON cannot be read: {error}") })
}

/// Something as JSON.
pub(crate) fn write_json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::Corrupt { reason: format!("it cannot be written as JSON: {error}") })
}
