//! The walks of this process: whose they are, where they are, and what is taken in them.

pub(crate) mod beginnings;
pub(crate) mod drift;
pub(crate) mod kit;
pub(crate) mod owners;
mod recorded;
mod undone;
pub mod view;

/// Walks as agents see them.
pub use amends_wire::mcp::steps;

use std::sync::Arc;
use std::time::Duration;

use amends_core::attempt::Payload;
use amends_core::dispatcher::walk::{Look, Standing};
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::{Course, Does};
use amends_core::recovery::NextCall;
use amends_core::refusal::ArgumentFault;
use amends_core::walk::{Beginning, Declared};
use amends_core::{Code, Dispatcher, Event, Fact, Principal, Refusal, RefusalKind, Rules, SessionId};
use amends_wire::mcp::steps::Inputs;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::catalogue::{Listing, schema};
use crate::clock;
use crate::driver::{
    Answered, CallHandle, Listener, Mail, MoveWish, SessionHandle, course, past, raise_walk, since as since_reset,
    told, too_often,
};
use crate::gateway::Gateway;
use crate::mint;
use beginnings::{Beginnings, Named};
use drift::{Drifted, Seen};
pub use recorded::{Recorded, recorded};
pub(crate) use undone::{Undone, not_undone_with, undone_with};
use undone::{hindsight, tell_undone, undone};
use view::View;

/// How often a walk is looked for that changes hands.
const HANDS_MAX: usize = 25;
/// How many moves that a fork leaves out are told of.
const TOLD_MAX: usize = 32;
/// How long a walk takes to change hands, about.
const HAND_OVER: Duration = Duration::from_millis(40);

/// What an agent wants done in a walk.
#[derive(Debug)]
pub struct Order {
    /// What.
    pub what: Wish,
    /// The agent's own key.
    pub key: Option<String>,
    /// How long the agent waits, where it says so.
    pub deadline_ms: Option<u64>,
    /// The tool that was called, and its arguments as they were written, where the agent can be asked to call it again.
    pub subject: Option<(String, String)>,
}

/// What is wanted of a walk.
#[derive(Debug)]
pub enum Wish {
    /// An action taken.
    Step {
        /// The action.
        action: String,
        /// Its inputs.
        inputs: Inputs,
        /// How many moves the agent thinks were made.
        expect_seq: Option<u64>,
        /// The machine whose action it is, where the agent said so.
        of: Option<MachineName>,
    },
    /// The walk begun again.
    Reset,
    /// Another walk, begun at a past point: after that many moves, or where it is now.
    Fork(Option<u64>),
    /// The move that is being made, stopped.
    Cancel,
}

/// Which walk is meant.
#[derive(Clone, Debug)]
pub enum Which {
    /// That one, if it is the principal's.
    Known(SessionId),
    /// A new one, through that machine.
    New(MachineName),
    /// That one, begun through that machine if there is none yet: a connection's own, whichever process it meets.
    Own(SessionId, MachineName),
}

/// Hands in what an agent wants done in a walk. The session of the handle is the walk's own. A walk that is another's is unknown.
pub async fn order(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    door: &'static str,
    which: Which,
    order: Order,
    listener: Listener,
) -> Result<CallHandle, Box<Refusal>> {
    match (&order.what, &which) {
        (Wish::Step { .. } | Wish::Reset, _) => {}
        (Wish::Fork(seq), Which::Known(id)) => {
            return fork(gateway, principal, door, id, (*seq, order.key.as_deref())).await;
        }
        (Wish::Cancel, Which::Known(id)) => return stop(gateway, principal, id).await,
        (Wish::Fork(_) | Wish::Cancel, Which::New(_) | Which::Own(..)) => return Err(unknown()),
    }
    let (mut wish, answer) = wish(gateway, order, listener);
    let id = wish.id.clone();
    // Held until the wish is handed in, so that an equal one finds it.
    let mut _held = None;
    let mut session = match which {
        Which::New(machine) => match Beginnings::of(gateway, principal, &machine, &wish).await {
            None => begin(gateway, principal, door, &machine, mint::session())?,
            Some(Named::Key(own, held)) => {
                wish.shared = true;
                _held = Some((Some(held), None));
                find_or_begin(gateway, principal, door, &machine, own).await?
            }
            Some(Named::Wish(mut equal)) => {
                wish.shared = true;
                if let Some(earlier) = equal.newest(gateway).await.map_err(|error| unread(&error))? {
                    match repeat(gateway, principal, &earlier, wish).await? {
                        Ok(session) => return Ok(session.waiting(id, answer)),
                        Err(unlike) => wish = *unlike,
                    }
                }
                let begun = begin(gateway, principal, door, &machine, equal.next())?;
                _held = Some((None, Some(equal)));
                begun
            }
        },
        Which::Own(id, machine) => find_or_begin(gateway, principal, door, &machine, id).await?,
        Which::Known(id) => find(gateway, principal, &id).await?,
    };
    tell_undone(gateway, &session.id, |mail| drop(session.post(mail))).await;
    let mut mail = Mail::Move(Box::new(wish));
    // A driver that ends just now gives back what it did not take.
    for _ in 0..HANDS_MAX {
        match session.post(mail) {
            Ok(()) => return Ok(session.waiting(id, answer)),
            Err(unsent) => mail = unsent,
        }
        session = find(gateway, principal, &session.id).await?;
    }
    Err(Box::new(told::elsewhere()))
}

/// What an agent wants, as a driver is told it, and where the answer comes.
fn wish(gateway: &Gateway, order: Order, listener: Listener) -> (MoveWish, oneshot::Receiver<Answered>) {
    let (answer_to, answer) = oneshot::channel();
    let (action, inputs, raw, expect_seq, of, reset) = match order.what {
        Wish::Step { action, inputs, expect_seq, of } => {
            (action, inputs.value, inputs.raw.get().into(), expect_seq, of, false)
        }
        Wish::Reset | Wish::Fork(_) | Wish::Cancel => ("reset".to_owned(), Map::new(), "{}".into(), None, None, true),
    };
    let wish = MoveWish {
        id: mint::call(),
        action,
        inputs,
        raw,
        expect_seq,
        of,
        key: order.key,
        deadline_ms: order.deadline_ms,
        reset,
        subject: order.subject,
        answer: answer_to,
        listener,
        made: Some(gateway.deliveries.now()),
        shared: false,
        unless_repeated: None,
    };
    (wish, answer)
}

/// Hands a wish to a walk that began with an equal one, for the case that it repeats that. It comes back where it does not.
async fn repeat(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    id: &SessionId,
    mut wish: MoveWish,
) -> Result<Result<SessionHandle, Box<MoveWish>>, Box<Refusal>> {
    let session = match find(gateway, principal, id).await {
        Ok(session) => session,
        // It was never recorded: nothing was done in it.
        Err(refusal) if refusal.kind == RefusalKind::UnknownName => return Ok(Err(Box::new(wish))),
        Err(refusal) => return Err(refusal),
    };
    let (back_to, back) = oneshot::channel();
    wish.unless_repeated = Some(back_to);
    match session.post(Mail::Move(Box::new(wish))) {
        Ok(()) => Ok(back.await.map_or(Ok(session), Err)),
        Err(Mail::Move(wish)) => Ok(Err(wish)),
        Err(_) => Err(Box::new(told::elsewhere())),
    }
}

/// The walk of that handle, begun if there is none.
async fn find_or_begin(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    door: &str,
    machine: &MachineName,
    id: SessionId,
) -> Result<SessionHandle, Box<Refusal>> {
    match find(gateway, principal, &id).await {
        Err(refusal) if refusal.kind == RefusalKind::UnknownName => begin(gateway, principal, door, machine, id),
        found => found,
    }
}

/// Hands a wish in again whose walk was driven elsewhere in that moment. It was not recorded.
pub(crate) async fn hand_on(gateway: &Arc<Gateway>, principal: &Principal, id: &SessionId, wish: MoveWish) {
    let mut mail = Mail::Move(Box::new(wish));
    let mut refusal = Box::new(told::elsewhere());
    for _ in 0..HANDS_MAX {
        match find(gateway, principal, id).await {
            Ok(session) => match session.post(mail) {
                Ok(()) => return,
                Err(unsent) => mail = unsent,
            },
            Err(why) => {
                refusal = why;
                break;
            }
        }
    }
    if let Mail::Move(wish) = mail {
        // Whoever asked may be gone.
        let _ = wish.answer.send(told::answered(told::refused_move(&wish.action, &refusal)));
    }
}

/// Begins a walk.
fn begin(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    door: &str,
    machine: &MachineName,
    id: SessionId,
) -> Result<SessionHandle, Box<Refusal>> {
    let config = gateway.config();
    let (Some(declared), Some(hash)) = (config.machines.get(machine), config.machine_digests.get(machine)) else {
        let message = format!("there is no machine `{}`", amends_core::failure::bounded(machine.as_str()));
        return Err(Box::new(Refusal::of(RefusalKind::UnknownName, message)));
    };
    let course = Course::begin(declared, Map::new());
    let definition = config.machines.definition(machine);
    let (machine_name, fields) = (machine.clone(), payload(gateway, &course));
    let beginning = Beginning { machine: machine_name, definition, hash: hash.clone(), from: None, fields };
    let session = SessionHandle::walk(gateway, principal, door, id, beginning, course);
    gateway.owners.remember(&session.id, principal);
    Ok(session)
}

/// The walk of that handle, if it is that principal's, driven here.
async fn find(gateway: &Arc<Gateway>, principal: &Principal, id: &SessionId) -> Result<SessionHandle, Box<Refusal>> {
    for _ in 0..HANDS_MAX {
        if let Some(mail) = gateway.driver_of(id).filter(|mail| !mail.is_closed()) {
            whose(gateway, principal, id).await?;
            if let Some(session) = SessionHandle::of_driver(gateway, principal, id.clone(), mail) {
                return Ok(session);
            }
        }
        let trace = read(gateway, principal, id).await?;
        drop(trace);
        match raise_walk(gateway, id).await {
            Ok(Some(_)) => {}
            Ok(None) => tokio::time::sleep(HAND_OVER).await,
            Err(error) => return Err(unread(&error)),
        }
    }
    let message = "something is being done in this walk elsewhere; nothing was done, ask again";
    Err(Box::new(Refusal { retry_after_ms: Some(1_000), ..Refusal::of(RefusalKind::InFlight, message) }))
}

/// Refuses a walk that is another's, as if there were none.
async fn whose(gateway: &Arc<Gateway>, principal: &Principal, id: &SessionId) -> Result<(), Box<Refusal>> {
    match gateway.owners.of(id) {
        Some(owner) if owner == *principal => Ok(()),
        Some(_) => Err(unknown()),
        None => read(gateway, principal, id).await.map(drop),
    }
}

/// The trace of a walk of that principal.
async fn read(gateway: &Arc<Gateway>, principal: &Principal, id: &SessionId) -> Result<Vec<Event>, Box<Refusal>> {
    let trace = gateway.ledger.trace(id).await.map_err(|error| unread(&error))?.ok_or_else(unknown)?;
    let events: Vec<Event> = trace.events.into_iter().map(|stored| stored.event).collect();
    let walks = events.iter().any(|event| matches!(event.fact, Fact::WalkBegan { .. }));
    match events.first().map(|event| &event.fact) {
        Some(Fact::SessionOpened { principal: owner, .. }) if walks && owner == principal => {
            gateway.owners.remember(id, owner);
            Ok(events)
        }
        _ => Err(unknown()),
    }
}

/// Where a walk of that principal is.
pub async fn look(gateway: &Arc<Gateway>, principal: &Principal, session: &SessionId) -> Result<View, Box<Refusal>> {
    look_at(gateway, principal, session).await.map(|seen| seen.view)
}

/// The same, with the machines it is in.
pub(crate) async fn look_at(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    session: &SessionId,
) -> Result<Seen, Box<Refusal>> {
    if let Some(mail) = gateway.driver_of(session) {
        whose(gateway, principal, session).await?;
        let (answer, seen) = oneshot::channel();
        tell_undone(gateway, session, |told| drop(mail.send(told))).await;
        if mail.send(Mail::Look(answer)).is_ok()
            && let Ok(Some(seen)) = seen.await
        {
            return Ok(seen);
        }
    }
    let events = read(gateway, principal, session).await?;
    let written = gateway.ledger.fields(session).await.map_err(|error| unread(&error))?;
    let folded = Dispatcher::restore(&events, |_| Some(Arc::new(no_rules()))).map_err(|error| {
        tracing::error!(%session, %error, "the trace cannot be folded");
        unfit()
    })?;
    let undone = undone(gateway, session).await;
    let folded = hindsight(folded, &undone);
    let walk = folded.walk().ok_or_else(unknown)?;
    let course = course(&events, &written, walk.machines).map_err(|error| unread(&error))?;
    let mut seen = drift::seen(gateway, session, &walk, &course, clock::now()).ok_or_else(unknown)?;
    let since = since_reset(events.iter());
    seen.view.tells_undone(undone.iter().filter(|undone| undone.made >= since).count());
    Ok(seen)
}

/// Another walk, begun where one was; for a key that was used before, the one that it began.
async fn fork(
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
        let mut message = format!("the walk never was at move {at}; it made {made} moves");
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
        stops @ Drifted::Stops { .. } => return Err(stopped(gateway, id, stops)),
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

/// Stops the move that is being made.
async fn stop(gateway: &Arc<Gateway>, principal: &Principal, id: &SessionId) -> Result<CallHandle, Box<Refusal>> {
    let session = find(gateway, principal, id).await?;
    let (answer, stopped) = oneshot::channel();
    // Should it end just now, nothing is open in it.
    let _ = session.post(Mail::Stop(answer));
    let _ = stopped.await;
    seen(gateway, &session, "cancel", None, false).await
}

/// The walk as it is, as an answer.
async fn seen(
    gateway: &Arc<Gateway>,
    session: &SessionHandle,
    action: &str,
    result: Option<Box<RawValue>>,
    replayed: bool,
) -> Result<CallHandle, Box<Refusal>> {
    let (answer, looked) = oneshot::channel();
    // Should it end just now, there is nothing to see.
    let _ = session.post(Mail::Look(answer));
    let Seen { view, .. } = looked.await.ok().flatten().ok_or_else(|| Box::new(told::elsewhere()))?;
    let data = amends_core::envelope::Data::Value(serde_json::Value::Null);
    let body = amends_core::envelope::Body::Success { outcome: amends_core::Outcome::Succeeded, data };
    let names = gateway.catalogue.now().machines().names().clone();
    let envelope = amends_core::Envelope { replayed, ..amends_core::Envelope::of(body) };
    let rendered = told::seen(action, result, envelope, view, names);
    let (answer_to, answer) = oneshot::channel();
    // It is taken a line further on.
    let _ = answer_to.send(told::answered(rendered));
    Ok(session.waiting(mint::call(), answer))
}

/// The input schemas of actions that are tools as they are.
pub(crate) fn fill_in_schemas(view: &mut View, look: &Look<'_>, listing: &Listing) {
    let machine = look.machines.get(&view.machine);
    for next in view.next.iter_mut().filter(|next| next.schema.is_none()) {
        let action = machine.and_then(|machine| machine.action(&next.action));
        next.schema = action.and_then(|(_, action)| schema(action, |tool| listing.find(tool.as_str()).cloned()));
    }
}

fn payload(gateway: &Gateway, course: &Course) -> Payload {
    let bytes = amends_ledger::exactly(course);
    Payload { digest: amends_ledger::keyed_digest(&gateway.secret, &[b"fields", &bytes]), size: bytes.len() as u64 }
}

fn no_rules() -> Rules {
    Rules { contract: amends_core::Contract::undeclared(0, 0, 0), playbook: amends_core::Playbook::default() }
}

fn unread(error: &amends_ledger::Error) -> Box<Refusal> {
    tracing::warn!(%error, "a walk could not be read");
    if let amends_ledger::Error::Corrupt { .. } = error {
        return unfit();
    }
    let refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot be read, so nothing is done");
    Box::new(Refusal { retry_after_ms: Some(5000), ..refusal })
}

/// The refusal of a walk of which the ledger does not hold what it should.
fn unfit() -> Box<Refusal> {
    let message = "what the ledger holds of this walk does not fit together, so that it cannot go on; nothing was done";
    Box::new(Refusal { code: Code::ResumeMismatch, ..Refusal::of(RefusalKind::InternalError, message) })
}

fn unknown() -> Box<Refusal> {
    Box::new(Refusal::of(RefusalKind::UnknownName, "there is no such walk"))
}
