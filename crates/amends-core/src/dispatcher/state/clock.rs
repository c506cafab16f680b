//! The time of a walk.

use super::moving::{MoveState, Rest};
use super::walk::WalkState;
use crate::id::{CallId, InteractionId};
use crate::limits::WAITS_MAX;
use crate::machine::Machine;
use crate::time::Timestamp;

/// The time that a walk spends in one machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clock {
    pub(super) began: Timestamp,
    /// After how many moves that was.
    pub(super) entered: u64,
    /// What the walk had spent before of which this one is a fork.
    pub(super) before_ms: u64,
    /// How long people took.
    pub(super) people_ms: u64,
}

impl Clock {
    pub(super) fn new(began: Timestamp, entered: u64) -> Self {
        Self { began, entered, before_ms: 0, people_ms: 0 }
    }

    pub(super) fn ends(&self, most_ms: u64) -> Timestamp {
        self.began + most_ms.saturating_sub(self.before_ms).saturating_add(self.people_ms)
    }

    pub(super) fn spent_ms(&self, at: Timestamp) -> u64 {
        at.since_ms(self.began).saturating_sub(self.people_ms).saturating_add(self.before_ms)
    }
}

/// The times in which somebody was waited for. Of two who were asked at once, what they took together counts once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waits(Vec<(Timestamp, Timestamp)>);

impl Waits {
    /// Adds one, and gives how much of it was in none before.
    fn add(&mut self, from: Timestamp, to: Timestamp) -> u64 {
        let counted = self.0.iter().map(|(since, until)| (*until).min(to).since_ms((*since).max(from)));
        let new_ms = to.since_ms(from).saturating_sub(counted.sum());
        let mut joined = (from, to);
        self.0.retain(|(since, until)| {
            let apart = *until < from || *since > to;
            if !apart {
                joined = (joined.0.min(*since), joined.1.max(*until));
            }
            apart
        });
        self.0.push(joined);
        if self.0.len() > WAITS_MAX {
            self.0.remove(0);
        }
        new_ms
    }
}

impl WalkState {
    /// When its time is over, where a machine it is in bounds that, and which one does. The time that people took does not count.
    pub(in crate::dispatcher) fn ends(&self) -> Option<(Timestamp, &Machine)> {
        let machines = self.frames.iter().filter_map(|frame| self.machines.get(&frame.machine));
        let bounded = machines.zip(&self.clocks).filter_map(|(machine, clock)| {
            let most_ms = machine.bounds().time_ms_max?;
            Some((clock.ends(most_ms), machine))
        });
        bounded.min_by_key(|(ends, _)| *ends)
    }

    /// What is left of that for a move. One that goes on with another, which began in time, is not too late.
    pub(super) fn rest(&self) -> Option<Rest> {
        let (ends, machine) = self.ends().filter(|_| self.unsettled.is_none())?;
        let most_ms = machine.bounds().time_ms_max?;
        Some(Rest { ends, machine: machine.name().clone(), most_ms })
    }

    /// How much time was spent in each machine it is in, without people's.
    pub(in crate::dispatcher) fn spent_ms(&self, at: Timestamp) -> Vec<u64> {
        self.clocks.iter().map(|clock| clock.spent_ms(at)).collect()
    }

    /// What the agent took to give what a call of the open move needs is neither the move's time nor the walk's.
    pub(super) fn agent_took(&mut self, call: &CallId, ms: u64, at: Timestamp) {
        if let Some(open) = self.open.as_mut().filter(|open| open.has(call)) {
            open.wait_over(at - ms, at);
            self.people_had(at - ms, at);
        }
    }

    /// People had that time, whatever they did with it: it is not the walk's.
    pub(super) fn people_had(&mut self, from: Timestamp, at: Timestamp) {
        let ms = self.waits.add(from, at);
        for clock in &mut self.clocks {
            clock.people_ms = clock.people_ms.saturating_add(ms.min(at.since_ms(clock.began)));
        }
    }

    /// A person answered, or did not: their time is not the walk's, where that waited for them. A No ends the move in the same step.
    pub(super) fn person_took(&mut self, id: &InteractionId, call: &CallId, from: Timestamp, at: Timestamp) {
        let mut waited = self.unsettled.iter().flat_map(|past| &past.legs).any(|leg| leg.call == *call);
        if let Some(open) = self.open.as_mut() {
            let asked = open.question.as_ref() == Some(id);
            if asked || open.has(call) {
                open.wait_over(from, at);
                open.approved |= asked;
                waited = true;
            }
        }
        if waited {
            self.people_had(from, at);
        }
    }
}

impl MoveState {
    /// Somebody was waited for: what is due is due as much later.
    fn wait_over(&mut self, from: Timestamp, at: Timestamp) {
        self.deadline = self.deadline + self.waits.add(from, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_several_were_waited_for_counts_once_however_they_overlap() {
        let cases: [(&[(u64, u64)], u64); 6] = [
            (&[(0, 10)], 10),
            (&[(0, 10), (0, 13)], 13),
            (&[(5, 10), (0, 12)], 12),
            (&[(0, 4), (6, 9), (2, 20)], 20),
            (&[(0, 4), (6, 9), (3, 7)], 9),
            (&[(0, 4), (4, 6), (0, 6)], 6),
        ];
        for (waits, all_ms) in cases {
            let mut counted = Waits::default();
            let at = Timestamp::from_ms;
            let ms: u64 = waits.iter().map(|(from, to)| counted.add(at(*from), at(*to))).sum();
            assert_eq!(
                (ms, counted.0.iter().map(|(from, to)| to.since_ms(*from)).sum()),
                (all_ms, all_ms),
                "{waits:?}"
            );
        }
    }
}
