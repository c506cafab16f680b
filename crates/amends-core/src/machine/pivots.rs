//! What can be undone and what cannot be: after the first that cannot be, a workflow only goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::flow::Flow;
use super::{Action, Does, Finding, Machine, Machines, ToolFacts};
use crate::id::{MachineName, StateName, ToolName};

/// What is done of which kind.
#[derive(Clone, Copy, Default)]
struct Undoing {
    /// Something that can be undone.
    can: bool,
    /// Something that cannot be.
    cannot: bool,
}

impl Undoing {
    const fn and(self, other: Self) -> Self {
        Self { can: self.can || other.can, cannot: self.cannot || other.cannot }
    }
}

impl Machine {
    /// After what cannot be undone comes only what need not be.
    pub(super) fn pivots(
        &self,
        flow: &Flow<'_>,
        others: &Machines,
        tools: &impl Fn(&ToolName) -> Option<ToolFacts>,
        found: &mut Vec<Finding>,
    ) {
        let mut known = BTreeMap::new();
        let does: Vec<Undoing> =
            self.actions.values().map(|action| others.undoing(action, tools, &mut known)).collect();
        let actions = || self.actions.iter().zip(&does);
        let pivots = actions().filter(|(_, does)| does.cannot);
        let pivots: Vec<_> = pivots.map(|((name, pivot), _)| (name, flow.reach(pivot.to.states()))).collect();
        for ((name, action), _) in actions().filter(|(_, does)| does.can) {
            let comes_after = |after: &BTreeSet<&StateName>| action.from.iter().any(|from| after.contains(from));
            let before = pivots.iter().find(|(other, after)| *other != name && comes_after(after));
            if let Some((pivot, _)) = before {
                let message = format!("it can be undone, and comes after `{pivot}`, which cannot");
                let fix =
                    format!("take it before `{pivot}`: once something cannot be undone, a workflow can only go on");
                found.push(Finding::warning(&["actions", name.as_str()], message, fix));
            }
        }
    }

    /// Actions of which something else is said than their tools' contracts say, by which all is undone.
    pub(super) fn said_otherwise(&self, tools: &impl Fn(&ToolName) -> Option<ToolFacts>, found: &mut Vec<Finding>) {
        for (name, action) in &self.actions {
            let Some(said) = action.reversible else { continue };
            for (tool, facts) in action.written(tools).into_iter().filter(|(_, facts)| facts.reversible != said) {
                let (message, fix) = match (said, facts.undoes) {
                    (true, _) => (
                        format!(
                            "it says that it can be undone, and nothing undoes `{tool}`: its contract names no `reverse`"
                        ),
                        format!("declare `reverse` in `[tools.{tool}]`, or drop `reversible`"),
                    ),
                    (false, false) => (
                        format!("it says that it cannot be undone, and `{tool}` is, by the `reverse` of its contract"),
                        format!("drop `reversible`, or the `reverse` in `[tools.{tool}]`"),
                    ),
                    (false, true) => continue,
                };
                found.push(Finding::warning(&["actions", name.as_str(), "reversible"], message, fix));
            }
        }
    }
}

impl Machines {
    /// Whether an action does what can be undone, and what cannot be, itself or in the machine that it runs. Each of those is gone
    /// through once, however many run it. What its tools' contracts do not say, it says itself.
    fn undoing<'a>(
        &'a self,
        action: &'a Action,
        tools: &impl Fn(&ToolName) -> Option<ToolFacts>,
        known: &mut BTreeMap<&'a MachineName, Undoing>,
    ) -> Undoing {
        let said = action.reversible.map(|said| Undoing { can: said, cannot: !said });
        let written = action.written(tools);
        let own = written.iter().fold(Undoing::default(), |sum, (_, tool)| {
            let unsaid = Undoing { can: false, cannot: !tool.undoes };
            sum.and(if tool.reversible { Undoing { can: true, cannot: false } } else { said.unwrap_or(unsaid) })
        });
        match (&action.does, said) {
            (Does::Nothing, _) => Undoing::default(),
            (_, Some(said)) if written.is_empty() => said,
            (Does::Machine(run), None) => {
                if let Some(within) = known.get(run) {
                    return *within;
                }
                // A machine that runs itself is not read, so that this ends.
                let actions = self.get(run).into_iter().flat_map(Machine::actions);
                let within =
                    actions.fold(Undoing::default(), |sum, (_, action)| sum.and(self.undoing(action, tools, known)));
                known.insert(run, within);
                within
            }
            _ => own,
        }
    }
}

impl Action {
    /// What it writes with when it acts, as far as that is known. What is called in `exit` is not undone, and decides nothing.
    fn written(&self, tools: &impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<(ToolName, ToolFacts)> {
        let acts: Vec<ToolName> = match &self.does {
            Does::Function(function) => vec![ToolName::new(function.as_str())],
            Does::Allowed(allowed) => allowed.tools.iter().cloned().collect(),
            Does::Nothing | Does::Machine(_) | Does::Tool(_) | Does::Parallel(_) => {
                self.does.tools().map(|used| used.tool.clone()).collect()
            }
        };
        let known = acts.into_iter().filter_map(|tool| tools(&tool).map(|facts| (tool, facts)));
        known.filter(|(_, facts)| !facts.reads).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{MachineSpec, Weight};
    use serde_json::{Value, json};

    /// What is said of two actions, one after the other.
    fn warned(first: Value, then: Value) -> Vec<String> {
        let mut actions = [first, then];
        for (action, (from, to)) in actions.iter_mut().zip([("a", "b"), ("b", "z")]) {
            let action = action.as_object_mut().unwrap();
            action.insert("from".into(), json!([from]));
            action.insert("to".into(), json!(to));
        }
        let spec = json!({ "initial": "a", "terminal": ["z"], "actions": { "first": actions[0], "then": actions[1] } });
        let spec: MachineSpec = serde_json::from_value(spec).unwrap();
        let tools = |tool: &ToolName| {
            let (reads, undoes) = (tool.as_str() == "get", tool.as_str() == "release");
            Some(ToolFacts { reads, reversible: tool.as_str() == "reserve", undoes })
        };
        let found = Machine::read("m", &spec).unwrap().look(tools).into_iter();
        found.filter(|found| found.weight == Weight::Warning).map(|found| found.to_string()).collect()
    }

    #[test]
    fn what_cannot_be_undone_is_known_by_what_an_action_does() {
        let said = "actions.then: it can be undone, and comes after `first`, which cannot";
        let reserve = || json!({ "tool": "reserve" });
        for (pivot, is_one) in [
            (json!({ "tool": "wire" }), true),
            (json!({ "function": "wire" }), true),
            (json!({ "tool": "wire", "reversible": false }), true),
            (json!({ "tool": "reserve", "reversible": false }), false),
            (json!({ "tool": "reserve", "exit": [{ "tool": "log" }] }), false),
            (json!({ "tool": "release" }), false),
            (json!({ "tool": "get" }), false),
        ] {
            let found = warned(pivot.clone(), reserve());
            assert_eq!(found.iter().any(|found| found.starts_with(said)), is_one, "{pivot}: {found:?}");
        }
    }

    #[test]
    fn what_is_said_against_a_contract_is_warned_of() {
        let of = |action: Value| {
            let found = warned(action, json!({ "tool": "get" }));
            found.into_iter().filter(|found| found.starts_with("actions.first.reversible: ")).collect::<Vec<_>>()
        };
        let lie = of(json!({ "tool": "wire", "reversible": true }));
        assert!(lie.len() == 1 && lie[0].contains("nothing undoes `wire`"), "{lie:?}");
        let unheard = of(json!({ "tool": "reserve", "reversible": false }));
        assert!(unheard.len() == 1 && unheard[0].contains("`reserve` is, by the `reverse`"), "{unheard:?}");
        for sound in [
            json!({ "tool": "wire", "reversible": false }),
            json!({ "tool": "reserve", "reversible": true }),
            json!({ "tool": "release", "reversible": false }),
        ] {
            assert_eq!(of(sound.clone()), Vec::<String>::new(), "{sound}");
        }
    }
}
