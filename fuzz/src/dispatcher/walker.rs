//! Bytes into what comes of a walk: wishes, calls for moves, evaluations, and what became of an undoing.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use amends_core::attempt::Payload;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::MachineSpec;
use amends_core::walk::{Arrival, Beginning, Fork, Frame, LegWish, Taking, Weighed};
use amends_core::{Call, CallId, CallKey, Digest, Effect, Input, Step, Timestamp};
use serde_json::json;

use crate::bytes::Bytes;

const ACTIONS: [&str; 9] = ["fetch", "fan", "bless", "run", "free", "finish", "look", "complete", "no such thing"];
const STATES: [&str; 6] = ["raw", "fetched", "done", "low", "high", "completed"];

/// What is known of a walk outside of it.
#[derive(Debug, Default)]
pub struct Walker {
    /// The calls that were to be made.
    wishes: Vec<LegWish>,
    /// What was to be evaluated.
    weighed: Vec<CallId>,
    unwound: Vec<CallId>,
    moves: usize,
    legs: usize,
}

impl Walker {
    /// How the walk begins: at the beginning, or at a place that may be none.
    pub fn begins(bytes: &mut Bytes<'_>) -> Input {
        let from = bytes.once_in(4).then(|| {
            let machine = bytes.one_of(&["outer", "inner", "outer.free", "none"]);
            let frame = |bytes: &mut Bytes<'_>, machine: &str, via: Option<&str>| Frame {
                machine: MachineName::new(machine),
                state: bytes.one_of(&STATES).into(),
                moves: bytes.number(),
                taken: BTreeMap::new(),
                via: via.map(ActionName::new),
            };
            let mut frames = vec![frame(bytes, "outer", None)];
            if bytes.once_in(2) {
                frames.push(frame(bytes, machine, Some(if machine == "inner" { "run" } else { "free" })));
            }
            let spent_ms = (0..bytes.number() % 3).map(|_| bytes.number()).collect();
            let later = Vec::new();
            Fork { session: "another".into(), seq: bytes.number(), frames, spent_ms, later }
        });
        let (machine, hash) = (MachineName::new("outer"), Digest::new("machine"));
        Input::Begin(Box::new(Beginning { machine, definition: definition(), hash, from, fields: payload() }))
    }

    /// Notes what a step wants done for the walk.
    pub fn learn(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Begin(wish) => self.wishes.push((**wish).clone()),
                Effect::Weigh { of, .. } => self.weighed.push(of.clone()),
                Effect::Unwind { of, .. } => self.unwound.push(of.clone()),
                _ => {}
            }
        }
    }

    /// Something that arrives. `call` makes one up.
    pub fn input(&mut self, bytes: &mut Bytes<'_>, now: Timestamp, call: impl FnOnce(&mut Bytes<'_>) -> Call) -> Input {
        match bytes.below(10) {
            0..=2 => self.wish(bytes, now),
            3..=5 => match latest(&self.wishes, bytes) {
                Some(wish) => self.leg(wish, call(bytes)),
                None => self.wish(bytes, now),
            },
            6 | 7 => {
                let of = latest(&self.weighed, bytes).unwrap_or_else(|| "none".into());
                Input::Weighed { of, weighed: weighed(bytes) }
            }
            8 => {
                let of = latest(&self.unwound, bytes).unwrap_or_else(|| "none".into());
                let failed: Vec<CallId> = (0..bytes.below(3)).map(|n| CallId::new(format!("l{n}"))).collect();
                let undone = u32::from(bytes.byte());
                let doubtful = failed.iter().take(undone as usize % 3).cloned().collect();
                Input::Unwound { of, undone, failed, doubtful }
            }
            _ => {
                let call = CallId::new(format!("m{}", self.moves.saturating_sub(bytes.below(3))));
                match bytes.below(4) {
                    0 => Input::Delivery { call },
                    1 => Input::Migrate { definition: definition(), hash: "other".into() },
                    2 => Input::Cancel { call, reason: CancelReason::Disconnected },
                    _ => Input::Cancel { call, reason: CancelReason::Asked },
                }
            }
        }
    }

    /// What the last step wants done, as a driver does it that has nothing else to do: nothing can be evaluated any more.
    pub fn due(&mut self, call: impl FnOnce() -> Call) -> Option<Input> {
        if let Some(wish) = self.wishes.pop() {
            self.wishes.clear();
            return Some(self.leg(wish, call()));
        }
        if let Some(of) = self.weighed.pop() {
            self.weighed.clear();
            return Some(Input::Weighed { of, weighed: Weighed::Unclear { why: "it is over".into() } });
        }
        let of = self.unwound.pop()?;
        self.unwound.clear();
        Some(Input::Unwound { of, undone: 0, failed: Vec::new(), doubtful: Vec::new() })
    }

    fn wish(&mut self, bytes: &mut Bytes<'_>, now: Timestamp) -> Input {
        self.moves += 1;
        let id = CallId::new(format!("m{}", self.moves));
        let action = bytes.one_of(&ACTIONS);
        let inputs = bytes.one_of(&["a", "b"]);
        Input::Move(Box::new(Taking {
            id,
            action: ActionName::new(action),
            expect_seq: bytes.once_in(5).then(|| bytes.number()),
            inputs: payload(),
            fingerprint: Digest::new(format!("{action}-{inputs}")),
            principal: bytes.one_of(&["local", "local", "local", "another"]).into(),
            key: bytes.once_in(4).then(|| CallKey(bytes.one_of(&["k1", "k2"]).into())),
            deadline: now + bytes.one_of(&[50_000, 1_000, 0, 3_600_000, u64::MAX]),
            view: None,
            reset: bytes.once_in(8),
        }))
    }

    /// A call is given only to the wish that it is for.
    fn leg(&mut self, wish: LegWish, call: Call) -> Input {
        self.legs += 1;
        let id = CallId::new(format!("l{}", self.legs));
        let effect_key = format!("key-of-{id}");
        Input::Call(Box::new(Call { id, effect_key, deadline: wish.deadline, leg: Some(wish.leg), ..call }))
    }
}

/// One of the last few, the latest most of all.
fn latest<T: Clone>(all: &[T], bytes: &mut Bytes<'_>) -> Option<T> {
    let back = if bytes.once_in(4) { 1 + bytes.below(3) } else { 0 };
    all.len().checked_sub(back + 1).map(|at| all[at].clone())
}

fn weighed(bytes: &mut Bytes<'_>) -> Weighed {
    match bytes.below(8) {
        0 => Weighed::Proceed,
        1 => Weighed::Retry,
        2 => Weighed::Skip,
        3 => Weighed::Fail,
        4 => Weighed::Unclear { why: bytes.text() },
        _ => {
            let to = (0..bytes.below(4)).map(|_| bytes.one_of(&STATES).into()).collect();
            Weighed::Arrives { arrival: Arrival { to, fields: payload() } }
        }
    }
}

fn payload() -> Payload {
    Payload { digest: "fields".into(), size: 2 }
}

/// A machine with everything that an action can have, and the one that it runs.
fn definition() -> BTreeMap<MachineName, MachineSpec> {
    static DEFINITION: OnceLock<BTreeMap<MachineName, MachineSpec>> = OnceLock::new();
    let read = || {
        let outer = json!({
            "initial": "raw", "terminal": ["done"], "limits": { "loops": 6, "steps": 40, "time": "20h" },
            "actions": {
                "fetch": {
                    "from": ["raw"], "to": "fetched", "setup": [{ "tool": "tool" }], "gate": "'proceed'", "tool": "tool",
                    "assert": "'ok'", "exit": [{ "tool": "tool" }, { "tool": "other" }], "timeout": "9s",
                    "retry": { "max_attempts": 3, "initial": "300ms" }, "resolution": "skip",
                },
                "fan": {
                    "from": ["fetched"], "to": [{ "when": "true", "state": "raw" }, { "state": "fetched" }],
                    "parallel": { "a": { "tool": "tool" }, "b": { "tool": "tool" } }, "exit": [{ "tool": "tool" }],
                    "retry": { "max_attempts": 2, "initial": "1s" }, "resolution": "retry_later", "later": "4s",
                },
                "bless": { "from": ["fetched"], "to": "fetched", "tool": "tool", "queue": "ops" },
                "run": { "from": ["raw", "fetched"], "to": "fetched", "machine": "inner" },
                "free": { "from": ["fetched"], "to": "raw", "allowed": ["look"], "turns": 4 },
                "finish": {
                    "from": ["fetched"], "to": "done", "tool": "tool", "assert": "'ok'", "resolution": "abort_workflow",
                },
            },
        });
        let inner = json!({
            "initial": "low", "terminal": ["high"], "limits": { "loops": 4 },
            "actions": {
                "look": { "from": ["low"], "to": "low", "tool": "tool" },
                "complete": { "from": ["low"], "to": "high" },
            },
        });
        let spec = |value| serde_json::from_value(value).expect("it is a machine");
        [(MachineName::new("outer"), spec(outer)), (MachineName::new("inner"), spec(inner))].into()
    };
    DEFINITION.get_or_init(read).clone()
}

#[cfg(test)]
mod tests {
    use amends_core::machine::Machines;

    use super::*;

    #[test]
    fn the_machines_can_be_walked_through() {
        let machines = Machines::read(&definition()).expect("they fit together");
        assert!(machines.get(&MachineName::new("outer.free")).is_some());
    }
}
