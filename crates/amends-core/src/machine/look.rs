//! What about a machine may surprise, and what is wrong with it by what its tools are.

use std::collections::BTreeSet;

use super::flow::Flow;
use super::held::Held;
use super::inputs::{Named, requires};
use super::{Action, Does, Finding, Machine, Machines, Resolution, Weight};
use crate::expression::Expression;
use crate::id::{ActionName, ToolName};
use crate::nearest::nearest;
use crate::registry::Code;

/// What the checks must know of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Whether it changes nothing.
    pub reads: bool,
    /// Whether what it does can be undone.
    pub reversible: bool,
    /// Whether it is what undoes another.
    pub undoes: bool,
}

impl Machine {
    /// What is legal and may still surprise, and what is wrong by what its tools are. `tools` says what is known of a tool;
    /// nothing for one that is not.
    pub fn look(&self, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        self.look_among(&Machines::default(), tools)
    }

    /// The same with the machines that it runs.
    fn look_among(&self, others: &Machines, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let flow = Flow::of(self);
        let held = Held::of(self, others);
        let mut found = Vec::new();
        self.guarded_ends(&flow, &held, &mut found);
        self.endings(&flow, &mut found);
        self.used_up(&flow, &held, &mut found);
        self.fields_that_may_lack(&flow, others, &mut found);
        self.pivots(&flow, others, &tools, &mut found);
        self.said_otherwise(&tools, &mut found);
        for (name, action) in &self.actions {
            self.excluded(name, action, &held, &mut found);
            self.of_before(name, action, &held, &mut found);
        }
        self.look_at_actions(&tools, &mut found);
        found
    }

    /// What is found by looking at each action alone.
    fn look_at_actions(&self, tools: &impl Fn(&ToolName) -> Option<ToolFacts>, found: &mut Vec<Finding>) {
        for (name, action) in &self.actions {
            self.tools_of(name, action, tools, found);
            action.passed_over(name, found);
            if action.timeout_ms.is_some() && matches!(action.does, Does::Machine(_) | Does::Allowed(_)) {
                let message =
                    "it is over once the other machine is entered, so that its `timeout` bounds nothing within";
                let fix = "bound that machine: `limits = { time = \"5m\" }`, or its actions with `timeout`";
                found.push(Finding::warning(&["actions", name.as_str(), "timeout"], message, fix));
            }
        }
    }

    fn tools_of(
        &self,
        name: &ActionName,
        action: &Action,
        tools: &impl Fn(&ToolName) -> Option<ToolFacts>,
        found: &mut Vec<Finding>,
    ) {
        for (part, tool) in action.tools_by_part().filter(|(_, tool)| tools(tool).is_none()) {
            let message = format!("nothing is known of the tool `{tool}`");
            let fix = format!("declare `[tools.{tool}]`, or see that its upstream lists it");
            found.push(Finding::warning(&["actions", name.as_str(), part], message, fix));
        }
        if let Does::Function(function) = &action.does
            && tools(&ToolName::new(function.as_str())).is_none()
        {
            let message =
                format!("nothing is known of the function `{function}`, which only a Rust program can register");
            let fix = format!("declare `[tools.{function}]` and register it, or call a tool: `tool = \"{function}\"`");
            found.push(Finding::warning(&["actions", name.as_str(), "function"], message, fix));
        }
        let writes = |tool: &ToolName| tools(tool).is_some_and(|facts| !facts.reads);
        for (_, used) in action.stage.setup.iter().filter(|(_, used)| writes(&used.tool)) {
            let message = format!("`{}` changes something, and a setup only reads", used.tool);
            let fix = format!("say `effect = \"read\"` in `[tools.{}]` if it does, or make it an action", used.tool);
            found.push(Finding::error(&["actions", name.as_str(), "setup"], message, fix));
        }
    }

    fn guarded_ends(&self, flow: &Flow<'_>, held: &Held<'_>, found: &mut Vec<Finding>) {
        for state in flow.reach([&self.initial]) {
            let away: Vec<&Action> = flow.away_from(state).map(|(_, action)| action).collect();
            if away.is_empty() || self.one_is_open(&away, &[state.clone()].into(), held) {
                continue;
            }
            let names: Vec<&str> = flow.away_from(state).map(|(name, _)| name.as_str()).collect();
            let message = format!("`{state}` is a dead end while the guards of `{}` do not hold", names.join("`, `"));
            let fix = "add an action without a guard that leads away, so that an agent is never stuck";
            found.push(Finding::warning(&["actions", names[0], "guard"], message, fix));
        }
    }

    fn endings(&self, flow: &Flow<'_>, found: &mut Vec<Finding>) {
        for state in flow.reach([&self.initial]) {
            if !self.terminal.is_empty() && !flow.reach([state]).into_iter().any(|state| self.is_terminal(state)) {
                let message = format!("from `{state}` it can never end");
                found.push(Finding::warning(&["terminal"], message, "add an action that leads on to a terminal state"));
            }
        }
    }

    /// States that one comes back to more often than what leads away from them may be taken.
    fn used_up(&self, flow: &Flow<'_>, held: &Held<'_>, found: &mut Vec<Finding>) {
        let far = flow.distances(&self.initial);
        let alone = self.actions.iter().filter(|(_, action)| self.one_is_open(&[*action], &action.from, held));
        let alone: BTreeSet<&ActionName> = alone.map(|(name, _)| name).collect();
        for (state, first) in far.iter().filter(|(state, _)| !self.is_terminal(state)) {
            // Guards may not hold, so that what is guarded leads nobody out for sure.
            let (away, guarded): (Vec<_>, Vec<_>) = flow.away_from(state).partition(|(name, _)| alone.contains(name));
            let free: Vec<&Action> =
                guarded.iter().map(|(_, action)| *action).filter(|it| it.times_max.is_none()).collect();
            if !free.is_empty() && self.one_is_open(&free, &[(*state).clone()].into(), held) {
                continue;
            }
            let most = |action: &Action| action.times_max.into_iter().chain(self.bounds.loops_max).min();
            let times: Option<Vec<u32>> = away.iter().map(|(_, action)| most(action)).collect();
            let sum = |times: Vec<u32>| times.into_iter().fold(0_u32, u32::saturating_add);
            let Some(all) = times.filter(|times| !times.is_empty()).map(sum) else { continue };
            // Each of them has to lead back, by ways that can be gone as often as all of them together, and once more where one came
            // by them.
            let ways = all.saturating_add(u32::from(*first > 0));
            let often = Flow::through(self, |action| {
                most(action).is_none_or(|times| times >= ways) && !action.from.contains(*state)
            });
            let near = often.distances_to(state);
            let back = |action: &Action| action.to.states().filter_map(|to| near.get(to)).min().map(|way| way + 1);
            let backs: Option<Vec<u32>> = away.iter().map(|(_, action)| back(action)).collect();
            let Some(round) = backs.and_then(|backs| backs.into_iter().max()) else { continue };
            let moves = round.saturating_mul(all).saturating_add(*first);
            if all == 0 || self.bounds.steps_max.is_some_and(|most| most <= moves) {
                continue;
            }
            let names: Vec<&str> = away.iter().map(|(name, _)| name.as_str()).collect();
            let besides: Vec<&str> = guarded.iter().map(|(name, _)| name.as_str()).collect();
            let besides = match besides.as_slice() {
                [] => String::new(),
                names => format!(" and the guards of `{}` do not hold", names.join("`, `")),
            };
            let message = format!(
                "`{state}` is a dead end once `{}` was taken {all} times{besides}, and one can come back to it as often",
                names.join("` or `")
            );
            let own = |action: &Action| action.times_max.is_some_and(|times| Some(times) == most(action));
            let (at, fix) = match away.iter().all(|(_, action)| own(action)) {
                true => (
                    vec!["actions", names[0], "times"],
                    "add an action without `times` that leads away from it, such as one that gives up",
                ),
                false => (
                    vec!["limits", "loops"],
                    "add an action that leads away from it for good, such as one that gives up",
                ),
            };
            found.push(Finding::warning(&at, message, fix));
        }
    }

    fn fields_that_may_lack(&self, flow: &Flow<'_>, others: &Machines, found: &mut Vec<Finding>) {
        let sure = flow.sure_fields(others.begun_with(self));
        for (name, action) in &self.actions {
            for (part, within, expression) in action.expressions() {
                let (needed, tested) = expression.fields("state");
                for field in needed.difference(&tested).filter(|field| !self.always_has(field)) {
                    let lacking = action
                        .from
                        .iter()
                        .find(|from| sure.get(from).is_some_and(|sure| !sure.contains(field.as_str())));
                    if let Some(from) = lacking {
                        let message = format!(
                            "`{}` reads `state.{field}`, which may not be there in `{from}`",
                            expression.source()
                        );
                        let fix = format!("give it a value in `fields`, or ask `has(state.{field})` first");
                        let at = ["actions", name.as_str(), part];
                        found.push(Finding::warning(&at, message, fix).within(&within));
                    }
                }
                let named = action.input.as_ref().map(Named::by).unwrap_or_default();
                let (needed, tested) = expression.fields("inputs");
                let at = ["actions", name.as_str(), part];
                for field in needed.union(&tested) {
                    let near = || nearest(field, named.names.iter().copied()).into_iter().next();
                    // What may be there under whatever name may also be misspelt.
                    let misspelt = if named.lacks(field) { near() } else { None };
                    let required = || action.input.as_ref().is_some_and(|schema| requires(schema, field));
                    let (how, fix) = match misspelt {
                        Some(near) => ("its schema does not name", format!("did you mean `inputs.{near}`?")),
                        None if tested.contains(field) || required() => continue,
                        None => {
                            ("is not required", format!("require it in `input`, or ask `has(inputs.{field})` first"))
                        }
                    };
                    let message = format!("`{}` reads `inputs.{field}`, which {how}", expression.source());
                    found.push(Finding::warning(&at, message, fix).within(&within));
                }
            }
        }
    }
}

impl Machines {
    /// What is wrong with one of them or may surprise, by what is declared beside it and by what its tools are.
    pub fn look(&self, machine: &Machine, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let mut found = machine.faults(self);
        found.extend(machine.look_among(self, tools));
        found
    }

    /// What may surprise about what could be read of them, beside those mistakes, each with the machine's name before its place. Of
    /// a machine with a mistake, only what is found in one action alone: the rest may follow from it.
    pub fn surprises(&self, mistakes: &[Finding], tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        // Whoever runs itself would be looked at without an end.
        if mistakes.iter().any(|finding| finding.code == Code::DependencyCycle) {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (name, machine) in &self.declared {
            let mut found = Vec::new();
            if mistakes.iter().any(|mistake| mistake.at.first().is_some_and(|of| of == name.as_str())) {
                machine.look_at_actions(&tools, &mut found);
            } else {
                found = machine.look_among(self, &tools);
            }
            let found = found.into_iter().filter(|finding| finding.weight == Weight::Warning);
            all.extend(found.map(|finding| finding.of(name.as_str())));
        }
        all.retain(|finding| !finding.is_where(mistakes));
        all
    }
}

impl Action {
    /// Whether it may be passed over instead of being done.
    pub(super) fn may_be_passed_over(&self) -> bool {
        let may_say = |judge: &Expression| judge.answers().is_none_or(|answers| answers.contains("skip"));
        self.stage.resolution == Some(Resolution::Skip) || self.stage.gate.as_ref().is_some_and(may_say)
    }

    /// Where it may be passed over there is no result then.
    fn passed_over(&self, name: &ActionName, found: &mut Vec<Finding>) {
        let says_skip = |judge: &Option<Expression>| {
            judge.as_ref().and_then(Expression::answers).is_some_and(|answers| answers.contains("skip"))
        };
        let skips = self.stage.resolution == Some(Resolution::Skip);
        if !skips && !says_skip(&self.stage.gate) && !says_skip(&self.stage.assert) {
            return;
        }
        let needs = |expression: &Expression| {
            !expression.fields("result").0.is_empty() && !expression.source().contains("null")
        };
        let after = self.expressions().filter(|(part, ..)| matches!(*part, "writes" | "to"));
        for (part, within, expression) in after.filter(|(.., expression)| needs(expression)) {
            let message = format!("it may be passed over, and then `{}` has no `result`", expression.source());
            let fix = "ask first: `result == null ? … : …`";
            found.push(Finding::warning(&["actions", name.as_str(), part], message, fix).within(&within));
        }
    }
}
