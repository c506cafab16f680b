//! What a move hangs on, evaluated beside the core.

use amends_core::attempt::Payload;
use amends_core::failure::bounded;
use amends_core::machine::{Does, Lost, Said, Written};
use amends_core::walk::{Arrival, Weighed, Weighing};
use amends_core::{CallId, Gates, Input};
use amends_ledger::{exactly, keyed_digest};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::session::Session;

/// What was evaluated: what it says, and what it writes.
type Weight = (Weighed, Option<Written>);

impl Session {
    pub(super) fn weigh(&mut self, of: CallId, what: Weighing) {
        let (weighed, written) = self.weight(&of, what).unwrap_or_else(|error| {
            let why = bounded(&error.to_string());
            (Weighed::Unclear { why }, None)
        });
        let joined = self.joined(&of).filter(|_| what == Weighing::Act);
        let shows = what != Weighing::Skip || self.is_passed_over(&of);
        if let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.get_mut(&of)) {
            live.written = written;
            live.gave = joined.or(live.gave.take()).filter(|_| shows);
        }
        self.take(Input::Weighed { of, weighed }, Gates::default());
    }

    /// Evaluates again what the open move writes, where that was weighed by a process that is gone: the record has its digest, and
    /// it is written once the move is made.
    pub(in crate::driver) fn weigh_again(&mut self) {
        let open = self.dispatcher.walk().and_then(|look| look.open);
        let Some((of, leads)) = open.and_then(|open| Some((open.id.clone(), open.leads?.clone()))) else { return };
        // It was weighed with what it gave, or with nothing to show.
        let as_recorded = |what| match self.weight(&of, what) {
            Ok((Weighed::Arrives { arrival }, written)) if arrival == leads => written,
            Ok(_) | Err(_) => None,
        };
        let well = as_recorded(Weighing::Act);
        let shows = well.is_some() || self.is_passed_over(&of);
        let written = well.or_else(|| as_recorded(Weighing::Skip));
        if written.is_none() {
            tracing::error!(session = %self.id, call = %of, "what a move writes cannot be told again");
            let why = "what it gave is not kept any more, so that what it writes cannot be told again".to_owned();
            return self.take(Input::Weighed { of, weighed: Weighed::Unclear { why } }, Gates::default());
        }
        if let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.get_mut(&of)) {
            live.written = written;
            live.gave = live.gave.take().filter(|_| shows);
        }
    }

    /// Whether a move was done well, and is passed over by its own `assert`, which looked at what it gave. What failed and is
    /// passed over has nothing to show, whatever was done of it.
    fn is_passed_over(&self, of: &CallId) -> bool {
        let (Some(look), Some(walking)) = (self.dispatcher.walk(), &self.walking) else { return false };
        let machine = look.frames.last().and_then(|frame| look.machines.get(&frame.machine));
        let Some((live, machine)) = walking.moves.get(of).zip(machine) else { return false };
        let Some((_, action)) = machine.action(live.action.as_str()) else { return false };
        let known = live.known(matches!(action.does, Does::Parallel(_)));
        matches!(action.asserted(known.over(walking.course.fields())), Ok(Said::Skip))
    }

    /// What calls gave that were made at the same time, each by its name: all of it is what their move gave.
    fn joined(&self, of: &CallId) -> Option<Box<RawValue>> {
        let look = self.dispatcher.walk()?;
        let live = self.walking.as_ref()?.moves.get(of)?;
        let (_, action) = look.machines.get(&look.frames.last()?.machine)?.action(live.action.as_str())?;
        match action.does {
            Does::Parallel(_) => to_raw_value(&live.known(true).result).ok(),
            Does::Nothing | Does::Tool(_) | Does::Machine(_) | Does::Function(_) | Does::Allowed(_) => None,
        }
    }

    fn weight(&self, of: &CallId, what: Weighing) -> Result<Weight, Lost> {
        let look = self.dispatcher.walk().ok_or(Lost::Nowhere)?;
        let walking = self.walking.as_ref().ok_or(Lost::Nowhere)?;
        let live = walking.moves.get(of).ok_or(Lost::Nowhere)?;
        let frame = look.frames.last().ok_or(Lost::Nowhere)?;
        let machine = look.machines.get(&frame.machine).ok_or(Lost::Nowhere)?;
        let (name, action) = machine.action(live.action.as_str()).ok_or(Lost::Nowhere)?;
        let mut known = live.known(matches!(action.does, Does::Parallel(_)));
        let scope = known.over(walking.course.fields());
        let said = match what {
            Weighing::Gate => action.gated(scope)?,
            Weighing::Act => action.asserted(scope)?,
            Weighing::Enter | Weighing::Skip => Said::GoOn,
        };
        match (what, said) {
            (Weighing::Gate, Said::GoOn) => return Ok((Weighed::Proceed, None)),
            (_, Said::GoOn) => {}
            (_, Said::Retry) => return Ok((Weighed::Retry, None)),
            (_, Said::Skip) => return Ok((Weighed::Skip, None)),
            (_, Said::Fail) => return Ok((Weighed::Fail, None)),
        }
        if what == Weighing::Enter {
            let written = walking.course.enters(machine, name, &known)?;
            if let Does::Machine(run) = &action.does
                && let (Some(entered), Some(schema)) = (look.machines.get(run), walking.kit.fields(run))
            {
                let mut course = walking.course.clone();
                course.enter(entered, written.clone());
                if let Some(fault) = schema.check(course.fields()).first() {
                    let why = format!("`state.{}` of `{run}` would not be {}", fault.field, fault.expected);
                    return Ok((Weighed::Unclear { why: bounded(&why) }, None));
                }
            }
            let fields = self.payload(&written);
            return Ok((Weighed::Arrives { arrival: Arrival { to: Vec::new(), fields } }, Some(written)));
        }
        if what == Weighing::Skip {
            known.result = Value::Null;
        }
        let (to, written) = walking.course.leads(look.machines, look.frames, name, &known)?;
        // Where it goes on in the same machine, its fields must still be what was declared of them.
        let after = to.len().checked_sub(1).and_then(|ended| look.frames.len().checked_sub(ended + 1));
        if let Some(schema) =
            after.and_then(|at| look.frames.get(at)).and_then(|frame| walking.kit.fields(&frame.machine))
        {
            let mut course = walking.course.clone();
            course.arrive(to.len(), written.clone());
            if let Some(fault) = schema.check(course.fields()).first() {
                let why = format!("`state.{}` would not be {}", fault.field, fault.expected);
                return Ok((Weighed::Unclear { why: bounded(&why) }, None));
            }
        }
        let fields = self.payload(&written);
        Ok((Weighed::Arrives { arrival: Arrival { to, fields } }, Some(written)))
    }

    fn payload(&self, written: &Written) -> Payload {
        let bytes = exactly(written);
        let digest = keyed_digest(&self.gateway.secret, &[b"fields", self.id.as_str().as_bytes(), &bytes]);
        Payload { digest, size: bytes.len() as u64 }
    }
}
