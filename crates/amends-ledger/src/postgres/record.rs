//! Writing a group of steps inside one transaction, a statement for each table.

use std::collections::BTreeMap;

use amends_core::{CallId, Digest, Interaction, InteractionId, SessionId, Tenant, Timestamp};

use super::columns::{Claims, Sessions, Tokens, form};
use super::connection::{Connection, Value};
use super::ground::{Ground, TakenIn};
use super::trouble::Trouble;
use crate::append::{Appended, StoredAnswer};
use crate::chain::Link;
use crate::error::Error;
use crate::interactions::Closing;
use crate::node::Node;
use crate::step::{Opens, Step, Written};
use crate::stored::{ms, number, word, write_json};

const EVENTS: &str = "INSERT INTO events (session, seq, at, kind, call, body, hash)
    SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bytea[])";
const CALLS: &str = "INSERT INTO calls (call, session) SELECT * FROM UNNEST($1::text[], $2::text[])
    ON CONFLICT (call) DO NOTHING";
const OPEN: &str = "INSERT INTO sessions
        (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due, machine, tenant)
    SELECT u.id, u.principal, u.door, $14::text, u.epoch, u.seq, u.head, u.opened, u.updated, u.calls, u.due,
           u.machine, u.tenant
    FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[])
      AS u (id, was, seq, head, updated, calls, due, machine, principal, door, tenant, opened, epoch)
    ON CONFLICT (id) DO NOTHING";
const GO_ON: &str = "UPDATE sessions s
    SET seq = u.seq, head = u.head, updated = u.updated, open_calls = u.calls, due = u.due,
        machine = coalesce(u.machine, s.machine)
    FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::text[], $9::bigint[])
      AS u (id, was, seq, head, updated, calls, due, machine, epoch)
    WHERE s.id = u.id AND s.epoch = u.epoch AND s.seq = u.was";
const TAKE_CLAIMS: &str = "INSERT INTO claims
        (name, kind, session, call, state, fingerprint, effect_key, since, until)
    SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                         $8::bigint[], $9::bigint[])
    ON CONFLICT (name) DO NOTHING";
const CHANGE_CLAIMS: &str = "UPDATE claims c
    SET kind = u.kind, session = u.session, call = u.call, state = u.state, fingerprint = u.fingerprint,
        effect_key = u.effect_key, since = u.since, until = u.until
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::bigint[], $10::text[])
      AS u (name, kind, session, call, state, fingerprint, effect_key, since, until, holder)
    WHERE c.name = u.name AND c.call = u.holder";
const RELEASE_CLAIMS: &str = "DELETE FROM claims c USING UNNEST($1::text[], $2::text[]) AS u (name, holder)
    WHERE c.name = u.name AND c.call = u.holder";
const ANSWERS: &str = "INSERT INTO answers (call, outcome, certainty, form, body, until)
    SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
    ON CONFLICT (call) DO UPDATE SET outcome = excluded.outcome, certainty = excluded.certainty,
        form = excluded.form, body = excluded.body, until = excluded.until";
const ARGUMENTS: &str = "INSERT INTO arguments (call, body) SELECT * FROM UNNEST($1::text[], $2::bytea[])
    ON CONFLICT (call) DO UPDATE SET body = excluded.body";
const FORGET: &str = "DELETE FROM arguments WHERE call = ANY ($1)";
const RULES: &str = "INSERT INTO rules (hash, body) SELECT * FROM UNNEST($1::text[], $2::text[])
    ON CONFLICT (hash) DO NOTHING";
const ASK: &str = "INSERT INTO interactions (id, session, queue, due, body, tenant)
    SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[])
    ON CONFLICT (id) DO NOTHING";
const CLOSE: &str = "UPDATE interactions i SET closing = u.closing, closed = u.closed
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[]) AS u (id, session, closing, closed)
    WHERE i.id = u.id AND i.session = u.session AND i.closed IS NULL";
const MINT: &str = "INSERT INTO reversals
        (token, session, call, state, minted, until, redeemer, place, principal, tool, arguments,
         minted_seq, minted_nth)
    SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
                         $8::text[], $9::text[], $10::text[], $11::bytea[], $12::bigint[], $13::bigint[])
    ON CONFLICT (token) DO NOTHING";
const CHANGE_TOKENS: &str = "UPDATE reversals r
    SET state = u.state, until = u.until, redeemer = u.redeemer,
        place = u.place, principal = u.principal, tool = u.tool, arguments = u.arguments
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
                $8::text[], $9::text[], $10::text[], $11::bytea[])
      AS u (token, session, call, state, minted, until, redeemer, place, principal, tool, arguments)
    WHERE r.token = u.token";

/// What is prepared before the first group, so that the statements of a group are sent behind each other.
pub(super) const STATEMENTS: [&str; 21] = [
    super::ground::SESSIONS,
    super::ground::STRAYS,
    super::ground::CLAIMS,
    super::ground::TOKENS,
    super::ground::QUESTIONS,
    EVENTS,
    CALLS,
    OPEN,
    GO_ON,
    TAKE_CLAIMS,
    CHANGE_CLAIMS,
    RELEASE_CLAIMS,
    ANSWERS,
    ARGUMENTS,
    FORGET,
    super::fields::KEEP,
    RULES,
    ASK,
    CLOSE,
    MINT,
    CHANGE_TOKENS,
];

/// Begins a transaction, records a group of steps in it, and says what becomes of each once it is committed.
pub(super) async fn record(
    connection: &Connection,
    node: &Node,
    steps: &[&Step],
) -> Result<Vec<Result<Appended, Error>>, Trouble> {
    let mut ground = Ground::begin(connection, steps).await?;
    let mut page = Page::default();
    let mut fates = Vec::with_capacity(steps.len());
    for step in steps {
        fates.push(match page.beside(step) {
            Ok(beside) => ground.take_in(step).map(|taken| page.add(step, taken, beside)),
            Err(error) => Err(error),
        });
    }
    if fates.iter().any(Result::is_ok) {
        page.write(connection, node, &ground).await?;
    }
    Ok(fates)
}

/// What the steps of a group add beside the rows they stand on.
#[derive(Default)]
struct Page<'a> {
    events: Vec<(&'a SessionId, &'a Written, Link)>,
    calls: BTreeMap<&'a CallId, &'a SessionId>,
    opened: BTreeMap<&'a SessionId, &'a Opens>,
    answers: BTreeMap<&'a CallId, &'a StoredAnswer>,
    /// Nothing where they are forgotten.
    arguments: BTreeMap<&'a CallId, Option<&'a [u8]>>,
    fields: BTreeMap<(&'a SessionId, u64), &'a [u8]>,
    rules: BTreeMap<&'a Digest, String>,
    asks: BTreeMap<&'a InteractionId, (&'a Interaction, String)>,
    closes: BTreeMap<&'a InteractionId, (&'a SessionId, Closing, Timestamp)>,
    /// Where in its session a token that is new was minted.
    minted: BTreeMap<Digest, (u64, u64)>,
    /// Sessions of which everything before an event is dropped: that event, and the link before it.
    retired: BTreeMap<&'a SessionId, (u64, Link)>,
}

/// What of a step has to be written as JSON, which may fail.
struct Beside {
    rules: Vec<String>,
    asks: Vec<String>,
}

impl<'a> Page<'a> {
    fn beside(&self, step: &Step) -> Result<Beside, Error> {
        let rules = step.rules.iter().map(|(_, rules)| write_json(&**rules)).collect::<Result<_, _>>()?;
        Ok(Beside { rules, asks: step.asks.iter().map(write_json).collect::<Result<_, _>>()? })
    }

    fn add(&mut self, step: &'a Step, taken: TakenIn, beside: Beside) -> Appended {
        let session = &step.session;
        let TakenIn { appended, at, before, links, minted } = taken;
        if step.retires {
            let link = links.len().checked_sub(2).map_or(before, |index| links[index]);
            self.retired.insert(session, (step.last_seq(), link));
        }
        self.events.extend(step.events.iter().zip(links).map(|(event, link)| (session, event, link)));
        for call in step.received() {
            self.calls.entry(call).or_insert(session);
        }
        if let Some(opens) = &step.opens {
            self.opened.insert(session, opens);
        }
        self.answers.extend(step.answers.iter().map(|answer| (&answer.call, answer)));
        self.arguments.extend(step.arguments.iter().map(|kept| (&kept.call, Some(&kept.body[..]))));
        self.fields.extend(step.fields.iter().map(|written| ((session, written.seq), &written.body[..])));
        self.arguments.extend(step.forget.iter().map(|call| (call, None)));
        for ((hash, _), body) in step.rules.iter().zip(beside.rules) {
            self.rules.entry(hash).or_insert(body);
        }
        for (asked, body) in step.asks.iter().zip(beside.asks) {
            self.asks.entry(&asked.id).or_insert((asked, body));
        }
        for (id, closing) in &step.closes {
            self.closes.entry(id).or_insert((session, *closing, at));
        }
        self.minted.extend(minted.into_iter().zip((0..).map(|nth| (step.last_seq(), nth))));
        appended
    }

    async fn write(&self, connection: &Connection, node: &Node, ground: &Ground) -> Result<(), Trouble> {
        // One round trip. The rows that others may want as well come first, each kind by its keys.
        let (opened, gone_on, claims, tokens, events, payloads, fields, questions) = tokio::join!(
            self.open_sessions(connection, node, ground),
            go_on(connection, ground),
            write_claims(connection, ground),
            self.write_tokens(connection, ground),
            self.write_events(connection),
            self.write_payloads(connection),
            self.write_fields(connection),
            self.write_questions(connection),
        );
        opened?;
        gone_on?;
        claims?;
        tokens?;
        events?;
        payloads?;
        fields?;
        questions?;
        for (session, (kept, link)) in &self.retired {
            retire(connection, session, *kept, link).await?;
        }
        Ok(())
    }

    async fn open_sessions(&self, connection: &Connection, node: &Node, ground: &Ground) -> Result<(), Trouble> {
        let rows = Sessions::of(ground, true);
        let opens: Vec<&Opens> =
            rows.ids.iter().filter_map(|id| self.opened.get(&SessionId::new(*id)).copied()).collect();
        let principals: Vec<&str> = opens.iter().map(|opens| opens.principal.as_str()).collect();
        let doors: Vec<&str> = opens.iter().map(|opens| opens.door.as_str()).collect();
        let tenants: Vec<Option<&str>> = opens.iter().map(|opens| opens.tenant.as_ref().map(Tenant::as_str)).collect();
        let opened: Vec<i64> = opens.iter().map(|opens| ms(opens.at)).collect();
        let mut values = rows.values();
        values.extend([&principals as Value<'_>, &doors, &tenants, &opened, &rows.epochs, &node.id]);
        connection.change_exactly(rows.ids.len(), OPEN, &values).await
    }

    async fn write_events(&self, connection: &Connection) -> Result<(), Trouble> {
        let sessions: Vec<&str> = self.events.iter().map(|(session, ..)| session.as_str()).collect();
        let seqs: Vec<i64> = self.events.iter().map(|(_, event, _)| number(event.seq)).collect();
        let ats: Vec<i64> = self.events.iter().map(|(_, event, _)| ms(event.at)).collect();
        let kinds: Vec<&str> = self.events.iter().map(|(_, event, _)| event.kind).collect();
        let calls: Vec<Option<&str>> =
            self.events.iter().map(|(_, event, _)| event.call.as_ref().map(CallId::as_str)).collect();
        let bodies: Vec<&str> = self.events.iter().map(|(_, event, _)| event.body.as_str()).collect();
        let hashes: Vec<&[u8]> = self.events.iter().map(|(_, _, link)| &link.bytes()[..]).collect();
        let begun: Vec<&str> = self.calls.keys().map(|call| call.as_str()).collect();
        let begun_in: Vec<&str> = self.calls.values().map(|session| session.as_str()).collect();
        let events_values: [Value<'_>; 7] = [&sessions, &seqs, &ats, &kinds, &calls, &bodies, &hashes];
        let calls_values: [Value<'_>; 2] = [&begun, &begun_in];
        let (events, calls) = tokio::join!(
            connection.change_exactly(seqs.len(), EVENTS, &events_values),
            change(connection, begun.len(), CALLS, &calls_values),
        );
        events.and(calls)
    }

    async fn write_payloads(&self, connection: &Connection) -> Result<(), Trouble> {
        let calls: Vec<&str> = self.answers.keys().map(|call| call.as_str()).collect();
        let outcomes: Vec<&str> = self.answers.values().map(|answer| answer.outcome.as_str()).collect();
        let certainties: Vec<&str> = self.answers.values().map(|answer| answer.certainty.as_str()).collect();
        let forms: Vec<&str> = self.answers.values().map(|answer| form(answer.form)).collect();
        let bodies: Vec<&[u8]> = self.answers.values().map(|answer| &answer.body[..]).collect();
        let untils: Vec<i64> = self.answers.values().map(|answer| ms(answer.until)).collect();
        let kept = self.arguments.iter().filter_map(|(call, body)| Some((call.as_str(), (*body)?)));
        let (kept_calls, kept_bodies): (Vec<&str>, Vec<&[u8]>) = kept.unzip();
        let forgotten: Vec<&str> =
            self.arguments.iter().filter(|(_, body)| body.is_none()).map(|(call, _)| call.as_str()).collect();
        let hashes: Vec<&str> = self.rules.keys().map(|hash| hash.as_str()).collect();
        let rules: Vec<&str> = self.rules.values().map(String::as_str).collect();
        let answers_values: [Value<'_>; 6] = [&calls, &outcomes, &certainties, &forms, &bodies, &untils];
        let arguments_values: [Value<'_>; 2] = [&kept_calls, &kept_bodies];
        let forget_values: [Value<'_>; 1] = [&forgotten];
        let rules_values: [Value<'_>; 2] = [&hashes, &rules];
        let (answers, arguments, forget, rules) = tokio::join!(
            change(connection, calls.len(), ANSWERS, &answers_values),
            change(connection, kept_calls.len(), ARGUMENTS, &arguments_values),
            change(connection, forgotten.len(), FORGET, &forget_values),
            change(connection, hashes.len(), RULES, &rules_values),
        );
        answers.and(arguments).and(forget).and(rules)
    }

    async fn write_fields(&self, connection: &Connection) -> Result<(), Trouble> {
        let sessions: Vec<&str> = self.fields.keys().map(|(session, _)| session.as_str()).collect();
        let seqs: Vec<i64> = self.fields.keys().map(|(_, seq)| number(*seq)).collect();
        let bodies: Vec<&[u8]> = self.fields.values().copied().collect();
        change(connection, seqs.len(), super::fields::KEEP, &[&sessions, &seqs, &bodies]).await
    }

    async fn write_questions(&self, connection: &Connection) -> Result<(), Trouble> {
        let ids: Vec<&str> = self.asks.keys().map(|id| id.as_str()).collect();
        let sessions: Vec<&str> = self.asks.values().map(|(asked, _)| asked.session.as_str()).collect();
        let queues: Vec<&str> = self.asks.values().map(|(asked, _)| asked.queue.as_str()).collect();
        let dues: Vec<i64> = self.asks.values().map(|(asked, _)| ms(asked.due)).collect();
        let bodies: Vec<&str> = self.asks.values().map(|(_, body)| body.as_str()).collect();
        let tenants: Vec<Option<String>> =
            self.asks.values().map(|(asked, _)| asked.principal.tenant().map(|tenant| tenant.to_string())).collect();
        let closed: Vec<&str> = self.closes.keys().map(|id| id.as_str()).collect();
        let closed_in: Vec<&str> = self.closes.values().map(|(session, ..)| session.as_str()).collect();
        let closings: Vec<String> = self.closes.values().map(|(_, closing, _)| word(closing)).collect();
        let closed_at: Vec<i64> = self.closes.values().map(|(.., at)| ms(*at)).collect();
        let ask_values: [Value<'_>; 6] = [&ids, &sessions, &queues, &dues, &bodies, &tenants];
        let close_values: [Value<'_>; 4] = [&closed, &closed_in, &closings, &closed_at];
        let (asked, closed) = tokio::join!(
            change(connection, ids.len(), ASK, &ask_values),
            change(connection, closed.len(), CLOSE, &close_values),
        );
        asked.and(closed)
    }

    async fn write_tokens(&self, connection: &Connection, ground: &Ground) -> Result<(), Trouble> {
        let (new, old) = (Tokens::of(ground, true), Tokens::of(ground, false));
        let places = new.rows.iter().map(|row| self.minted.get(&row.token).copied().unwrap_or_default());
        let (seqs, nths): (Vec<i64>, Vec<i64>) = places.map(|(seq, nth)| (number(seq), number(nth))).unzip();
        let mut new_values = new.values();
        new_values.extend([&seqs as Value<'_>, &nths]);
        let old_values = old.values();
        let (minted, changed) = tokio::join!(
            connection.change_exactly(new.rows.len(), MINT, &new_values),
            connection.change_exactly(old.rows.len(), CHANGE_TOKENS, &old_values),
        );
        minted.and(changed)
    }
}

/// Moves the sessions on that were there, if each still stands where it was read.
async fn go_on(connection: &Connection, ground: &Ground) -> Result<(), Trouble> {
    let rows = Sessions::of(ground, false);
    let mut values = rows.values();
    values.push(&rows.epochs);
    connection.change_exactly(rows.ids.len(), GO_ON, &values).await
}

async fn write_claims(connection: &Connection, ground: &Ground) -> Result<(), Trouble> {
    let (taken, changed) = (Claims::of(ground, true), Claims::of(ground, false));
    let taken_values = taken.values();
    let mut changed_values = changed.values();
    changed_values.push(&changed.holders);
    let over = ground.claims.iter().filter(|(_, slot)| slot.changed && slot.left.is_none());
    let over = over.filter_map(|(name, slot)| Some((name.as_str(), slot.was.as_ref()?.held.call.as_str())));
    let (names, holders): (Vec<&str>, Vec<&str>) = over.unzip();
    let released_values: [Value<'_>; 2] = [&names, &holders];
    let (taken, changed, released) = tokio::join!(
        connection.change_exactly(taken.names.len(), TAKE_CLAIMS, &taken_values),
        connection.change_exactly(changed.names.len(), CHANGE_CLAIMS, &changed_values),
        connection.change_exactly(names.len(), RELEASE_CLAIMS, &released_values),
    );
    taken.and(changed).and(released)
}

/// Drops everything of a session before that event, payloads included. A step that retires is the last of its group.
/// Claims stay: they hold digests only, and a repeat that found none would be sent once more.
async fn retire(connection: &Connection, session: &SessionId, kept: u64, link: &Link) -> Result<(), Trouble> {
    let session = session.as_str();
    let cut = number(kept.saturating_sub(1));
    connection.change("DELETE FROM events WHERE session = $1 AND seq <= $2", &[&session, &cut]).await?;
    let mark = "UPDATE sessions SET cut = $2, cut_link = $3 WHERE id = $1";
    connection.change_exactly(1, mark, &[&session, &cut, &&link.bytes()[..]]).await?;
    for drop in [
        "DELETE FROM answers WHERE call IN (SELECT call FROM calls WHERE session = $1)",
        "DELETE FROM arguments WHERE call IN (SELECT call FROM calls WHERE session = $1)",
        "DELETE FROM fields WHERE session = $1",
        "DELETE FROM interactions WHERE session = $1",
        "DELETE FROM letters WHERE session = $1 AND replied IS NOT NULL",
        "UPDATE reversals SET place = NULL, principal = NULL, tool = NULL, arguments = NULL WHERE session = $1",
    ] {
        connection.change(drop, &[&session]).await?;
    }
    Ok(())
}

/// Changes rows, however many.
async fn change(connection: &Connection, given: usize, sql: &'static str, values: &[Value<'_>]) -> Result<(), Trouble> {
    if given > 0 {
        connection.change(sql, values).await?;
    }
    Ok(())
}
