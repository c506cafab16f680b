//! Another walk, begun where one was.

use std::sync::Arc;

use amends_core::dispatcher::walk::Standing;
use amends_core::id::ActionName;
use amends_core::machine::Does;
use amends_core::recovery::NextCall;
use amends_core::refusal::ArgumentFault;
use amends_core::walk::{Beginning, Declared};
use amends_core::{Dispatcher, Event, Fact, Principal, Refusal, RefusalKind, SessionId};
use amends_wire::mcp::steps::moves;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::beginnings::Beginnings;
use super::drift::{self, Drifted};
use super::undone::{Undone, hindsight, undone};
use super::{HAND_OVER, HANDS_MAX, find, no_rules, payload, read, seen, steps, unfit, unknown, unread};
use crate::driver::{CallHandle, SessionHandle, course, past, since as since_reset, told, too_often};
use crate::gateway::Gateway;
use crate::mint;

/// How many moves that a fork leaves out are told of.
const TOLD_MAX: usize = 32;

/// Another walk, begun where one was; for a key that was used before, the one that it began.
pub(super) async fn fork(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    door: &str,
    id: &SessionId,
    (seq, key): (Option<u64>, Option<&str>),
) -> Result<CallHandle, Box<Refusal>> {
    let events = read(gateway, principal, id).await?;
    // Held until the other walk has begun, so that an equal wish finds it.
    let named = match key {
        Some(key) => Some(Beginnings::of_fork(gateway, principal, id, key).await),
        None => None,
    };
    let own = match &named {
        Some((own, _held)) => {
            if let Some(again) = forked_before(gateway, principal, own, (id, &events), seq).await? {
                return Ok(again);
            }
            own.clone()
        }
        None => mint::session(),
    };
    if let Some(refusal) = too_often(gateway, principal) {
        return Err(Box::new(refusal));
    }
    let written = gateway.ledger.fields(id).await.map_err(|error| unread(&error))?;
    let made = events.iter().rev().find_map(|event| match &event.fact {
        Fact::MoveMade { moves, .. } | Fact::WalkReset { moves, .. } => Some(*moves),
        Fact::WalkBegan { beginning } => Some(beginning.from.as_ref().map_or(0, |fork| fork.seq)),
        _ => None,
    });
    let at = seq.or(made).unwrap_or_default();
    let Some((from, course, folded)) = past(id, &events, &written, at).map_err(|error| unread(&error))? else {
        let made = made.unwrap_or_default();
        let forked = events.iter().find_map(|event| match &event.fact {
            Fact::WalkBegan { beginning } => beginning.from.as_ref(),
            _ => None,
        });
        let first = forked.map_or(0, |from| from.seq);
        let mut message = format!("the walk never was at move {at}; it made {}", moves(made));
        if let Some(from) = forked.filter(|from| at < from.seq) {
            message =
                format!("the walk began at move {first} of `{}`: fork that one for what was before", from.session);
        }
        let expected = format!("a whole number from {first} to {made}");
        let fault = ArgumentFault { field: "seq".into(), expected, got: Some(at.to_string()), nearest: Vec::new() };
        return Err(Box::new(Refusal { details: vec![fault], ..Refusal::of(RefusalKind::ValidationFailed, message) }));
    };
    let look = folded.walk().ok_or_else(unknown)?;
    let machine = look.root.clone();
    // Nothing is being done in a walk that begins.
    let declared = match drift::drifted(gateway, &look, &course, false) {
        Drifted::Follows(declared, _) => declared,
        Drifted::No => Declared { definition: look.machines.definition(look.root), hash: look.hash.clone() },
        stops @ Drifted::Stops { .. } => {
            return Err(match goes_on(gateway, &events, &written)? {
                true => stopped_then(at, stops),
                false => stopped(gateway, id, stops),
            });
        }
    };
    let Declared { definition, hash } = declared;
    let beginning = Beginning { machine, definition, hash, from: Some(from), fields: payload(gateway, &course) };
    let session = SessionHandle::walk(gateway, principal, door, own, beginning, course);
    gateway.owners.remember(&session.id, principal);
    let told = told_of_fork(id, &events, at, &undone(gateway, id).await);
    seen(gateway, &session, "fork", serde_json::value::to_raw_value(&told).ok(), false).await
}

/// The walk that was begun with the same wish for another one, as it is now; nothing where there is none.
async fn forked_before(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    own: &SessionId,
    (of, events): (&SessionId, &[Event]),
    seq: Option<u64>,
) -> Result<Option<CallHandle>, Box<Refusal>> {
    let Some(began) = begun(gateway, principal, own).await? else { return Ok(None) };
    let at = began.iter().find_map(|event| match &event.fact {
        Fact::WalkBegan { beginning } => beginning.from.as_ref().map(|from| from.seq),
        _ => None,
    });
    let at = at.unwrap_or_default();
    if seq.is_some_and(|seq| seq != at) {
        let message = format!("this `amends/key` was used before for a fork at move {at}; send a fresh one");
        return Err(Box::new(Refusal::of(RefusalKind::Duplicate, message)));
    }
    let session = find(gateway, principal, own).await?;
    let told = told_of_fork(of, events, at, &undone(gateway, of).await);
    seen(gateway, &session, "fork", serde_json::value::to_raw_value(&told).ok(), true).await.map(Some)
}

/// The trace of a walk that may have begun, once it is recorded.
async fn begun(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    id: &SessionId,
) -> Result<Option<Vec<Event>>, Box<Refusal>> {
    for _ in 0..HANDS_MAX {
        match read(gateway, principal, id).await {
            Err(refusal) if refusal.kind == RefusalKind::UnknownName => {}
            recorded => return recorded.map(Some),
        }
        if gateway.driver_of(id).is_none_or(|mail| mail.is_closed()) {
            return Ok(None);
        }
        tokio::time::sleep(HAND_OVER).await;
    }
    Err(Box::new(told::elsewhere()))
}

/// The refusal of a fork of a walk that does not go on, with the way on that the walk has.
fn stopped(gateway: &Gateway, id: &SessionId, stops: Drifted) -> Box<Refusal> {
    let resets = matches!(stops, Drifted::Stops { resets: true, .. });
    let mut refusal = stops.refusal().unwrap_or_else(|| *unknown());
    let listing = gateway.catalogue.now();
    if let Some(tool) = listing.machines().names().own(steps::Tool::Reset).filter(|_| resets) {
        let args = Map::from_iter([("session".to_owned(), json!(id))]);
        refusal.recovery.get_or_insert_default().call = Some(NextCall { tool: tool.to_owned(), args });
    }
    Box::new(refusal)
}

/// Whether a walk goes on as it is now, whatever becomes of its past.
fn goes_on(gateway: &Gateway, events: &[Event], written: &[(u64, Bytes)]) -> Result<bool, Box<Refusal>> {
    let folded = Dispatcher::restore(events, |_| Some(Arc::new(no_rules()))).map_err(|error| {
        tracing::error!(%error, "the trace cannot be folded");
        unfit()
    })?;
    let look = folded.walk().ok_or_else(unknown)?;
    let course = course(events, written, look.machines).map_err(|error| unread(&error))?;
    Ok(!matches!(drift::drifted(gateway, &look, &course, drift::is_busy(&look)), Drifted::Stops { .. }))
}

/// The refusal of a fork of a walk that goes on itself, at a point from which nothing does: another point is the way on.
fn stopped_then(at: u64, stops: Drifted) -> Box<Refusal> {
    let Drifted::Stops { why, .. } = stops else { return unknown() };
    let message = format!("the walk cannot be forked where it was after move {at}: {why}");
    let expected = "a move after which the walk fits its machine as that is declared now".to_owned();
    let fault = ArgumentFault { field: "seq".into(), expected, got: Some(at.to_string()), nearest: Vec::new() };
    Box::new(Refusal { details: vec![fault], ..Refusal::of(RefusalKind::ValidationFailed, message) })
}

/// What whoever forks a walk should know: from where it begins, what was done after that, which a fork does not undo, and what was
/// done before that and undone since.
fn told_of_fork(id: &SessionId, events: &[Event], at: u64, undone: &[Undone]) -> Value {
    let mut told = json!({ "forked_from": id, "seq": at });
    let Ok(folded) = Dispatcher::restore(events, |_| Some(Arc::new(no_rules()))) else { return told };
    let folded = hindsight(folded, undone);
    let Some(look) = folded.walk() else { return told };
    let calls = |name: &ActionName| {
        let actions = look.machines.all().filter_map(|machine| machine.action(name.as_str()));
        actions
            .into_iter()
            .any(|(_, action)| action.tools().next().is_some() || matches!(action.does, Does::Function(_)))
    };
    let made = events.iter().filter_map(|event| match &event.fact {
        Fact::MoveMade { action, moves, .. } if *moves > at && calls(action) => {
            Some(json!({ "action": action, "seq": moves, "became": "done" }))
        }
        _ => None,
    });
    let mut since: Vec<Value> = made.collect();
    since.drain(..since.len().saturating_sub(TOLD_MAX));
    let unsettled = match look.standing {
        Standing::Open(action) => Some((action, "open")),
        Standing::InDoubt(action) | Standing::Unknown(action) => Some((action, "in_doubt")),
        Standing::Done(action) | Standing::Unclear(action) => Some((action, "done")),
        Standing::Free => None,
    };
    since.extend(unsettled.map(|(action, became)| json!({ "action": action, "became": became })));
    let mut warnings = Vec::new();
    if !since.is_empty() {
        let some = if look.given_up.is_some() || !undone.is_empty() { ", as far as it was not undone" } else { "" };
        told["since_then"] = since.into();
        warnings.push(format!(
            "what was done in the other walk after that point stays done{some}, and what is in doubt there may have happened: \
             taking it here does it again"
        ));
    }
    let point = events.iter().rposition(|event| match &event.fact {
        Fact::MoveMade { moves, .. } | Fact::WalkReset { moves, .. } => *moves == at,
        Fact::WalkBegan { .. } => true,
        _ => false,
    });
    let led = point.map(|point| &events[..=point]).unwrap_or_default();
    let (begun, then) = (since_reset(led.iter()), led.last().map(|event| event.at).unwrap_or_default());
    let before = undone.iter().filter(|undone| (begun..=then).contains(&undone.made)).count();
    if let Some(given_up) = &look.given_up {
        told["given_up"] = given_up.words().into();
    }
    if before > 0 {
        told["undone"] = before.into();
        warnings.push(format!(
            "of what led to that point, {before} was undone since: what the fields tell of that is not so any more"
        ));
    } else if look.given_up.as_ref().is_some_and(|given_up| given_up.undone.is_none()) {
        let words = "the other walk was given up, and what was done in it is being undone: what the fields tell of that will not \
                     be so any more";
        warnings.push(words.to_owned());
    }
    if !warnings.is_empty() {
        told["warning"] = warnings.join("; ").into();
    }
    told
}
