//! A move as its session knows it: the calls it is made of, and what is not settled of an earlier one.

use super::clock::Waits;
use crate::certainty::Certainty;
use crate::dispatcher::cancel::CancelReason;
use crate::failure::Failure;
use crate::id::{CallId, InteractionId, MachineName};
use crate::machine::{Does, Machines};
use crate::outcome::Outcome;
use crate::refusal::RefusalKind;
use crate::registry::Code;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use crate::walk::{Part, Taking, Weighed};

/// A move that is being made.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct MoveState {
    pub(in crate::dispatcher) taking: Taking,
    pub(in crate::dispatcher) at: Timestamp,
    pub(in crate::dispatcher) machine: MachineName,
    /// When that is over. A wait for a person does not count.
    pub(in crate::dispatcher) deadline: Timestamp,
    /// How long it may take.
    pub(in crate::dispatcher) budget: Budget,
    pub(super) waits: Waits,
    /// The question whether it may be made.
    pub(in crate::dispatcher) question: Option<InteractionId>,
    /// For how long its agent is kept waiting for that, where that is not as long as it waits for anything.
    pub(super) hold_ms: Option<u64>,
    /// When that is over.
    pub(super) told_at: Option<Timestamp>,
    pub(in crate::dispatcher) approved: bool,
    /// Nobody answered that in time.
    pub(in crate::dispatcher) lapsed: bool,
    /// Which try this is, from 1.
    pub(in crate::dispatcher) attempt: u32,
    /// When this try begins.
    pub(in crate::dispatcher) not_before: Option<Timestamp>,
    /// The calls of all tries.
    pub(in crate::dispatcher) legs: Vec<LegState>,
    /// What its gate said in this try.
    pub(in crate::dispatcher) gated: Option<Weighed>,
    /// What was said of the act of this try.
    pub(in crate::dispatcher) weighed: Option<Weighed>,
    /// It is passed over, with nothing to show.
    pub(in crate::dispatcher) skips: bool,
    /// It is about what an earlier wish did.
    pub(super) goes_on: bool,
    /// The agent has an answer, though the move is not over.
    pub(in crate::dispatcher) answered: bool,
    pub(in crate::dispatcher) cancel: Option<CancelReason>,
}

/// How long a move may take, without people's time: as long as its agent waits, as its action may take, or as is left of the walk.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Budget {
    pub(in crate::dispatcher) ms: u64,
    /// The machine whose time would be over first, and how long that may take in all.
    pub(in crate::dispatcher) of: Option<(MachineName, u64)>,
}

/// When the time of a machine is over, and how much that was.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rest {
    pub(super) ends: Timestamp,
    pub(super) machine: MachineName,
    pub(super) most_ms: u64,
}

/// One call of a move.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct LegState {
    pub(in crate::dispatcher) call: CallId,
    pub(in crate::dispatcher) part: Part,
    pub(in crate::dispatcher) name: String,
    pub(in crate::dispatcher) attempt: u32,
    /// It changes nothing.
    pub(in crate::dispatcher) reads: bool,
    /// It is still being settled, and the move waits no longer.
    pub(in crate::dispatcher) overdue: bool,
    /// A person is asked whether it is made, and the agent was told so.
    pub(in crate::dispatcher) asks: bool,
    /// Somebody wished it stopped before it ended.
    pub(in crate::dispatcher) stopped: bool,
    pub(in crate::dispatcher) end: Option<LegEnd>,
}

/// How a call of a move ended.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct LegEnd {
    pub(in crate::dispatcher) outcome: Outcome,
    pub(in crate::dispatcher) certainty: Certainty,
    /// What failed, where something did.
    pub(in crate::dispatcher) code: Option<Code>,
    /// Why it was refused, where it was.
    pub(in crate::dispatcher) refused: Option<RefusalKind>,
    /// Whether a person allowed it when nobody waited any more, so that the next one like it needs no other.
    pub(in crate::dispatcher) granted: bool,
    /// The attempts of which nobody knows what they did.
    pub(in crate::dispatcher) doubts: Vec<u32>,
    /// What is told of its failure, where it is in doubt.
    pub(in crate::dispatcher) told: Option<Box<Told>>,
}

/// What a failure was taken for, and what was said of it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Told {
    pub(in crate::dispatcher) verdict: Option<Verdict>,
    pub(in crate::dispatcher) failure: Failure,
}

/// A move that may have been made, or was made and not told.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Unsettled {
    pub(in crate::dispatcher) taking: Taking,
    pub(in crate::dispatcher) machine: MachineName,
    /// The calls that it is about, of its last try.
    pub(in crate::dispatcher) legs: Vec<LegState>,
    /// The other calls of that try: what was looked at before, and what was called last. They belong to it, whoever goes on with it.
    pub(in crate::dispatcher) beside: Vec<LegState>,
    /// Why its machine cannot tell what follows from it, where that is why it was not made.
    pub(in crate::dispatcher) unclear: Option<String>,
}

impl LegEnd {
    pub(in crate::dispatcher) fn done(&self) -> bool {
        matches!(self.outcome, Outcome::Succeeded | Outcome::SucceededAfterCompensation)
    }
}

impl LegState {
    /// Whether it was not made, and the next one like it may be.
    pub(in crate::dispatcher) fn is_granted(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.granted)
    }

    /// Whether it came to nothing that is known because somebody stopped it: how that broke its connection is no failure of its own.
    pub(in crate::dispatcher) fn is_stopped(&self) -> bool {
        let open_ended = |end: &LegEnd| end.outcome == Outcome::Cancelled || end.certainty == Certainty::InDoubt;
        self.stopped && self.end.as_ref().is_none_or(open_ended)
    }

    /// Whether a person is asked whether it is made.
    pub(in crate::dispatcher) fn is_asked(&self) -> bool {
        self.asks && self.end.is_none()
    }

    pub(in crate::dispatcher) fn certainty(&self) -> Certainty {
        self.end.as_ref().map_or(Certainty::InDoubt, |end| end.certainty)
    }
}

impl Unsettled {
    /// Whether something of it is still in doubt.
    pub(in crate::dispatcher) fn in_doubt(&self) -> bool {
        self.legs.iter().any(|leg| leg.certainty() == Certainty::InDoubt)
    }

    /// Whether all of it was done, so that the next equal wish can go on with it.
    pub(in crate::dispatcher) fn done(&self) -> bool {
        self.legs.iter().all(|leg| leg.certainty() == Certainty::Processed)
    }

    /// The calls of it that changed something, where another one beside them was not done.
    pub(in crate::dispatcher) fn done_alone(&self) -> Vec<&str> {
        done_alone(self.legs.iter())
    }

    /// Whether every call that its action wants made was made.
    pub(super) fn is_whole(&self, machines: &Machines) -> bool {
        let action = machines.get(&self.machine).and_then(|machine| machine.action(self.taking.action.as_str()));
        match action.map(|(_, action)| &action.does) {
            Some(Does::Parallel(siblings)) => siblings.keys().all(|name| self.legs.iter().any(|leg| leg.name == *name)),
            Some(Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Machine(_) | Does::Allowed(_)) | None => {
                true
            }
        }
    }

    /// Whether the next equal wish can go on with it under that declaration: its action still wants the same calls made.
    pub(super) fn fits(&self, machines: &Machines) -> bool {
        let action = machines.get(&self.machine).and_then(|machine| machine.action(self.taking.action.as_str()));
        let wants = |name: &str| match action.map(|(_, action)| &action.does) {
            Some(Does::Tool(_) | Does::Function(_)) => name == "act",
            Some(Does::Parallel(siblings)) => siblings.contains_key(name),
            Some(Does::Nothing | Does::Machine(_) | Does::Allowed(_)) | None => false,
        };
        !self.in_doubt() && self.legs.iter().all(|leg| wants(&leg.name))
    }
}

impl MoveState {
    /// Whether that says that what was weighed of it cannot be told again, so that nobody could write what it leads to.
    pub(in crate::dispatcher) fn is_lost(&self, weighed: &Weighed) -> bool {
        matches!((&self.weighed, weighed), (Some(Weighed::Arrives { .. }), Weighed::Unclear { .. }))
    }

    pub(super) fn new(
        taking: &Taking,
        machine: &MachineName,
        at: Timestamp,
        timeout_ms: Option<u64>,
        rest: Option<Rest>,
    ) -> Self {
        let own = timeout_ms.map_or(taking.deadline, |budget| taking.deadline.min(at + budget));
        let rest = rest.filter(|rest| rest.ends < own);
        let deadline = rest.as_ref().map_or(own, |rest| rest.ends);
        let budget = Budget { ms: deadline.since_ms(at), of: rest.map(|rest| (rest.machine, rest.most_ms)) };
        Self {
            taking: taking.clone(),
            at,
            machine: machine.clone(),
            deadline,
            budget,
            waits: Waits::default(),
            question: None,
            hold_ms: None,
            told_at: None,
            approved: false,
            lapsed: false,
            attempt: 1,
            not_before: None,
            legs: Vec::new(),
            gated: None,
            weighed: None,
            skips: false,
            goes_on: false,
            answered: false,
            cancel: None,
        }
    }

    /// Whether nobody waits for it any more: its agent was told that a person is asked, or is gone.
    pub(in crate::dispatcher) fn is_left(&self) -> bool {
        self.answered || self.cancel.is_some()
    }

    /// When its agent hears that a person is being asked.
    pub(in crate::dispatcher) fn answer_due(&self) -> Timestamp {
        self.told_at.map_or(self.deadline, |at| at.min(self.deadline))
    }

    /// Whether what it did, or may have done, is known only since its agent was told that its time is over, or that it was stopped.
    pub(in crate::dispatcher) fn was_done_late(&self) -> bool {
        let mut acts = self.part(Part::Act);
        let was_over = acts.clone().any(|leg| leg.overdue) || self.part(Part::Exit).next().is_some();
        self.wrote() && was_over && acts.all(|leg| leg.certainty() == Certainty::Processed)
    }

    /// The call with which it was over before all of it was done, where it is cleared up after already: its time is over, or
    /// somebody wished it stopped. What an earlier wish did is judged without any.
    pub(in crate::dispatcher) fn left_with(&self, now: Timestamp) -> Option<usize> {
        if self.goes_on {
            return None;
        }
        let over = self.deadline <= now || self.cancel.is_some_and(CancelReason::is_wish);
        let of = |part| self.legs.iter().position(move |leg| leg.attempt == self.attempt && leg.part == part);
        of(Part::Act).filter(|_| over && of(Part::Exit).is_some())
    }

    /// Whether something was sent for it that its stage counts, though it was not made. What is in doubt counts once it is made.
    pub(super) fn spends_a_turn(&self, outcome: Outcome) -> bool {
        let acts = || self.legs.iter().filter(|leg| leg.part == Part::Act);
        let sent = acts().any(|leg| leg.certainty() != Certainty::NotSent);
        match outcome {
            Outcome::Exhausted | Outcome::Cancelled => sent,
            Outcome::Unresolved => sent && acts().all(|leg| leg.reads),
            _ => false,
        }
    }

    /// Whether that is a call of it.
    pub(super) fn has(&self, call: &CallId) -> bool {
        self.legs.iter().any(|leg| leg.call == *call)
    }

    /// The calls of this try.
    pub(in crate::dispatcher) fn last_try(&self) -> impl Iterator<Item = &LegState> + Clone {
        self.legs.iter().filter(|leg| leg.attempt == self.attempt)
    }

    /// Those for that part.
    pub(in crate::dispatcher) fn part(&self, part: Part) -> impl Iterator<Item = &LegState> + Clone {
        self.last_try().filter(move |leg| leg.part == part)
    }

    /// The calls of its last try that changed something, where another one beside them was not done.
    pub(in crate::dispatcher) fn done_alone(&self) -> Vec<&str> {
        done_alone(self.part(Part::Act))
    }

    /// Whether it certainly changed something.
    pub(in crate::dispatcher) fn wrote(&self) -> bool {
        let wrote = |leg: &LegState| leg.part == Part::Act && !leg.reads && leg.certainty() == Certainty::Processed;
        self.legs.iter().any(wrote)
    }

    /// Whether its act was done in its last try, and not well.
    pub(super) fn is_not_well(&self) -> bool {
        matches!(self.weighed, Some(Weighed::Retry | Weighed::Fail))
    }

    /// What is known of what it did, over all its tries.
    pub(in crate::dispatcher) fn certainty(&self) -> Certainty {
        let acts = || self.legs.iter().filter(|leg| leg.part == Part::Act).map(LegState::certainty);
        if acts().any(|certainty| certainty == Certainty::InDoubt) {
            Certainty::InDoubt
        } else if acts().any(|certainty| certainty == Certainty::Processed) {
            Certainty::Processed
        } else if acts().all(|certainty| certainty == Certainty::NotSent) {
            Certainty::NotSent
        } else {
            Certainty::NotProcessed
        }
    }
}

fn done_alone<'a>(legs: impl Iterator<Item = &'a LegState> + Clone) -> Vec<&'a str> {
    let is_done = |leg: &&LegState| leg.certainty() == Certainty::Processed;
    if legs.clone().all(|leg| is_done(&leg)) {
        return Vec::new();
    }
    legs.filter(is_done).filter(|leg| !leg.reads).map(|leg| leg.name.as_str()).collect()
}
