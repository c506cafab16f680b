//! Whether a machine's parts fit together, and what about it may surprise.

use std::collections::BTreeSet;

use super::flow::Flow;
use super::inputs::{closed_properties, contradiction, never_holds, requires};
use super::{Action, Does, Finding, Machine};
use crate::expression::Expression;
use crate::id::{ActionName, StateName, ToolName};
use crate::nearest::nearest;

/// What the checks must know of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Whether it changes nothing.
    pub reads: bool,
    /// Whether what it does can be undone.
    pub reversible: bool,
}

impl Machine {
    /// What makes the machine unfit to be served.
    pub(super) fn unfit(&self) -> Vec<Finding> {
        let flow = Flow::of(self);
        let reached = flow.reach([&self.initial]);
        let mut found = Vec::new();
        self.unreachable(&reached, &mut found);
        self.dead_ends(&flow, &reached, &mut found);
        self.endless(&mut found);
        for (name, action) in &self.actions {
            self.impossible(name, action, &mut found);
            self.unknown_fields(name, action, &mut found);
        }
        found
    }

    /// What is legal and may still surprise. `tools` says what is known of a tool; nothing for one that is not.
    pub fn look(&self, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let flow = Flow::of(self);
        let mut found = Vec::new();
        self.guarded_ends(&flow, &mut found);
        self.endings(&flow, &mut found);
        self.fields_that_may_lack(&flow, &mut found);
        self.pivots(&flow, &tools, &mut found);
        for (name, action) in &self.actions {
            for unknown in action.does.tools().filter(|used| tools(&used.tool).is_none()) {
                let message = format!("nothing is declared of the tool `{}`", unknown.tool);
                let fix = format!("declare `[tools.{}]`, or see that its upstream lists it", unknown.tool);
                found.push(Finding::warning(&["actions", name.as_str(), "tool"], message, fix));
            }
        }
        found
    }

    fn unreachable(&self, reached: &BTreeSet<&StateName>, found: &mut Vec<Finding>) {
        let known = || reached.iter().map(|state| state.as_str());
        for (name, action) in &self.actions {
            for state in action.from.iter().filter(|state| !reached.contains(*state)) {
                let fix = match nearest(state.as_str(), known()).first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add an action whose `to` is `{state}`, or drop it here"),
                };
                let message = match action.from.len() {
                    1 => format!("it can never be taken: nothing leads to `{state}`"),
                    _ => format!("nothing leads to `{state}`"),
                };
                found.push(Finding::error(&["actions", name.as_str(), "from"], message, fix));
            }
        }
        for state in self.terminal.iter().filter(|state| !reached.contains(*state)) {
            let fix = match nearest(state.as_str(), known()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "drop it, or add an action that leads to it".to_owned(),
            };
            found.push(Finding::error(&["terminal"], format!("nothing leads to `{state}`"), fix));
        }
    }

    fn dead_ends(&self, flow: &Flow<'_>, reached: &BTreeSet<&StateName>, found: &mut Vec<Finding>) {
        let ends = reached.iter().filter(|state| !self.is_terminal(state) && flow.away_from(state).next().is_none());
        for state in ends.filter(|state| !state.as_str().is_empty()) {
            let by = self.actions.iter().find(|(_, action)| action.to.states().any(|to| to == *state));
            let at = by.map_or(vec!["initial"], |(name, _)| vec!["actions", name.as_str(), "to"]);
            let fix = format!("add `{state}` to `terminal`, or an action that leads away from it");
            found.push(Finding::error(&at, format!("`{state}` is a dead end: nothing leads away from it"), fix));
        }
    }

    fn endless(&self, found: &mut Vec<Finding>) {
        let bounds = self.bounds;
        if bounds.steps_max.is_some() || bounds.loops_max.is_some() || bounds.time_ms_max.is_some() {
            return;
        }
        for cycle in Flow::through(self, |action| action.times_max.is_none()).cycles() {
            let states: Vec<&str> = cycle.iter().map(|state| state.as_str()).collect();
            let message = format!("it can go round `{}` without an end", states.join("`, `"));
            let fix = "bound it: `limits = { loops = 10 }` for the machine, or `times = 3` for an action on the way";
            found.push(Finding::error(&["limits"], message, fix));
        }
    }

    fn impossible(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let at = |part| ["actions", name.as_str(), part];
        if let Some(reason) = action.input.as_ref().and_then(contradiction) {
            let fix = "mend the schema, so that an agent can give what it asks for";
            found.push(Finding::error(&at("input"), format!("no inputs fit its schema: {reason}"), fix));
        } else if let Some(guard) = &action.guard
            && never_holds(guard, action.input.as_ref()) == Some(true)
        {
            let message = format!("`{}` is false for all the inputs there are", guard.source());
            found.push(Finding::error(&at("guard"), message, "mend the guard or the schema of the inputs"));
        }
    }

    /// The fields it can have.
    pub(super) fn known_fields(&self) -> BTreeSet<&str> {
        let written = self.actions.values().flat_map(|action| action.writes.keys());
        let typed = self.schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let typed = typed.into_iter().flat_map(|properties| properties.keys());
        written.chain(typed).chain(self.fields.keys()).map(String::as_str).collect()
    }

    fn unknown_fields(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let known = self.known_fields();
        let taken = closed_properties(action.input.as_ref());
        for (part, expression) in action.expressions() {
            let mut unknown = |variable: &str, known: &[&str], how: &str| {
                let (needed, tested) = expression.fields(variable);
                for field in needed.union(&tested).filter(|field| !known.contains(&field.as_str())) {
                    let message = format!("`{}` reads `{variable}.{field}`, which {how}", expression.source());
                    let fix = match nearest(field, known.iter().copied()).first() {
                        Some(near) => format!("did you mean `{variable}.{near}`?"),
                        None if known.is_empty() => format!("there is nothing in `{variable}`"),
                        None => format!("known: `{}`", known.join("`, `")),
                    };
                    found.push(Finding::error(&["actions", name.as_str(), part], message, fix));
                }
            };
            let known: Vec<&str> = known.iter().copied().collect();
            unknown("state", &known, "nothing writes");
            if let Some(taken) = &taken {
                unknown("inputs", taken, "its schema does not allow");
            }
        }
        if let Some(typed) = self.schema.as_ref().and_then(|schema| closed_properties(Some(schema))) {
            for field in action.writes.keys().filter(|field| !typed.contains(&field.as_str())) {
                let message = format!("it writes `{field}`, which the machine's `state` does not allow");
                found.push(Finding::error(
                    &["actions", name.as_str(), "writes"],
                    message,
                    "add it to `state`, or drop it",
                ));
            }
        }
    }

    fn guarded_ends(&self, flow: &Flow<'_>, found: &mut Vec<Finding>) {
        for state in flow.reach([&self.initial]) {
            let mut away = flow.away_from(state).peekable();
            if away.peek().is_none() || !away.all(|(_, action)| action.guard.is_some()) {
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
    fn pivots(&self, flow: &Flow<'_>, tools: &impl Fn(&ToolName) -> Option<ToolFacts>, found: &mut Vec<Finding>) {
        let can_be_undone = |action: &Action| {
            let facts: Vec<ToolFacts> =
                action.does.tools().filter_map(|used| tools(&used.tool)).filter(|tool| !tool.reads).collect();
            match (action.reversible, &action.does) {
                (_, Does::Nothing) => None,
                (Some(said), _) => Some(said),
                (None, _) if facts.is_empty() => None,
                (None, _) => Some(facts.iter().all(|tool| tool.reversible)),
            }
        };
        for (name, action) in self.actions.iter().filter(|(_, action)| can_be_undone(action) == Some(true)) {
            let before = self.actions.iter().find(|(other, pivot)| {
                let after = || flow.reach(pivot.to.states());
                *other != name
                    && can_be_undone(pivot) == Some(false)
                    && action.from.iter().any(|from| after().contains(from))
            });
            if let Some((pivot, _)) = before {
                let message = format!("it can be undone, and comes after `{pivot}`, which cannot");
                let fix =
                    format!("take it before `{pivot}`: once something cannot be undone, a workflow can only go on");
                found.push(Finding::warning(&["actions", name.as_str()], message, fix));
            }
        }
    }
}

impl Action {
    /// Its expressions, with the part of the declaration each is in.
    fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let args = self.does.tools().flat_map(|used| used.args.values()).map(|args| ("args", args));
        let when = match &self.to {
            super::Target::One(_) => [].as_slice(),
            super::Target::Choice(branches) => branches.as_slice(),
        };
        let when = when.iter().filter_map(|branch| branch.when.as_ref()).map(|when| ("to", when));
        let guard = self.guard.iter().map(|guard| ("guard", guard));
        guard.chain(args).chain(self.writes.values().map(|write| ("writes", write))).chain(when)
    }
}
