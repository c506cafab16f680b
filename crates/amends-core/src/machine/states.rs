//! States that nothing leads to, and states that nothing leads away from. A name that is misspelt may be both, each in its own
//! spelling: then one of the two is meant, and is said where the other stands.

use std::collections::BTreeSet;

use super::flow::Flow;
use super::{Action, Finding, Machine};
use crate::id::{ActionName, StateName};
use crate::nearest::nearest;

/// The states of a machine that lead nowhere, or are led to by nothing.
struct Astray<'a> {
    machine: &'a Machine,
    reached: BTreeSet<&'a StateName>,
    /// Reached, and nothing leads away from them.
    dead: BTreeSet<&'a StateName>,
    /// Named where something begins or is over, and not reached.
    lost: BTreeSet<&'a StateName>,
}

impl Machine {
    /// States that cannot be reached, and dead ends.
    pub(super) fn astray(&self, found: &mut Vec<Finding>) {
        let flow = Flow::of(self);
        let reached = flow.reach([&self.initial]);
        let is_dead = |state: &&StateName| {
            !state.as_str().is_empty() && !self.is_terminal(state) && flow.away_from(state).next().is_none()
        };
        let dead = reached.iter().copied().filter(is_dead).collect();
        let named = self.actions.values().flat_map(|action| &action.from).chain(&self.terminal);
        let lost = named.filter(|state| !reached.contains(*state)).collect();
        let astray = Astray { machine: self, reached, dead, lost };
        astray.unreachable(found);
        astray.dead_ends(found);
    }

    /// Where a state is named, each place with what is in it.
    fn places(&self, state: &StateName) -> Vec<(Vec<&str>, Vec<String>)> {
        let mut places = Vec::new();
        if self.initial == *state {
            places.push((vec!["initial"], Vec::new()));
        }
        if self.terminal.contains(state) {
            places.push((vec!["terminal"], Vec::new()));
        }
        for (name, action) in &self.actions {
            if action.from.contains(state) {
                places.push((vec!["actions", name.as_str(), "from"], Vec::new()));
            }
            let to = action.to.states().enumerate().filter(|(_, to)| *to == state);
            places.extend(to.map(|(n, _)| (vec!["actions", name.as_str(), "to"], vec![n.to_string()])));
        }
        places
    }
}

impl<'a> Astray<'a> {
    fn unreachable(&self, found: &mut Vec<Finding>) {
        for (name, action) in &self.machine.actions {
            for state in action.from.iter().filter(|state| self.lost.contains(*state)) {
                let (why, fix) =
                    self.why_lost(state, || format!("add an action whose `to` is `{state}`, or drop it here"));
                let message = if action.from.len() == 1 { format!("it can never be taken: {why}") } else { why };
                found.push(Finding::error(&["actions", name.as_str(), "from"], message, fix));
            }
        }
        for state in self.machine.terminal.iter().filter(|state| self.lost.contains(*state)) {
            let (why, fix) = self.why_lost(state, || "drop it, or add an action that leads to it".to_owned());
            found.push(Finding::error(&["terminal"], why, fix));
        }
    }

    /// Why a state is not reached, and what to do about it.
    fn why_lost(&self, state: &StateName, else_fix: impl Fn() -> String) -> (String, String) {
        if let Some(by) = self.led_to_by(state) {
            let why = format!("nothing leads to `{state}` but `{by}`, which can never be taken");
            return (why, format!("see that `{by}` can be taken"));
        }
        let near = |among: &BTreeSet<&'a StateName>| {
            nearest(state.as_str(), among.iter().map(|it| it.as_str())).into_iter().next()
        };
        let fix = match near(&self.dead).map(StateName::new) {
            Some(dead) => self.between(state, &dead),
            None => near(&self.reached).map_or_else(else_fix, |near| format!("did you mean `{near}`?")),
        };
        (format!("nothing leads to `{state}`"), fix)
    }

    fn dead_ends(&self, found: &mut Vec<Finding>) {
        // What is led to under this very name is lost for another reason.
        let misspelt = |lost: &&StateName| self.led_to_by(lost).is_none();
        let lost: Vec<&str> = self.lost.iter().copied().filter(misspelt).map(StateName::as_str).collect();
        for state in &self.dead {
            let places = self.machine.places(state);
            let Some((at, within)) = places.iter().find(|(at, _)| at.ends_with(&["to"])).or(places.first()) else {
                continue;
            };
            let fix = match nearest(state.as_str(), lost.iter().copied()).first() {
                Some(near) => self.between(state, &StateName::new(near.as_str())),
                None => format!("add `{state}` to `terminal`, or an action that leads away from it"),
            };
            let message = format!("`{state}` is a dead end: nothing leads away from it");
            found.push(Finding::error(at, message, fix).within(within));
        }
    }

    /// The action that leads to a state from another.
    fn led_to_by(&self, state: &StateName) -> Option<&'a ActionName> {
        let leads = |action: &Action| action.to.states().any(|to| to == state) && !action.from.contains(state);
        self.machine.actions.iter().find_map(|(name, action)| leads(action).then_some(name))
    }

    /// What to do about a state where another is spelled nearly so: the one that is named more often is meant.
    fn between(&self, state: &StateName, near: &StateName) -> String {
        let (own, other) = (self.machine.places(state), self.machine.places(near));
        match other.first().filter(|_| own.len() > other.len()) {
            Some((at, _)) => format!("did you mean `{state}` in `{}`?", at.join(".")),
            None => format!("did you mean `{near}`?"),
        }
    }
}
