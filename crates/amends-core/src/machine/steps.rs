//! How many actions lie before each other, those in machines within among them, and what `limits.steps` leaves no room for.

use std::collections::BTreeMap;

use super::{Action, Does, Finding, Machine, Machines};
use crate::id::{MachineName, StateName};

/// How many actions each of some machines takes at least.
type Leasts<'a> = BTreeMap<&'a MachineName, u32>;

impl Machine {
    /// What lies further away than the machine may go.
    pub(super) fn out_of_steps(&self, others: &Machines, found: &mut Vec<Finding>) {
        let Some(most) = self.bounds.steps_max.filter(|most| *most > 0) else { return };
        let leasts = &mut Leasts::new();
        let far = self.distances(others, leasts);
        for (name, action) in &self.actions {
            let Some(moves) = action.from.iter().filter_map(|from| far.get(from)).min() else { continue };
            let takes = action.takes(others, leasts);
            if *moves >= most {
                let message =
                    format!("it can never be taken: {moves} actions come before it, and `limits.steps` is {most}");
                let fix = format!("allow at least {} steps", moves + 1);
                found.push(Finding::error(&["actions", name.as_str(), "from"], message, fix));
            } else if let Some(all) = moves.checked_add(takes).filter(|all| *all > most) {
                let message = format!(
                    "what it runs can never end: {moves} actions come before it, it takes {takes} with those within, and \
                     `limits.steps` is {most}"
                );
                let fix = format!("allow at least {all} steps");
                found.push(Finding::error(&["actions", name.as_str(), "machine"], message, fix));
            }
        }
    }

    /// How many actions it takes at least to reach each state, those within other machines among them. `leasts` are the machines
    /// of which that is known.
    fn distances<'a>(&self, others: &'a Machines, leasts: &mut Leasts<'a>) -> BTreeMap<&StateName, u32> {
        let ways: Vec<(&Action, u32)> =
            self.actions.values().map(|action| (action, action.takes(others, leasts))).collect();
        let mut far = BTreeMap::from([(&self.initial, 0_u32)]);
        // Ends: every turn but the last brings a state nearer, and none comes nearer than it is.
        loop {
            let mut nearer = false;
            for (action, moves) in &ways {
                let Some(from) = action.from.iter().filter_map(|from| far.get(from)).min() else { continue };
                let there = from.saturating_add(*moves);
                for to in action.to.states() {
                    if far.get(to).is_none_or(|far| *far > there) {
                        far.insert(to, there);
                        nearer = true;
                    }
                }
            }
            if !nearer {
                return far;
            }
        }
    }

    /// How many actions it takes at least to its end. Each machine is gone through once, however many run it.
    fn least<'a>(&'a self, others: &'a Machines, leasts: &mut Leasts<'a>) -> u32 {
        if let Some(least) = leasts.get(&self.name) {
            return *least;
        }
        let far = self.distances(others, leasts);
        let least = self.terminal.iter().filter_map(|state| far.get(state)).min().copied().unwrap_or(0);
        leasts.insert(&self.name, least);
        least
    }
}

impl Action {
    /// How many actions it is at least, with those within the machine that it runs.
    fn takes<'a>(&self, others: &'a Machines, leasts: &mut Leasts<'a>) -> u32 {
        match &self.does {
            // What is passed over is not entered.
            Does::Machine(_) if self.may_be_passed_over() => 1,
            Does::Machine(run) => others.get(run).map_or(1, |run| run.least(others, leasts).saturating_add(1)),
            Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) | Does::Allowed(_) => 1,
        }
    }
}
