//! A walk as its session knows it: where it is, the move that is being made, and what is not settled of an earlier one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::clock::{Clock, Waits};
use super::deed::{Deeds, Unwound};
use super::moving::{LegEnd, LegState, MoveState, Unsettled};
use crate::certainty::Certainty;
use crate::dispatcher::Deadline;
use crate::dispatcher::cancel::CancelReason;
use crate::event::Fact;
use crate::id::{ActionName, AttemptId, CallId, Digest, MachineName, StateName};
use crate::machine::{Action, Machine, Machines, Position};
use crate::outcome::Outcome;
use crate::refusal::RefusalKind;
use crate::time::Timestamp;
use crate::walk::{Beginning, Declared, Frame, Later, Part, Taking, Weighed};

/// How many moves are remembered for their repeats.
const RECENT_MAX: usize = 64;
/// How long a move is found by its repeat after it was made.
pub(in crate::dispatcher) const REPEATED_MS: u64 = 15 * 60 * 1000;
/// How long a move is found by the agent's own key after it was made.
pub(in crate::dispatcher) const KEYED_MS: u64 = 24 * 60 * 60 * 1000;

/// A walk through a machine.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct WalkState {
    pub(in crate::dispatcher) root: MachineName,
    pub(in crate::dispatcher) hash: Digest,
    pub(in crate::dispatcher) machines: Arc<Machines>,
    /// Where it is, the machine it began in first.
    pub(in crate::dispatcher) frames: Vec<Frame>,
    /// How many moves were made.
    pub(in crate::dispatcher) moves: u64,
    /// The time of each machine it is in, as the frames are.
    pub(super) clocks: Vec<Clock>,
    pub(super) waits: Waits,
    pub(in crate::dispatcher) open: Option<MoveState>,
    pub(in crate::dispatcher) unsettled: Option<Unsettled>,
    /// When actions of a machine can be taken again that failed for now, whatever else is done meanwhile.
    pub(in crate::dispatcher) later: BTreeMap<(MachineName, ActionName), Timestamp>,
    /// The wish that a person allowed after its agent had gone.
    pub(in crate::dispatcher) granted: Option<Digest>,
    /// The wish that a person did not allow, and whether they said so or nobody said anything.
    pub(in crate::dispatcher) denied: Option<(Digest, RefusalKind)>,
    /// The wish to begin again that is being looked at.
    resets: Option<Taking>,
    /// The declaration under which it would begin, where that is another.
    begins_under: Option<Declared>,
    /// The moves that were made and whose answer may not have arrived.
    pub(in crate::dispatcher) recent: VecDeque<Made>,
    /// How often what an action did is done again on purpose, since it was last taken.
    pub(in crate::dispatcher) redone: BTreeMap<(MachineName, ActionName), u32>,
    /// What was done of actions that were not made, since another call beside that was not done.
    pub(in crate::dispatcher) halves: BTreeMap<(MachineName, ActionName), Vec<String>>,
    /// The move with which it was given up.
    pub(in crate::dispatcher) aborted_by: Option<CallId>,
    /// What was done in it is not undone yet.
    pub(in crate::dispatcher) unwinding: bool,
    /// What was done in it.
    pub(in crate::dispatcher) deeds: Deeds,
    /// What became of that, once it was given up.
    pub(in crate::dispatcher) unwound: Option<Unwound>,
}

/// A move whose answer its repeat finds: one that was made, or that did something and was not well done.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Made {
    pub(in crate::dispatcher) id: CallId,
    pub(in crate::dispatcher) taking: Taking,
    pub(in crate::dispatcher) at: Timestamp,
    pub(in crate::dispatcher) delivered: bool,
    /// It was not well done: once its agent knows that, an equal wish is another one.
    pub(in crate::dispatcher) failed: bool,
}

impl WalkState {
    /// Whether a walk can begin like that.
    pub(in crate::dispatcher) fn can_begin(beginning: &Beginning) -> bool {
        Self::begin(beginning, Timestamp::default()).is_some()
    }

    pub(super) fn begin(beginning: &Beginning, at: Timestamp) -> Option<Self> {
        let machines = Machines::read(&beginning.definition).ok()?;
        let machine = machines.get(&beginning.machine)?;
        let first = frame(machine, None);
        let (frames, moves) = match &beginning.from {
            Some(fork) => (fork.frames.clone(), fork.seq),
            None => (vec![first], 0),
        };
        let spent_ms = beginning.from.iter().flat_map(|fork| &fork.spent_ms).copied().chain(std::iter::repeat(0));
        let clocks =
            frames.iter().zip(spent_ms).map(|(_, before_ms)| Clock { before_ms, ..Clock::new(at, 0) }).collect();
        let later = beginning.from.iter().flat_map(|fork| &fork.later).filter(|later| later.until > at);
        let later = later.map(|later| ((later.machine.clone(), later.action.clone()), later.until)).collect();
        let known =
            |frame: &Frame| machines.get(&frame.machine).is_some_and(|machine| machine.states().contains(&frame.state));
        (!frames.is_empty() && frames.iter().all(known)).then(|| Self {
            root: beginning.machine.clone(),
            hash: beginning.hash.clone(),
            frames,
            moves,
            clocks,
            waits: Waits::default(),
            open: None,
            unsettled: None,
            later,
            granted: None,
            denied: None,
            resets: None,
            begins_under: None,
            recent: VecDeque::new(),
            redone: BTreeMap::new(),
            halves: BTreeMap::new(),
            aborted_by: None,
            unwinding: false,
            deeds: Deeds::new(at),
            unwound: None,
            machines: Arc::new(machines),
        })
    }

    /// The machine it is in, and where.
    pub(in crate::dispatcher) fn top(&self) -> (&Machine, &Frame) {
        let frame = self.frames.last().expect("a walk is always in a machine");
        let machine =
            self.machines.get(&frame.machine).expect("every frame's machine was looked up when it was entered");
        (machine, frame)
    }

    /// Where it is, as far as its machine needs to know for the order of moves.
    pub(in crate::dispatcher) fn position(&self) -> Position {
        let (_, frame) = self.top();
        let (state, taken) = (frame.state.clone(), frame.taken.clone());
        Position { state, fields: serde_json::Map::new(), seq: frame.moves, taken }
    }

    /// The action of the move that is being made.
    pub(in crate::dispatcher) fn action(&self) -> Option<(&MoveState, &Action)> {
        let open = self.open.as_ref()?;
        let (_, action) = self.machines.get(&open.machine)?.action(open.taking.action.as_str())?;
        Some((open, action))
    }

    /// Whether it can go no further: it is where its first machine ends, or was given up.
    pub(in crate::dispatcher) fn is_over(&self) -> bool {
        let (machine, frame) = self.top();
        self.aborted_by.is_some() || (self.frames.len() == 1 && machine.is_terminal(&frame.state))
    }

    /// The machine whose steps are used up while another runs within it, and how many it has. What is done in the one within
    /// counts for those it runs in.
    pub(in crate::dispatcher) fn out_of_steps(&self) -> Option<(&MachineName, u32)> {
        let mut within = 0_u64;
        let mut spent = None;
        for (depth, frame) in self.frames.iter().rev().enumerate() {
            within = within.saturating_add(frame.moves);
            let most = self.machines.get(&frame.machine).and_then(|machine| machine.bounds().steps_max);
            // Each action that waits for the one within was taken as well.
            let taken = within.saturating_add(depth as u64);
            if let Some(most) = most.filter(|most| depth > 0 && taken >= u64::from(*most)) {
                spent = Some((&frame.machine, most));
            }
        }
        spent
    }

    /// After how many moves the machine was entered that it is in, and how often that action was taken there since.
    pub(in crate::dispatcher) fn taken(&self, action: &ActionName) -> (u64, u32) {
        let taken = self.frames.last().and_then(|frame| frame.taken.get(action));
        (self.clocks.last().map_or(0, |clock| clock.entered), taken.copied().unwrap_or_default())
    }

    /// What failed for now, in any machine.
    pub(in crate::dispatcher) fn postponed(&self) -> Vec<Later> {
        let later = self.later.iter();
        later
            .map(|((machine, action), until)| Later { machine: machine.clone(), action: action.clone(), until: *until })
            .collect()
    }

    pub(in crate::dispatcher) fn deadline(&self) -> Option<Deadline> {
        let open = self.open.as_ref()?;
        let call = || open.taking.id.clone();
        if let Some(at) = open.not_before {
            return Some(Deadline { at, call: call(), reason: "the move's next try is due" });
        }
        let asks = open.question.is_some() && !open.approved && !open.answered;
        asks.then(|| Deadline { at: open.answer_due(), call: call(), reason: "the agent's answer is due" })
    }

    /// Whether where those states lead follows from the action: one state for each machine that it goes on in.
    pub(in crate::dispatcher) fn leads(
        &self,
        action: &ActionName,
        to: &[StateName],
        enters: Option<&MachineName>,
    ) -> bool {
        let mut depth = self.frames.len();
        let mut action = Some(action.clone());
        if let Some(enters) = enters {
            return to.is_empty() && self.machines.get(enters).is_some();
        }
        for (n, state) in to.iter().enumerate() {
            let Some(frame) = depth.checked_sub(1).and_then(|at| self.frames.get(at)) else { return false };
            let Some(machine) = self.machines.get(&frame.machine) else { return false };
            let taken = action.as_ref().and_then(|action| machine.action(action.as_str()));
            if !taken.is_some_and(|(_, taken)| taken.to.states().any(|target| target == state)) {
                return false;
            }
            let ends = machine.is_terminal(state) && depth > 1;
            if ends == (n + 1 == to.len()) {
                return false;
            }
            action.clone_from(&frame.via);
            depth -= 1;
        }
        !to.is_empty()
    }

    /// Goes where a move leads.
    fn arrive(&mut self, action: &ActionName, to: &[StateName], enters: Option<&MachineName>, at: Timestamp) {
        if let Some(machine) = enters.and_then(|name| self.machines.get(name)) {
            let entered = frame(machine, Some(action.clone()));
            self.frames.push(entered);
            self.clocks.push(Clock::new(at, self.moves));
            return;
        }
        let mut action = Some(action.clone());
        for (n, state) in to.iter().enumerate() {
            let mut within = 0;
            if n > 0 {
                within = self.frames.pop().map_or(0, |ended| ended.moves);
                self.clocks.pop();
            }
            let Some(frame) = self.frames.last_mut() else { return };
            if let Some(action) = action.take() {
                *frame.taken.entry(action).or_default() += 1;
            }
            frame.state = state.clone();
            frame.moves = frame.moves.saturating_add(within).saturating_add(1);
            action.clone_from(&frame.via);
        }
    }

    /// Changes with what a move did.
    pub(super) fn apply(&mut self, fact: &Fact, at: Timestamp) {
        match fact {
            Fact::WalkMigrated { definition, hash } => {
                if let Ok(machines) = Machines::read(definition) {
                    self.machines = Arc::new(machines);
                    self.hash = hash.clone();
                    // What could not be told before may be told now.
                    self.unsettled.iter_mut().for_each(|past| past.unclear = None);
                }
            }
            Fact::MoveReceived { taking, gates } => {
                if taking.reset {
                    self.resets = Some((**taking).clone());
                    self.begins_under = gates.declared.as_deref().cloned();
                    return;
                }
                // It is open once something hangs on it: a refusal or a join follows in the same step.
                if self.open.is_none() {
                    let (machine, frame) = self.top();
                    let timeout_ms = machine.action(taking.action.as_str()).and_then(|(_, action)| action.timeout_ms);
                    let mut open = MoveState::new(taking, &frame.machine, at, timeout_ms, self.rest());
                    open.hold_ms = gates.patience.as_ref().map(|patience| patience.hold_ms);
                    if let Some(unsettled) = self
                        .unsettled
                        .as_ref()
                        .filter(|past| past.taking.fingerprint == taking.fingerprint && past.done())
                    {
                        // Where something is still to be done, it is cleared up after that too.
                        let whole = unsettled.is_whole(&self.machines);
                        let beside = unsettled.beside.iter().filter(|leg| whole || leg.part != Part::Exit);
                        // What it is about is known by now, however late.
                        let known = unsettled.legs.iter().map(|leg| LegState { overdue: false, ..leg.clone() });
                        open.legs = beside.cloned().chain(known).collect();
                        open.attempt = unsettled.legs.first().map_or(1, |leg| leg.attempt);
                        open.gated = Some(Weighed::Proceed);
                        open.approved = true;
                        open.goes_on = true;
                    }
                    self.open = Some(open);
                }
            }
            Fact::MoveRefused { of, refusal } => {
                let told = self.open.take_if(|open| open.taking.id == *of);
                // A No stays one while the walk stays where it is; that nobody said anything is told once.
                match (told, refusal.kind) {
                    (Some(open), RefusalKind::ApprovalDenied) => {
                        self.denied = Some((open.taking.fingerprint, RefusalKind::ApprovalDenied));
                    }
                    (Some(_), RefusalKind::ApprovalExpired) => self.denied = None,
                    _ => {}
                }
                (self.resets, self.begins_under) = (None, None);
            }
            Fact::MoveJoined { of, .. } => {
                self.open.take_if(|open| open.taking.id == *of);
                (self.resets, self.begins_under) = (None, None);
            }
            Fact::MoveWeighed { weighed, .. } => {
                let gates =
                    self.action().is_some_and(|(open, action)| action.stage.gate.is_some() && open.gated.is_none());
                if let Some(open) = &mut self.open {
                    match weighed {
                        Weighed::Proceed => open.gated = Some(weighed.clone()),
                        Weighed::Skip => open.skips = true,
                        Weighed::Retry if gates => open.gated = Some(weighed.clone()),
                        Weighed::Arrives { .. } if open.is_not_well() => {
                            // It was not well done, and leads on all the same.
                            (open.skips, open.weighed) = (true, Some(weighed.clone()));
                        }
                        _ => open.weighed = Some(weighed.clone()),
                    }
                }
            }
            Fact::MoveWaits { until, attempt, .. } => {
                if let Some(open) = &mut self.open {
                    // What failed is tried again under its old key, so that what was done of it is not done twice.
                    if open.weighed == Some(Weighed::Retry) && open.certainty() == Certainty::Processed {
                        let action = (open.machine.clone(), open.taking.action.clone());
                        *self.redone.entry(action).or_default() += 1;
                    }
                    if std::mem::take(&mut open.goes_on) {
                        // What it went on with was judged.
                        self.unsettled = None;
                    }
                    open.attempt = *attempt;
                    open.not_before = Some(*until);
                    (open.gated, open.weighed, open.skips) = (None, None, false);
                }
            }
            Fact::Ticked { .. } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.not_before.is_some_and(|until| until <= at)) {
                    open.not_before = None;
                }
            }
            Fact::MoveMade { of, action, to, enters, moves, .. } => {
                self.arrive(action, to, enters.as_ref(), at);
                self.moves = *moves;
                self.unsettled = None;
                (self.granted, self.denied) = (None, None);
                self.later.retain(|_, until| *until > at);
                self.redone.retain(|(machine, _), _| enters.as_ref() != Some(machine));
                if let Some(open) = &self.open {
                    self.redone.remove(&(open.machine.clone(), action.clone()));
                    self.halves.remove(&(open.machine.clone(), action.clone()));
                    self.later.remove(&(open.machine.clone(), action.clone()));
                    let (id, taking) = (of.clone(), open.taking.clone());
                    self.remember(Made { id, taking, at, delivered: false, failed: false });
                }
            }
            Fact::MoveEnded { of, certainty, outcome, not_before, granted } => {
                let Some(open) = self.open.take() else { return };
                if *granted {
                    self.granted = Some(open.taking.fingerprint.clone());
                }
                if *outcome == Outcome::Refused {
                    let kind = if open.lapsed { RefusalKind::ApprovalExpired } else { RefusalKind::ApprovalDenied };
                    self.denied = Some((open.taking.fingerprint.clone(), kind));
                }
                if let Some(until) = not_before {
                    self.later.insert((open.machine.clone(), open.taking.action.clone()), *until);
                }
                if open.spends_a_turn(*outcome) {
                    self.spend_turn(&open.machine);
                }
                let doubtful = *certainty == Certainty::InDoubt;
                if !doubtful {
                    let of = (open.machine.clone(), open.taking.action.clone());
                    self.leave_half(of, open.done_alone().into_iter().map(str::to_owned).collect());
                }
                let untold = *outcome == Outcome::Unresolved && *certainty == Certainty::Processed;
                if *certainty == Certainty::Processed && open.is_not_well() {
                    // It was done and is known not to help: taken again, it is done again. Who was not told that repeats it.
                    *self.redone.entry((open.machine.clone(), open.taking.action.clone())).or_default() += 1;
                    if open.wrote() && !open.answered {
                        let (id, taking) = (of.clone(), open.taking.clone());
                        self.remember(Made { id, taking, at, delivered: false, failed: true });
                    }
                }
                if doubtful || untold {
                    let (legs, beside) = open.last_try().cloned().partition(|leg| leg.part == Part::Act);
                    let unclear = match &open.weighed {
                        Some(Weighed::Unclear { why }) => Some(why.clone()),
                        _ => None,
                    };
                    self.unsettled =
                        Some(Unsettled { taking: open.taking, machine: open.machine, legs, beside, unclear });
                } else if open.goes_on && *outcome != Outcome::Cancelled {
                    // What it went on with was judged, and its agent knows how.
                    self.unsettled = None;
                }
            }
            Fact::WalkReset { moves, .. } => {
                let declared = self.begins_under.take();
                let read = declared.and_then(|now| Some((Machines::read(&now.definition).ok()?, now.hash)));
                // What cannot be read was refused when the configuration was read.
                if let Some((machines, hash)) = read.filter(|(machines, _)| machines.get(&self.root).is_some()) {
                    (self.machines, self.hash) = (Arc::new(machines), hash);
                }
                let machine = self.machines.get(&self.root).expect("a walk's own machine was read when it began");
                self.frames = vec![frame(machine, None)];
                self.clocks = vec![Clock::new(at, *moves)];
                self.moves = *moves;
                (self.unsettled, self.granted, self.denied, self.aborted_by) = (None, None, None, None);
                self.redone.clear();
                self.halves.clear();
                self.unwound = None;
                self.deeds.begin_again(at);
                // What failed for now did so whatever is begun again.
                self.later.retain(|_, until| *until > at);
                // An equal wish is another one by now, unless it brings the same key.
                self.recent.retain(|made| made.taking.key.is_some());
                if let Some(taking) = self.resets.take() {
                    self.recent.push_back(Made { id: taking.id.clone(), taking, at, delivered: false, failed: false });
                }
            }
            Fact::WalkAborted { of } => {
                self.aborted_by = Some(of.clone());
                // All of it is undone, as far as it can be.
                self.halves.clear();
                self.unwinding = true;
            }
            Fact::WalkUnwound { undone, failed, doubtful, left, more, .. } => {
                match self.unwound.as_mut().filter(|_| !self.unwinding) {
                    Some(unwound) => unwound.follow(*undone, failed, doubtful),
                    None => self.unwound = Some(self.deeds.unwound(*undone, (failed, doubtful), left, *more)),
                }
                self.unwinding = false;
            }
            Fact::AnswerDelivered { call } => {
                if let Some(made) = self.recent.iter_mut().find(|made| made.id == *call) {
                    made.delivered = true;
                }
            }
            Fact::InterimAnswered { call } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.taking.id == *call) {
                    open.answered = true;
                }
            }
            Fact::InputsGiven { call, .. } => {
                // Whoever gives them is there.
                let of = |open: &&mut MoveState| open.legs.iter().any(|leg| leg.call == *call);
                if let Some(open) = self.open.as_mut().filter(of) {
                    open.cancel = open.cancel.filter(|reason| reason.is_wish());
                }
            }
            Fact::CancelRequested { call, reason } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.taking.id == *call)
                    && !open.cancel.is_some_and(CancelReason::is_wish)
                {
                    open.cancel = Some(*reason);
                }
                let legs = self.open.iter_mut().flat_map(|open| &mut open.legs).filter(|_| reason.is_wish());
                legs.filter(|leg| leg.call == *call && leg.end.is_none()).for_each(|leg| leg.stopped = true);
            }
            Fact::Resumed { .. } => {
                if let Some(open) = &mut self.open {
                    open.cancel = open.cancel.or(Some(CancelReason::Disconnected));
                }
            }
            Fact::InteractionLapsed { interaction, .. } => {
                let asked = self.open.as_mut().filter(|open| open.question.as_ref() == Some(interaction));
                asked.into_iter().for_each(|open| open.lapsed = true);
            }
            Fact::ReversalVoided { call, .. } => self.deeds.lasts(call, true),
            Fact::ReversalArmed { call, .. } => self.deeds.lasts(call, false),
            Fact::DoubtResolved { call, certainty, arrives_by, .. } => {
                self.deeds.settle(call, *certainty);
                if let Some(unwound) = self.unwound.as_mut().filter(|_| certainty.nothing_happened()) {
                    unwound.forget(call);
                }
                self.postpone(call, *arrives_by);
                self.settle(call, *certainty);
            }
            _ => {}
        }
    }

    /// In a stage the agent's calls are counted, and not only those that came to something.
    fn spend_turn(&mut self, machine: &MachineName) {
        let stage = self.machines.get(machine).is_some_and(Machine::is_stage);
        if let Some(frame) = self.frames.last_mut().filter(|frame| stage && frame.machine == *machine) {
            frame.moves = frame.moves.saturating_add(1);
        }
    }

    /// Remembers a move for its repeats.
    fn remember(&mut self, made: Made) {
        self.recent.push_back(made);
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    /// Whether a call of the walk ended without anybody knowing what that attempt did, and nothing was found out since.
    pub(in crate::dispatcher) fn doubts(&self, attempt: &AttemptId) -> bool {
        let open = self.open.iter().flat_map(|open| &open.legs);
        let past = self.unsettled.iter().flat_map(|past| &past.legs);
        let mut ends = open.chain(past).filter(|leg| leg.call == attempt.call).filter_map(|leg| leg.end.as_ref());
        ends.any(|end| end.certainty == Certainty::InDoubt && end.doubts.contains(&attempt.n))
    }

    /// Whether that call is what a move is about that is open, or not settled.
    pub(in crate::dispatcher) fn is_act(&self, call: &CallId) -> bool {
        let open = self.open.iter().flat_map(|open| &open.legs);
        let mut legs = open.chain(self.unsettled.iter().flat_map(|past| &past.legs));
        legs.any(|leg| leg.call == *call && leg.part == Part::Act)
    }

    /// A call of a move begins.
    pub(super) fn leg_begins(&mut self, leg: &crate::walk::LegOf, call: &CallId, reads: bool) {
        if let Some(open) = self.open.as_mut().filter(|open| open.taking.id == leg.of) {
            open.not_before = None;
            let (call, part, name, attempt) = (call.clone(), leg.part, leg.name.clone(), leg.attempt);
            open.legs.push(LegState {
                call,
                part,
                name,
                attempt,
                reads,
                overdue: false,
                asks: false,
                stopped: false,
                end: None,
            });
        }
    }

    /// The agent waits no longer for a call of the open move, which is still settled, or a person is asked about it.
    pub(super) fn leg_lingers(&mut self, call: &CallId, asks: bool) {
        let legs = self.open.as_mut().into_iter().flat_map(|open| open.legs.iter_mut());
        for leg in legs.filter(|leg| leg.call == *call) {
            (leg.overdue, leg.asks) = (leg.overdue || !asks, leg.asks || asks);
        }
    }

    /// A call of a move ended, of the one that is open or of one that is not settled.
    pub(super) fn leg_ends(&mut self, call: &CallId, end: LegEnd) {
        let open = self.open.as_mut().into_iter().flat_map(|open| open.legs.iter_mut());
        let unsettled = self.unsettled.as_mut().into_iter().flat_map(|past| past.legs.iter_mut());
        for leg in open.chain(unsettled).filter(|leg| leg.call == *call) {
            leg.end = Some(end.clone());
        }
        self.forget_settled();
    }

    /// What a call of a move did not do so far may still be done until then: its action is not taken again before.
    fn postpone(&mut self, call: &CallId, until: Option<Timestamp>) {
        let open = self.open.iter().map(|open| (&open.machine, &open.taking.action, &open.legs));
        let past = self.unsettled.iter().map(|past| (&past.machine, &past.taking.action, &past.legs));
        let of = open.chain(past).find(|(_, _, legs)| legs.iter().any(|leg| leg.call == *call));
        if let (Some((machine, action, _)), Some(until)) = (of, until) {
            let later = self.later.entry((machine.clone(), action.clone())).or_default();
            *later = (*later).max(until);
        }
    }

    /// Something becomes known of a call that had ended.
    fn settle(&mut self, call: &CallId, certainty: Certainty) {
        // The move may still be open: what is called last is made after the doubt.
        let open = self.open.as_mut().into_iter().flat_map(|open| open.legs.iter_mut());
        let past = self.unsettled.as_mut().into_iter().flat_map(|past| past.legs.iter_mut());
        for end in open.chain(past).filter(|leg| leg.call == *call).filter_map(|leg| leg.end.as_mut()) {
            end.certainty = certainty;
            if certainty == Certainty::Processed {
                end.outcome = Outcome::SucceededAfterCompensation;
            }
        }
        self.forget_settled();
    }

    /// What turned out not to be done, or only in part, stands in nobody's way.
    fn forget_settled(&mut self) {
        if let Some(past) = self.unsettled.take_if(|past| !past.in_doubt() && !past.done()) {
            let done = past.done_alone().into_iter().map(str::to_owned).collect();
            self.leave_half((past.machine.clone(), past.taking.action), done);
        }
    }

    /// Keeps what was done of a move that was not made, if anything was.
    fn leave_half(&mut self, of: (MachineName, ActionName), done: Vec<String>) {
        let known = self.halves.entry(of).or_default();
        known.extend(done);
        known.sort_unstable();
        known.dedup();
        self.halves.retain(|_, done| !done.is_empty());
    }
}

fn frame(machine: &Machine, via: Option<ActionName>) -> Frame {
    let (machine, state) = (machine.name().clone(), machine.initial().clone());
    Frame { machine, state, moves: 0, taken: BTreeMap::new(), via }
}
