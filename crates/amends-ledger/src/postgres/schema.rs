//! The tables, and how they are made and brought up to date.
//!
//! Invariant: what a later version adds is safe while nodes of an earlier one go on: new tables, new indexes, new columns
//! with a default. Each statement may find its work done already.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::error::SqlState;

use super::connection::{Connection, SILENCE_MAX, Target};
use super::trouble::Trouble;
use crate::error::Error;
use crate::stored::{number, read_number};

/// The version of the tables. A database with a newer one is refused.
pub(super) const VERSION: u64 = 6;

/// How long a node tries to make the tables while others do the same.
const PREPARE_MAX: Duration = Duration::from_secs(30);

const META: &str = "
CREATE TABLE IF NOT EXISTS meta (
    one integer PRIMARY KEY CHECK (one = 1),
    version bigint NOT NULL,
    secret bytea NOT NULL,
    letters bigint NOT NULL DEFAULT 0
);
";

/// The tables of version 1. Bodies are text, byte for byte as they were hashed.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS nodes (
    id text PRIMARY KEY,
    place text NOT NULL,
    lease_until bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    id text COLLATE \"C\" PRIMARY KEY,
    principal text NOT NULL,
    door text NOT NULL,
    owner text NOT NULL,
    epoch bigint NOT NULL,
    seq bigint NOT NULL,
    head bytea NOT NULL,
    opened bigint NOT NULL,
    updated bigint NOT NULL,
    open_calls bigint NOT NULL,
    due bigint,
    cut bigint NOT NULL DEFAULT 0,
    cut_link bytea,
    logged bigint NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS sessions_by_age ON sessions (opened, id);
CREATE INDEX IF NOT EXISTS sessions_open ON sessions (owner, id) WHERE open_calls > 0;
CREATE INDEX IF NOT EXISTS sessions_due ON sessions (due) WHERE open_calls = 0 AND due IS NOT NULL;
CREATE INDEX IF NOT EXISTS sessions_unlogged ON sessions (opened, id) WHERE logged < seq;
CREATE TABLE IF NOT EXISTS events (
    session text COLLATE \"C\" NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    call text,
    body text NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE TABLE IF NOT EXISTS calls (
    call text PRIMARY KEY,
    session text COLLATE \"C\" NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_by_session ON calls (session);
CREATE TABLE IF NOT EXISTS claims (
    name text COLLATE \"C\" PRIMARY KEY,
    kind text NOT NULL,
    session text NOT NULL,
    call text NOT NULL,
    state text NOT NULL,
    fingerprint text NOT NULL,
    effect_key text NOT NULL,
    since bigint NOT NULL,
    until bigint
);
CREATE INDEX IF NOT EXISTS claims_ending ON claims (until) WHERE until IS NOT NULL;
CREATE TABLE IF NOT EXISTS answers (
    call text PRIMARY KEY,
    outcome text NOT NULL,
    certainty text NOT NULL,
    form text NOT NULL,
    body bytea NOT NULL,
    until bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_ending ON answers (until);
CREATE TABLE IF NOT EXISTS arguments (
    call text PRIMARY KEY,
    body bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS rules (
    hash text PRIMARY KEY,
    body text NOT NULL
);
CREATE TABLE IF NOT EXISTS interactions (
    id text COLLATE \"C\" PRIMARY KEY,
    session text NOT NULL,
    queue text NOT NULL,
    due bigint NOT NULL,
    body text NOT NULL,
    answer text,
    answered bigint,
    closing text,
    closed bigint
);
CREATE INDEX IF NOT EXISTS interactions_open ON interactions (due, id) WHERE closed IS NULL AND answered IS NULL;
CREATE INDEX IF NOT EXISTS interactions_answered ON interactions (answered, id)
    WHERE closed IS NULL AND answered IS NOT NULL;
CREATE INDEX IF NOT EXISTS interactions_unclosed ON interactions (session) WHERE closed IS NULL;
CREATE INDEX IF NOT EXISTS interactions_closed ON interactions (closed) WHERE closed IS NOT NULL;
CREATE TABLE IF NOT EXISTS reversals (
    token text COLLATE \"C\" PRIMARY KEY,
    session text NOT NULL,
    call text NOT NULL,
    state text NOT NULL,
    minted bigint NOT NULL,
    minted_seq bigint NOT NULL,
    minted_nth bigint NOT NULL,
    until bigint,
    redeemer text,
    place text,
    principal text,
    tool text,
    arguments bytea
);
CREATE INDEX IF NOT EXISTS reversals_by_session ON reversals (session, minted_seq, minted_nth);
CREATE INDEX IF NOT EXISTS reversals_ending ON reversals (until) WHERE state = 'armed' AND place IS NOT NULL;
CREATE TABLE IF NOT EXISTS letters (
    id bigint PRIMARY KEY,
    place text,
    session text,
    body text NOT NULL,
    posted bigint NOT NULL,
    taker text,
    taken bigint,
    reply text,
    replied bigint
);
CREATE INDEX IF NOT EXISTS letters_waiting ON letters (place, id) WHERE replied IS NULL;
CREATE INDEX IF NOT EXISTS letters_replied ON letters (replied) WHERE replied IS NOT NULL;
CREATE TABLE IF NOT EXISTS log (
    place bigint PRIMARY KEY,
    session text NOT NULL,
    seq bigint NOT NULL,
    head bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS checkpoints (
    number bigint PRIMARY KEY,
    size bigint NOT NULL,
    at bigint NOT NULL,
    note text NOT NULL
);
";

/// What version 2 adds.
const PINS: &str = "
CREATE TABLE IF NOT EXISTS pins (
    place text COLLATE \"C\" NOT NULL,
    tool text COLLATE \"C\" NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (place, tool)
);
";

/// What version 3 adds.
const WALKS: &str = "
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS machine text;
CREATE TABLE IF NOT EXISTS fields (
    session text COLLATE \"C\" NOT NULL,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, seq)
);
";

/// What version 4 adds.
const TENANTS: &str = "
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS tenant text;
CREATE INDEX IF NOT EXISTS sessions_by_tenant ON sessions (tenant, opened, id) WHERE tenant IS NOT NULL;
ALTER TABLE interactions ADD COLUMN IF NOT EXISTS tenant text;
";

/// What version 5 adds.
const POSTINGS: &str = "
ALTER TABLE interactions ADD COLUMN IF NOT EXISTS posting text;
ALTER TABLE interactions ADD COLUMN IF NOT EXISTS posting_until bigint;
ALTER TABLE interactions ADD COLUMN IF NOT EXISTS posted bigint;
";

/// What version 6 adds.
const KEPT: &str = "
CREATE TABLE IF NOT EXISTS kept (
    name text COLLATE \"C\" PRIMARY KEY,
    version bigint NOT NULL,
    body bytea NOT NULL
);
";

/// What makes each version of the one before it: the first makes version 1 of nothing.
const VERSIONS: [&str; VERSION as usize] = [TABLES, PINS, WALKS, TENANTS, POSTINGS, KEPT];

/// Makes the tables where there are none, brings them up to date where there are, and gives back a connection and the
/// ledger's secret. Any number of nodes may do so at once.
pub(super) async fn open(target: &Target) -> Result<(Connection, [u8; 32]), Trouble> {
    let connection = target.connect().await?;
    let until = Instant::now() + PREPARE_MAX;
    loop {
        match timeout(SILENCE_MAX, prepare(&connection)).await.unwrap_or(Err(Trouble::Silent)) {
            Ok(secret) => return Ok((connection, secret)),
            Err(trouble) if is_in_the_way(&trouble) && Instant::now() < until => {
                connection.run("ROLLBACK").await?;
                sleep(Duration::from_millis(20)).await;
            }
            Err(trouble) => return Err(trouble),
        }
    }
}

/// Fails unless the ledger there is the one with that secret. Its tables may be newer: what a version adds is safe for us.
pub(super) async fn same_ledger(connection: &Connection, secret: &[u8; 32]) -> Result<(), Trouble> {
    match connection.row("SELECT secret FROM meta", &[]).await? {
        Some(row) if row.try_get::<_, &[u8]>(0)? == secret => Ok(()),
        _ => Err(Error::Unavailable { reason: "another ledger is in the database".into() }.into()),
    }
}

/// One try at it. The table `meta` comes first, in a transaction of its own; its row then keeps others away from the rest.
async fn prepare(connection: &Connection) -> Result<[u8; 32], Trouble> {
    if let Some((version, secret)) = meta(connection, false).await?
        && version == VERSION
    {
        return Ok(secret);
    }
    connection.run(META).await?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::Unavailable { reason: format!("no randomness for the ledger's secret: {error}") })?;
    let insert = "INSERT INTO meta (one, version, secret) VALUES (1, 0, $1) ON CONFLICT (one) DO NOTHING";
    connection.change(insert, &[&&secret[..]]).await?;
    connection.run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let found = meta(connection, true).await?;
    let (version, secret) = found.ok_or_else(|| Error::Corrupt { reason: "the ledger's secret is missing".into() })?;
    for made in VERSIONS.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        connection.run(made).await?;
    }
    connection.change("UPDATE meta SET version = $1", &[&number(VERSION)]).await?;
    connection.run("COMMIT").await?;
    Ok(secret)
}

/// The version of the tables, which is one that this program knows, and the ledger's secret; nothing where there is none.
async fn meta(connection: &Connection, locked: bool) -> Result<Option<(u64, [u8; 32])>, Trouble> {
    let query = match locked {
        true => "SELECT version, secret FROM meta FOR UPDATE",
        false => "SELECT version, secret FROM meta",
    };
    let row = match connection.row(query, &[]).await {
        Err(Trouble::Broken(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
        Err(Trouble::Broken(error)) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => {
            return Err(
                Error::Unavailable { reason: "the database holds tables that are not a ledger's".into() }.into()
            );
        }
        other => other?,
    };
    let Some(row) = row else {
        return Ok(None);
    };
    let version = read_number(row.try_get(0)?)?;
    if version > VERSION {
        let reason = format!("its tables are of version {version}, and this program knows versions up to {VERSION}");
        return Err(Error::Unavailable { reason }.into());
    }
    let secret = <[u8; 32]>::try_from(row.try_get::<_, &[u8]>(1)?)
        .map_err(|_| Error::Corrupt { reason: "the ledger's secret is not a secret".into() })?;
    Ok(Some((version, secret)))
}

/// Whether another node is making the same tables. PostgreSQL says so in many ways: two that make one table at once meet in
/// its own catalogue.
fn is_in_the_way(trouble: &Trouble) -> bool {
    let Trouble::Broken(error) = trouble else {
        return false;
    };
    let code = error.code().map(SqlState::code);
    matches!(code, Some("23505" | "42P07" | "42710" | "40001" | "40P01" | "XX000" | "55P03"))
}
