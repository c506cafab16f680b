//! Where the ledger is, and the keys that belong to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::settle::invalid;
use super::spec::{LedgerSpec, ReadsSpec, UnsealedSpec};
use super::{ConfigError, Span};

/// How often the log of session heads is extended and signed, where nothing is said.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// The ledger of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerConfig {
    /// Where it is.
    pub place: LedgerPlace,
    /// Whether the file says so, rather than the default.
    pub named: bool,
    /// Whether a read may be answered before it is recorded.
    pub async_reads: bool,
    /// The key that signs checkpoints. Without one there are none.
    pub signing_key: Option<KeySource>,
    /// The key that seals payloads. Without one they rest in the clear.
    pub sealing_key: Option<KeySource>,
    /// Whether a payload that is not sealed is taken although there is a key.
    pub takes_unsealed: bool,
    /// The file that checkpoints are appended to.
    pub anchor: Option<PathBuf>,
    /// How often a checkpoint is signed while something happens.
    pub checkpoint_every: Duration,
    /// After which time without anything new a session's events are dropped; never where it is not said.
    pub retention: Option<Duration>,
}

/// Where a ledger is.
#[derive(Clone, PartialEq, Eq)]
pub enum LedgerPlace {
    /// In this process, for tests.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
    /// In PostgreSQL, at that address.
    Postgres(String),
}

/// Where a key is read from. A file that is not there is made, readable by its owner alone, where the default names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeySource {
    /// A file that holds it.
    File(PathBuf),
    /// A variable of the environment that holds it.
    Env(String),
}

impl LedgerPlace {
    /// Reads an address: `sqlite:FILE`, `postgres://…` or `memory:`.
    pub fn parse(url: &str) -> Option<Self> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Some(Self::Sqlite(path.into())),
            Some(("memory", "")) => Some(Self::Memory),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Some(Self::Postgres(url.into())),
            _ => None,
        }
    }
}

impl LedgerConfig {
    /// The ledger of that place, with its defaults: the keys and the checkpoints of a SQLite file are beside it.
    pub fn at(place: LedgerPlace) -> Self {
        let beside = |ending: &str| match &place {
            LedgerPlace::Sqlite(path) => Some(beside(path, ending)),
            LedgerPlace::Memory | LedgerPlace::Postgres(_) => None,
        };
        Self {
            named: true,
            async_reads: true,
            signing_key: beside("sign").map(KeySource::File),
            sealing_key: beside("seal").map(KeySource::File),
            takes_unsealed: false,
            anchor: beside("checkpoints"),
            checkpoint_every: CHECKPOINT_EVERY,
            retention: None,
            place,
        }
    }

    pub(super) fn settle(spec: LedgerSpec) -> Result<Self, ConfigError> {
        let url = spec.url.as_deref().unwrap_or("sqlite:amends.db");
        let place = LedgerPlace::parse(url).ok_or_else(|| {
            invalid("ledger.url", format!("`{url}` is neither `sqlite:FILE`, `postgres://…` nor `memory:`"))
        })?;
        let default = Self::at(place);
        Ok(Self {
            named: spec.url.is_some(),
            async_reads: spec.reads != Some(ReadsSpec::Sync),
            signing_key: spec.signing_key.or(default.signing_key),
            sealing_key: spec.sealing_key.or(default.sealing_key),
            takes_unsealed: spec.unsealed == Some(UnsealedSpec::Take),
            anchor: spec.anchor.or(default.anchor),
            checkpoint_every: spec.checkpoint_every.map_or(default.checkpoint_every, |Span(time)| time),
            retention: retention(spec.retention)?,
            place: default.place,
        })
    }
}

/// For how long sessions are kept. No time at all would drop them under an agent's hands.
fn retention(span: Option<Span>) -> Result<Option<Duration>, ConfigError> {
    match span {
        Some(Span(Duration::ZERO)) => Err(invalid("ledger.retention", "must be longer than no time at all".into())),
        span => Ok(span.map(|Span(time)| time)),
    }
}

/// The file whose name is that of the ledger's and an ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

impl fmt::Debug for LedgerPlace {
    /// An address may hold a password before its host or among its options, so neither is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => match url.rsplit_once('@') {
                Some((_, rest)) => write!(f, "postgres://…@{}", without_options(rest)),
                None => f.write_str(without_options(url)),
            },
        }
    }
}

fn without_options(url: &str) -> &str {
    url.split_once('?').map_or(url, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let place = LedgerPlace::parse("postgres://amends:s3cret@db.example/ledger").unwrap();
        assert_eq!(format!("{place:?}"), "postgres://…@db.example/ledger");
        let place = LedgerPlace::parse("postgres:///ledger?host=/run/db&password=s3cret").unwrap();
        assert_eq!(format!("{place:?}"), "postgres:///ledger");
    }

    #[test]
    fn the_keys_of_a_file_are_beside_it() {
        let config = LedgerConfig::at(LedgerPlace::Sqlite("data/amends.db".into()));
        assert_eq!(config.signing_key, Some(KeySource::File("data/amends.db.sign".into())));
        assert_eq!(config.anchor, Some("data/amends.db.checkpoints".into()));
        let elsewhere = LedgerConfig::at(LedgerPlace::Postgres("postgres://db/x".into()));
        assert_eq!(elsewhere.signing_key, None);
    }
}
