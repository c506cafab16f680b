//! A walk as others see it: where it is, and why it may not go on.

use std::sync::Arc;

use super::Settles;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::state::{LegState, WalkState};
use crate::id::{ActionName, CallId, Digest, MachineName};
use crate::machine::{Machines, Move, Position};
use crate::time::Timestamp;
use crate::walk::{Arrival, Frame, GivenUp, Later, Part, Weighed};

/// A walk as others see it.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// The machine it began in.
    pub root: &'a MachineName,
    /// The digest of what was declared.
    pub hash: &'a Digest,
    /// The machines it may go through.
    pub machines: &'a Arc<Machines>,
    /// Where it is, the machine it began in first.
    pub frames: &'a [Frame],
    /// How many moves were made.
    pub moves: u64,
    /// Whether it can go no further.
    pub over: bool,
    /// What stands in the way of other moves.
    pub standing: Standing<'a>,
    /// When its time is over, where a machine it is in bounds that. People's time does not count.
    pub ends: Option<Timestamp>,
    /// How much time was spent in each machine it is in, without people's, when something happened last.
    pub spent_ms: Vec<u64>,
    /// Whether a machine in which another runs has no steps left.
    pub out_of_steps: bool,
    /// Actions of the machine it is in that can be taken again only later.
    pub later: Vec<(&'a ActionName, Timestamp)>,
    /// The same for every machine.
    pub postponed: Vec<Later>,
    /// The open move.
    pub open: Option<Underway<'a>>,
    /// The same for the calls of a move that is not settled.
    pub unsettled: Vec<Leg<'a>>,
    /// Whether a person is asked what a move in doubt did.
    pub asked: bool,
    /// What was done of moves that were not made.
    pub halves: Vec<Half>,
    /// What became of what was done in it, where it was given up.
    pub given_up: Option<GivenUp>,
}

/// What was done of a move that was not made, since another call beside that was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// The machine whose action that is.
    pub machine: MachineName,
    /// The action.
    pub action: ActionName,
    /// The names of the calls that were done.
    pub done: Vec<String>,
}

/// A move that is being made.
#[derive(Clone, Debug)]
pub struct Underway<'a> {
    /// The move.
    pub id: &'a CallId,
    /// Its action.
    pub action: &'a ActionName,
    /// The machine whose action that is.
    pub machine: &'a MachineName,
    /// The calls of its last try.
    pub legs: Vec<Leg<'a>>,
    /// Whether a person is asked whether it may be done.
    pub asked: bool,
    /// Where it leads, once that was weighed.
    pub leads: Option<&'a Arrival>,
}

/// A call that was made for a move.
#[derive(Clone, Copy, Debug)]
pub struct Leg<'a> {
    /// What it was for.
    pub part: Part,
    /// Its name in that part.
    pub name: &'a str,
    /// The call.
    pub call: &'a CallId,
}

/// What stands in the way of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Nothing.
    Free,
    /// A move is being made.
    Open(&'a ActionName),
    /// An earlier one may have been done, and that is being found out.
    InDoubt(&'a ActionName),
    /// An earlier one may have been done, and nobody finds out any more. An equal wish goes on with it, a person may still say
    /// what became of it, and the walk may begin again.
    Unknown(&'a ActionName),
    /// An earlier one was done, and nobody was told; only an equal wish goes on.
    Done(&'a ActionName),
    /// An earlier one was done, and its machine cannot tell what follows from it. The walk may begin again, or go on with an equal
    /// wish once the machine is mended.
    Unclear(&'a ActionName),
}

impl Look<'_> {
    /// What may be taken there by that time, where nothing stands in the way.
    pub fn moves(&self, at: &Position, now: Timestamp) -> Vec<Move<'_>> {
        let machine = self.frames.last().and_then(|frame| self.machines.get(&frame.machine));
        let Some(machine) = machine.filter(|_| self.ends.is_none_or(|ends| now < ends)) else { return Vec::new() };
        let postponed = |name: &ActionName| self.later.iter().any(|(its, until)| *its == name && *until > now);
        let spent = |legal: &Move<'_>| self.out_of_steps && !machine.ends_stage(legal.action);
        machine.moves(at).into_iter().filter(|legal| !postponed(legal.name) && !spent(legal)).collect()
    }
}

impl Look<'_> {
    /// Why it cannot go on in those machines, as far as where it is says so; nothing where it can.
    pub fn unfit(&self, machines: &Machines) -> Option<String> {
        WalkState::unfit_there(self.frames, machines)
    }
}

impl Dispatcher {
    /// Lets the walk use the same machines as others, where they are equal: they are large, and walks are many.
    pub fn share_machines(&mut self, machines: &Arc<Machines>) {
        if let Some(walk) = self.state.walk.as_mut().filter(|walk| *walk.machines == **machines) {
            walk.machines = machines.clone();
        }
    }

    /// The session's walk, if it has one.
    pub fn walk(&self) -> Option<Look<'_>> {
        let walk = self.state.walk.as_ref()?;
        let settling = self.settling();
        let standing = match (&walk.open, &walk.unsettled) {
            (Some(open), _) => Standing::Open(&open.taking.action),
            (None, Some(past)) if past.in_doubt() && settling != Settles::Nobody => {
                Standing::InDoubt(&past.taking.action)
            }
            (None, Some(past)) if past.in_doubt() => Standing::Unknown(&past.taking.action),
            (None, Some(past)) if past.unclear.is_some() => Standing::Unclear(&past.taking.action),
            (None, Some(past)) => Standing::Done(&past.taking.action),
            (None, None) => Standing::Free,
        };
        let open = walk.open.as_ref().map(|open| Underway {
            id: &open.taking.id,
            action: &open.taking.action,
            machine: &open.machine,
            legs: open.last_try().map(leg).collect(),
            asked: (open.question.is_some() && !open.approved) || open.legs.iter().any(LegState::is_asked),
            leads: match &open.weighed {
                Some(Weighed::Arrives { arrival }) => Some(arrival),
                _ => None,
            },
        });
        let past = walk.unsettled.as_ref().into_iter().flat_map(|past| past.beside.iter().chain(&past.legs));
        let top = walk.top().0.name();
        let here = walk.later.iter().filter(|((machine, _), _)| machine == top);
        Some(Look {
            root: &walk.root,
            hash: &walk.hash,
            machines: &walk.machines,
            frames: &walk.frames,
            moves: walk.moves,
            over: walk.is_over(),
            standing,
            ends: walk.ends().map(|(ends, _)| ends),
            spent_ms: walk.spent_ms(self.state.now),
            out_of_steps: walk.out_of_steps().is_some(),
            later: here.map(|((_, action), until)| (action, *until)).collect(),
            postponed: walk.postponed(),
            open,
            unsettled: past.map(leg).collect(),
            asked: matches!(settling, Settles::Person(_)),
            halves: walk.half_done(),
            given_up: walk.given_up(),
        })
    }
}

impl WalkState {
    /// What was done of moves that were not made, or are in doubt.
    fn half_done(&self) -> Vec<Half> {
        let mut halves = self.halves.clone();
        if let Some(past) = self.unsettled.as_ref().filter(|past| past.in_doubt()) {
            let known = halves.entry((past.machine.clone(), past.taking.action.clone())).or_default();
            known.extend(past.done_alone().into_iter().map(str::to_owned));
            known.sort_unstable();
            known.dedup();
        }
        let told = halves.into_iter().filter(|(_, done)| !done.is_empty());
        told.map(|((machine, action), done)| Half { machine, action, done }).collect()
    }
}

fn leg(leg: &LegState) -> Leg<'_> {
    Leg { part: leg.part, name: &leg.name, call: &leg.call }
}
