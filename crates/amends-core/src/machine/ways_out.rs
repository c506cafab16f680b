//! Whether one of several guarded actions can always be taken.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::held::{Held, Values};
use super::possible::{Try, is, put};
use super::{Action, Machine};
use crate::expression::{Expression, Path};
use crate::id::StateName;
use crate::limits::GUARD_TRIES_MAX;

/// How many guards are tried together, and over how many fields: more are never within the bound of what is tried.
const TOGETHER_MAX: usize = 10;

/// What each of some values can be, where it may not be there.
type Choices = Vec<(Path, Values)>;

impl Machine {
    /// Whether, whatever is in the fields in those states, an agent can give inputs with which one of those actions may be taken.
    /// Where that cannot be seen for sure, they may all be shut.
    pub(super) fn one_is_open(&self, actions: &[&Action], from: &BTreeSet<StateName>, held: &Held<'_>) -> bool {
        let guards: Option<Vec<&Expression>> = actions.iter().map(|action| action.guard.as_ref()).collect();
        let Some(guards) = guards else { return true };
        // A guard over inputs alone is met by whoever gives others.
        if guards.iter().any(|guard| !guard.variables().contains("state")) {
            return true;
        }
        self.tried(actions, &guards, from, held).unwrap_or(false)
    }

    /// The same by trying all there is to try; nothing where that is too much, or a guard does more than compare.
    fn tried(
        &self,
        actions: &[&Action],
        guards: &[&Expression],
        from: &BTreeSet<StateName>,
        held: &Held<'_>,
    ) -> Option<bool> {
        if actions.len() > TOGETHER_MAX {
            return None;
        }
        let mut state: BTreeMap<Path, Vec<Value>> = BTreeMap::new();
        let mut given: Vec<Choices> = Vec::new();
        for (action, guard) in actions.iter().zip(guards) {
            let mut inputs = Choices::new();
            let compared = guard.compared()?;
            if compared.len() > TOGETHER_MAX || state.len() > TOGETHER_MAX {
                return None;
            }
            for (path, with) in compared {
                match path.variable.as_str() {
                    "state" => state.entry(path).or_default().extend(with),
                    _ => inputs.push((path.clone(), self.choices(&path, &with, action, from, held))),
                }
            }
            given.push(inputs);
        }
        let action = actions.first()?;
        let fields: Choices =
            state.iter().map(|(path, with)| (path.clone(), self.choices(path, with, action, from, held))).collect();
        let asked = |choices: &Choices| choices.iter().try_fold(1_usize, |all, (_, of)| all.checked_mul(of.len()));
        let inputs = given.iter().try_fold(0_usize, |all, choices| all.checked_add(asked(choices)?))?;
        let all = asked(&fields)?.checked_mul(inputs)?;
        let apart = |choices: &Choices| {
            let within = |outer: &Path| choices.iter().any(|(inner, _)| inner != outer && inner.starts_with(outer));
            choices.iter().all(|(path, _)| !path.fields.is_empty() && !within(path))
        };
        if all == 0 || all > GUARD_TRIES_MAX || !apart(&fields) || !given.iter().all(apart) {
            return None;
        }
        let nothing = ["state", "inputs"].map(|name| (name.to_owned(), json!({})));
        let open = |at: &Try| {
            let mut each = guards.iter().zip(&given);
            each.any(|(guard, inputs)| {
                combined(vec![at.clone()], inputs).iter().any(|tried| is(guard, tried) == Some(true))
            })
        };
        Some(combined(vec![Try::from(nothing)], &fields).iter().all(open))
    }
}

/// Each of the tries with each combination of those choices.
fn combined(tries: Vec<Try>, choices: &Choices) -> Vec<Try> {
    choices.iter().fold(tries, |tries, (path, of)| {
        let with = |tried: &Try, choice: &Option<Value>| {
            let mut tried = tried.clone();
            if let (Some(choice), Some(variable)) = (choice, tried.get_mut(&path.variable)) {
                put(variable, &path.fields, choice.clone());
            }
            tried
        };
        tries.iter().flat_map(|tried| of.iter().map(|choice| with(tried, choice))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineSpec;

    /// Whether a state is warned of that those guards lead away from.
    fn warned(guards: &[&str]) -> bool {
        let input = json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let go = |(n, guard): (usize, &&str)| {
            (format!("go{n}"), json!({ "from": ["b"], "to": "z", "guard": guard, "input": input }))
        };
        let mut actions: serde_json::Map<String, Value> = guards.iter().enumerate().map(go).collect();
        let begin = json!({ "from": ["a"], "to": "b", "writes": { "sum": "size(inputs)", "mood": "'loud'" } });
        actions.insert("begin".into(), begin);
        let spec = json!({
            "initial": "a", "terminal": ["z"], "fields": { "sum": 0, "mood": "calm", "open": false }, "actions": actions,
            "state": { "properties": { "sum": { "type": "integer" }, "open": { "type": "boolean" } } },
        });
        let spec: MachineSpec = serde_json::from_value(spec).unwrap();
        let found = Machine::read("m", &spec).unwrap().look(|_| None);
        found.iter().any(|found| found.message.starts_with("`b` is a dead end while"))
    }

    #[test]
    fn a_state_is_warned_of_only_where_every_guard_may_fail() {
        for open in [
            &["inputs.n > 3"][..],
            &["state.mood == 'loud'"],
            &["state.sum > 3", "state.sum <= 3"],
            &["state.mood == 'loud'", "state.mood == 'calm' && inputs.n == 1"],
            &["state.sum == 1 && inputs.n > 1", "state.sum != 1 || inputs.n < 1"],
            &["!state.open", "state.open"],
        ] {
            assert!(!warned(open), "{open:?}");
        }
        for shut in [
            &["state.sum > 3"][..],
            &["state.sum > 3", "state.sum < 3"],
            &["state.sum > 3 && inputs.n > 1", "state.sum < 3"],
            &["state.mood == 'calm'"],
            &["size(state.mood) > 3", "size(state.mood) <= 3"],
            &["state.open"],
        ] {
            assert!(warned(shut), "{shut:?}");
        }
    }
}
