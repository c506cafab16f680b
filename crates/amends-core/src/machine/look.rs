//! What about a machine may surprise, and what is wrong with it by what its tools are.

use std::collections::{BTreeMap, BTreeSet};

use super::flow::Flow;
use super::inputs::requires;
use super::{Action, Does, Finding, Machine, Machines, Resolution, Weight};
use crate::expression::Expression;
use crate::id::{ActionName, MachineName, StateName, ToolName};
use crate::registry::Code;

/// What the checks must know of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Whether it changes nothing.
    pub reads: bool,
    /// Whether what it does can be undone.
    pub reversible: bool,
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
        let mut found = Vec::new();
        self.guarded_ends(&flow, others, &mut found);
        self.endings(&flow, &mut found);
        self.used_up(&flow, others, &mut found);
        self.fields_that_may_lack(&flow, &mut found);
        self.pivots(&flow, others, &tools, &mut found);
        for (name, action) in &self.actions {
            self.excluded(name, action, others, &mut found);
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

    fn guarded_ends(&self, flow: &Flow<'_>, others: &Machines, found: &mut Vec<Finding>) {
        for state in flow.reach([&self.initial]) {
            let away: Vec<&Action> = flow.away_from(state).map(|(_, action)| action).collect();
            if away.is_empty() || self.one_is_open(&away, others) {
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
    fn used_up(&self, flow: &Flow<'_>, others: &Machines, found: &mut Vec<Finding>) {
        let far = flow.distances(&self.initial);
        let alone = self.actions.iter().filter(|(_, action)| self.one_is_open(&[*action], others));
        let alone: BTreeSet<&ActionName> = alone.map(|(name, _)| name).collect();
        for (state, first) in far.iter().filter(|(state, _)| !self.is_terminal(state)) {
            // Guards may not hold, so that what is guarded leads nobody out for sure.
            let (away, guarded): (Vec<_>, Vec<_>) = flow.away_from(state).partition(|(name, _)| alone.contains(name));
            let free: Vec<&Action> =
                guarded.iter().map(|(_, action)| *action).filter(|it| it.times_max.is_none()).collect();
            if !free.is_empty() && self.one_is_open(&free, others) {
                continue;
            }
            let times: Option<Vec<u32>> = away.iter().map(|(_, action)| action.times_max).collect();
            let sum = |times: Vec<u32>| times.into_iter().fold(0_u32, u32::saturating_add);
            let Some(all) = times.filter(|times| !times.is_empty()).map(sum) else { continue };
            // Each of them has to lead back, by ways that can be gone as often as all of them together.
            let often = Flow::through(self, |action| {
                action.times_max.is_none_or(|times| times >= all) && !action.from.contains(*state)
            });
            let near = often.distances_to(state);
            let back = |action: &Action| action.to.states().filter_map(|to| near.get(to)).min().map(|way| way + 1);
            let backs: Option<Vec<u32>> = away.iter().map(|(_, action)| back(action)).collect();
            let Some(round) = backs.and_then(|backs| backs.into_iter().max()) else { continue };
            let moves = round.saturating_mul(all).saturating_add(*first);
            let bounded = self.bounds.loops_max.is_some_and(|most| most < all)
                || self.bounds.steps_max.is_some_and(|most| most <= moves);
            if all == 0 || bounded {
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
            let fix = "add an action without `times` that leads away from it, such as one that gives up";
            found.push(Finding::warning(&["actions", names[0], "times"], message, fix));
        }
    }

    fn fields_that_may_lack(&self, flow: &Flow<'_>, found: &mut Vec<Finding>) {
        let sure = flow.sure_fields();
        for (name, action) in &self.actions {
            for (part, expression) in action.expressions() {
                let (needed, tested) = expression.fields("state");
                for field in needed.difference(&tested) {
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
                        found.push(Finding::warning(&["actions", name.as_str(), part], message, fix));
                    }
                }
                let (needed, tested) = expression.fields("inputs");
                for field in needed.difference(&tested) {
                    if action.input.as_ref().is_none_or(|schema| !requires(schema, field)) {
                        let message =
                            format!("`{}` reads `inputs.{field}`, which is not required", expression.source());
                        let fix = format!("require it in `input`, or ask `has(inputs.{field})` first");
                        found.push(Finding::warning(&["actions", name.as_str(), part], message, fix));
                    }
                }
            }
        }
    }

    /// After what cannot be undone comes only what need not be.
    fn pivots(
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

    /// Whether an action does what can be undone, and what cannot be, itself or in the machine that it runs. Each of those is gone
    /// through once, however many run it.
    fn undoing<'a>(
        &'a self,
        action: &'a Action,
        tools: &impl Fn(&ToolName) -> Option<ToolFacts>,
        known: &mut BTreeMap<&'a MachineName, Undoing>,
    ) -> Undoing {
        match (action.reversible, &action.does) {
            (_, Does::Nothing) => Undoing::default(),
            (Some(said), _) => Undoing { can: said, cannot: !said },
            (None, does) => {
                let facts: Vec<ToolFacts> = action.tools().filter_map(tools).filter(|tool| !tool.reads).collect();
                let own = Undoing {
                    can: facts.iter().any(|tool| tool.reversible),
                    cannot: facts.iter().any(|tool| !tool.reversible),
                };
                let Does::Machine(run) = does else { return own };
                if let Some(within) = known.get(run) {
                    return own.and(*within);
                }
                // A machine that runs itself is not read, so that this ends.
                let actions = self.get(run).into_iter().flat_map(Machine::actions);
                let within =
                    actions.fold(Undoing::default(), |sum, (_, action)| sum.and(self.undoing(action, tools, known)));
                known.insert(run, within);
                own.and(within)
            }
        }
    }
}

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
        let after = self.expressions().filter(|(part, _)| matches!(*part, "writes" | "to"));
        for (part, expression) in after.filter(|(_, expression)| needs(expression)) {
            let message = format!("it may be passed over, and then `{}` has no `result`", expression.source());
            let fix = "ask first: `result == null ? … : …`";
            found.push(Finding::warning(&["actions", name.as_str(), part], message, fix));
        }
    }
}
