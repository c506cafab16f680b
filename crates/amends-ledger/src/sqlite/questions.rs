//! Questions to people in SQLite.

use amends_core::{Interaction, InteractionId, PersonAnswer, SessionId, Tenant, Timestamp};
use rusqlite::{Connection, Row, params};

use super::trouble::{Trouble, ms, number, read_json, read_ms, read_word, text, word, write_json};
use crate::interactions::{AnswerFate, Closing, InteractionRow, Posting, QueueEntry, QueueFilter, fate};
use crate::node::Node;

/// The questions to people, the one that is due first in front.
pub(super) fn queue(connection: &Connection, filter: &QueueFilter, limit: usize) -> Result<Vec<QueueEntry>, Trouble> {
    let query = match filter.all {
        true => {
            "SELECT body, answer, closing, closed FROM interactions
             WHERE (?1 IS NULL OR queue = ?1) AND (?3 IS NULL OR tenant = ?3) ORDER BY due, id LIMIT ?2"
        }
        false => {
            "SELECT body, answer, closing, closed FROM interactions
             WHERE closed IS NULL AND answered IS NULL AND (?1 IS NULL OR queue = ?1) AND (?3 IS NULL OR tenant = ?3)
             ORDER BY due, id LIMIT ?2"
        }
    };
    let mut statement = connection.prepare_cached(query)?;
    let mut rows =
        statement.query(params![filter.queue, number(limit as u64), filter.tenant.as_ref().map(Tenant::as_str)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(read(row)?.entry());
    }
    Ok(entries)
}

/// A question as it is stored.
pub(super) fn interaction(connection: &Connection, id: &InteractionId) -> Result<Option<InteractionRow>, Trouble> {
    let mut statement =
        connection.prepare_cached("SELECT body, answer, closing, closed FROM interactions WHERE id = ?1")?;
    let mut rows = statement.query([id.as_str()])?;
    rows.next()?.map(read).transpose()
}

/// Takes an answer, if it is the first to a question that is open.
pub(super) fn answer(tx: &Connection, id: &InteractionId, answer: &PersonAnswer) -> Result<AnswerFate, Trouble> {
    let fate = fate(interaction(tx, id)?.as_ref(), answer);
    if fate == AnswerFate::Taken {
        tx.prepare_cached("UPDATE interactions SET answer = ?2, answered = ?3 WHERE id = ?1")?.execute(params![
            id.as_str(),
            write_json(answer)?,
            ms(answer.at)
        ])?;
    }
    Ok(fate)
}

/// Records how far a question is on its way to an address, if that is this node's to say.
pub(super) fn posting(
    tx: &Connection,
    node: &Node,
    id: &InteractionId,
    posting: Posting,
    now: Timestamp,
) -> Result<bool, Trouble> {
    let changed = match posting {
        Posting::Begun { until } => tx
            .prepare_cached(
                "UPDATE interactions SET posting = ?2, posting_until = ?3 WHERE id = ?1 AND closed IS NULL
                 AND posted IS NULL AND (posting IS NULL OR posting = ?2 OR posting_until <= ?4)",
            )?
            .execute(params![id.as_str(), node.id, ms(until), ms(now)])?,
        Posting::Done => tx
            .prepare_cached("UPDATE interactions SET posted = ?2 WHERE id = ?1 AND closed IS NULL AND posted IS NULL")?
            .execute(params![id.as_str(), ms(now)])?,
    };
    Ok(changed == 1)
}

/// What was answered and is not closed, the oldest answers first.
pub(super) fn answered(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<(SessionId, InteractionId, PersonAnswer)>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT session, id, answer FROM interactions
         WHERE closed IS NULL AND answered IS NOT NULL ORDER BY answered, id LIMIT ?1",
    )?;
    let mut rows = statement.query([number(limit as u64)])?;
    let mut answered = Vec::new();
    while let Some(row) = rows.next()? {
        answered.push((SessionId::new(text(row, 0)?), InteractionId::new(text(row, 1)?), read_json(text(row, 2)?)?));
    }
    Ok(answered)
}

/// Stores a new question, written beforehand.
pub(super) fn ask(tx: &Connection, asked: &Interaction, body: &str) -> Result<(), Trouble> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO interactions (id, session, queue, due, body, tenant) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        asked.id.as_str(),
        asked.session.as_str(),
        asked.queue,
        ms(asked.due),
        body,
        asked.principal.tenant().as_ref().map(Tenant::as_str)
    ])?;
    Ok(())
}

/// Marks a question of that session as over.
pub(super) fn close(
    tx: &Connection,
    session: &SessionId,
    id: &InteractionId,
    closing: Closing,
    at: Timestamp,
) -> Result<(), Trouble> {
    tx.prepare_cached(
        "UPDATE interactions SET closing = ?3, closed = ?4 WHERE id = ?1 AND session = ?2 AND closed IS NULL",
    )?
    .execute(params![id.as_str(), session.as_str(), word(&closing), ms(at)])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<InteractionRow, Trouble> {
    let answer = row.get_ref(1)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    let closing = row.get_ref(2)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    let closed = match (closing, row.get::<_, Option<i64>>(3)?) {
        (Some(closing), Some(at)) => Some((read_word(closing)?, read_ms(at)?)),
        _ => None,
    };
    Ok(InteractionRow { interaction: read_json(text(row, 0)?)?, answer: answer.map(read_json).transpose()?, closed })
}
