//! A walk through a machine: an action is wished for, refused or taken; its calls are made; where it leads is weighed; it is over.
//!
//! Nothing here remembers what to do next: `next` derives it from what is recorded of the move, so that a crash between any two
//! events loses nothing.

mod ending;
mod look;
mod next;
mod refuse;
mod wording;

use std::collections::BTreeMap;

use crate::dispatcher::Dispatcher;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::{KEYED_MS, LegState, MoveState, Question, REPEATED_MS, WalkState};
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{CallId, Digest, InteractionId, MachineName};
use crate::interaction::Subject;
use crate::limits::EXIT_MS;
use crate::machine::MachineSpec;
use crate::refusal::{Refusal, RefusalKind};
use crate::time::Timestamp;
use crate::walk::{Beginning, LegOf, LegWish, Part, Taking, Weighed};

pub use look::{Half, Leg, Look, Standing, Underway};
use next::Next;

/// How many things a move may lead to in one step, before it has to wait for something.
const TURNS_MAX: usize = 32;

/// An earlier move that a wish is equal to, and with which it would go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is being made.
    Open(CallId),
    /// It was made, and its answer may not have arrived.
    Made(CallId),
    /// It may have been made, or was, and its agent does not know.
    Unsettled,
}

/// Who finds out what a move in doubt did.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Settles {
    /// Nobody any more.
    Nobody,
    /// Its calls, which are still open.
    Calls,
    /// A person, who is asked that.
    Person(InteractionId),
}

/// What a wish is to those before it.
enum Kin {
    /// It is a wish of its own.
    None,
    /// It repeats that move, which is open or was made.
    Repeats(CallId),
    /// It brings a key that was used for something else.
    Another,
}

impl Dispatcher {
    pub(super) fn begin(&mut self, now: Timestamp, beginning: Box<Beginning>) {
        if self.state.walk.is_some() {
            return self.ignore(now, "the session walks through a machine already".to_owned());
        }
        if !WalkState::can_begin(&beginning) {
            return self
                .ignore(now, format!("the machine `{}` cannot be walked through as it is given", beginning.machine));
        }
        self.emit(now, Fact::WalkBegan { beginning });
    }

    pub(super) fn migrate(&mut self, now: Timestamp, definition: BTreeMap<MachineName, MachineSpec>, hash: Digest) {
        let Some(walk) = &self.state.walk else {
            return self.ignore(now, "there is no walk that could follow its machine".to_owned());
        };
        if walk.open.is_some() || walk.unsettled.as_ref().is_some_and(|past| past.in_doubt()) {
            return self.ignore(now, "the walk follows its machine once its move is settled".to_owned());
        }
        if let Some(why) = walk.unfit(&definition) {
            return self.ignore(now, format!("the walk does not fit the machine as it is declared now: {why}"));
        }
        self.emit(now, Fact::WalkMigrated { definition, hash });
    }

    /// An agent wants an action taken.
    pub(super) fn take(&mut self, now: Timestamp, gates: &Gates, taking: Taking) {
        let Some(walk) = &self.state.walk else {
            return self.ignore(
                now,
                format!("the session walks through no machine, so that `{}` cannot be taken", taking.action),
            );
        };
        if self.knows(&taking.id) {
            return self.ignore(now, format!("the move `{}` was wished for already", taking.id));
        }
        let id = taking.id.clone();
        let kin = walk.kin(&taking, now);
        let no = match &kin {
            Kin::None => walk.no(&taking, gates, now, &self.settling()),
            Kin::Another => {
                let message =
                    "this `amends/key` was used before for another action or with other inputs; send a fresh one";
                Some(Refusal::of(RefusalKind::Duplicate, message))
            }
            Kin::Repeats(_) => None,
        };
        let reset = taking.reset;
        self.emit(now, Fact::MoveReceived { taking: Box::new(taking), gates: gates.clone() });
        match (kin, no) {
            (Kin::Repeats(first), _) => {
                self.emit(now, Fact::MoveJoined { of: id.clone(), first: first.clone() });
                let asking = |open: &MoveState| open.taking.id == first && open.answered;
                if self.state.open_move().is_some_and(asking) {
                    return self.answer_awaiting(now, id);
                }
                self.step.effects.push(Effect::Join { of: id, first });
            }
            (_, Some(refusal)) => self.refuse_move(now, &id, refusal),
            (_, None) if reset => self.reset(now, id),
            // `walk_on` does the rest.
            (_, None) => {}
        }
    }

    /// The earlier move that a wish would go on with, where there is one.
    pub fn meets(&self, taking: &Taking, now: Timestamp) -> Option<Met> {
        let walk = self.state.walk.as_ref()?;
        if let Kin::Repeats(first) = walk.kin(taking, now) {
            let open = walk.open.as_ref().is_some_and(|open| open.taking.id == first);
            return Some(if open { Met::Open(first) } else { Met::Made(first) });
        }
        let past = walk.unsettled.as_ref().map(|past| &past.taking);
        let same = |past: &Taking| past.fingerprint == taking.fingerprint && past.principal == taking.principal;
        past.is_some_and(same).then_some(Met::Unsettled)
    }

    /// Who still finds out what a move in doubt did: a call that is open, or a person who has time left to say so.
    fn settling(&self) -> Settles {
        let doubtful = self.state.walk.as_ref().and_then(|walk| walk.unsettled.as_ref());
        self.settles(doubtful.into_iter().flat_map(|past| &past.legs))
    }

    /// The same of those calls.
    fn settles<'a>(&self, legs: impl Iterator<Item = &'a LegState> + Clone) -> Settles {
        if let Some(asked) = self.asked_of(legs.clone()) {
            return Settles::Person(asked.clone());
        }
        let mut open = legs.filter(|leg| self.state.calls.contains_key(&leg.call));
        open.next().map_or(Settles::Nobody, |_| Settles::Calls)
    }

    /// What a person is asked about what one of those calls did, while there is time. Whoever only has to take notice of one
    /// settles nothing.
    fn asked_of<'a>(&self, mut legs: impl Iterator<Item = &'a LegState>) -> Option<&InteractionId> {
        legs.find_map(|leg| {
            let asks = |question: &&Question| {
                let interaction = &question.interaction;
                let settles = matches!(interaction.subject, Subject::Doubt | Subject::Resend);
                interaction.call == leg.call && settles && !question.overdue
            };
            self.state.questions.values().find(asks).map(|question| &question.interaction.id)
        })
    }

    /// What was evaluated of a move.
    pub(super) fn weighed(&mut self, now: Timestamp, of: &CallId, weighed: Weighed) {
        let Some(walk) = &self.state.walk else {
            return self.ignore(now, "there is no walk to weigh anything of".to_owned());
        };
        if walk.open.as_ref().is_some_and(|open| open.taking.id == *of && open.is_lost(&weighed)) {
            return self.emit(now, Fact::MoveWeighed { of: of.clone(), weighed });
        }
        let awaited = walk.next(now).filter(|_| walk.open.as_ref().is_some_and(|open| open.taking.id == *of));
        let Some(Next::Weigh(what)) = awaited else {
            return self.ignore(now, format!("nothing of `{of}` was to be weighed"));
        };
        let follows = walk.is_answer(what, &weighed);
        let unclear = || Weighed::Unclear { why: "what was said of it does not follow from its machine".to_owned() };
        let weighed = if follows { weighed } else { unclear() };
        self.emit(now, Fact::MoveWeighed { of: of.clone(), weighed });
    }

    /// Whether that call is what the open move wants made next. A driver that was asked twice, or that comes late, may bring
    /// another one.
    pub(super) fn awaits(&self, now: Timestamp, leg: &LegOf) -> bool {
        let next = self.state.walk.as_ref().and_then(|walk| walk.next(now));
        matches!(next, Some(Next::Begin(wish)) if wish.leg == *leg)
    }

    /// Somebody wants the open move stopped: its calls are.
    pub(super) fn cancel_move(&mut self, now: Timestamp, id: CallId, reason: CancelReason) {
        self.emit(now, Fact::CancelRequested { call: id, reason });
        let legs: Vec<CallId> = match self.state.open_move() {
            // What is called last is made however it went.
            Some(open) => {
                let stops = |leg: &&LegState| leg.end.is_none() && leg.part != Part::Exit;
                open.legs.iter().filter(stops).map(|leg| leg.call.clone()).collect()
            }
            None => return,
        };
        for leg in legs {
            if self.state.calls.contains_key(&leg) {
                self.emit(now, Fact::CancelRequested { call: leg.clone(), reason });
                self.cancel_call(now, leg, reason);
            }
        }
    }

    /// Goes on with the open move as far as it can.
    pub(super) fn walk_on(&mut self, now: Timestamp) {
        for _ in 0..TURNS_MAX {
            let Some(next) = self.state.walk.as_ref().and_then(|walk| walk.next(now)) else { return };
            match next {
                Next::Wait => return,
                Next::Ask => return self.ask_for_move(now),
                Next::Interim => return self.answer_asking(now),
                Next::Begin(leg) => return self.step.effects.push(Effect::Begin(leg)),
                Next::Weigh(what) => {
                    let Some(open) = self.state.open_move() else { return };
                    let of = open.taking.id.clone();
                    return self.step.effects.push(Effect::Weigh { of, what });
                }
                Next::Again { until } => {
                    let Some(open) = self.state.open_move() else { return };
                    let (of, attempt) = (open.taking.id.clone(), open.attempt + 1);
                    self.emit(now, Fact::MoveWaits { of, until, attempt });
                }
                Next::Made => return self.make_move(now),
                Next::Over(end) => return self.end_move(now, end),
            }
        }
    }

    fn reset(&mut self, now: Timestamp, of: CallId) {
        let Some(moves) = self.state.walk.as_ref().map(|walk| walk.moves.saturating_add(1)) else { return };
        self.emit(now, Fact::WalkReset { of: of.clone(), moves });
        self.reply_done(of);
    }
}

impl WalkState {
    /// Whether a wish repeats an earlier one.
    fn kin(&self, taking: &Taking, now: Timestamp) -> Kin {
        let open = self.open.as_ref().map(|open| (&open.taking, true, true));
        let made = self.recent.iter().rev().filter(|made| {
            let kept_ms = if made.taking.key.is_some() { KEYED_MS } else { REPEATED_MS };
            now.since_ms(made.at) < kept_ms
        });
        // Who counts the moves means the next one, not the one that was made.
        let counts = taking.expect_seq == Some(self.moves);
        // After other moves, a wish to begin again is a new one.
        let meant = |n: usize, failed: bool| (!counts || failed) && (n == 0 || !taking.reset);
        // Who was told that it was not well done, and wishes for the same, wants it done again, whatever the key.
        let known = made.enumerate().filter(|(_, made)| !(made.failed && made.delivered));
        let past = known.map(|(n, made)| (&made.taking, !made.delivered, meant(n, made.failed)));
        for (other, undelivered, meant) in open.into_iter().chain(past) {
            let equal = other.fingerprint == taking.fingerprint
                && other.principal == taking.principal
                && other.reset == taking.reset
                && (other.expect_seq == taking.expect_seq || taking.key.is_some());
            match (&taking.key, &other.key) {
                (Some(key), Some(its)) if key == its => {
                    return if equal { Kin::Repeats(other.id.clone()) } else { Kin::Another };
                }
                (None, None) if equal && undelivered && meant => return Kin::Repeats(other.id.clone()),
                _ => {}
            }
        }
        Kin::None
    }

    /// What makes a call of a move the same intention, however often the move is wished for.
    fn leg_key(&self, open: &MoveState, leg: &LegOf) -> String {
        let Taking { action, fingerprint, .. } = &open.taking;
        let (part, name) = (leg.part.as_str(), &leg.name);
        match leg.part {
            // What was taken and came to nothing, or only to a part, is the same intention until it is made, whatever else is
            // done meanwhile.
            Part::Setup | Part::Act => {
                let redone = self.redone.get(&(open.machine.clone(), action.clone())).copied().unwrap_or_default();
                let (entered, taken) = self.taken(action);
                format!("{entered}.{taken}.{redone}/{}/{action}/{part}/{name}/{fingerprint}", open.machine)
            }
            // Each try clears up after itself.
            Part::Exit => format!("{}/{}/{action}/{part}/{name}/{}", leg.of, open.machine, leg.attempt),
        }
    }

    fn wish(&self, open: &MoveState, leg: LegOf, now: Timestamp) -> Box<LegWish> {
        let key = self.leg_key(open, &leg);
        let (machine, action) = (open.machine.clone(), open.taking.action.clone());
        let deadline = match leg.part {
            Part::Setup | Part::Act => open.deadline,
            Part::Exit => open.deadline.max(now + EXIT_MS),
        };
        Box::new(LegWish { leg, machine, action, key, deadline })
    }
}

#[cfg(test)]
mod tests;
