//! What was done in a walk, for the day on which it is given up.

use std::collections::VecDeque;

use super::walk::WalkState;
use crate::call::Received;
use crate::certainty::Certainty;
use crate::id::{CallId, ToolName};
use crate::limits::DEEDS_MAX;
use crate::outcome::Outcome;
use crate::time::Timestamp;
use crate::walk::{GivenUp, Left};

/// What the calls of a walk did, or may have done, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::dispatcher) struct Deeds {
    done: VecDeque<Deed>,
    /// What was taken off them, since it is said that it did not happen.
    refuted: VecDeque<Deed>,
    /// How many were forgotten that no token undoes.
    more: u32,
    /// When the last of them ended.
    last: Timestamp,
    /// When the walk began: a time after everything that was done before.
    since: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
struct Deed {
    call: CallId,
    tool: ToolName,
    /// No token undoes it.
    lasts: bool,
}

/// What became of what was done in a walk that was given up.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Unwound {
    pub(in crate::dispatcher) undone: u32,
    /// What was to be undone and was not, as far as is known.
    pub(in crate::dispatcher) failed: Vec<Left>,
    /// Those of them of which nobody knows whether they were.
    pub(in crate::dispatcher) doubtful: Vec<CallId>,
    pub(in crate::dispatcher) left: Vec<Left>,
    pub(in crate::dispatcher) more: u32,
}

impl Deeds {
    /// Nothing was done yet.
    pub(super) fn new(at: Timestamp) -> Self {
        Self { since: at, ..Self::default() }
    }

    /// The walk begins again: what was done in it stays, whatever becomes of the walk from now on.
    pub(super) fn begin_again(&mut self, at: Timestamp) {
        *self = Self::new(at.max(self.last + 1));
    }

    /// A call of a move ended.
    pub(super) fn add(
        &mut self,
        received: &Received,
        outcome: Outcome,
        certainty: Certainty,
        lasts: bool,
        at: Timestamp,
    ) {
        self.last = at;
        let undoable = received.reversal.is_some() && outcome != Outcome::Reversed && !certainty.nothing_happened();
        if received.leg.is_none() || !(lasts || undoable) {
            return;
        }
        // A call that goes on with another one's key did what that one was about.
        if let Some(held) = &received.repeat_of {
            self.forget(&held.call);
        }
        self.done.push_back(Deed { call: received.call.clone(), tool: received.tool.clone(), lasts });
        if self.done.len() > DEEDS_MAX
            && let Some(oldest) = self.done.pop_front()
        {
            self.more += u32::from(oldest.lasts);
        }
    }

    /// Something becomes known of a call that ended in doubt, perhaps otherwise than it was said before.
    pub(super) fn settle(&mut self, call: &CallId, certainty: Certainty) {
        let of = |deed: &Deed| deed.call == *call;
        if certainty.nothing_happened() {
            self.refuted.extend(self.done.iter().find(|deed| of(deed)).cloned());
            self.forget(call);
            if self.refuted.len() > DEEDS_MAX {
                self.refuted.pop_front();
            }
        } else if let Some(deed) = self.refuted.iter().position(of).and_then(|at| self.refuted.remove(at)) {
            self.done.push_back(deed);
        }
    }

    /// Its token is void, and what it did stays; or it counts, and it does not.
    pub(super) fn lasts(&mut self, call: &CallId, lasts: bool) {
        self.done.iter_mut().filter(|deed| deed.call == *call).for_each(|deed| deed.lasts = lasts);
    }

    fn forget(&mut self, call: &CallId) {
        self.done.retain(|deed| deed.call != *call);
    }

    /// What no token undoes, the newest first, and how much more there is of that.
    pub(in crate::dispatcher) fn left(&self) -> (Vec<Left>, u32) {
        let lasting = self.done.iter().rev().filter(|deed| deed.lasts);
        (lasting.map(|deed| Left { call: deed.call.clone(), tool: deed.tool.clone() }).collect(), self.more)
    }

    /// The tool of a call; the call itself where that is forgotten.
    pub(in crate::dispatcher) fn tool(&self, call: &CallId) -> ToolName {
        let found = self.done.iter().find(|deed| deed.call == *call);
        found.map_or_else(|| ToolName::new(call.as_str()), |deed| deed.tool.clone())
    }

    /// A walk that is being undone.
    pub(in crate::dispatcher) fn undoing(&self) -> GivenUp {
        let (left, more) = self.left();
        let undoing = self.done.iter().filter(|deed| !deed.lasts).count() as u32;
        let left = left.into_iter().map(|left| left.tool).collect();
        GivenUp { undoing, undone: None, doubtful: Vec::new(), left, more }
    }

    /// It is undone, but for those and for what no token undoes. The walk may begin again, and that is told only once.
    pub(super) fn unwound(
        &mut self,
        undone: u32,
        (failed, doubtful): (&[CallId], &[CallId]),
        left: &[Left],
        more: u32,
    ) -> Unwound {
        let failed = failed.iter().map(|call| Left { call: call.clone(), tool: self.tool(call) }).collect();
        (self.done, self.more) = (VecDeque::new(), 0);
        Unwound { undone, failed, doubtful: doubtful.to_vec(), left: left.to_vec(), more }
    }
}

impl WalkState {
    /// When it began, or began again.
    pub(in crate::dispatcher) fn since(&self) -> Timestamp {
        self.deeds.since
    }

    /// What became of what was done in it, where it was given up.
    pub(in crate::dispatcher) fn given_up(&self) -> Option<GivenUp> {
        self.aborted_by.as_ref()?;
        Some(self.unwound.as_ref().map_or_else(|| self.deeds.undoing(), Unwound::told))
    }
}

impl Unwound {
    pub(super) fn told(&self) -> GivenUp {
        let left = self.stays().map(|left| left.tool.clone()).collect();
        let doubtful = self.in_doubt().map(|left| left.tool.clone()).collect();
        GivenUp { undoing: 0, undone: Some(self.undone), doubtful, left, more: self.more }
    }

    /// What stays, as far as it is named.
    pub(in crate::dispatcher) fn stays(&self) -> impl Iterator<Item = &Left> {
        self.failed.iter().filter(|left| !self.doubtful.contains(&left.call)).chain(&self.left)
    }

    /// What was to be undone, and nobody knows whether it was.
    pub(in crate::dispatcher) fn in_doubt(&self) -> impl Iterator<Item = &Left> {
        self.failed.iter().filter(|left| self.doubtful.contains(&left.call))
    }

    /// Whether that is the same with something undone since, or known not to be.
    pub(in crate::dispatcher) fn leads_to(&self, undone: u32, failed: &[CallId], doubtful: &[CallId]) -> bool {
        let known = failed.iter().all(|call| self.failed.iter().any(|left| left.call == *call));
        let fewer = self.failed.len().checked_sub(failed.len());
        let settled = self.in_doubt().any(|left| !doubtful.contains(&left.call));
        let tells = fewer.is_some_and(|fewer| fewer > 0) || settled;
        let fewer_doubts = doubtful.iter().all(|call| self.doubtful.contains(call));
        known && tells && fewer_doubts && fewer == undone.checked_sub(self.undone).map(|more| more as usize)
    }

    /// Something was undone after all, or is known not to be.
    pub(super) fn follow(&mut self, undone: u32, failed: &[CallId], doubtful: &[CallId]) {
        self.undone = undone;
        self.doubtful = doubtful.to_vec();
        self.failed.retain(|left| failed.contains(&left.call));
    }

    /// It becomes known of a call that ended in doubt that nothing was done.
    pub(super) fn forget(&mut self, call: &CallId) {
        self.failed.retain(|left| left.call != *call);
        self.left.retain(|left| left.call != *call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Payload;
    use crate::walk::{LegOf, Part};

    fn received(n: usize) -> Received {
        let of = CallId::new("move_1");
        Received {
            call: CallId::new(format!("call_{n}")),
            tool: ToolName::new(format!("tool_{n}")),
            upstream: "shop".into(),
            rules: "rules".into(),
            arguments: Payload { digest: "d".into(), size: 2 },
            principal: "local".into(),
            deadline: Default::default(),
            key: None,
            claims: Vec::new(),
            effect_key: String::new(),
            repeat_of: None,
            evidence: Vec::new(),
            reads: false,
            reversal: None,
            redeems: None,
            view: None,
            leg: Some(LegOf { of, part: Part::Act, name: "act".into(), attempt: 1 }),
        }
    }

    #[test]
    fn what_is_forgotten_is_still_counted() {
        let mut deeds = Deeds::default();
        for n in 0..DEEDS_MAX + 2 {
            deeds.add(&received(n), Outcome::Succeeded, Certainty::Processed, true, Timestamp::from_ms(1));
        }
        let (left, more) = deeds.left();
        assert_eq!((left.len(), more), (DEEDS_MAX, 2));
        assert_eq!(left[0].tool.as_str(), format!("tool_{}", DEEDS_MAX + 1), "the newest first");
        assert_eq!(deeds.undoing().stays(), DEEDS_MAX + 2);
    }

    #[test]
    fn what_turns_out_not_to_be_done_does_not_stay() {
        let mut deeds = Deeds::default();
        deeds.add(&received(1), Outcome::Unresolved, Certainty::InDoubt, true, Timestamp::from_ms(1));
        deeds.add(&received(2), Outcome::Succeeded, Certainty::Processed, true, Timestamp::from_ms(1));
        deeds.settle(&"call_2".into(), Certainty::Processed);
        deeds.settle(&"call_1".into(), Certainty::NotProcessed);
        assert_eq!(deeds.left().0, [Left { call: "call_2".into(), tool: "tool_2".into() }]);
    }
}
