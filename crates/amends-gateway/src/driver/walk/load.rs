//! A walk taken up from the ledger.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use amends_core::dispatcher::TraceError;
use amends_core::dispatcher::walk::{Leg, Look};
use amends_core::id::MachineName;
use amends_core::machine::{Course, Does, Machines, Written};
use amends_core::walk::{Fork, Frame, Part};
use amends_core::{Dispatcher, Event, Fact, SessionId, Timestamp};
use amends_ledger::{Error, Trace};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::super::orphans::{Take, raise};
use super::super::session::Mail;
use super::{LiveMove, Walking, leg};
use crate::clock;
use crate::gateway::Gateway;
use crate::walks::view::View;

/// Takes up a walk, also from another node where nothing is open in it. Nothing where that node is busy with it, or there is none.
pub(crate) async fn raise_walk(
    gateway: &Arc<Gateway>,
    id: &SessionId,
) -> Result<Option<mpsc::UnboundedSender<Mail>>, Error> {
    raise(gateway, id, None, Take::Idle).await
}

/// What the driver holds of a walk, from what the ledger keeps.
pub(in crate::driver) async fn walking(
    gateway: &Gateway,
    trace: &Trace,
    dispatcher: &Dispatcher,
) -> Result<Option<Walking>, Error> {
    let Some(look) = dispatcher.walk() else { return Ok(None) };
    let written = gateway.ledger.fields(&trace.session).await?;
    let events = trace.events.iter().map(|stored| &stored.event);
    let course = course(events, &written, look.machines)?;
    let kit = gateway.kits.of(look.hash, look.machines);
    let mut moves = HashMap::new();
    if let Some(open) = &look.open {
        let stored = gateway.ledger.arguments(open.id).await?;
        let raw: Arc<str> = stored.map_or_else(|| "{}".into(), |stored| String::from_utf8_lossy(&stored.body).into());
        let results = results(gateway, &open.legs).await?;
        let action = look.machines.get(open.machine).and_then(|machine| machine.action(open.action.as_str()));
        let live = LiveMove {
            action: open.action.clone(),
            reset: false,
            of: None,
            inputs: serde_json::from_str(&raw).unwrap_or_default(),
            raw,
            answer: None,
            also: Vec::new(),
            listener: None,
            subject: None,
            results,
            written: None,
            gave: None,
        };
        let gave = live.gives(action.is_some_and(|(_, action)| matches!(action.does, Does::Parallel(_))));
        moves.insert(open.id.clone(), LiveMove { gave, ..live });
    }
    let past = results(gateway, &look.unsettled).await?;
    let since = since(trace.events.iter().map(|stored| &stored.event));
    Ok(Some(Walking { course, kit, moves, past, since, undone: Vec::new() }))
}

/// When a walk was last reset; what was made before then is no part of it any more.
pub(crate) fn since<'a>(events: impl DoubleEndedIterator<Item = &'a Event>) -> Timestamp {
    let mut newest = events.rev();
    let reset = newest.find(|event| matches!(event.fact, Fact::WalkReset { .. }));
    reset.map(|event| event.at).unwrap_or_default()
}

/// What calls gave, as far as it is kept.
async fn results(gateway: &Gateway, legs: &[Leg<'_>]) -> Result<BTreeMap<(Part, String), Value>, Error> {
    let mut found = BTreeMap::new();
    for one in legs {
        if let Some(stored) = gateway.ledger.answer(one.call).await?
            && let Some(value) = leg::gave(&stored)
        {
            found.insert((one.part, one.name.to_owned()), value);
        }
    }
    Ok(found)
}

/// The fields that those events led to. Each is read with what was declared when it happened; `newest` is what was declared last.
pub(crate) fn course<'a>(
    events: impl IntoIterator<Item = &'a Event, IntoIter: Clone>,
    written: &[(u64, Bytes)],
    newest: &Machines,
) -> Result<Course, Error> {
    let corrupt =
        || Error::Corrupt { reason: "what a walk wrote into its fields is missing or cannot be read".to_owned() };
    let at = |seq: u64| written.iter().find(|(its, _)| *its == seq).map(|(_, body)| body).ok_or_else(corrupt);
    let read = |definition: &_| Machines::read(definition).map_err(|_| corrupt());
    let events = events.into_iter();
    // Most walks have one declaration, which is read already.
    let redeclared = events.clone().any(|event| match &event.fact {
        Fact::WalkMigrated { .. } => true,
        Fact::MoveReceived { gates, .. } => gates.declared.is_some(),
        _ => false,
    });
    let mut then: Option<Machines> = None;
    let mut begins_under = None;
    let mut walked: Option<(&MachineName, Course)> = None;
    for event in events {
        match &event.fact {
            Fact::WalkBegan { beginning } => {
                if redeclared {
                    then = Some(read(&beginning.definition)?);
                }
                let course = serde_json::from_slice(at(0)?).map_err(|_| corrupt())?;
                walked = Some((&beginning.machine, course));
            }
            Fact::WalkMigrated { definition, .. } => then = Some(read(definition)?),
            Fact::MoveReceived { taking, gates } if taking.reset => begins_under = gates.declared.as_deref(),
            Fact::MoveMade { to, enters, moves, .. } => {
                let written: Written = serde_json::from_slice(at(*moves)?).map_err(|_| corrupt())?;
                let Some((_, course)) = &mut walked else { return Err(corrupt()) };
                let machines = then.as_ref().unwrap_or(newest);
                match enters {
                    Some(machine) => course.enter(machines.get(machine).ok_or_else(corrupt)?, written),
                    None => course.arrive(to.len(), written),
                }
            }
            Fact::WalkReset { .. } => {
                if let Some(declared) = begins_under.take() {
                    then = Some(read(&declared.definition)?);
                }
                let Some((root, course)) = &mut walked else { return Err(corrupt()) };
                let machine = then.as_ref().unwrap_or(newest).get(root).ok_or_else(corrupt)?;
                *course = Course::begin(machine, Map::new());
            }
            _ => {}
        }
    }
    walked.map(|(_, course)| course).ok_or_else(corrupt)
}

/// A walk that nobody drives here, as it is on the ledger.
pub(crate) fn look_from_outside(
    id: &SessionId,
    look: &Look<'_>,
    events: &[Event],
    written: &[(u64, Bytes)],
) -> Result<Option<View>, Error> {
    let course = course(events, written, look.machines)?;
    let fields = course.fields().as_object().cloned().unwrap_or_default();
    Ok(crate::walks::view::view(id, look, fields, clock::now()))
}

/// Where a walk was after that many moves: its frames, its fields, and what else was known of it. Nothing where it never was.
pub(crate) fn past(
    id: &SessionId,
    events: &[Event],
    written: &[(u64, Bytes)],
    seq: u64,
) -> Result<Option<(Fork, Course, Dispatcher)>, Error> {
    let led = |event: &Event| match &event.fact {
        Fact::WalkBegan { beginning } => beginning.from.as_ref().map_or(0, |fork| fork.seq) == seq,
        Fact::MoveMade { moves, .. } | Fact::WalkReset { moves, .. } => *moves == seq,
        _ => false,
    };
    let Some(end) = events.iter().position(led) else { return Ok(None) };
    let whole = events;
    let events = &events[..=end];
    // Rules are only needed for calls that are open.
    let rules = |_: &_| {
        Some(Arc::new(amends_core::Rules {
            contract: amends_core::Contract::undeclared(0, 0, 0),
            playbook: amends_core::Playbook::default(),
        }))
    };
    let corrupt = |error: TraceError| Error::Corrupt { reason: error.to_string() };
    let folded = Dispatcher::restore(events, rules).map_err(corrupt)?;
    let Some(look) = folded.walk() else { return Ok(None) };
    let (frames, spent_ms): (Vec<Frame>, _) = (look.frames.to_vec(), look.spent_ms.clone());
    let course = course(events, written, look.machines)?;
    // What failed for now did so whatever is forked, and from where.
    let today = Dispatcher::restore(whole, rules).map_err(corrupt)?;
    let later = today.walk().map(|look| look.postponed).unwrap_or_default();
    Ok(Some((Fork { session: id.clone(), seq, frames, spent_ms, later }, course, folded)))
}
