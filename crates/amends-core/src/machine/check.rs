//! Whether a machine's parts fit together.

use super::flow::Flow;
use super::inputs::{Named, closed_properties};
use super::{Action, Does, Finding, Machine};
use crate::id::ActionName;
use crate::nearest::nearest;

impl Machine {
    /// What makes the machine unfit to be served.
    pub(super) fn unfit(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.astray(&mut found);
        for (name, action) in &self.actions {
            self.unknown_fields(name, action, &mut found);
        }
        found
    }

    /// Circles without a bound, where nothing bounds what is done in it from outside.
    pub(super) fn endless(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let bounds = self.bounds;
        if bounds.steps_max.is_some() || bounds.loops_max.is_some() || bounds.time_ms_max.is_some() {
            return found;
        }
        for cycle in Flow::through(self, |action| action.times_max.is_none()).cycles() {
            let states: Vec<&str> = cycle.iter().map(|state| state.as_str()).collect();
            let message = format!("it can go round `{}` without an end", states.join("`, `"));
            let fix = "bound it: `limits = { loops = 10 }` for the machine, or `times = 3` for an action on the way";
            found.push(Finding::error(&["limits"], message, fix));
        }
        found
    }

    /// The fields it can have.
    pub(super) fn known_fields(&self) -> Named<'_> {
        let written = self.actions.values().flat_map(|action| action.writes.keys());
        let mut known = self.schema.as_ref().map(Named::by).unwrap_or_default();
        known.names.extend(written.chain(self.fields.keys()).map(String::as_str));
        known
    }

    fn unknown_fields(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let known = self.known_fields();
        let taken = closed_properties(action.input.as_ref());
        let names: Vec<&str> = action.stage.setup.iter().map(|(name, _)| name.as_str()).collect();
        let gives = action.does.gives();
        for (part, within, expression) in action.expressions() {
            let mut unknown = |variable: &str, known: &[&str], how: &str| {
                let (needed, tested) = expression.fields(variable);
                for field in needed.union(&tested).filter(|field| !known.contains(&field.as_str())) {
                    let message = format!("`{}` reads `{variable}.{field}`, which {how}", expression.source());
                    let fix = match nearest(field, known.iter().copied()).first() {
                        Some(near) => format!("did you mean `{variable}.{near}`?"),
                        None if known.is_empty() => format!("there is nothing in `{variable}`"),
                        None => format!("known: `{}`", known.join("`, `")),
                    };
                    found.push(Finding::error(&["actions", name.as_str(), part], message, fix).within(&within));
                }
            };
            if !known.more {
                let known: Vec<&str> = known.names.iter().copied().collect();
                unknown("state", &known, "nothing writes");
            }
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

impl Does {
    /// The members of its result, where they are known before it is done.
    pub(super) fn gives(&self) -> Option<Vec<&str>> {
        match self {
            Self::Nothing => Some(Vec::new()),
            Self::Tool(_) | Self::Function(_) => None,
            Self::Machine(_) | Self::Allowed(_) => Some(vec!["state", "fields"]),
            Self::Parallel(siblings) => Some(siblings.keys().map(String::as_str).collect()),
        }
    }
}
