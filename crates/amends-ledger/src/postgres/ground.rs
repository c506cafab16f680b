//! What a group of steps stands on, read and locked, and what each step leaves of it.
//!
//! Everything that can be refused is decided here, by the same functions as in every store, before a row is written. A
//! refused step leaves nothing behind, and the rest of the group goes on.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::{ClaimChange, Digest, InteractionId, SessionId, Timestamp};

use super::connection::Connection;
use super::reader::read_claim;
use super::trouble::Trouble;
use super::{questions, reversals};
use crate::append::{Appended, OpenWork};
use crate::chain::Link;
use crate::claims::{self, ClaimRow};
use crate::error::Error;
use crate::interactions::{InteractionRow, may_close};
use crate::reversals::{ReversalRow, decide, token};
use crate::step::{FIRST_EPOCH, Place, Step};
use crate::stored::{read_link, read_ms, read_number};

pub(super) const SESSIONS: &str = "SELECT id, epoch, seq, head, updated,
        EXISTS (SELECT 1 FROM events e WHERE e.session = s.id AND e.seq > s.seq)
    FROM sessions s WHERE id = ANY ($1) ORDER BY id FOR UPDATE OF s";
pub(super) const STRAYS: &str = "SELECT DISTINCT session FROM events WHERE session = ANY ($1)";
pub(super) const CLAIMS: &str = "SELECT name, kind, session, call, state, fingerprint, effect_key, since, until
    FROM claims WHERE name = ANY ($1) ORDER BY name FOR UPDATE";
pub(super) const TOKENS: &str =
    "SELECT token, session, call, state, minted, until, redeemer, place, principal, tool, arguments
    FROM reversals WHERE token = ANY ($1) ORDER BY token FOR UPDATE";

pub(super) const QUESTIONS: &str = "SELECT body, answer, closing, closed
    FROM interactions WHERE id = ANY ($1) ORDER BY id FOR UPDATE";

/// The rows that a group of steps touches, as they are and as the steps leave them.
#[derive(Debug, Default)]
pub(super) struct Ground {
    pub(super) sessions: BTreeMap<SessionId, Standing>,
    pub(super) claims: BTreeMap<Digest, Slot<ClaimRow>>,
    pub(super) tokens: BTreeMap<Digest, Slot<ReversalRow>>,
    /// The questions that the steps close.
    questions: BTreeMap<InteractionId, InteractionRow>,
    /// Sessions that should be new, and of which there are events.
    strays: BTreeSet<SessionId>,
}

/// Where a session stands.
#[derive(Debug)]
pub(super) struct Standing {
    /// Where it stood when it was read; nothing where it is opened here.
    pub(super) was: Option<Place>,
    pub(super) place: Place,
    pub(super) head: Link,
    pub(super) updated: Timestamp,
    pub(super) open: OpenWork,
    /// The machine it walks, where a step says so.
    pub(super) machine: Option<String>,
    pub(super) changed: bool,
    /// Whether events lie behind its end.
    beyond: bool,
}

/// A row as it was read, and as it is left.
#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) was: Option<T>,
    pub(super) left: Option<T>,
    pub(super) changed: bool,
}

impl<T: Clone> Slot<T> {
    fn read(row: T) -> Self {
        Self { was: Some(row.clone()), left: Some(row), changed: false }
    }
}

/// A slot of a row that was not there.
impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { was: None, left: None, changed: false }
    }
}

impl Ground {
    /// Begins a transaction, and reads and locks in it whatever the steps touch. Every node takes the same kinds of row in
    /// the same order, and the rows of a kind by their keys.
    pub(super) async fn begin(connection: &Connection, steps: &[&Step]) -> Result<Self, Trouble> {
        let (mut going_on, mut opened) = (BTreeSet::new(), BTreeSet::new());
        let (mut names, mut digests, mut closed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for step in steps {
            going_on.insert(step.session.as_str());
            if step.opens.is_some() {
                opened.insert(step.session.as_str());
            }
            names.extend(step.claims.iter().map(|change| claim_name(change).as_str()));
            digests.extend(step.reversals.iter().map(|change| token(change).as_str()));
            closed.extend(step.closes.iter().map(|(id, _)| id.as_str()));
        }
        // One round trip: each is sent when it is first polled, which is in this order.
        let (begun, sessions, strays, claims, tokens, asked) = tokio::join!(
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED"),
            rows(connection, SESSIONS, going_on),
            rows(connection, STRAYS, opened),
            rows(connection, CLAIMS, names),
            rows(connection, TOKENS, digests),
            rows(connection, QUESTIONS, closed),
        );
        begun?;
        let mut ground = Self::default();
        for row in sessions? {
            let place = Place { epoch: read_number(row.try_get(1)?)?, seq: read_number(row.try_get(2)?)? };
            let standing = Standing {
                was: Some(place),
                place,
                head: read_link(row.try_get(3)?)?,
                updated: read_ms(row.try_get(4)?)?,
                open: OpenWork::default(),
                machine: None,
                changed: false,
                beyond: row.try_get(5)?,
            };
            ground.sessions.insert(SessionId::new(row.try_get::<_, String>(0)?), standing);
        }
        for row in strays? {
            ground.strays.insert(SessionId::new(row.try_get::<_, String>(0)?));
        }
        for row in claims? {
            let claim = read_claim(&row)?;
            ground.claims.insert(claim.held.name.clone(), Slot::read(claim));
        }
        for row in tokens? {
            let token = reversals::read(&row)?;
            ground.tokens.insert(token.token.clone(), Slot::read(token));
        }
        for row in asked? {
            let question = questions::read(&row)?;
            ground.questions.insert(question.interaction.id.clone(), question);
        }
        Ok(ground)
    }

    /// Admits a step and takes over what it leaves of sessions, claims and tokens, or refuses it and stays as it is. Gives
    /// back the time of the step, and the links after each of its events.
    pub(super) fn take_in(&mut self, step: &Step) -> Result<TakenIn, Error> {
        let session = &step.session;
        let standing = self.sessions.get(session);
        step.admit(standing.map(|standing| standing.place))?;
        if standing.map_or(self.strays.contains(session), |standing| standing.beyond) {
            // Its place is taken, although the session's row says that it is free.
            let reason = format!("`{session}` has events after its end at {}", step.expected_seq);
            return Err(Error::Corrupt { reason });
        }
        let at = step.at().or(standing.map(|standing| standing.updated)).unwrap_or_default();
        for (id, closing) in &step.closes {
            may_close(self.questions.get(id), session, *closing)?;
        }
        let left_of = |name: &Digest| Ok::<_, Error>(self.claims.get(name).and_then(|slot| slot.left.clone()));
        let claims = claims::decide(step.claims.clone(), session, at, left_of)?;
        let left_of = |token: &Digest| Ok::<_, Error>(self.tokens.get(token).and_then(|slot| slot.left.clone()));
        let tokens = decide(step.reversals.clone(), step.undo.clone(), session, at, left_of)?;

        for (id, closing) in &step.closes {
            if let Some(row) = self.questions.get_mut(id).filter(|row| row.interaction.session == *session) {
                row.closed.get_or_insert((*closing, at));
            }
        }
        for (name, row) in claims {
            let slot = self.claims.entry(name).or_default();
            (slot.left, slot.changed) = (row, true);
        }
        let mut minted = Vec::new();
        for row in tokens {
            let slot = self.tokens.entry(row.token.clone()).or_default();
            if slot.left.is_none() {
                minted.push(row.token.clone());
            }
            (slot.left, slot.changed) = (Some(row), true);
        }
        let standing = self.sessions.entry(session.clone()).or_insert_with(|| Standing {
            was: None,
            place: Place { epoch: FIRST_EPOCH, seq: 0 },
            head: Link::genesis(session),
            updated: at,
            open: OpenWork::default(),
            machine: None,
            changed: true,
            beyond: false,
        });
        let before = standing.head;
        let mut links = Vec::with_capacity(step.events.len());
        for event in &step.events {
            standing.head = standing.head.next(event.body.as_bytes());
            links.push(standing.head);
        }
        standing.place.seq = step.last_seq();
        (standing.updated, standing.open, standing.changed) = (at, step.open, true);
        if step.machine.is_some() {
            standing.machine.clone_from(&step.machine);
        }
        let appended = Appended { seq: step.last_seq(), head: standing.head.hex() };
        Ok(TakenIn { appended, at, before, links, minted })
    }
}

/// What a step that was taken in adds.
#[derive(Debug)]
pub(super) struct TakenIn {
    pub(super) appended: Appended,
    /// When it happened.
    pub(super) at: Timestamp,
    /// The link before its first event.
    pub(super) before: Link,
    /// The link after each of its events.
    pub(super) links: Vec<Link>,
    /// The tokens that are new with it, in their order.
    pub(super) minted: Vec<Digest>,
}

async fn rows(
    connection: &Connection,
    sql: &'static str,
    keys: BTreeSet<&str>,
) -> Result<Vec<tokio_postgres::Row>, Trouble> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    connection.rows(sql, &[&keys.into_iter().collect::<Vec<_>>()]).await
}

fn claim_name(change: &ClaimChange) -> &Digest {
    match change {
        ClaimChange::Take { claim, .. } => &claim.name,
        ClaimChange::Settle { name, .. }
        | ClaimChange::Grant { name, .. }
        | ClaimChange::Absent { name }
        | ClaimChange::Release { name, .. } => name,
    }
}
