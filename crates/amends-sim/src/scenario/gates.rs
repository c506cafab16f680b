//! What is judged beside the dispatcher before an action is taken: whether the inputs fit, and whether the guard holds.

use amends_core::machine::No;
use amends_core::{Gates, Refusal, RefusalKind};
use amends_wire::Schema;
use serde_json::Value;

use super::spec::StepSpec;
use super::telling::Telling;

impl Telling<'_> {
    pub(super) fn gates(&mut self, step: &StepSpec, inputs: &Value) -> Gates {
        self.guard = None;
        let refusal = step.action.as_deref().and_then(|action| self.refusal(action, inputs));
        Gates { refusal: refusal.map(Box::new), ..Gates::default() }
    }

    fn refusal(&mut self, name: &str, inputs: &Value) -> Option<Refusal> {
        let (machine, at) = self.position()?;
        let machines = self.machines.clone();
        let (_, action) = machines.get(&machine)?.action(name)?;
        let schema = action.input.as_ref().and_then(|schema| Schema::from_value(schema.clone()).ok());
        let faults = schema.map(|schema| schema.check(inputs)).unwrap_or_default();
        if !faults.is_empty() {
            let words: Vec<String> =
                faults.iter().map(|fault| format!("`{}` must be {}", fault.field, fault.expected)).collect();
            let message = format!("the inputs of `{name}` do not fit: {}", words.join("; "));
            return Some(Refusal { details: faults, ..Refusal::of(RefusalKind::ValidationFailed, message) });
        }
        let Err(No::Guarded { guard, reason }) = action.admits(&at, inputs) else { return None };
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("`{name}` may not be taken: its guard `{guard}` does not hold{why}");
        self.guard = Some(guard);
        Some(Refusal::of(RefusalKind::InvalidTransition, message))
    }
}
