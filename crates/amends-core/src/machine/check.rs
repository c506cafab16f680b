//! Whether a machine's parts fit together.

use std::collections::BTreeSet;

use super::flow::Flow;
use super::inputs::{closed_properties, meant};
use super::{Action, Does, Finding, Machine, ToolUse};
use crate::expression::Expression;
use crate::id::{ActionName, StateName};
use crate::nearest::nearest;

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
            self.unknown_fields(name, action, &mut found);
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

    /// The fields it can have.
    pub(super) fn known_fields(&self) -> BTreeSet<&str> {
        let written = self.actions.values().flat_map(|action| action.writes.keys());
        let typed = self.schema.as_ref().and_then(|schema| meant(schema, schema).get("properties")?.as_object());
        let typed = typed.into_iter().flat_map(|properties| properties.keys());
        written.chain(typed).chain(self.fields.keys()).map(String::as_str).collect()
    }

    fn unknown_fields(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let known = self.known_fields();
        let taken = closed_properties(action.input.as_ref());
        let names: Vec<&str> = action.stage.setup.iter().map(|(name, _)| name.as_str()).collect();
        let gives = action.does.gives();
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
            unknown("setup", &names, "nothing is called in `setup`");
            if let Some(gives) = &gives {
                unknown("result", gives, "it does not give");
            }
            if let Some(taken) = &taken {
                unknown("inputs", taken, "its schema does not allow");
            }
        }
        for (n, (leg, used)) in action.stage.setup.iter().enumerate() {
            let reads = used.args.values().flat_map(|args| args.fields("setup").0);
            if let Some(later) = reads.into_iter().find(|read| names[n..].contains(&read.as_str())) {
                let message = format!("`{leg}` reads `setup.{later}`, which is not there yet");
                let fix = "call them one after the other, in the order they need each other";
                found.push(Finding::error(&["actions", name.as_str(), "setup"], message, fix));
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
}

impl Action {
    /// Its expressions, with the part of the declaration each is in.
    pub(super) fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let args = self.does.tools().flat_map(|used| used.args.values()).chain(self.args.values());
        let when = match &self.to {
            super::Target::One(_) => [].as_slice(),
            super::Target::Choice(branches) => branches.as_slice(),
        };
        let setup = legs_of("setup", &self.stage.setup);
        let exit = legs_of("exit", &self.stage.exit);
        let when = when.iter().filter_map(|branch| branch.when.as_ref()).map(|when| ("to", when));
        let judges = [("guard", &self.guard), ("gate", &self.stage.gate), ("assert", &self.stage.assert)];
        let judges = judges.into_iter().filter_map(|(part, judge)| Some((part, judge.as_ref()?)));
        let writes = self.writes.values().map(|write| ("writes", write));
        judges.chain(setup).chain(args.map(|args| ("args", args))).chain(exit).chain(writes).chain(when)
    }
}

fn legs_of<'a>(
    part: &'static str,
    legs: &'a [(String, ToolUse)],
) -> impl Iterator<Item = (&'static str, &'a Expression)> {
    legs.iter().flat_map(|(_, used)| used.args.values()).map(move |args| (part, args))
}

impl Does {
    /// The members of its result, where they are known before it is done.
    fn gives(&self) -> Option<Vec<&str>> {
        match self {
            Self::Nothing => Some(Vec::new()),
            Self::Tool(_) | Self::Function(_) => None,
            Self::Machine(_) | Self::Allowed(_) => Some(vec!["state", "fields"]),
            Self::Parallel(siblings) => Some(siblings.keys().map(String::as_str).collect()),
        }
    }
}
