//! Sessions: found, listed, and told event by event.

use std::sync::Arc;

use amends_core::{Fact, Principal, SessionId, Tenant};
use amends_ledger::{SessionRow, Trace, chain};
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::Fields;
use super::problem::Problem;
use crate::gateway::Gateway;
use crate::identity::Person;
use crate::told;

/// How many of the newest sessions are looked at for one page.
const LOOKED_AT_MAX: usize = 5000;
/// How many events are given out at once.
const EVENTS_MAX: u64 = 2000;

/// A session in a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SessionLine {
    pub(crate) session: String,
    pub(crate) principal: String,
    pub(crate) door: String,
    pub(crate) opened: u64,
    pub(crate) updated: u64,
    pub(crate) events: u64,
    pub(crate) open_calls: u32,
    pub(crate) retired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// What to ask for to see more; nothing where there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// How many sessions were looked at.
    pub(crate) looked_at: usize,
}

/// Which sessions are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) search: Option<String>,
    pub(crate) door: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) open: bool,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

impl Wanted {
    pub(crate) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            search: fields.text("search")?,
            door: fields.text("door")?,
            principal: fields.text("principal")?,
            machine: fields.text("machine")?,
            open: fields.flag("open")?,
            after: fields.text("after")?,
            limit: usize::try_from(fields.number("limit", 50, 1, 200)?).unwrap_or(200),
        })
    }

    fn is_any(&self) -> bool {
        self.search.is_none()
            && self.door.is_none()
            && self.principal.is_none()
            && self.machine.is_none()
            && !self.open
            && self.after.is_none()
    }

    fn takes(&self, row: &SessionRow) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let machine = row.machine.as_deref().unwrap_or("");
        let holds = |text: &str| {
            [row.session.as_str(), row.principal.as_str(), &row.door, machine].iter().any(|found| found.contains(text))
        };
        is(&self.door, &row.door)
            && is(&self.principal, row.principal.as_str())
            && is(&self.machine, machine)
            && (!self.open || row.open_calls > 0)
            && self.search.as_deref().is_none_or(holds)
    }
}

/// Whether somebody may see that session.
pub(crate) fn sees(person: &Person, row: &SessionRow) -> bool {
    person.sees(&row.principal)
}

/// The newest sessions first.
pub(crate) async fn list(
    gateway: &Arc<Gateway>,
    person: &Person,
    wanted: &Wanted,
) -> Result<Page<SessionLine>, Problem> {
    let at_once = if wanted.is_any() { wanted.limit + 1 } else { LOOKED_AT_MAX };
    let rows = match &person.tenant {
        Some(tenant) => gateway.ledger.sessions_of(&Tenant::new(tenant.as_str()), at_once).await?,
        None => gateway.ledger.sessions(at_once).await?,
    };
    let looked_at = rows.len();
    let begin = match &wanted.after {
        None => 0,
        Some(after) => match rows.iter().position(|row| row.session.as_str() == after) {
            Some(place) => place + 1,
            None => return Err(Problem::field("after", "no such session is among those that are looked at")),
        },
    };
    let found = rows[begin..].iter().filter(|row| sees(person, row) && wanted.takes(row));
    let mut items: Vec<SessionLine> = found.take(wanted.limit + 1).map(line).collect();
    let more = items.len() > wanted.limit;
    items.truncate(wanted.limit);
    let next = items.last().filter(|_| more).map(|last| last.session.clone());
    Ok(Page { items, next, looked_at })
}

fn line(row: &SessionRow) -> SessionLine {
    SessionLine {
        session: row.session.to_string(),
        principal: row.principal.to_string(),
        door: row.door.clone(),
        opened: row.opened.ms(),
        updated: row.updated.ms(),
        events: row.events,
        open_calls: row.open_calls,
        retired: row.cut > 0,
        machine: row.machine.clone(),
    }
}

/// A session's trace, for somebody who may see it.
pub(crate) async fn trace(gateway: &Arc<Gateway>, person: &Person, id: &str) -> Result<Trace, Problem> {
    let found = gateway.ledger.trace(&SessionId::new(id)).await?;
    found
        .filter(|trace| owner(trace).is_some_and(|owner| person.sees(owner)))
        .ok_or_else(|| Problem::not_found("session"))
}

/// Whose a session is.
fn owner(trace: &Trace) -> Option<&Principal> {
    match &trace.events.first()?.event.fact {
        Fact::SessionOpened { principal, .. } | Fact::SessionRetired { principal, .. } => Some(principal),
        _ => None,
    }
}

/// A session, event by event: what `amends trace --json` shows, with each event in words.
pub(crate) fn told_of(trace: &Trace, fields: &mut Fields) -> Result<Value, Problem> {
    let from = fields.number("from", 1, 1, u64::MAX)?;
    let limit = fields.number("limit", 500, 1, EVENTS_MAX)?;
    let events = trace.events.iter().filter(|stored| stored.event.seq >= from);
    let events: Vec<Value> = events.take(usize::try_from(limit).unwrap_or(0)).map(told_event).collect();
    Ok(json!({
        "session": trace.session,
        "cut": trace.cut,
        "last": trace.events.last().map_or(0, |stored| stored.event.seq),
        "retries": trace.events.iter().filter(|stored| stored.event.fact.is_retry()).count(),
        "events": events,
    }))
}

/// An event as it is recorded, with its hash and in words.
pub(crate) fn told_event(stored: &amends_ledger::StoredEvent) -> Value {
    let mut event = serde_json::to_value(&stored.event).unwrap_or_default();
    event["hash"] = json!(stored.hash);
    event["words"] = json!(told::sentence(&stored.event).1);
    event
}

/// The links of a session's chain with the bytes they were made from, so that whoever doubts them can make them again.
pub(crate) fn links(trace: &Trace, fields: &mut Fields) -> Result<Value, Problem> {
    let from = fields.number("from", trace.cut + 1, 1, u64::MAX)?;
    let limit = usize::try_from(fields.number("limit", EVENTS_MAX, 1, EVENTS_MAX)?).unwrap_or(0);
    let begin = trace.events.iter().position(|stored| stored.event.seq >= from).unwrap_or(trace.events.len());
    let before = match begin.checked_sub(1) {
        Some(last) => Some(trace.events[last].hash.clone()),
        None if trace.cut > 0 => trace.cut_link.clone(),
        None => Some(chain::Link::genesis(&trace.session).hex()),
    };
    let mut links = Vec::new();
    for stored in trace.events[begin..].iter().take(limit) {
        let body = chain::canonical(&stored.event)?;
        links.push(json!({ "seq": stored.event.seq, "body": body, "hash": stored.hash }));
    }
    Ok(json!({ "session": trace.session, "cut": trace.cut, "before": before, "links": links }))
}
