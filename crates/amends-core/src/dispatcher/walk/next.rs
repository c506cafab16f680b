//! What is next for the move that is being made: derived from what is recorded of it, and from nothing else.

use crate::certainty::Certainty;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::{MoveState, WalkState};
use crate::machine::{Action, Does, Resolution};
use crate::outcome::Outcome;
use crate::registry::Code;
use crate::time::Timestamp;
use crate::walk::{LegOf, LegWish, Part, Weighed, Weighing};

/// What is next for a move.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// Something has to happen first.
    Wait,
    /// Ask whether it may be made.
    Ask,
    /// Tell the agent that a person is being asked.
    Interim,
    /// Make a call.
    Begin(Box<LegWish>),
    /// Evaluate something.
    Weigh(Weighing),
    /// Try it again, not before that time.
    Again { until: Timestamp },
    /// It is made.
    Made,
    /// It is over without being made.
    Over(End),
}

/// How a move ends that is not made.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// Somebody stopped it.
    Cancelled,
    /// A call of it failed, or is in doubt; its call, and what failed.
    Failed { leg: usize, code: Option<Code> },
    /// The time for it is over, and a call is still being settled.
    TimedOut { leg: usize },
    /// It was done, and was not well done.
    NotWell,
    /// What it did cannot be told by its machine.
    Unclear { why: String },
    /// A person allowed it, and its agent has gone: the next equal wish is free.
    Granted,
}

/// How the calls of one part stand.
enum Legs {
    Begin(Box<LegWish>),
    Wait,
    Failed(usize),
    Overdue(usize),
    Done,
}

impl WalkState {
    /// What is next for the move that is being made; nothing where none is.
    pub(super) fn next(&self, now: Timestamp) -> Option<Next> {
        let (open, action) = self.action()?;
        let stage = &action.stage;
        if open.weighed.is_none() && !open.skips && action.queue.is_some() && !open.approved && !self.is_granted(open) {
            return Some(match (&open.question, open.answered) {
                _ if open.cancel.is_some_and(CancelReason::is_wish) => Next::Over(End::Cancelled),
                (None, _) if open.cancel.is_some() => Next::Over(End::Cancelled),
                (None, _) => Next::Ask,
                (Some(_), false) if open.answer_due() <= now => Next::Interim,
                (Some(_), _) => Next::Wait,
            });
        }
        if (open.answered || open.cancel.is_some()) && open.question.is_some() && open.legs.is_empty() {
            return Some(Next::Over(End::Granted));
        }
        if open.not_before.is_some_and(|until| until > now) && open.cancel.is_none() {
            return Some(Next::Wait);
        }
        if open.weighed.is_none() && !open.skips {
            match self.legs(open, Part::Setup, stage.setup.iter().map(|(name, _)| name.as_str()), true, now) {
                Legs::Done => {}
                Legs::Begin(wish) if open.cancel.is_none() => return Some(Next::Begin(wish)),
                Legs::Begin(_) => return Some(self.leave(open, action, End::Cancelled, now)),
                Legs::Wait => return Some(Next::Wait),
                Legs::Failed(leg) | Legs::Overdue(leg) => return Some(self.failed(open, action, leg, now)),
            }
            match (&stage.gate, &open.gated) {
                (None, _) | (Some(_), Some(Weighed::Proceed)) => {}
                (Some(_), Some(Weighed::Retry)) => return Some(self.again(open, action, End::NotWell, now)),
                (Some(_), Some(_)) => return Some(Next::Wait),
                (Some(_), None) => return Some(Next::Weigh(Weighing::Gate)),
            }
            if let Some(next) = self.act(open, action, now) {
                return Some(next);
            }
        }
        if open.skips && open.weighed.is_none() {
            return Some(Next::Weigh(Weighing::Skip));
        }
        Some(match &open.weighed {
            Some(Weighed::Arrives { .. }) => self.exits(open, action, Next::Made, now),
            Some(Weighed::Retry) => self.again(open, action, End::NotWell, now),
            Some(Weighed::Fail) => self.resolve(open, action, End::NotWell, now),
            Some(Weighed::Unclear { why }) => self.leave(open, action, End::Unclear { why: why.clone() }, now),
            Some(Weighed::Proceed | Weighed::Skip) | None => Next::Wait,
        })
    }

    fn is_granted(&self, open: &MoveState) -> bool {
        self.granted.as_ref() == Some(&open.taking.fingerprint)
    }

    /// What it is about; nothing once that is weighed.
    fn act(&self, open: &MoveState, action: &Action, now: Timestamp) -> Option<Next> {
        let (legs, what) = match &action.does {
            Does::Nothing => (Legs::Done, Weighing::Act),
            Does::Machine(_) | Does::Allowed(_) => (Legs::Done, Weighing::Enter),
            Does::Tool(_) | Does::Function(_) => {
                (self.legs(open, Part::Act, ["act"].into_iter(), true, now), Weighing::Act)
            }
            Does::Parallel(siblings) => {
                (self.legs(open, Part::Act, siblings.keys().map(String::as_str), false, now), Weighing::Act)
            }
        };
        Some(match legs {
            Legs::Done if open.legs.is_empty() && open.cancel.is_some() => {
                self.leave(open, action, End::Cancelled, now)
            }
            Legs::Done => match open.left_with(now) {
                Some(leg) => self.leave(open, action, End::TimedOut { leg }, now),
                None => Next::Weigh(what),
            },
            Legs::Begin(wish) if open.cancel.is_none() => Next::Begin(wish),
            Legs::Begin(_) => self.leave(open, action, End::Cancelled, now),
            Legs::Wait => Next::Wait,
            Legs::Overdue(leg) => self.leave(open, action, End::TimedOut { leg }, now),
            Legs::Failed(leg) => self.failed(open, action, leg, now),
        })
    }

    /// How the calls of a part stand: one after the other, or all at once.
    fn legs<'a>(
        &self,
        open: &MoveState,
        part: Part,
        names: impl Iterator<Item = &'a str>,
        in_turn: bool,
        now: Timestamp,
    ) -> Legs {
        let at = |name: &str| {
            open.legs.iter().rposition(|leg| leg.part == part && leg.attempt == open.attempt && leg.name == name)
        };
        let mut waits = false;
        let mut failed = None;
        for name in names {
            let Some(n) = at(name) else {
                if waits && in_turn || failed.is_some() {
                    break;
                }
                let leg = LegOf { of: open.taking.id.clone(), part, name: name.to_owned(), attempt: open.attempt };
                return Legs::Begin(self.wish(open, leg, now));
            };
            let leg = &open.legs[n];
            match &leg.end {
                // What comes of it while what is called last is made moves nothing: its agent was told that it is over.
                _ if leg.overdue => return Legs::Overdue(n),
                None => waits = true,
                // What is in doubt is told before what certainly failed.
                Some(end) if !end.done() => {
                    let doubtful = |n: &usize| open.legs[*n].certainty() == Certainty::InDoubt;
                    failed = failed.filter(|before| doubtful(before) || !doubtful(&n)).or(Some(n));
                }
                Some(_) => {}
            }
        }
        match failed {
            // All that was begun is known before the move is over.
            _ if waits => Legs::Wait,
            Some(n) => Legs::Failed(n),
            None => Legs::Done,
        }
    }

    /// A call failed: what is in doubt ends the move, what certainly was not done may be tried again.
    fn failed(&self, open: &MoveState, action: &Action, leg: usize, now: Timestamp) -> Next {
        let failed = &open.legs[leg];
        if failed.end.is_none() {
            return self.leave(open, action, End::TimedOut { leg }, now);
        }
        if failed.is_granted() && open.is_left() {
            return self.leave(open, action, End::Granted, now);
        }
        let code = failed.end.as_ref().and_then(|end| end.code);
        let timed_out = open.deadline <= now && matches!(code, Some(Code::NetworkTimeout | Code::ExecutionTimeout));
        let end = if timed_out { End::TimedOut { leg } } else { End::Failed { leg, code } };
        if open.certainty() == Certainty::InDoubt {
            return self.leave(open, action, end, now);
        }
        self.again(open, action, end, now)
    }

    /// Tries again where the stage says so, within the move's time.
    fn again(&self, open: &MoveState, action: &Action, end: End, now: Timestamp) -> Next {
        match self.next_try(open, action, now).filter(|_| !open.is_left()) {
            Some(until) => match self.exits(open, action, Next::Made, now) {
                // What is called last belongs to each try.
                Next::Made => Next::Again { until },
                first => first,
            },
            None => self.resolve(open, action, end, now),
        }
    }

    /// When it would be tried again.
    fn next_try(&self, open: &MoveState, action: &Action, now: Timestamp) -> Option<Timestamp> {
        let tried = open.attempt as usize;
        let ladder = action.stage.retry.as_ref().filter(|ladder| ladder.allows(tried))?;
        let until = now + ladder.step(tried - 1, self.chance(open))?;
        // What a person says was not done may still arrive.
        let until = self.postponed_until(open, now).map_or(until, |later| later.max(until));
        (until < open.deadline).then_some(until)
    }

    /// What becomes of a failure that is not tried again.
    fn resolve(&self, open: &MoveState, action: &Action, end: End, now: Timestamp) -> Next {
        match self.resolution(open, action, &end, now) {
            Some(Resolution::Skip) => Next::Weigh(Weighing::Skip),
            Some(Resolution::RetryLater { .. } | Resolution::AbortWorkflow) | None => {
                self.leave(open, action, end, now)
            }
        }
    }

    /// What its stage makes of a move that ends so. It is not for a move that somebody stopped, or of which nobody knows what it
    /// did. Nor is it for one that is left alone by its agent while tries are left: the same wish goes on with them.
    pub(super) fn resolution(
        &self,
        open: &MoveState,
        action: &Action,
        end: &End,
        now: Timestamp,
    ) -> Option<Resolution> {
        let told = open.answered || open.cancel.is_some_and(CancelReason::is_wish);
        if told || open.certainty() == Certainty::InDoubt {
            return None;
        }
        let left = open.is_left();
        let fails = match end {
            End::Cancelled | End::Granted => false,
            End::Failed { leg, .. } | End::TimedOut { leg } => {
                // What was not even tried for want of somebody who waits for it did not fail.
                let ended = open.legs.get(*leg).and_then(|leg| leg.end.as_ref());
                !left || ended.is_some_and(|ended| ended.outcome != Outcome::Cancelled)
            }
            End::NotWell | End::Unclear { .. } => true,
        };
        let goes_on = left && !matches!(end, End::Unclear { .. }) && self.next_try(open, action, now).is_some();
        action.stage.resolution.filter(|_| fails && !goes_on)
    }

    /// When the action of a move can be taken again that failed for now.
    pub(super) fn postponed_until(&self, open: &MoveState, now: Timestamp) -> Option<Timestamp> {
        let named = (open.machine.clone(), open.taking.action.clone());
        self.later.get(&named).copied().filter(|until| *until > now)
    }

    fn leave(&self, open: &MoveState, action: &Action, end: End, now: Timestamp) -> Next {
        self.exits(open, action, Next::Over(end), now)
    }

    /// What is called last, before that. It is called however late it is, and has time of its own for that.
    fn exits(&self, open: &MoveState, action: &Action, then: Next, now: Timestamp) -> Next {
        let began = open.legs.iter().any(|leg| leg.attempt == open.attempt && leg.part != Part::Exit);
        if !began || action.stage.exit.is_empty() {
            return then;
        }
        for (name, _) in &action.stage.exit {
            match open.part(Part::Exit).find(|leg| leg.name == *name) {
                None => {
                    let (of, name, attempt) = (open.taking.id.clone(), name.clone(), open.attempt);
                    return Next::Begin(self.wish(open, LegOf { of, part: Part::Exit, name, attempt }, now));
                }
                Some(leg) if leg.end.is_none() && !leg.overdue => return Next::Wait,
                // However that went, it does not change what the move did, and the others are called.
                Some(_) => {}
            }
        }
        then
    }

    /// A number by which the waits of different moves differ.
    fn chance(&self, open: &MoveState) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(open.attempt);
        for byte in open.taking.id.as_str().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    }

    /// Whether that is an answer to what was asked, and leads where the machine can go.
    pub(super) fn is_answer(&self, what: Weighing, weighed: &Weighed) -> bool {
        let Some((open, action)) = self.action() else { return false };
        match (what, weighed) {
            (Weighing::Gate, Weighed::Proceed | Weighed::Retry | Weighed::Skip) => true,
            (Weighing::Act, Weighed::Retry | Weighed::Skip | Weighed::Fail) => action.stage.assert.is_some(),
            (Weighing::Enter, Weighed::Arrives { arrival }) => arrival.to.is_empty(),
            (Weighing::Act | Weighing::Skip, Weighed::Arrives { arrival }) => {
                self.leads(&open.taking.action, &arrival.to, None)
            }
            (_, Weighed::Unclear { .. }) => true,
            (Weighing::Gate | Weighing::Skip | Weighing::Enter, _) | (Weighing::Act, Weighed::Proceed) => false,
        }
    }

    /// The machine that the open move enters, if it does.
    pub(super) fn enters(&self) -> Option<crate::id::MachineName> {
        let (open, action) = self.action().filter(|(open, _)| !open.skips)?;
        match &action.does {
            Does::Machine(machine) => Some(machine.clone()),
            Does::Allowed(_) => Some(crate::id::MachineName::new(format!("{}.{}", open.machine, open.taking.action))),
            Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) => None,
        }
    }
}
