//! How a machine can move, whatever its guards say.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Action, Machine};
use crate::id::{ActionName, StateName};

/// The ways from state to state.
pub(super) struct Flow<'a> {
    machine: &'a Machine,
    next: BTreeMap<&'a StateName, BTreeSet<&'a StateName>>,
}

impl<'a> Flow<'a> {
    /// Every way there is.
    pub(super) fn of(machine: &'a Machine) -> Self {
        Self::through(machine, |_| true)
    }

    /// The ways of those actions alone.
    pub(super) fn through(machine: &'a Machine, takes: impl Fn(&Action) -> bool) -> Self {
        let mut next: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for action in machine.actions.values().filter(|action| takes(action)) {
            for from in &action.from {
                next.entry(from).or_default().extend(action.to.states());
            }
        }
        Self { machine, next }
    }

    /// Where one can get from those states in any number of moves, none included.
    pub(super) fn reach(&self, from: impl IntoIterator<Item = &'a StateName>) -> BTreeSet<&'a StateName> {
        let mut reached = BTreeSet::new();
        let mut left: Vec<_> = from.into_iter().collect();
        // Ends: a state is expanded only when it is new, and there are finitely many.
        while let Some(state) = left.pop() {
            if reached.insert(state) {
                left.extend(self.next.get(state).into_iter().flatten());
            }
        }
        reached
    }

    /// Where one can get from that state, and in how few moves.
    pub(super) fn distances(&self, from: &'a StateName) -> BTreeMap<&'a StateName, u32> {
        nearest_first(&self.next, from)
    }

    /// From where one can get to that state, and in how few moves.
    pub(super) fn distances_to(&self, to: &'a StateName) -> BTreeMap<&'a StateName, u32> {
        let mut before: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (from, next) in &self.next {
            next.iter().for_each(|next| {
                before.entry(*next).or_default().insert(*from);
            });
        }
        nearest_first(&before, to)
    }

    /// Where one can get from that state in at least one move.
    pub(super) fn beyond(&self, state: &'a StateName) -> BTreeSet<&'a StateName> {
        self.reach(self.next.get(state).into_iter().flatten().copied())
    }

    /// The groups of states that lead back to themselves.
    pub(super) fn cycles(&self) -> Vec<BTreeSet<&'a StateName>> {
        self.cycles_among(self.reach([&self.machine.initial]))
    }

    /// The same among states that are reached in whatever way.
    pub(super) fn cycles_among(&self, reached: BTreeSet<&'a StateName>) -> Vec<BTreeSet<&'a StateName>> {
        let mut groups: Vec<BTreeSet<_>> = Vec::new();
        let beyond: BTreeMap<_, _> = reached.into_iter().map(|state| (state, self.beyond(state))).collect();
        let leads = |from: &StateName, to: &StateName| beyond.get(from).is_some_and(|beyond| beyond.contains(to));
        for state in beyond.keys().filter(|state| leads(state, state)) {
            if groups.iter().any(|group| group.contains(state)) {
                continue;
            }
            groups.push(beyond[state].iter().filter(|other| leads(other, state)).copied().collect());
        }
        groups
    }

    /// The fields that are there for sure in each state that can be reached, by whatever way it was reached, where it is begun with
    /// those.
    pub(super) fn sure_fields(&self, begun: BTreeSet<&'a str>) -> BTreeMap<&'a StateName, BTreeSet<&'a str>> {
        let machine = self.machine;
        let mut sure = BTreeMap::from([(&machine.initial, begun)]);
        // Ends: a state's set is made once and then only ever loses fields.
        loop {
            let mut changed = false;
            for action in machine.actions.values() {
                for from in &action.from {
                    let Some(before) = sure.get(from) else { continue };
                    let after: BTreeSet<&str> =
                        before.iter().copied().chain(action.writes.keys().map(String::as_str)).collect();
                    for to in action.to.states() {
                        let there = sure.get(to);
                        let both = there.map_or_else(|| after.clone(), |there| there & &after);
                        if there != Some(&both) {
                            sure.insert(to, both);
                            changed = true;
                        }
                    }
                }
            }
            if !changed {
                return sure;
            }
        }
    }

    /// The actions that lead away from that state.
    pub(super) fn away_from(&self, state: &StateName) -> impl Iterator<Item = (&'a ActionName, &'a Action)> {
        self.machine.actions.iter().filter(move |(_, action)| action.from.contains(state))
    }
}

fn nearest_first<'a>(
    ways: &BTreeMap<&'a StateName, BTreeSet<&'a StateName>>,
    from: &'a StateName,
) -> BTreeMap<&'a StateName, u32> {
    let mut far = BTreeMap::from([(from, 0)]);
    let mut left = VecDeque::from([from]);
    // Ends: a state is expanded only when it is new, and there are finitely many.
    while let Some(state) = left.pop_front() {
        let there = far[state] + 1;
        for next in ways.get(state).into_iter().flatten() {
            if !far.contains_key(next) {
                far.insert(next, there);
                left.push_back(next);
            }
        }
    }
    far
}
