//! A session that walks through a machine: what its moves are weighed by, the calls they make, what their agents are told.

mod leg;
mod load;
mod no;
pub(crate) mod told;
mod weigh;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use amends_core::attempt::Payload;
use amends_core::dispatcher::walk::Met;
use amends_core::id::ActionName;
use amends_core::machine::{Course, Known, Machines, Position, Written};
use amends_core::walk::{Beginning, Declared, Part, Taking};
use amends_core::{CallId, CallKey, Effect, Event, Fact, Gates, Input, Refusal, Timestamp};
use amends_ledger::{Append, Error, StoredArguments, StoredFields, Trace, keyed_digest};
use amends_wire::mcp::steps::Retake;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::admission::{not_known_yet, too_often};
use super::answer::Answered;
use super::deliveries::Moment;
use super::listener::Listener;
use super::session::{Mail, Session};
use super::turn::Turn;
use crate::catalogue::schema;
use crate::clock;
use crate::equal;
use crate::mint;
use crate::walks::drift::{self, Drifted, Seen};
use crate::walks::kit::Kit;
use crate::walks::view::View;
use crate::walks::{Of, Undone};

pub use leg::gave;
pub(super) use load::walking;
pub(crate) use load::{course, look_from_outside, past, raise_walk, since};

/// For how long an agent waits for a move where it does not say.
const DEADLINE_MS: u64 = 50_000;
/// By how much longer than its action's own time, which is counted from when it is recorded.
const PATIENCE_MS: u64 = 1_000;
/// How long it takes to open a session, about.
const OPENS_WITHIN: Duration = Duration::from_millis(1);
/// How long inputs are at most to be shown in the trace.
const VIEWED_BYTES_MAX: usize = 256 << 10;

/// What the driver holds of a walk: what passes by the core.
#[derive(Debug)]
pub(crate) struct Walking {
    pub(super) course: Course,
    pub(super) kit: Arc<Kit>,
    pub(super) moves: HashMap<CallId, LiveMove>,
    /// What the calls of a move gave that is not settled.
    pub(super) past: BTreeMap<(Part, String), Value>,
    /// When it began, or was last reset.
    pub(super) since: Timestamp,
    /// When each of its writes was made that was undone since, as far as that was heard of.
    pub(super) undone: Vec<Timestamp>,
}

/// A move on its way.
#[derive(Debug)]
pub(crate) struct LiveMove {
    pub(super) action: ActionName,
    /// Whether it begins the walk again.
    pub(super) reset: bool,
    pub(super) of: Option<Of>,
    pub(super) inputs: Value,
    pub(super) raw: Arc<str>,
    pub(super) answer: Option<oneshot::Sender<Answered>>,
    /// Whoever wished for the same.
    pub(super) also: Vec<oneshot::Sender<Answered>>,
    pub(super) listener: Option<Listener>,
    /// What its agent called, so that it can be asked to call it again.
    pub(super) subject: Option<(String, String)>,
    /// What its calls gave.
    pub(super) results: BTreeMap<(Part, String), Value>,
    /// What it writes, once that was weighed.
    pub(super) written: Option<Written>,
    pub(super) gave: Option<Box<RawValue>>,
}

/// An agent's wish, as it comes to the driver.
#[derive(Debug)]
pub(crate) struct MoveWish {
    pub(crate) id: CallId,
    pub(crate) action: String,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) raw: Arc<str>,
    pub(crate) expect_seq: Option<u64>,
    /// The machine whose action it is, where the agent said so.
    pub(crate) of: Option<Of>,
    pub(crate) key: Option<String>,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) reset: bool,
    /// The tool that was called, and its arguments as they were written.
    pub(crate) subject: Option<(String, String)>,
    pub(crate) answer: oneshot::Sender<Answered>,
    pub(crate) listener: Listener,
    /// When it was made; nothing once it was held against the answers that may have been read before.
    pub(crate) made: Option<Moment>,
    /// Whether the handle of its walk follows from what it began with, so that another process may open the same.
    pub(crate) shared: bool,
    /// Where it goes back to unless it repeats an earlier one: it then begins another walk.
    pub(crate) unless_repeated: Option<oneshot::Sender<Box<MoveWish>>>,
}

impl LiveMove {
    /// What its calls gave, as it is told; nothing where they gave nothing yet.
    pub(super) fn gives(&self, several: bool) -> Option<Box<RawValue>> {
        let acted = self.results.keys().any(|(part, _)| *part == Part::Act);
        acted.then(|| serde_json::value::to_raw_value(&self.known(several).result).ok()).flatten()
    }

    /// What is known of its action, beside the fields.
    pub(super) fn known(&self, several: bool) -> Known {
        let of = |part: Part| {
            let found = self.results.iter().filter(move |((its, _), _)| *its == part);
            found.map(|((_, name), value)| (name.clone(), value.clone())).collect::<Map<String, Value>>()
        };
        let acts = of(Part::Act);
        let result =
            if several { Value::Object(acts) } else { acts.into_iter().next().map_or(Value::Null, |(_, it)| it) };
        Known { inputs: self.inputs.clone(), setup: Value::Object(of(Part::Setup)), result }
    }
}

impl Session {
    /// Begins the walk.
    pub(super) fn begin_walk(&mut self, beginning: Beginning, course: Course) {
        let kit = match self.gateway.kits.known(&beginning.hash) {
            Some(kit) => kit,
            None => match Machines::read(&beginning.definition) {
                Ok(machines) => self.gateway.kits.of(&beginning.hash, &Arc::new(machines)),
                Err(_) => return,
            },
        };
        let machines = kit.machines.clone();
        let (since, undone) = (Timestamp::default(), Vec::new());
        self.walking = Some(Walking { course, kit, moves: HashMap::new(), past: BTreeMap::new(), since, undone });
        self.take(Input::Begin(Box::new(beginning)), Gates::default());
        self.dispatcher.share_machines(&machines);
    }

    /// An agent wants an action taken.
    pub(super) fn wished(&mut self, mut wish: MoveWish) {
        // Nothing is done for an agent that is gone before its wish is on the ledger.
        if wish.answer.is_closed() {
            return;
        }
        let records = self.gateway.recording.load(Ordering::Relaxed);
        if self.walking.is_none() {
            // Its walk was given up because the ledger is away, or has gone to another node.
            let refusal = if records { told::elsewhere() } else { told::unrecordable() };
            // Whoever asked may be gone.
            let _ = wish.answer.send(told::answered(told::refused_move(&wish.action, &refusal)));
            return;
        }
        if wish.shared && self.recorded == 0 {
            // Nothing is decided in it before it is known who opened it: two that do would not be told from each other.
            let (gateway, principal, id) = (self.gateway.clone(), self.principal.clone(), self.id.clone());
            tokio::spawn(async move {
                tokio::time::sleep(OPENS_WITHIN).await;
                crate::walks::hand_on(&gateway, &principal, &id, wish).await;
            });
            return;
        }
        let inputs = Value::Object(std::mem::take(&mut wish.inputs));
        let canonical = equal::form(&inputs, &wish.raw);
        let named = [b"move".as_slice(), self.id.as_str().as_bytes(), wish.action.as_bytes(), canonical.as_slice()];
        let fingerprint = keyed_digest(&self.gateway.secret, &named);
        // The same in every walk, so that two can be compared.
        let digest = keyed_digest(&self.gateway.secret, &[b"inputs", canonical.as_slice()]);
        let action = ActionName::new(wish.action.chars().take(128).collect::<String>());
        let config = self.gateway.config();
        let mask = config.privacy.of(action.as_str());
        let most_ms = self.patience_ms(action.as_str());
        let shown = mask.shows_arguments() && wish.raw.len() <= VIEWED_BYTES_MAX;
        let taking = Taking {
            id: wish.id.clone(),
            action: action.clone(),
            expect_seq: wish.expect_seq,
            inputs: Payload { digest, size: wish.raw.len() as u64 },
            fingerprint,
            principal: self.principal.clone(),
            key: wish.key.clone().map(CallKey),
            deadline: self.now() + wish.deadline_ms.map_or(most_ms, |said| said.min(most_ms)),
            view: shown.then(|| mask.view(&inputs)),
            reset: wish.reset,
        };
        let Value::Object(given) = inputs else { return };
        wish.inputs = given;
        let Some(wish) = self.meets(wish, &taking) else { return };
        // Each wish is recorded, so that there is a bound to how often any is made.
        let hasty = records.then(|| too_often(&self.gateway, &self.principal)).flatten().map(Box::new);
        let mut gates = Gates { refusal: hasty, ..Gates::default() };
        if wish.reset {
            let look = self.dispatcher.walk();
            gates.declared = look.and_then(|look| drift::begins_under(&self.gateway, &look)).map(Box::new);
        } else if gates.refusal.is_none() {
            gates.refusal = self.keep_up().or_else(|| self.objection(&wish)).map(Box::new);
            gates.patience = self.asks_first(action.as_str()).then(|| Box::new(config.people.patience.clone()));
        }
        let inputs = Value::Object(wish.inputs);
        let live = LiveMove {
            action,
            reset: wish.reset,
            of: wish.of,
            inputs,
            raw: wish.raw,
            answer: Some(wish.answer),
            also: Vec::new(),
            listener: Some(wish.listener),
            subject: wish.subject,
            results: BTreeMap::new(),
            written: None,
            gave: None,
        };
        if let Some(walking) = &mut self.walking {
            // Those whose agents were told before they ended, and for whom nobody waits.
            let waits = |live: &LiveMove| live.answer.is_some() || !live.also.is_empty();
            walking.moves.retain(|id, live| waits(live) || self.dispatcher.is_open(id));
            // A wish that goes on with what is settled needs what that gave.
            let unsettled = !taking.reset && self.dispatcher.walk().is_some_and(|look| !look.unsettled.is_empty());
            let results = if unsettled { walking.past.clone() } else { BTreeMap::new() };
            let gave = results.iter().find(|((part, _), _)| *part == Part::Act);
            let gave = gave.and_then(|(_, value)| serde_json::value::to_raw_value(value).ok());
            walking.moves.insert(wish.id, LiveMove { results, gave, ..live });
        }
        self.take(Input::Move(Box::new(taking)), gates);
    }

    /// A wish that is to be looked at now. One that was made for its repeats alone goes back where it repeats nothing. One that is
    /// equal to a move whose answer its agent may just have read waits until that is known: it may be another one.
    fn meets(&self, mut wish: MoveWish, taking: &Taking) -> Option<MoveWish> {
        let met = self.dispatcher.meets(taking, self.now());
        if let (Some(Met::Made(first)), Some(made), None) = (&met, wish.made.take(), &wish.key)
            && self.gateway.deliveries.may_precede(first, made)
        {
            let deliveries = self.gateway.deliveries.clone();
            let (first, until) = (first.clone(), clock::until(taking.deadline - self.ahead_ms));
            let (gateway, principal, id) = (self.gateway.clone(), self.principal.clone(), self.id.clone());
            tokio::spawn(async move {
                // Known or not by then, the wish is handed in again.
                let _ = tokio::time::timeout(until, deliveries.settled(&first)).await;
                crate::walks::hand_on(&gateway, &principal, &id, wish).await;
            });
            return None;
        }
        match wish.unless_repeated.take() {
            Some(back) if met.is_none() => {
                // Whoever asked may be gone.
                let _ = back.send(Box::new(wish));
                None
            }
            _ => Some(wish),
        }
    }

    /// Follows the machine where that is declared otherwise by now. What is in the way of that is a No to every wish.
    fn keep_up(&mut self) -> Option<Refusal> {
        let (look, walking) = (self.dispatcher.walk()?, self.walking.as_ref()?);
        match drift::drifted(&self.gateway, &look, &walking.course, drift::is_busy(&look)) {
            Drifted::No => None,
            Drifted::Follows(Declared { definition, hash }, kit) => {
                self.take(Input::Migrate { definition, hash }, Gates::default());
                self.dispatcher.share_machines(&kit.machines);
                None
            }
            stops @ Drifted::Stops { .. } => stops.refusal(),
        }
    }

    /// What is wrong with a wish by its inputs and the fields.
    fn objection(&self, wish: &MoveWish) -> Option<Refusal> {
        if !self.gateway.recording.load(Ordering::Relaxed) {
            return Some(told::unrecordable());
        }
        let (look, walking) = (self.dispatcher.walk()?, self.walking.as_ref()?);
        let frame = look.frames.last()?;
        let (name, action) = look.machines.get(&frame.machine)?.action(&wish.action)?;
        // Two machines may have an action of that name.
        if let Some(of) = wish.of.as_ref().filter(|of| !of.is(look.root, &frame.machine)) {
            return Some(self.of_another(name, of.machine(), &frame.machine));
        }
        let inputs = Value::Object(wish.inputs.clone());
        let fields = walking.course.fields().as_object().cloned().unwrap_or_default();
        let at = Position { state: frame.state.clone(), fields, seq: frame.moves, taken: frame.taken.clone() };
        let admitted = action.admits(&at, &inputs).is_ok();
        let guarded = action.guarded(&at, &inputs);
        let listing = self.gateway.catalogue.now();
        let names = listing.machines().names();
        let unfit = walking.kit.inputs(&frame.machine, name).filter(|schema| schema.fits(&inputs) == Some(false));
        let unfit = unfit.map(|schema| {
            let unmet = guarded.as_ref().and_then(|guarded| guarded.unmet.as_ref());
            self.unfit(schema, &inputs, (&frame.machine, name), names, unmet)
        });
        let Some(guarded) = guarded.filter(|guarded| guarded.counts(unfit.is_some())) else {
            // Begun now, it would fail by what only we do not know yet, and its resolution would be followed.
            let awaits = || action.tools().find_map(|tool| not_known_yet(&self.gateway, &listing, tool.as_str()));
            return unfit.or_else(|| admitted.then(awaits).flatten());
        };
        let schema = schema(action, |tool| listing.find(tool.as_str()).cloned());
        let retake = Retake {
            session: &self.id,
            machine: &frame.machine,
            action: name.as_str(),
            schema: schema.as_ref(),
            names,
        };
        let holds = |inputs: &Value| action.admits(&at, inputs).is_ok();
        let no = self.guarded(&retake, &wish.inputs, &guarded, holds);
        Some(match unfit {
            Some(unfit) => guarded.beside(unfit, no),
            None => no,
        })
    }

    /// Reads anew what a walk wrote, after a step of it was not recorded.
    pub(super) async fn restore_walk(&mut self, trace: Option<&Trace>) -> Result<(), Error> {
        let Some(had) = self.walking.take() else { return Ok(()) };
        let found = match trace {
            Some(trace) => load::walking(&self.gateway, trace, &self.dispatcher).await?,
            None => None,
        };
        // Who waits is known only here.
        self.walking = Some(match found {
            Some(found) => Walking { moves: had.moves, undone: had.undone, ..found },
            None => had,
        });
        Ok(())
    }

    /// Another node drives the walk by now: wishes that were not recorded are handed in again, wherever it is.
    pub(super) fn hand_on(&mut self, failed: &VecDeque<Turn>) {
        let now = self.now();
        let Some(walking) = &mut self.walking else { return };
        self.gateway.leaves(&self.id);
        for turn in failed {
            let Input::Move(taking) = &turn.input else { continue };
            let Some(mut live) = walking.moves.remove(&taking.id) else { continue };
            let own = live.answer.take().map(|answer| (taking.id.clone(), answer));
            // Whoever wished for the same waits with it, and is told by whoever drives the walk.
            let others = std::mem::take(&mut live.also).into_iter().map(|answer| (mint::call(), answer));
            for (wished, answer) in own.into_iter().chain(others) {
                let wish = MoveWish {
                    id: wished,
                    action: live.action.to_string(),
                    inputs: live.inputs.as_object().cloned().unwrap_or_default(),
                    raw: live.raw.clone(),
                    expect_seq: taking.expect_seq,
                    of: live.of.clone(),
                    key: taking.key.as_ref().map(|key| key.0.clone()),
                    deadline_ms: Some(taking.deadline.since_ms(now)),
                    reset: taking.reset,
                    subject: live.subject.clone(),
                    answer,
                    listener: live.listener.take().unwrap_or_else(Listener::of_the_answer),
                    made: None,
                    shared: false,
                    unless_repeated: None,
                };
                let (gateway, principal, id) = (self.gateway.clone(), self.principal.clone(), self.id.clone());
                tokio::spawn(async move { crate::walks::hand_on(&gateway, &principal, &id, wish).await });
            }
        }
    }

    /// Tells whoever waits for a move that it was not made.
    pub(super) fn refuse_move(&mut self, of: &CallId, refusal: &Refusal) {
        let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.remove(of)) else { return };
        for answer in live.answer.into_iter().chain(live.also) {
            // Whoever asked may be gone.
            let _ = answer.send(told::answered(told::refused_move(live.action.as_str(), refusal)));
        }
    }

    /// Follows where moves lead, and keeps what they wrote beside the step.
    pub(super) fn follow(&mut self, events: &[Event]) -> Vec<StoredFields> {
        let mut kept = Vec::new();
        let Some(walking) = &mut self.walking else { return kept };
        let Some(look) = self.dispatcher.walk() else { return kept };
        for event in events {
            match &event.fact {
                Fact::WalkBegan { .. } => {
                    let body = serde_json::to_vec(&walking.course).unwrap_or_default();
                    kept.push(StoredFields { seq: 0, body: Bytes::from(body) });
                }
                Fact::MoveMade { of, to, enters, moves, .. } => {
                    let written = walking.moves.get(of).and_then(|live| live.written.clone()).unwrap_or_default();
                    let body = serde_json::to_vec(&written).unwrap_or_default();
                    kept.push(StoredFields { seq: *moves, body: Bytes::from(body) });
                    match enters.as_ref().and_then(|machine| look.machines.get(machine)) {
                        Some(machine) => walking.course.enter(machine, written),
                        None => walking.course.arrive(to.len(), written),
                    }
                    walking.past.clear();
                }
                Fact::WalkMigrated { .. } => walking.kit = self.gateway.kits.of(look.hash, look.machines),
                Fact::WalkReset { .. } => {
                    walking.since = event.at;
                    if let Some(machine) = look.machines.get(look.root) {
                        walking.course = Course::begin(machine, Map::new());
                    }
                    // It may begin under another declaration than it had.
                    walking.kit = self.gateway.kits.of(look.hash, look.machines);
                    walking.past.clear();
                }
                Fact::MoveEnded { of, .. } => {
                    // What is not settled may be gone on with.
                    if let Some(live) = walking.moves.get(of) {
                        walking.past.clone_from(&live.results);
                    }
                }
                _ => {}
            }
        }
        kept
    }

    /// Keeps what another node needs to go on with the open move.
    pub(super) fn append_move(&self, append: &mut Append, input: &Input) {
        if let Input::Begin(beginning) = input {
            append.machine = Some(beginning.machine.to_string());
        }
        let Some(walking) = &self.walking else { return };
        if let Input::Move(taking) = input
            && self.dispatcher.is_open(&taking.id)
            && let Some(live) = walking.moves.get(&taking.id)
        {
            let body = Bytes::copy_from_slice(live.raw.as_bytes());
            append.arguments.push(StoredArguments { call: taking.id.clone(), body });
        }
        for event in &append.events {
            if let Fact::MoveEnded { of, .. } = &event.fact {
                append.forget.push(of.clone());
            }
        }
    }

    /// What touches nothing outside is done at once: what it leads to is recorded behind it.
    pub(super) fn at_once(&mut self, effect: Effect) {
        match effect {
            Effect::Begin(wish) => self.begin_leg(*wish),
            Effect::Weigh { of, what } => self.weigh(of, what),
            Effect::Join { of, first } => self.join_move(&of, first),
            Effect::Unwind { .. }
            | Effect::Send(_)
            | Effect::Abort(_)
            | Effect::Reply(_)
            | Effect::Ask(_)
            | Effect::Withdraw(_)
            | Effect::Inquire(_)
            | Effect::Tell(_)
            | Effect::Retract { .. } => {}
        }
    }

    /// Undoes what was done in a walk that was given up.
    pub(super) fn unwind(&self, of: CallId, since: Timestamp) {
        let (gateway, session, mail) = (self.gateway.clone(), self.id.clone(), self.mail.clone());
        tokio::spawn(async move {
            let (undone, failed, doubtful) = super::post::unwind_for(&gateway, &session, since).await;
            // Should its driver have ended, whoever takes it up begins again.
            let _ = mail.send(Mail::Unwound { of, undone, failed, doubtful });
        });
    }

    /// How long a move is waited for where its agent does not say: longer than its action may take, which then ends it, else as long
    /// as its tools may take.
    fn patience_ms(&self, action: &str) -> u64 {
        let look = self.dispatcher.walk();
        let machine = look.as_ref().and_then(|look| look.machines.get(&look.frames.last()?.machine));
        let Some((_, action)) = machine.and_then(|machine| machine.action(action)) else { return DEADLINE_MS };
        let listing = self.gateway.catalogue.now();
        let tools = action.does.tools().filter_map(|used| listing.find(used.tool.as_str()));
        let tools_ms = tools.map(|tool| tool.rules.contract.deadline_ms).max();
        match action.timeout_ms {
            Some(timeout_ms) => timeout_ms.saturating_add(PATIENCE_MS),
            None => tools_ms.unwrap_or_default().max(DEADLINE_MS),
        }
    }

    /// Whether a person is asked before that action is taken.
    fn asks_first(&self, action: &str) -> bool {
        let look = self.dispatcher.walk();
        let machine = look.as_ref().and_then(|look| look.machines.get(&look.frames.last()?.machine));
        machine.and_then(|machine| machine.action(action)).is_some_and(|(_, action)| action.queue.is_some())
    }

    /// What was done in the walk was undone, some of it.
    pub(super) fn hear_of_undone(&mut self, undone: &[Undone]) {
        let Some(walking) = &mut self.walking else { return };
        walking.undone = undone.iter().map(|undone| undone.made).collect();
        let calls: Vec<CallId> = undone.iter().map(|undone| undone.call.clone()).collect();
        if let Some(late) = self.dispatcher.undone_late(&calls) {
            self.take(late, Gates::default());
        }
    }

    /// Where the walk is, as agents are shown it.
    pub(super) fn view(&self) -> Option<View> {
        self.seen().map(|seen| seen.view)
    }

    /// The same, with the machines it is in.
    pub(super) fn seen(&self) -> Option<Seen> {
        let (look, walking) = (self.dispatcher.walk()?, self.walking.as_ref()?);
        let mut seen = drift::seen(&self.gateway, &self.id, &look, &walking.course, self.now())?;
        seen.view.tells_undone(walking.undone.iter().filter(|made| **made >= walking.since).count());
        Some(seen)
    }
}
