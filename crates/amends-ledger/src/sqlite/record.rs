//! Recording one step inside the writer's transaction.
//!
//! Everything that can be refused is looked at before the first row is written, so that a refused step leaves nothing
//! behind and the rest of the batch goes on.

use amends_core::{Digest, Interaction};
use rusqlite::{Connection, params};

use super::batch::Batch;
use super::reader::claim;
use super::trouble::{Trouble, ms, number, word, write_json};
use super::{fields, questions, retire, reversals};
use crate::append::{Appended, Form, StoredAnswer};
use crate::chain::Link;
use crate::claims::{self, Left};
use crate::error::Error;
use crate::interactions::{Closing, may_close};
use crate::node::Node;
use crate::reversals::decide;
use crate::step::Step;

/// Records a step. Its session's row and its arguments are left to the batch.
pub(super) fn record(tx: &Connection, node: &Node, batch: &mut Batch, mut step: Step) -> Result<Appended, Trouble> {
    let session = step.session.clone();
    let found = batch.standing(tx, &session)?;
    step.admit(found.map(|standing| standing.place))?;
    batch.has_room(tx, &session)?;
    let mut head = found.map_or_else(|| Link::genesis(&session), |standing| standing.head);
    let at = step.at().or(found.map(|standing| standing.updated)).unwrap_or_default();
    let changes = std::mem::take(&mut step.claims);
    let left = claims::decide(changes, &session, at, |name| claim(tx, name))?;
    let (changes, undo) = (std::mem::take(&mut step.reversals), std::mem::take(&mut step.undo));
    let tokens = decide(changes, undo, &session, at, |token| reversals::reversal(tx, token))?;
    for (id, closing) in step.closes.iter().filter(|(_, closing)| *closing == Closing::Lapsed) {
        may_close(questions::interaction(tx, id)?.as_ref(), &session, *closing)?;
    }
    let rules = new_rules(tx, &step)?;
    let asks = written(&step.asks)?;

    let mut insert = tx.prepare_cached(
        "INSERT INTO events (session, seq, at, kind, call, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut before = head;
    for event in &step.events {
        before = head;
        head = head.next(event.body.as_bytes());
        let call = event.call.as_ref().map(|call| call.as_str());
        insert.execute(params![
            session.as_str(),
            number(event.seq),
            ms(event.at),
            event.kind,
            call,
            event.body,
            head.bytes()
        ])?;
    }
    for call in step.received() {
        tx.prepare_cached("INSERT OR IGNORE INTO calls (call, session) VALUES (?1, ?2)")?
            .execute([call.as_str(), session.as_str()])?;
    }
    left.into_iter().try_for_each(|left| write_claim(tx, left))?;
    step.answers.iter().try_for_each(|answer| write_answer(tx, answer))?;
    step.arguments.iter().for_each(|arguments| batch.keep(arguments));
    step.fields.iter().try_for_each(|written| fields::keep(tx, &session, written))?;
    step.forget.iter().try_for_each(|call| batch.forget(tx, call))?;
    for (hash, body) in rules {
        tx.prepare_cached("INSERT OR IGNORE INTO rules (hash, body) VALUES (?1, ?2)")?
            .execute([hash.as_str(), &body])?;
    }
    asks.into_iter().try_for_each(|(asked, body)| questions::ask(tx, asked, &body))?;
    for (id, closing) in &step.closes {
        questions::close(tx, &session, id, *closing, at)?;
    }
    tokens.iter().try_for_each(|row| reversals::write(tx, row))?;
    batch.leave(&mut step, head, at);
    if step.retires {
        batch.write(tx, node)?;
        retire::drop_earlier(tx, &session, step.last_seq(), before)?;
    }
    Ok(Appended { seq: step.last_seq(), head: head.hex() })
}

/// The rules of a step that are not stored yet.
fn new_rules<'a>(tx: &Connection, step: &'a Step) -> Result<Vec<(&'a Digest, String)>, Trouble> {
    let mut new = Vec::new();
    for (hash, rules) in &step.rules {
        if !tx.prepare_cached("SELECT 1 FROM rules WHERE hash = ?1")?.exists([hash.as_str()])? {
            let body = serde_json::to_string(&**rules)
                .map_err(|error| Error::Corrupt { reason: format!("rules cannot be written: {error}") })?;
            new.push((hash, body));
        }
    }
    Ok(new)
}

/// The questions of a step, each with the body that is stored.
fn written(asks: &[Interaction]) -> Result<Vec<(&Interaction, String)>, Error> {
    asks.iter().map(|asked| Ok((asked, write_json(asked)?))).collect()
}

fn write_claim(tx: &Connection, (name, row): Left) -> Result<(), Trouble> {
    let Some(row) = row else {
        tx.prepare_cached("DELETE FROM claims WHERE name = ?1")?.execute([name.as_str()])?;
        return Ok(());
    };
    tx.prepare_cached(
        "INSERT OR REPLACE INTO claims (name, kind, session, call, state, fingerprint, effect_key, since, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        name.as_str(),
        word(&row.kind),
        row.held.session.as_str(),
        row.held.call.as_str(),
        word(&row.held.state),
        row.held.fingerprint.as_str(),
        row.held.effect_key,
        ms(row.held.since),
        row.until.map(ms)
    ])?;
    Ok(())
}

fn write_answer(tx: &Connection, answer: &StoredAnswer) -> Result<(), Trouble> {
    let form = match answer.form {
        Form::Forward => "forward",
        Form::Envelope => "envelope",
        Form::Asked => "asked",
    };
    tx.prepare_cached(
        "INSERT OR REPLACE INTO answers (call, outcome, certainty, form, body, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        answer.call.as_str(),
        answer.outcome.as_str(),
        answer.certainty.as_str(),
        form,
        &answer.body[..],
        ms(answer.until)
    ])?;
    Ok(())
}
