//! What people said yes to beforehand, in PostgreSQL.

use amends_core::{Digest, Timestamp};

use super::connection::Connection;
use super::reader::read_claim;
use super::trouble::Trouble;
use crate::grant::Grant;
use crate::stored::{ms, number};

/// What is good at that time.
pub(super) async fn good(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Grant>, Trouble> {
    let find = "SELECT name, kind, session, call, state, fingerprint, effect_key, since, until FROM claims
        WHERE state = 'granted' AND (until IS NULL OR until > $1) ORDER BY name LIMIT $2";
    let rows = connection.rows(find, &[&ms(now), &number(limit as u64)]).await?;
    rows.iter().map(|row| Ok(Grant::of(read_claim(row)?))).collect()
}

/// Takes one back.
pub(super) async fn revoke(connection: &Connection, name: &Digest) -> Result<bool, Trouble> {
    let drop = "DELETE FROM claims WHERE name = $1 AND state = 'granted'";
    Ok(connection.change(drop, &[&name.as_str()]).await? == 1)
}
