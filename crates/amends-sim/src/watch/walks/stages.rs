//! What belongs to one move is done in its order: first the act, then what is called last; a walk that is given up is undone.

use amends_core::machine::{Action, Does, Machine, Resolution};
use amends_core::walk::{Left, LegOf, Part};
use amends_core::{CallId, Certainty, Outcome, SessionId};

use super::WalkView;
use crate::watch::view::CallView;
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A call of a stage that was made and failed is one of its turns.
    pub(super) fn spends_turn(&mut self, session: &SessionId, of: &CallId, outcome: Outcome, certainty: Certainty) {
        let acts = self.moves.get(of).into_iter().flat_map(|view| &view.legs).filter(|(leg, _)| leg.part == Part::Act);
        let only_reads =
            acts.map(|(_, call)| call).all(|call| self.calls.get(call).is_some_and(|call| call.effect().is_read()));
        let ended = matches!(outcome, Outcome::Exhausted | Outcome::Cancelled)
            || (outcome == Outcome::Unresolved && only_reads);
        let Some(walk) = self.walks.get_mut(session) else { return };
        let machine = walk.frames.last().and_then(|frame| walk.machines.get(&frame.machine));
        let stage = machine.is_some_and(Machine::is_stage);
        if stage && ended && certainty != Certainty::NotSent {
            walk.frames.iter_mut().last().into_iter().for_each(|frame| frame.moves += 1);
            walk.been.entry(walk.moves).or_default().push(walk.frames.clone());
        }
    }

    /// A move is made only when what it is about was done, or was passed over while nothing of it is in doubt.
    pub(super) fn act_before_move(&self, session: &SessionId, of: &CallId) -> Verdicts {
        let (Some(walk), Some(view)) = (self.walks.get(session), self.moves.get(of)) else {
            return Ok(());
        };
        let Some(action) = walk.action(&view.action) else {
            return Ok(());
        };
        let alike = |tried: &&CallId| {
            self.moves
                .get(*tried)
                .is_some_and(|other| other.action == view.action && other.fingerprint == view.fingerprint)
        };
        let legs: Vec<&(LegOf, CallId)> =
            walk.tried.iter().filter(alike).filter_map(|tried| self.moves.get(tried)).flat_map(|it| &it.legs).collect();
        let done = |name: &str| {
            let mut of_act = legs.iter().filter(|(leg, _)| leg.part == Part::Act && leg.name == name);
            of_act.any(|(_, call)| {
                self.calls
                    .get(call)
                    .and_then(|it| it.ended.as_ref())
                    .is_some_and(|end| end.certainty == Certainty::Processed)
            })
        };
        let missing = acts(action).into_iter().find(|name| !done(name));
        let skips = view.passed_over || action.stage.resolution == Some(Resolution::Skip);
        match missing {
            Some(name) if !skips => {
                let what = format!("it is made, and `{name}` was not done");
                Err(self.broken("act_before_move", Some(of.clone()), what))
            }
            Some(name) if self.in_doubt(of) => {
                let what = format!("it is passed over, and `{name}` is in doubt");
                Err(self.broken("act_before_move", Some(of.clone()), what))
            }
            _ => Ok(()),
        }
    }

    /// Whatever became of a try, everything that is called last was called for it.
    pub(super) fn clears_up(&self, session: &SessionId, of: &CallId) -> Verdicts {
        let (Some(walk), Some(view)) = (self.walks.get(session), self.moves.get(of)) else {
            return Ok(());
        };
        let begun = view.legs.iter().filter(|(leg, _)| leg.part != Part::Exit).map(|(leg, _)| leg.attempt).max();
        let (Some(action), Some(attempt)) = (walk.action(&view.action), begun) else {
            return Ok(());
        };
        let called = |name: &str| {
            let is = |leg: &LegOf| leg.part == Part::Exit && leg.attempt == attempt && leg.name == name;
            view.legs.iter().any(|(leg, _)| is(leg))
        };
        match action.stage.exit.iter().find(|(name, _)| !called(name)) {
            Some((name, _)) => {
                let what = format!("try {attempt} is over, and `{name}` was not called");
                Err(self.broken("clears_up", Some(of.clone()), what))
            }
            None => Ok(()),
        }
    }

    /// A walk is given up with a move of which everything is known, where its machine says so.
    pub(super) fn aborts(&mut self, session: &SessionId, of: &CallId) -> Verdicts {
        let action = |walk: &WalkView| walk.action(&self.moves.get(of)?.action).map(|action| action.stage.resolution);
        let resolution = self.walks.get(session).and_then(action).flatten();
        if resolution != Some(Resolution::AbortWorkflow) || self.in_doubt(of) {
            let what = format!("the walk is given up, by {resolution:?}");
            return Err(self.broken("follows_declaration", Some(of.clone()), what));
        }
        if let Some(view) = self.walks.get_mut(session) {
            (view.aborted, view.unwinding) = (true, true);
        }
        Ok(())
    }

    /// A walk begins again: what was done in it before stays, and is not spoken of any more.
    pub(super) fn leaves_behind(&mut self, session: &SessionId) {
        let before = self.calls.iter().filter(|(_, call)| call.session == *session).map(|(id, _)| id.clone());
        if let Some(walk) = self.walks.get_mut(session) {
            walk.stays.extend(before);
        }
    }

    /// A walk that is given up undoes nothing of what was done before it began again.
    pub(crate) fn undoes_its_own(&self, session: &SessionId, of: &CallId, calls: &[CallId]) -> Verdicts {
        let stays = self.walks.get(session).map(|walk| &walk.stays);
        match calls.iter().find(|call| stays.is_some_and(|stays| stays.contains(*call))) {
            Some(call) => {
                let what = format!("{call} is undone, which was done before the walk began again");
                Err(self.broken("undoes_its_own", Some(of.clone()), what))
            }
            None => Ok(()),
        }
    }

    /// What was done in a walk that is given up, and what no token undoes, is told of.
    pub(super) fn tells_what_stays(&mut self, session: &SessionId, of: &CallId, left: &[Left], more: u32) -> Verdicts {
        let Some(walk) = self.walks.get(session) else { return Ok(()) };
        let told = |call: &CallId| walk.stays.contains(call) || left.iter().any(|left| left.call == *call);
        let stays = |call: &CallView| {
            let acts = call.received.leg.as_ref().is_some_and(|leg| leg.part == Part::Act);
            let done = call.ended.as_ref().is_some_and(|end| end.certainty == Certainty::Processed);
            let alone = !call.refused && !call.is_join() && !call.superseded;
            acts && done && alone && !call.effect().is_read() && call.received.reversal.is_none()
        };
        let of_walk = self.calls.iter().filter(|(_, call)| call.session == *session && stays(call));
        let untold = of_walk.map(|(id, _)| id).find(|id| more == 0 && !told(id));
        if let Some(untold) = untold {
            let what = format!("{untold} cannot be undone, and nobody is told");
            return Err(self.broken("tells_what_stays", Some(of.clone()), what));
        }
        if let Some(walk) = self.walks.get_mut(session) {
            walk.stays.extend(left.iter().map(|left| left.call.clone()));
        }
        Ok(())
    }

    /// No walk that was given up waits for good for what is to be undone.
    pub(crate) fn every_walk_unwound(&self) -> Verdicts {
        match self.walks.iter().find(|(_, view)| view.unwinding) {
            Some((session, _)) => {
                Err(self.broken("liveness", None, format!("what was done in {session} is being undone for good")))
            }
            None => Ok(()),
        }
    }
}

/// The calls that an action is about, by their names.
fn acts(action: &Action) -> Vec<&str> {
    match &action.does {
        Does::Tool(_) | Does::Function(_) => vec!["act"],
        Does::Parallel(siblings) => siblings.keys().map(String::as_str).collect(),
        Does::Nothing | Does::Machine(_) | Does::Allowed(_) => Vec::new(),
    }
}
