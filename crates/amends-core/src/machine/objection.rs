//! What is against an action by its inputs and the fields, as whoever takes it is told.

use serde_json::Value;

use super::{Action, No, Position, Unmet};
use crate::failure::bounded;
use crate::id::ActionName;
use crate::refusal::ArgumentFault;
use crate::{Refusal, RefusalKind};

/// A guard that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarded {
    /// The guard.
    pub guard: String,
    /// Why it gave no answer, where it gave none.
    pub reason: Option<String>,
    /// Which part of it, and what that speaks of.
    pub unmet: Option<Unmet>,
}

impl Action {
    /// Its guard, where that does not hold over those inputs there.
    pub fn guarded(&self, at: &Position, inputs: &Value) -> Option<Guarded> {
        match self.admits(at, inputs) {
            Err(No::Guarded { guard, reason }) => {
                let unmet = self.unmet(&Value::Object(at.fields.clone()), inputs);
                Some(Guarded { guard, reason, unmet })
            }
            Ok(()) | Err(_) => None,
        }
    }
}

impl Guarded {
    /// Whether it says something: of inputs that do not fit, a guard may only fail to give an answer.
    pub const fn counts(&self, unfit: bool) -> bool {
        !unfit || self.reason.is_none()
    }

    /// Whether other inputs may help. None make hold what the fields alone decide.
    pub fn over_inputs(&self) -> bool {
        self.unmet.as_ref().is_none_or(|unmet| unmet.over_inputs)
    }

    /// The refusal of an action of that name: which part of the guard does not hold, over which values. `told` says a value that it
    /// speaks of as it may be told, and nothing of one that is not there.
    pub fn refusal(&self, action: &ActionName, told: impl Fn(&str, Option<&Value>) -> Option<String>) -> Refusal {
        let Self { guard, reason, unmet } = self;
        let mut message = format!("`{action}` is not allowed now: its guard `{guard}` does not hold");
        let mut details = Vec::new();
        if let Some(unmet) = unmet {
            if !unmet.whole {
                message.push_str(&format!(": not `{}`", unmet.part));
            }
            let expected = format!("`{}` to hold", unmet.part);
            details.extend(unmet.values.iter().map(|(path, value)| ArgumentFault {
                field: path.clone(),
                expected: expected.clone(),
                got: told(path, value.as_ref()),
                nearest: Vec::new(),
            }));
        }
        let words: Vec<String> = details.iter().map(is).collect();
        match reason {
            Some(reason) => message.push_str(&format!(" ({})", bounded(reason))),
            None if !words.is_empty() => message.push_str(&format!(" ({})", words.join(", "))),
            None => {}
        }
        Refusal { details, ..Refusal::of(RefusalKind::InvalidTransition, message) }
    }

    /// One No of two: to inputs that do not fit, and to what the guard does not allow over them. Where no inputs help, that comes
    /// first.
    pub fn beside(&self, unfit: Refusal, guarded: Refusal) -> Refusal {
        let (first, second) = if self.over_inputs() { (unfit, guarded) } else { (guarded, unfit) };
        let message = format!("{}; and {}", first.message, second.message);
        let details = first.details.iter().chain(&second.details).cloned().collect();
        Refusal { message, details, ..first }
    }
}

fn is(fault: &ArgumentFault) -> String {
    match &fault.got {
        Some(value) => format!("`{}` is {value}", fault.field),
        None => format!("`{}` is not there", fault.field),
    }
}

/// The refusal of inputs that do not fit an action of that name, for those reasons.
pub fn unfit(action: &ActionName, faults: Vec<ArgumentFault>) -> Refusal {
    let first = faults.first().map(|fault| {
        let field = if fault.field.is_empty() { "the inputs".to_owned() } else { format!("`{}`", fault.field) };
        format!(": {field}: expected {}", fault.expected)
    });
    let message = format!("`{action}` does not take these inputs{}", first.unwrap_or_default());
    Refusal { details: faults, ..Refusal::of(RefusalKind::ValidationFailed, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{ActionSpec, Machine, MachineSpec};
    use serde_json::json;

    fn guarded(guard: &str, inputs: Value) -> Option<Guarded> {
        let fields = [("total".to_owned(), json!(3)), ("open".to_owned(), json!(false))];
        let spec = MachineSpec { fields: fields.into_iter().collect(), ..MachineSpec::new("a").terminal(["b"]) };
        let spec = spec.action("pay", ActionSpec::new(["a"], "b").guard(guard));
        let spec = spec.action("open", ActionSpec::new(["a"], "a").writes("open", "true").times(2));
        let machine = Machine::read("m", &spec).unwrap();
        machine.action("pay").unwrap().1.guarded(&machine.begin(), &inputs)
    }

    fn told(no: &Guarded) -> Refusal {
        no.refusal(&ActionName::new("pay"), |_, value| Some(value?.to_string()))
    }

    #[test]
    fn the_part_that_does_not_hold_is_told_with_its_values() {
        assert_eq!(guarded("inputs.n <= state.total", json!({ "n": 3 })), None);
        let no = told(&guarded("inputs.n <= state.total && inputs.m != ''", json!({ "n": 5, "m": "x" })).unwrap());
        let said = "`pay` is not allowed now: its guard `inputs.n <= state.total && inputs.m != ''` does not hold: \
                    not `inputs.n <= state.total` (`inputs.n` is 5, `state.total` is 3)";
        assert_eq!((no.kind, no.message.as_str()), (RefusalKind::InvalidTransition, said));
        let fields: Vec<&str> = no.details.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["inputs.n", "state.total"]);
    }

    #[test]
    fn what_the_fields_alone_forbid_comes_before_inputs_that_do_not_fit() {
        let wrong = || unfit(&ActionName::new("pay"), Vec::new());
        let fields = guarded("state.open", json!({})).unwrap();
        assert_eq!(fields.beside(wrong(), told(&fields)).kind, RefusalKind::InvalidTransition);
        let inputs = guarded("inputs.n <= state.total", json!({ "n": 5 })).unwrap();
        assert_eq!(inputs.beside(wrong(), told(&inputs)).kind, RefusalKind::ValidationFailed);
        let lost = guarded("inputs.n <= state.total", json!({})).unwrap();
        assert!(lost.counts(false) && !lost.counts(true), "of inputs that do not fit it has nothing to say: {lost:?}");
    }
}
