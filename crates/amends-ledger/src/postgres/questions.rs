//! Questions to people in PostgreSQL.

use amends_core::{InteractionId, PersonAnswer, SessionId, Tenant, Timestamp};
use tokio_postgres::Row;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::interactions::{AnswerFate, InteractionRow, Posting, QueueEntry, QueueFilter, fate};
use crate::stored::{ms, number, read_json, read_ms, read_word, write_json};

/// The questions to people, the one that is due first in front.
pub(super) async fn queue(
    connection: &Connection,
    filter: &QueueFilter,
    limit: usize,
) -> Result<Vec<QueueEntry>, Trouble> {
    let query = match filter.all {
        true => {
            "SELECT body, answer, closing, closed FROM interactions
             WHERE ($1::text IS NULL OR queue = $1) AND ($3::text IS NULL OR tenant = $3) ORDER BY due, id LIMIT $2"
        }
        false => {
            "SELECT body, answer, closing, closed FROM interactions
             WHERE closed IS NULL AND answered IS NULL AND ($1::text IS NULL OR queue = $1)
               AND ($3::text IS NULL OR tenant = $3) ORDER BY due, id LIMIT $2"
        }
    };
    let tenant = filter.tenant.as_ref().map(Tenant::as_str);
    let rows = connection.rows(query, &[&filter.queue, &number(limit as u64), &tenant]).await?;
    rows.iter().map(|row| Ok(read(row)?.entry())).collect()
}

/// A question as it is stored.
pub(super) async fn interaction(
    connection: &Connection,
    id: &InteractionId,
) -> Result<Option<InteractionRow>, Trouble> {
    let find = "SELECT body, answer, closing, closed FROM interactions WHERE id = $1";
    connection.row(find, &[&id.as_str()]).await?.as_ref().map(read).transpose()
}

/// Takes an answer, if it is the first to a question that is open.
pub(super) async fn answer(
    connection: &Connection,
    id: &InteractionId,
    answer: &PersonAnswer,
) -> Result<AnswerFate, Trouble> {
    let find = "SELECT body, answer, closing, closed FROM interactions WHERE id = $1 FOR UPDATE";
    let row = connection.row(find, &[&id.as_str()]).await?.as_ref().map(read).transpose()?;
    let fate = fate(row.as_ref(), answer);
    if fate == AnswerFate::Taken {
        let take = "UPDATE interactions SET answer = $2, answered = $3
            WHERE id = $1 AND answered IS NULL AND closed IS NULL";
        connection.change_exactly(1, take, &[&id.as_str(), &write_json(answer)?, &ms(answer.at)]).await?;
    }
    Ok(fate)
}

/// Records how far a question is on its way to an address, if that is this node's to say.
pub(super) async fn posting(
    connection: &Connection,
    node: &str,
    id: &InteractionId,
    posting: Posting,
    now: Timestamp,
) -> Result<bool, Trouble> {
    let changed = match posting {
        Posting::Begun { until } => {
            let begin = "UPDATE interactions SET posting = $2, posting_until = $3 WHERE id = $1 AND closed IS NULL
                AND posted IS NULL AND (posting IS NULL OR posting = $2 OR posting_until <= $4)";
            connection.change(begin, &[&id.as_str(), &node, &ms(until), &ms(now)]).await?
        }
        Posting::Done => {
            let done = "UPDATE interactions SET posted = $2 WHERE id = $1 AND closed IS NULL AND posted IS NULL";
            connection.change(done, &[&id.as_str(), &ms(now)]).await?
        }
    };
    Ok(changed == 1)
}

/// What was answered and is not closed, the oldest answers first.
pub(super) async fn answered(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<(SessionId, InteractionId, PersonAnswer)>, Trouble> {
    let find = "SELECT session, id, answer FROM interactions
         WHERE closed IS NULL AND answered IS NOT NULL ORDER BY answered, id LIMIT $1";
    let rows = connection.rows(find, &[&number(limit as u64)]).await?;
    rows.iter()
        .map(|row| {
            let (session, id): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            Ok((SessionId::new(session), InteractionId::new(id), read_json(row.try_get(2)?)?))
        })
        .collect()
}

/// A question's row: its body, answer, closing, and when it was closed.
pub(super) fn read(row: &Row) -> Result<InteractionRow, Trouble> {
    let (answer, closing): (Option<&str>, Option<&str>) = (row.try_get(1)?, row.try_get(2)?);
    let closed = match (closing, row.try_get::<_, Option<i64>>(3)?) {
        (Some(closing), Some(at)) => Some((read_word(closing)?, read_ms(at)?)),
        _ => None,
    };
    let answer = answer.map(read_json).transpose()?;
    Ok(InteractionRow { interaction: read_json(row.try_get(0)?)?, answer, closed })
}
