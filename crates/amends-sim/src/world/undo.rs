//! Undoing: agents redeem the tokens they were given, too early, twice or too late; operators unwind sessions.

use amends_core::{Attempt, CallId, Certainty, Input, Purpose, SessionId, Timestamp};

use crate::agent::Wish;
use crate::catalog::UNDO_WITHIN_MS;
use crate::flaw::Flaw;
use crate::watch::Verdicts;
use crate::world::{Asked, Happening, World};

/// How many redemptions are tried in one world.
const REDEMPTIONS_MAX: usize = 10;
/// How often it is looked whether what was done in a walk is undone, and how many times.
const UNDOING_MS: u64 = 2_000;
const UNDOING_LOOKS: u32 = 15;
/// The arguments of the undoing of the first call; those of the others follow.
const UNDO_ARGS: u64 = 1_000;

/// What an attempt goes to.
pub(super) struct Target {
    pub(super) tool: usize,
    pub(super) args: u64,
    pub(super) effect_key: String,
    pub(super) wish: u64,
    pub(super) undoes: Option<CallId>,
}

impl World {
    /// What an attempt goes to: the tool of its call, or the one that undoes it.
    pub(super) fn target(&self, attempt: &Attempt, asked: &Asked) -> Option<Target> {
        let call = &attempt.id.call;
        if attempt.purpose != Purpose::Reverse {
            let (tool, args, wish) = (asked.tool, asked.args, asked.wish);
            return Some(Target {
                tool,
                args,
                effect_key: self.watch.effect_key(call),
                wish,
                undoes: asked.undoes.clone(),
            });
        }
        Some(Target {
            tool: self.tools[asked.tool].undo?,
            args: undo_args(call),
            effect_key: format!("u-{call}"),
            wish: self.order + 9_000_000,
            undoes: Some(call.clone()),
        })
    }

    /// An agent has read an answer about a write that can be undone, and may want it undone.
    pub(super) fn consider_undoing(&mut self, agent: usize, session: &SessionId, call: &CallId) {
        let undo = self.asked.get(call).is_some_and(|asked| self.tools[asked.tool].undo.is_some());
        if !undo {
            return;
        }
        if self.chance.percent(10) {
            let ms = self.chance.between(500, 20_000);
            self.later(ms, Happening::Unwind(session.clone()));
        }
        if self.watch.told(call) != Certainty::Processed && self.chance.percent(60) {
            return;
        }
        match self.chance.between(0, 9) {
            0..=3 => {
                let ms = self.chance.between(0, 8_000);
                self.redeem_in(ms, agent, call);
            }
            4 | 5 => {
                let other = self.chance.between(0, self.agents.len() as u64 - 1) as usize;
                let ms = self.chance.between(0, 4_000);
                self.redeem_in(ms, agent, call);
                let ms = ms + self.chance.between(0, 40);
                self.redeem_in(ms, other, call);
            }
            6 => {
                let ms = UNDO_WITHIN_MS + self.chance.between(0, 6_000);
                self.redeem_in(ms - 3_000, agent, call);
            }
            _ => {}
        }
    }

    /// An operator unwinds a session: every token that is armed, newest first, whatever becomes of each.
    pub(super) fn unwind(&mut self, session: &SessionId, since: Timestamp) {
        self.watch.note(|| format!("{session}: unwound"));
        let mut ms = 0;
        let operator = self.agents.len() - 1;
        for call in self.tokens.armed(session, since) {
            self.redeem_in(ms, operator, &call);
            ms += self.chance.between(1, 1_500);
        }
    }

    /// A walk was given up: what was done in it is undone, and its driver hears how that went.
    pub(super) fn unwind_walk(&mut self, node: usize, session: &SessionId, of: CallId, since: Timestamp) -> Verdicts {
        let since = if self.flaw == Some(Flaw::UndoEarlier) { Timestamp::default() } else { since };
        let calls = self.tokens.armed(session, since);
        self.watch.undoes_its_own(session, &of, &calls)?;
        self.unwind(session, since);
        let ms = if calls.is_empty() { 20 } else { UNDOING_MS };
        self.later(ms, Happening::Undoing(node, session.clone(), of, calls, UNDOING_LOOKS));
        Ok(())
    }

    /// Whoever undoes what was done in a walk waits for each undoing, and not for ever.
    pub(super) fn undoing(&mut self, node: usize, session: SessionId, of: CallId, calls: Vec<CallId>, left: u32) {
        if left > 0 && calls.iter().any(|call| self.tokens.is_redeeming(call)) {
            return self.later(UNDOING_MS, Happening::Undoing(node, session, of, calls, left - 1));
        }
        let (undone, failed): (Vec<CallId>, _) = calls.into_iter().partition(|call| self.tokens.is_redeemed(call));
        // Should this node not drive it any more, whoever takes it up begins again.
        if self.nodes[node].alive && self.nodes[node].drivers.contains_key(&session) {
            let doubtful = failed.iter().filter(|call| self.tokens.is_redeeming(call)).cloned().collect();
            self.arrives_at(node, &session, Input::Unwound { of, undone: undone.len() as u32, failed, doubtful });
        }
    }

    fn redeem_in(&mut self, ms: u64, agent: usize, undone: &CallId) {
        let redemptions = self.wishes.iter().filter(|wish| wish.undoes.is_some()).count();
        let Some(tool) = self.asked.get(undone).and_then(|asked| self.tools[asked.tool].undo) else {
            return;
        };
        if redemptions >= REDEMPTIONS_MAX {
            return;
        }
        let slot = self.wishes.len();
        let keyed = self.chance.percent(60);
        self.wishes.push(Wish {
            id: slot as u64,
            agent,
            tool,
            args: undo_args(undone),
            key: keyed.then(|| format!("u{slot}")),
            left: self.chance.between(1, 3) as u32,
            first: None,
            call: None,
            undoes: Some(undone.clone()),
            patience_ms: 20_000,
        });
        self.later(ms, Happening::Ask(slot));
    }
}

/// The arguments with which a call is undone: others for each.
fn undo_args(call: &CallId) -> u64 {
    let number: u64 = call.as_str().trim_start_matches('c').parse().unwrap_or_default();
    UNDO_ARGS + number
}
