//! What is wrong with a declaration that an operator writes today. A walk goes on by the declaration it began with, so that what
//! was taken once is still read; see [`Machine::read`] for what no machine can do without.

use serde_json::{Map, Value};

use super::flow::Flow;
use super::held::{Held, Values};
use super::inputs::{Named, closed_properties, meant, property};
use super::satisfiable::{nothing_fits, nothing_given};
use super::typed::memberless;
use super::{Action, Does, Finding, Machine, Machines};
use crate::expression::{Expression, Path};
use crate::id::ActionName;
use crate::nearest::nearest;

impl Machine {
    /// What is wrong with it beside what keeps it from being read, among the machines that it is declared with.
    pub(super) fn faults(&self, others: &Machines) -> Vec<Finding> {
        let mut found = Vec::new();
        self.bounds_of_nothing(&mut found);
        self.out_of_steps(others, &mut found);
        self.endless_behind(others, &mut found);
        let held = Held::of(self, others);
        for (name, action) in &self.actions {
            self.nameless(name, action, &mut found);
            self.ungivable(name, action, &mut found);
            self.unknown(name, action, &held, &mut found);
            self.hopeless(name, action, &held, &mut found);
            self.wordless(name, action, &mut found);
            self.mistyped(name, action, &mut found);
            self.unanswered(name, action, &mut found);
            self.misbegun(name, action, others, &mut found);
        }
        found
    }

    fn bounds_of_nothing(&self, found: &mut Vec<Finding>) {
        let bounds = self.bounds;
        let limits = [
            (bounds.steps_max == Some(0), "steps", "drop it, or say how many actions may be taken in all"),
            (bounds.loops_max == Some(0), "loops", "drop it, or say how often the same action may be taken"),
            (bounds.time_ms_max == Some(0), "time", "drop it, or say how long a walk may take"),
        ];
        for (_, bound, fix) in limits.into_iter().filter(|(nothing, ..)| *nothing) {
            let message = format!("nothing can be done in it: `{bound}` is bounded to nothing");
            found.push(Finding::error(&["limits", bound], message, fix));
        }
        for (name, action) in &self.actions {
            let limits = [
                (action.times_max == Some(0), "times", "it can never be taken", "drop it, or say how often"),
                (action.timeout_ms == Some(0), "timeout", "it has no time at all", "drop it, or give it some"),
            ];
            for (_, bound, message, fix) in limits.into_iter().filter(|(nothing, ..)| *nothing) {
                found.push(Finding::error(&["actions", name.as_str(), bound], message, fix));
            }
        }
    }

    /// Circles that begin behind an action that can be taken only so often.
    fn endless_behind(&self, others: &Machines, found: &mut Vec<Finding>) {
        if self.bounds.loops_max.is_some() || !others.unbounded().contains(&self.name) {
            return;
        }
        let reached = Flow::of(self).reach([&self.initial]);
        for cycle in Flow::through(self, |action| action.times_max.is_none()).cycles_among(reached) {
            let states: Vec<&str> = cycle.iter().map(|state| state.as_str()).collect();
            let message = format!("it can go round `{}` without an end", states.join("`, `"));
            let fix = "bound it: `limits = { loops = 10 }` for the machine, or `times = 3` for an action on the way";
            found.push(Finding::error(&["limits"], message, fix));
        }
    }

    fn nameless(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        if action.queue.as_ref().is_some_and(|queue| queue.trim().is_empty()) {
            let message = "nobody looks at a queue without a name";
            found.push(Finding::error(&["actions", name.as_str(), "queue"], message, "name it, or drop the key"));
        }
        if action.to.states().any(|state| state.as_str().is_empty()) {
            let fix = "name the state of each target: `{ when = \"result.ok\", state = \"paid\" }`";
            found.push(Finding::error(&["actions", name.as_str(), "to"], "it leads nowhere", fix));
        }
        let part = match &action.does {
            Does::Tool(_) => "tool",
            Does::Parallel(_) => "parallel",
            Does::Allowed(_) => "allowed",
            Does::Function(_) => "function",
            Does::Nothing | Does::Machine(_) => return,
        };
        if let Does::Parallel(siblings) = &action.does
            && siblings.contains_key("act")
        {
            let message = "the only call of an action goes by this name, and here are several";
            let at = ["actions", name.as_str(), part, "act"];
            found.push(Finding::error(&at, message, "call it by what it does: `stock = { tool = \"get_stock\" }`"));
        }
        let function = matches!(&action.does, Does::Function(function) if function.as_str().is_empty());
        let allowed =
            matches!(&action.does, Does::Allowed(allowed) if allowed.tools.iter().any(|tool| tool.as_str().is_empty()));
        let tool = action.does.tools().any(|used| used.tool.as_str().is_empty());
        if function || allowed || tool {
            let message = "it calls something that has no name";
            found.push(Finding::error(&["actions", name.as_str(), part], message, "name it, or drop the key"));
        }
    }

    fn ungivable(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let fix = "mend the schema, so that an agent can give what it asks for";
        if let Some(reason) = action.input.as_ref().and_then(nothing_given) {
            let message = format!("no inputs fit its schema: {reason}");
            found.push(Finding::error(&["actions", name.as_str(), "input"], message, fix));
        }
        if let Does::Allowed(allowed) = &action.does
            && let Some(reason) = allowed.completion.as_ref().and_then(nothing_given)
        {
            let message = format!("nothing fits its schema: {reason}");
            found.push(Finding::error(&["actions", name.as_str(), "completion"], message, fix));
        }
        if let Some(reason) =
            self.schema.as_ref().filter(|_| self.actions.keys().next() == Some(name)).and_then(nothing_fits)
        {
            found.push(Finding::error(&["state"], format!("no fields fit it: {reason}"), "mend the schema"));
        }
    }

    /// A gate or an assert that is something else than a word, whatever it speaks of.
    fn wordless(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let judges = [("gate", &action.stage.gate, "proceed"), ("assert", &action.stage.assert, "ok")];
        for (part, judge, word) in
            judges.into_iter().filter_map(|(part, judge, word)| Some((part, judge.as_ref()?, word)))
        {
            let Some(what) = self.never(judge, "string", action) else { continue };
            let message = format!("`{}` is {what}, and it must say a word", judge.source());
            let fix = match judge.is_condition() {
                true => format!("say it: `({}) ? '{word}' : 'skip'`", judge.source()),
                false => format!("let it choose one, as in `result.n > 0 ? '{word}' : 'skip'`"),
            };
            found.push(Finding::error(&["actions", name.as_str(), part], message, fix));
        }
    }

    /// Names that lead nowhere, in the expressions of an action.
    fn unknown(&self, name: &ActionName, action: &Action, held: &Held<'_>, found: &mut Vec<Finding>) {
        let fields = self.known_fields();
        for (part, within, expression) in action.expressions() {
            let at = ["actions", name.as_str(), part];
            for function in expression.unknown_functions() {
                let message = format!("`{}` calls `{function}`, and there is no such function", expression.source());
                let known = ["size", "has", "contains", "startsWith", "endsWith", "int", "string", "double"];
                let fix = match nearest(&function, known).first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "say it with the functions of CEL, such as `size`, `contains` and `startsWith`".to_owned(),
                };
                found.push(Finding::error(&at, message, fix).within(&within));
            }
            for (path, fix) in self.items_lack(expression, action) {
                let message = format!("`{}` reads `{path}`, which there is not", expression.source());
                found.push(Finding::error(&at, message, fix).within(&within));
            }
            for path in expression.paths() {
                let lost = match path.variable.as_str() {
                    "state" => among(&path, 0, &fields)
                        .or_else(|| self.schema.as_ref().and_then(|schema| beyond(&path, 0, schema, schema)))
                        .or_else(|| missed(&path, held.ever(path.fields.first()?)?)),
                    "inputs" => action.input.as_ref().and_then(|input| beyond(&path, 0, input, input)),
                    "setup" => {
                        let names = action.stage.setup.iter().map(|(name, _)| name.as_str());
                        among(&path, 0, &Named::only(names))
                    }
                    "result" if path.fields.first().is_some_and(|first| first == "fields") => match &action.does {
                        Does::Machine(run) => held.others.get(run).and_then(|run| among(&path, 1, &run.known_fields())),
                        Does::Allowed(allowed) => {
                            let completion = allowed.completion.as_ref();
                            among(&path, 1, &completion.map(Named::by).unwrap_or_default())
                                .or_else(|| completion.and_then(|completion| beyond(&path, 1, completion, completion)))
                        }
                        Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) => None,
                    },
                    "result" => action.does.gives().and_then(|gives| among(&path, 0, &Named::only(gives))),
                    _ => None,
                };
                // What the first look at a declaration finds is said there.
                let open = path.variable == "inputs" && closed_properties(action.input.as_ref()).is_none();
                if let Some(lost) = lost.filter(|lost| open || !said(expression, &path, lost)) {
                    let message = format!("`{}` reads `{}`, which there is not", expression.source(), lost.path);
                    found.push(Finding::error(&at, message, lost.fix).within(&within));
                }
            }
        }
    }
}

/// A name that leads nowhere.
struct Nowhere {
    path: String,
    fix: String,
}

/// Whether the name at that place of a path is none of those.
fn among(path: &Path, at: usize, known: &Named<'_>) -> Option<Nowhere> {
    let field = path.fields.get(at).filter(|field| known.lacks(field))?;
    let known: Vec<&str> = known.names.iter().copied().collect();
    let before = Path { fields: path.fields[..at].to_vec(), ..path.clone() };
    let fix = match nearest(field, known.iter().copied()).first() {
        Some(near) => format!("did you mean `{before}.{near}`?"),
        None if known.is_empty() => format!("there is nothing in `{before}`"),
        None => format!("known: `{}`", known.join("`, `")),
    };
    Some(Nowhere { path: format!("{before}.{field}"), fix })
}

/// Whether a path leads to what a schema does not allow, from that place on.
fn beyond(path: &Path, at: usize, root: &Value, part: &Value) -> Option<Nowhere> {
    let part = meant(root, part);
    if let Some(field) = path.fields.get(at)
        && let Some(what) = memberless(part).filter(|_| at > 0)
    {
        let before = Path { fields: path.fields[..at].to_vec(), ..path.clone() };
        let fix = format!("`{before}` is {what}, and has no members");
        return Some(Nowhere { path: format!("{before}.{field}"), fix });
    }
    if let Some(known) = closed_properties(Some(part))
        && let Some(nowhere) = among(path, at, &Named::only(known))
    {
        return Some(nowhere);
    }
    beyond(path, at + 1, root, property(root, part, path.fields.get(at)?)?)
}

/// Whether a path leads to what none of the tables has that a field can be.
fn missed(path: &Path, mut values: Values) -> Option<Nowhere> {
    for at in 1..path.fields.len() {
        let tables: Vec<&Map<String, Value>> = values.iter().flatten().filter_map(Value::as_object).collect();
        // What is in a list has no name of its own, and an empty table says nothing of what was meant to be in it.
        if tables.iter().all(|table| table.is_empty()) || values.iter().flatten().any(Value::is_array) {
            return None;
        }
        let names = tables.iter().flat_map(|table| table.keys()).map(String::as_str);
        if let Some(nowhere) = among(path, at, &Named::only(names)) {
            return Some(nowhere);
        }
        values = tables.into_iter().map(|table| table.get(&path.fields[at]).cloned()).collect();
    }
    None
}

/// Whether reading the declaration finds the same: fields that are named with a dot, and not within others.
fn said(expression: &Expression, path: &Path, lost: &Nowhere) -> bool {
    let (needed, tested) = expression.fields(&path.variable);
    let first = path.fields.first();
    let short = first.is_some_and(|first| lost.path == format!("{}.{first}", path.variable));
    short && first.is_some_and(|first| needed.contains(first) || tested.contains(first))
}

#[cfg(test)]
mod tests;
