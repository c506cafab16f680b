//! Recording one step inside the writer's transaction.
//!
//! Everything that can be refused is looked at before the first row is written, so that a refused step leaves nothing
//! behind and the rest of the batch goes on.

use amends_core::{Digest, Interaction, Tenant};
use rusqlite::{Connection, OptionalExtension, params};

use super::reader::claim;
use super::trouble::{Trouble, ms, number, read_link, read_ms, read_number, word, write_json};
use super::{fields, questions, retire, reversals};
use crate::append::{Appended, Form, StoredAnswer};
use crate::chain::Link;
use crate::claims::{self, Left};
use crate::error::Error;
use crate::interactions::{Closing, may_close};
use crate::node::Node;
use crate::reversals::decide;
use crate::step::{FIRST_EPOCH, Place, Step};

/// Records a step.
pub(super) fn record(tx: &Connection, node: &Node, mut step: Step) -> Result<Appended, Trouble> {
    let session = step.session.clone();
    let found = tx
        .prepare_cached(
            "SELECT epoch, seq, head, updated,
                    EXISTS (SELECT 1 FROM events e WHERE e.session = s.id AND e.seq > s.seq)
             FROM sessions s WHERE id = ?1",
        )?
        .query_row([session.as_str()], |row| {
            let head = row.get_ref(2)?.as_blob().map(read_link);
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, head, row.get::<_, i64>(3)?, row.get::<_, bool>(4)?))
        })
        .optional()?;
    let (place, mut head, updated, beyond) = match found {
        None => (None, Link::genesis(&session), None, None),
        Some((epoch, seq, head, updated, beyond)) => {
            let place = Place { epoch: read_number(epoch)?, seq: read_number(seq)? };
            let head = head.map_err(rusqlite::Error::from)??;
            (Some(place), head, Some(read_ms(updated)?), Some(beyond))
        }
    };
    step.admit(place)?;
    let beyond = match beyond {
        Some(beyond) => beyond,
        None => tx.prepare_cached("SELECT 1 FROM events WHERE session = ?1 LIMIT 1")?.exists([session.as_str()])?,
    };
    if beyond {
        // Its place is taken, although the session's row says that it is free.
        let reason = format!("`{session}` has events after its end at {}", step.expected_seq);
        return Err(Error::Corrupt { reason }.into());
    }
    let at = step.at().or(updated).unwrap_or_default();
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
    for arguments in &step.arguments {
        tx.prepare_cached("INSERT OR REPLACE INTO arguments (call, body) VALUES (?1, ?2)")?
            .execute(params![arguments.call.as_str(), &arguments.body[..]])?;
    }
    step.fields.iter().try_for_each(|written| fields::keep(tx, &session, written))?;
    for call in &step.forget {
        tx.prepare_cached("DELETE FROM arguments WHERE call = ?1")?.execute([call.as_str()])?;
    }
    for (hash, body) in rules {
        tx.prepare_cached("INSERT OR IGNORE INTO rules (hash, body) VALUES (?1, ?2)")?
            .execute([hash.as_str(), &body])?;
    }
    asks.into_iter().try_for_each(|(asked, body)| questions::ask(tx, asked, &body))?;
    for (id, closing) in &step.closes {
        questions::close(tx, &session, id, *closing, at)?;
    }
    tokens.iter().try_for_each(|row| reversals::write(tx, row))?;
    write_session(tx, node, &step, head, ms(at))?;
    if step.retires {
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

fn write_session(tx: &Connection, node: &Node, step: &Step, head: Link, updated: i64) -> Result<(), Trouble> {
    let (id, seq, calls) = (step.session.as_str(), number(step.last_seq()), step.open.calls);
    let due = step.open.due.map(ms);
    if let Some(opens) = &step.opens {
        tx.prepare_cached(
            "INSERT INTO sessions (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due,
                 machine, tenant)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            id,
            opens.principal.as_str(),
            opens.door,
            node.id,
            number(FIRST_EPOCH),
            seq,
            head.bytes(),
            ms(opens.at),
            updated,
            calls,
            due,
            step.machine,
            opens.tenant.as_ref().map(Tenant::as_str)
        ])?;
    } else {
        tx.prepare_cached(
            "UPDATE sessions SET seq = ?2, head = ?3, updated = ?4, open_calls = ?5, due = ?6,
                 machine = coalesce(?7, machine) WHERE id = ?1",
        )?
        .execute(params![id, seq, head.bytes(), updated, calls, due, step.machine])?;
    }
    Ok(())
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
