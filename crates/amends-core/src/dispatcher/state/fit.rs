//! Whether a walk is somewhere in machines that are declared otherwise than its own.

use std::collections::BTreeMap;

use super::walk::WalkState;
use crate::id::MachineName;
use crate::machine::{MachineSpec, Machines};
use crate::walk::Frame;

impl WalkState {
    /// Whether it can go on under that declaration: it is somewhere there.
    pub(in crate::dispatcher) fn fits(&self, definition: &BTreeMap<MachineName, MachineSpec>) -> bool {
        let Ok(machines) = Machines::read(definition) else { return false };
        let has =
            |frame: &Frame| machines.get(&frame.machine).is_some_and(|machine| machine.states().contains(&frame.state));
        self.frames.iter().all(has)
    }

    /// Why it cannot go on under that declaration; nothing where it can.
    pub(in crate::dispatcher) fn unfit(&self, definition: &BTreeMap<MachineName, MachineSpec>) -> Option<String> {
        let Ok(machines) = Machines::read(definition) else { return Some("it cannot be read".to_owned()) };
        if self.unsettled.as_ref().is_some_and(|past| !past.fits(&machines)) {
            return Some("the move that was not told does not go on there".to_owned());
        }
        Self::unfit_there(&self.frames, &machines)
    }

    /// Why a walk that is there cannot go on in those machines; nothing where it can.
    pub(in crate::dispatcher) fn unfit_there(frames: &[Frame], machines: &Machines) -> Option<String> {
        for (n, frame) in frames.iter().enumerate() {
            let (name, state) = (&frame.machine, &frame.state);
            let Some(machine) = machines.get(name) else {
                return Some(format!("there is no `{name}` any more"));
            };
            if !machine.states().contains(state) {
                return Some(format!("`{name}` has no state `{state}` any more"));
            }
            // What waits for the machine above goes on with its own action.
            let waits = frames.get(n + 1).and_then(|above| above.via.as_ref());
            if let Some(via) = waits.filter(|via| machine.action(via.as_str()).is_none()) {
                return Some(format!("`{name}` has no action `{via}`, with which the walk goes on"));
            }
        }
        None
    }
}
