//! A task as its trace tells it. Nothing of it is kept here: whichever process is asked says the same.

use std::sync::Arc;

use amends_core::envelope::{Body, Trouble as CoreTrouble};
use amends_core::{CallId, Envelope, Interaction, Principal, Refusal, RefusalKind, SessionId, Timestamp};
use amends_ledger::{Form, StoredAnswer, Trace};
use amends_wire::a2a::reply::{self, Part};
use amends_wire::a2a::{Life, Refused, State, TaskView, Trouble, life};
use amends_wire::mcp::InputRequired;
use amends_wire::mcp::steps::{Moved, filled};
use amends_wire::splice::Splice;
use serde_json::json;
use serde_json::value::RawValue;

use super::{DOOR, unavailable};
use crate::config::Config;
use crate::door::walk;
use crate::driver;
use crate::gateway::Gateway;
use crate::told::utc;
use crate::walks;

/// A task's name: the session of its call, or a walk and one move of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskId {
    pub(super) session: SessionId,
    pub(super) call: Option<CallId>,
}

/// A task as it is seen now.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) id: TaskId,
    pub(super) view: TaskView,
    pub(super) call: CallId,
    /// Whether its call has ended, though a person may still be asked what became of it.
    pub(super) ended: bool,
    /// What a person is asked about it.
    pub(super) asks: Option<Interaction>,
    /// What its upstream asks of the agent, with the state to come back with.
    pub(super) asked: Option<InputRequired>,
    /// Since when it is what it is.
    pub(super) since: Timestamp,
    /// The place of the last event that was looked at.
    pub(super) seq: u64,
    /// Whether it is told by what became of the call or move that it repeats.
    pub(super) elsewhere: bool,
}

impl TaskId {
    pub(super) fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((session, call)) => Self { session: SessionId::new(session), call: Some(CallId::new(call)) },
            None => Self { session: SessionId::new(text), call: None },
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.call {
            Some(call) => format!("{}.{call}", self.session),
            None => self.session.to_string(),
        }
    }

    /// The error that says that there is no such task, or that it is another's: which of both is not said.
    pub(super) fn unknown(&self) -> Refused {
        let text: String = self.text().chars().take(128).collect();
        Refused::of(Trouble::TaskNotFound, format!("there is no task `{text}` of yours")).with("task", text)
    }
}

/// Looks at a task; nothing where there is none, or it is another's.
pub(super) async fn look(gateway: &Arc<Gateway>, who: &Principal, id: &TaskId) -> Result<Option<Seen>, Refused> {
    let trace = gateway.ledger.trace(&id.session).await.map_err(|error| unavailable(&error))?;
    match trace {
        Some(trace) => seen(gateway, who, id, &trace).await,
        None => Ok(None),
    }
}

/// What a task went through since it was last seen, each state once; nothing where it is not there any more.
pub(super) async fn changes(
    gateway: &Arc<Gateway>,
    who: &Principal,
    last: &Seen,
) -> Result<Option<Vec<Seen>>, Refused> {
    let trace = gateway.ledger.trace(&last.id.session).await.map_err(|error| unavailable(&error))?;
    let Some(trace) = trace else { return Ok(None) };
    let Some(now) = seen(gateway, who, &last.id, &trace).await? else { return Ok(None) };
    let is_other = |a: &Seen, b: &Seen| a.view.state != b.view.state || a.view.since != b.view.since;
    if !is_other(&now, last) {
        return Ok(Some(Vec::new()));
    }
    let config = gateway.config();
    let mut through: Vec<Seen> = Vec::new();
    // What another call's trace tells is told as it is now. So is the end, for which what was kept is needed.
    if !now.elsewhere && !last.elsewhere {
        let news = trace.events.iter().position(|stored| stored.event.seq > last.seq).unwrap_or(trace.events.len());
        for upto in news + 1..trace.events.len() {
            let events = trace.events[..upto].iter().map(|stored| &stored.event);
            let Some(then) = life(events, last.id.call.as_ref()) else { continue };
            let before = through.last().unwrap_or(last);
            if then.state.is_terminal() || (then.state == before.view.state && utc_of(then.since) == before.view.since)
            {
                continue;
            }
            let context = then.context.map(str::to_owned);
            let told = Told { life: &then, stored: None, context, trace: Some(&trace), refused: None };
            through.push(told.seen(&config, &last.id));
        }
    }
    if through.last().is_none_or(|before| is_other(&now, before)) {
        through.push(now);
    } else if let Some(before) = through.last_mut() {
        // What was kept belongs to where it is now.
        *before = now;
    }
    Ok(Some(through))
}

/// The task that a trace tells of.
pub(super) async fn seen(
    gateway: &Arc<Gateway>,
    who: &Principal,
    id: &TaskId,
    trace: &Trace,
) -> Result<Option<Seen>, Refused> {
    let Some(own) = life(trace.events.iter().map(|stored| &stored.event), id.call.as_ref()) else { return Ok(None) };
    // A move is a task of whoever walks, by whichever door that began.
    if own.principal != who || (id.call.is_none() && own.door != DOOR) {
        return Ok(None);
    }
    let answered_by = match own.repeats.filter(|_| own.replayed) {
        Some(held) => &held.call,
        None => own.call,
    };
    let stored = gateway.ledger.answer(answered_by).await.map_err(|error| unavailable(&error))?;
    if let Some(held) = own.repeats.filter(|_| goes_on_elsewhere(&own)) {
        // What it repeats is not over: that is what became of this one too, for as long as it is so.
        let theirs = gateway.ledger.trace(&held.session).await.map_err(|error| unavailable(&error))?;
        let theirs = theirs.as_ref().map(|trace| trace.events.iter().map(|stored| &stored.event));
        if let Some(theirs) = theirs.and_then(|events| life(events, Some(&held.call))).filter(|it| it.principal == who)
        {
            let stored = gateway.ledger.answer(&held.call).await.map_err(|error| unavailable(&error))?;
            let context = own.context.map(str::to_owned);
            let told = Told { life: &theirs, stored: stored.as_ref(), context, trace: None, refused: None };
            return Ok(Some(told.seen(&gateway.config(), id)));
        }
    }
    let context = own.context.map(str::to_owned);
    let events = || trace.events.iter().map(|stored| &stored.event);
    if let Some(mut first) = own.joined.and_then(|first| life(events(), Some(first))) {
        first.replayed = true;
        let stored = gateway.ledger.answer(first.call).await.map_err(|error| unavailable(&error))?;
        let told = Told { life: &first, stored: stored.as_ref(), context, trace: None, refused: None };
        return Ok(Some(told.seen(&gateway.config(), id)));
    }
    let refused = match own.refusal {
        Some(refusal) => in_walk(gateway, who, id, &own, refusal).await,
        None => None,
    };
    let told = Told { life: &own, stored: stored.as_ref(), context, trace: Some(trace), refused };
    Ok(Some(told.seen(&gateway.config(), id)))
}

/// The envelope of our No to a move, or to what could not become one: it says where the walk is, and what could be done there.
async fn in_walk(
    gateway: &Arc<Gateway>,
    who: &Principal,
    id: &TaskId,
    life: &Life<'_>,
    refusal: &Refusal,
) -> Option<Box<RawValue>> {
    let moved = match id.call {
        Some(_) => Moved::at(life.tool.as_str(), walks::look(gateway, who, &id.session).await.ok()?),
        None => *walk::instead_of_refused(gateway, who, life.context, life.tool.as_str()).await?,
    };
    Some(filled(&no(life, refusal), &moved, gateway.catalogue.now().machines().names()))
}

/// Whether a call was refused because the one that it repeats is on its way, or waits for a person.
fn goes_on_elsewhere(life: &Life<'_>) -> bool {
    let kind = life.refusal.map(|refusal| refusal.kind);
    matches!(kind, Some(RefusalKind::InFlight | RefusalKind::AwaitingPerson))
}

/// What is known of a task.
struct Told<'a> {
    life: &'a Life<'a>,
    stored: Option<&'a StoredAnswer>,
    context: Option<String>,
    /// Its trace, where that is its own.
    trace: Option<&'a Trace>,
    /// Our No, where more is known of it than its events say.
    refused: Option<Box<RawValue>>,
}

impl Told<'_> {
    fn seen(&self, config: &Config, id: &TaskId) -> Seen {
        let life = self.life;
        let asked = self.stored.filter(|stored| stored.form == Form::Asked && life.inquiry.is_some());
        let asked = asked.and_then(|stored| InputRequired::parse(&String::from_utf8_lossy(&stored.body)));
        let (says, artifacts) = self.words(config, asked.as_ref());
        let mut metadata = json!({ "amends/trace": id.session, "amends/call": life.call, "amends/tool": life.tool });
        let turn = self.trace.and_then(|trace| trace.events.iter().find(|stored| stored.event.seq == life.turn));
        if let Some(turn) = turn {
            metadata["amends/receipt"] = json!({ "trace": id.session, "sequence": turn.event.seq, "hash": turn.hash });
        }
        let view = TaskView {
            id: id.text(),
            context: self.context.clone().unwrap_or_else(|| id.session.to_string()),
            state: life.state,
            since: utc_of(life.since),
            says,
            artifacts,
            metadata,
        };
        Seen {
            id: id.clone(),
            view,
            call: life.call.clone(),
            ended: life.outcome().is_some(),
            asks: life.asks.cloned(),
            asked,
            since: life.since,
            seq: life.seq,
            elsewhere: self.trace.is_none(),
        }
    }

    /// What is said of its state, and what it gave.
    fn words(&self, config: &Config, asked: Option<&InputRequired>) -> (Vec<Part>, Vec<(&'static str, Vec<Part>)>) {
        let life = self.life;
        let kept = self.stored.and_then(driver::kept).map(|kept| if life.replayed { again(&kept) } else { kept });
        match life.state {
            State::Submitted | State::Working => (Vec::new(), Vec::new()),
            State::Completed => match kept {
                Some(envelope) if config.a2a.envelope => (Vec::new(), reply::artifacts(&envelope)),
                Some(envelope) => (Vec::new(), reply::given(&envelope)),
                None => (vec![Part::Text("it was done; what it gave is not kept any more".into())], Vec::new()),
            },
            State::InputRequired | State::AuthRequired => match (life.asks, asked, life.refusal) {
                (Some(asks), _, _) => {
                    let envelope = kept.map(Part::Data);
                    let mut says = reply::question(asks, may_answer(config, asks, life.principal));
                    says.extend(envelope);
                    (says, Vec::new())
                }
                (None, Some(asked), _) => (reply::inquiry(asked), Vec::new()),
                (None, None, Some(refusal)) => (reply::failure(&no(life, refusal).to_json(None)), Vec::new()),
                (None, None, None) => (vec![Part::Text("it waits for an answer".into())], Vec::new()),
            },
            State::Failed | State::Canceled | State::Rejected => match (life.refusal, kept) {
                (Some(refusal), _) => {
                    let envelope = self.refused.clone().unwrap_or_else(|| no(life, refusal).to_json(None));
                    (reply::failure(&envelope), Vec::new())
                }
                (None, Some(envelope)) => (reply::failure(&envelope), Vec::new()),
                (None, None) => {
                    (vec![Part::Text("it is over; what was said of it is not kept any more".into())], Vec::new())
                }
            },
        }
    }
}

/// A time as the protocol writes it.
fn utc_of(at: Timestamp) -> String {
    format!("{}Z", utc(at).replace(' ', "T"))
}

/// An envelope that says that it was given before.
fn again(envelope: &RawValue) -> Box<RawValue> {
    let mut splice = Splice::new(envelope.get());
    let marked = splice.set_member(envelope.get(), "replayed", "true").map(|()| splice.finish());
    marked.ok().and_then(|text| RawValue::from_string(text).ok()).unwrap_or_else(|| envelope.to_owned())
}

/// The envelope of our No.
fn no(life: &Life<'_>, refusal: &Refusal) -> Envelope {
    let error = Box::new(CoreTrouble::refused(life.tool.as_str(), refusal));
    Envelope::of(Body::Refused { error })
}

/// Whether whoever called may answer that question: its queue lets them, and they are not barred from it.
pub(super) fn may_answer(config: &Config, asks: &Interaction, who: &Principal) -> bool {
    let requester = config.people.queues.get(&asks.queue).is_some_and(|queue| queue.requester);
    let barred = asks.grounds.as_ref().is_some_and(|grounds| grounds.barred.iter().any(|name| name == who.as_str()));
    requester && !barred
}
