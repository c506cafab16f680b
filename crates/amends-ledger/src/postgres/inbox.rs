//! The inbox in PostgreSQL.

use amends_core::{SessionId, Timestamp};
use serde_json::Value;
use tokio_postgres::Row;

use super::connection::Connection;
use super::nodes::Here;
use super::trouble::Trouble;
use crate::letter::{Letter, LetterId, LetterState};
use crate::stored::{ms, number, read_json, read_number, write_json};

/// The letters that a node could take, the oldest first.
const FREE: &str = "SELECT id, place, session, body, taker FROM letters
     WHERE replied IS NULL AND (place IS NULL OR place = ANY ($1))
       AND (taker IS NULL OR (taker <> $2 AND taker <> ALL ($3)))
     ORDER BY id LIMIT $4";

/// Puts a letter into the inbox. Letters are counted in a row, since a sequence may give a later letter an earlier number.
pub(super) async fn post(connection: &Connection, letter: &Letter, now: Timestamp) -> Result<LetterId, Trouble> {
    let count = "UPDATE meta SET letters = letters + 1 RETURNING letters";
    let row = connection.row(count, &[]).await?.ok_or(Trouble::Raced)?;
    let id: i64 = row.try_get(0)?;
    let insert = "INSERT INTO letters (id, place, session, body, posted) VALUES ($1, $2, $3, $4, $5)";
    let session = letter.session.as_ref().map(SessionId::as_str);
    connection.change(insert, &[&id, &letter.place, &session, &write_json(&letter.body)?, &ms(now)]).await?;
    Ok(LetterId(read_number(id)?))
}

/// Whether there is a letter that this node could take.
pub(super) async fn is_waiting(
    connection: &Connection,
    here: &Here,
    places: &[String],
    now: Timestamp,
) -> Result<bool, Trouble> {
    // Mostly there is none at all, and then it does not matter who lives.
    let any = "SELECT 1 FROM letters WHERE replied IS NULL AND (place IS NULL OR place = ANY ($1)) LIMIT 1";
    if connection.row(any, &[&places]).await?.is_none() {
        return Ok(false);
    }
    Ok(!free(connection, here, places, now, 1).await?.is_empty())
}

/// Takes letters for this node: those that nobody took since they were looked at.
pub(super) async fn collect(
    connection: &Connection,
    here: &Here,
    places: &[String],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(LetterId, Letter)>, Trouble> {
    let take = "UPDATE letters SET taker = $2, taken = $3
        WHERE id = $1 AND taker IS NOT DISTINCT FROM $4 AND replied IS NULL";
    let mut taken = Vec::new();
    for row in free(connection, here, places, now, limit).await? {
        let (id, taker): (i64, Option<&str>) = (row.try_get(0)?, row.try_get(4)?);
        if connection.change(take, &[&id, &here.node.id, &ms(now), &taker]).await? == 1 {
            let session = row.try_get::<_, Option<String>>(2)?.map(SessionId::new);
            let letter = Letter { place: row.try_get(1)?, session, body: read_json(row.try_get(3)?)? };
            taken.push((LetterId(read_number(id)?), letter));
        }
    }
    Ok(taken)
}

async fn free(
    connection: &Connection,
    here: &Here,
    places: &[String],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Row>, Trouble> {
    let living = here.living(connection, now).await?;
    connection.rows(FREE, &[&places, &here.node.id, &living, &number(limit as u64)]).await
}

/// Replies to a letter, if nobody has.
pub(super) async fn reply(
    connection: &Connection,
    id: LetterId,
    body: &Value,
    now: Timestamp,
) -> Result<bool, Trouble> {
    let reply = "UPDATE letters SET reply = $2, replied = $3 WHERE id = $1 AND replied IS NULL";
    Ok(connection.change(reply, &[&number(id.0), &write_json(body)?, &ms(now)]).await? == 1)
}

/// Where a letter stands.
pub(super) async fn letter(connection: &Connection, id: LetterId) -> Result<Option<LetterState>, Trouble> {
    let find = "SELECT taker IS NOT NULL, reply FROM letters WHERE id = $1";
    let Some(row) = connection.row(find, &[&number(id.0)]).await? else {
        return Ok(None);
    };
    let reply = row.try_get::<_, Option<&str>>(1)?.map(read_json).transpose()?;
    Ok(Some(LetterState { taken: row.try_get(0)?, reply }))
}
