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
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::id::MachineName;
    use crate::machine::{Finding, MachineSpec, Machines, ToolFacts, Weight};

    fn machines(declared: Value) -> Machines {
        let specs: BTreeMap<MachineName, MachineSpec> = serde_json::from_value(declared).unwrap();
        Machines::read(&specs).unwrap_or_else(|found| panic!("it is read: {found:?}"))
    }

    fn looked(machines: &Machines, weight: Weight) -> Vec<String> {
        let known = |tool: &crate::ToolName| {
            Some(ToolFacts { reads: tool.as_str() == "get", reversible: tool.as_str() == "reversible", undoes: false })
        };
        let found = machines.declared().flat_map(|machine| machines.look(machine, known));
        found.filter(|finding| finding.weight == weight).map(|finding: Finding| finding.to_string()).collect()
    }

    fn errors(machine: Value) -> Vec<String> {
        looked(&machines(json!({ "m": machine })), Weight::Error)
    }

    /// A machine of one action from `a` to `z`, with more said of both.
    fn one(machine: Value, action: Value) -> Value {
        let mut whole =
            json!({ "initial": "a", "terminal": ["z"], "actions": { "end": { "from": ["a"], "to": "z" } } });
        whole["actions"]["end"].as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
        whole.as_object_mut().unwrap().extend(machine.as_object().unwrap().clone());
        whole
    }

    #[test]
    fn what_leaves_nothing_to_be_done_is_refused() {
        let two = json!({
            "initial": "a", "terminal": ["z"], "limits": { "steps": 1 },
            "actions": { "go": { "from": ["a"], "to": "b" }, "end": { "from": ["b"], "to": "z" } },
        });
        for (machine, said) in [
            (
                one(json!({}), json!({ "parallel": { "act": { "tool": "x" }, "also": { "tool": "y" } } })),
                "actions.end.parallel.act: the only call of an action goes by this name, and here are several; call it by",
            ),
            (one(json!({ "limits": { "steps": 0 } }), json!({})), "limits.steps: nothing can be done in it"),
            (one(json!({ "limits": { "loops": 0 } }), json!({})), "limits.loops: nothing can be done in it"),
            (one(json!({ "limits": { "time": "0s" } }), json!({})), "limits.time: nothing can be done in it"),
            (
                one(json!({}), json!({ "times": 0 })),
                "actions.end.times: it can never be taken; drop it, or say how often",
            ),
            (one(json!({}), json!({ "tool": "get", "timeout": "0s" })), "actions.end.timeout: it has no time at all"),
            (
                two,
                "actions.end.from: it can never be taken: 1 actions come before it, and `limits.steps` is 1; allow at least 2 steps",
            ),
            (one(json!({}), json!({ "tool": "" })), "actions.end.tool: it calls something that has no name"),
            (
                one(json!({}), json!({ "allowed": ["get"], "completion": false })),
                "actions.end.completion: nothing fits its schema: it allows nothing",
            ),
            (
                one(json!({}), json!({ "input": { "enum": [] } })),
                "actions.end.input: no inputs fit its schema: its `enum` is empty; mend the schema, so that an agent can give what it asks for",
            ),
        ] {
            let found = errors(machine);
            assert!(found.len() == 1 && found[0].starts_with(said), "{said}: {found:#?}");
        }
        let enough = one(json!({ "limits": { "steps": 1, "loops": 1, "time": "1s" } }), json!({ "times": 1 }));
        assert_eq!(errors(enough), Vec::<String>::new());
    }

    #[test]
    fn a_circle_behind_an_action_with_a_bound_is_a_circle() {
        let behind = |loops: Value| {
            json!({
                "initial": "a", "terminal": ["z"],
                "actions": {
                    "go": { "from": ["a"], "to": "b", "times": 1 }, "round": loops,
                    "end": { "from": ["b"], "to": "z" },
                },
            })
        };
        let found = errors(behind(json!({ "from": ["b"], "to": "b" })));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("limits: it can go round `b` without an end; bound it"), "{found:?}");
        assert_eq!(errors(behind(json!({ "from": ["b"], "to": "b", "times": 3 }))), Vec::<String>::new());
    }

    #[test]
    fn names_that_lead_nowhere_are_found_however_they_are_written() {
        let typed = json!({
            "fields": { "order": { "id": 1 } },
            "state": {
                "properties": { "order": { "properties": { "id": {} }, "additionalProperties": false } },
                "additionalProperties": false,
            },
        });
        let closed = json!({ "properties": { "to": { "properties": { "city": {} }, "additionalProperties": false } } });
        let elsewhere = json!({
            "$defs": { "to": closed, "all": { "properties": { "n": { "type": "integer" }, "to": { "$ref": "#/$defs/to" } }, "additionalProperties": false } },
            "$ref": "#/$defs/all",
        });
        let stage = |writes: &str| {
            json!({
                "allowed": ["get"], "completion": { "properties": { "reason": {} }, "required": ["reason"] },
                "writes": { "why": writes },
            })
        };
        for (machine, said) in [
            (
                one(json!({ "fields": { "item": 1 } }), json!({ "guard": "state['itm'] == 1" })),
                "actions.end.guard: `state['itm'] == 1` reads `state.itm`, which there is not; did you mean `state.item`?",
            ),
            (
                one(typed.clone(), json!({ "guard": "state.order.idd == 1" })),
                "actions.end.guard: `state.order.idd == 1` reads `state.order.idd`, which there is not; did you mean `state.order.id`?",
            ),
            (
                one(json!({}), json!({ "input": closed, "guard": "inputs.to.cty == 'x'" })),
                "actions.end.guard: `inputs.to.cty == 'x'` reads `inputs.to.cty`, which there is not; did you mean `inputs.to.city`?",
            ),
            (
                one(json!({}), json!({ "input": elsewhere, "guard": "inputs.to.to.cty == 'x'" })),
                "actions.end.guard: `inputs.to.to.cty == 'x'` reads `inputs.to.to.cty`, which there is not; did you mean `inputs.to.to.city`?",
            ),
            (
                one(json!({}), json!({ "input": elsewhere, "guard": "inputs.nn == 1" })),
                "actions.end.guard: `inputs.nn == 1` reads `inputs.nn`, which there is not; did you mean `inputs.n`?",
            ),
            (
                one(json!({}), json!({ "input": elsewhere, "guard": "inputs.n.x == 'x'" })),
                "actions.end.guard: `inputs.n.x == 'x'` reads `inputs.n.x`, which there is not; `inputs.n` is a whole number",
            ),
            (
                one(json!({}), stage("result.fields.reson")),
                "actions.end.writes: `result.fields.reson` reads `result.fields.reson`, which there is not; did you mean `result.fields.reason`?",
            ),
            (
                one(json!({ "fields": { "n": 1 } }), json!({ "guard": "foo(state.n)" })),
                "actions.end.guard: `foo(state.n)` calls `foo`, and there is no such function",
            ),
            (
                one(json!({ "fields": { "n": "" } }), json!({ "writes": { "n": "state.n.startswith('a')" } })),
                "actions.end.writes: `state.n.startswith('a')` calls `startswith`, and there is no such function; did you mean `startsWith`?",
            ),
        ] {
            let found = errors(machine);
            assert!(found.len() == 1 && found[0].starts_with(said), "{said}: {found:#?}");
        }
        let part = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        let line = json!({
            "type": "object", "additionalProperties": false,
            "properties": { "qty": { "type": "integer" }, "parts": { "type": "array", "items": part } },
        });
        let lines = json!({ "properties": { "lines": { "type": "array", "items": line }, "open": {} } });
        for (guard, said) in [
            (
                "inputs.lines.all(l, l.qyt > 0)",
                "reads `inputs.lines[].qyt`, which there is not; did you mean `inputs.lines[].qty`?",
            ),
            ("inputs.lines[0].qyt > 0", "reads `inputs.lines[].qyt`"),
            ("inputs.lines.exists(l, l.qty.n > 0)", "`inputs.lines[].qty` is a whole number, and has no members"),
            ("inputs.lines.exists(l, l.parts.exists(p, p.id.x == 1))", "`inputs.lines[].parts[].id` is a text"),
        ] {
            let found = errors(one(json!({}), json!({ "input": lines, "guard": guard })));
            assert!(found.len() == 1 && found[0].contains(said), "{said}: {found:#?}");
        }
        for sound in [
            "inputs.lines.all(l, l.qty > 0 && l.parts.all(p, p.other == 1)) && inputs.open.all(l, l.qyt > 0)",
            "inputs.lines.map(l, {'n': l.qty}).all(m, m.n > 0)",
            "inputs.lines.filter(inputs, inputs.qty > 0) != []",
        ] {
            assert_eq!(
                errors(one(json!({}), json!({ "input": lines, "guard": sound }))),
                Vec::<String>::new(),
                "{sound}"
            );
        }
        let policy = json!({ "fields": { "policy": { "max": 50 } } });
        let found = errors(one(policy.clone(), json!({ "guard": "size(inputs) <= state.policy.maxx" })));
        assert!(
            found.len() == 1
                && found[0].contains("reads `state.policy.maxx`, which there is not; did you mean `state.policy.max`?"),
            "{found:?}"
        );
        for named in ["setup['two'].ok ? 'proceed' : 'skip'", "setup.one.ok ? 'proceed' : 'skip'"] {
            let found = errors(one(json!({}), json!({ "setup": [{ "tool": "get", "as": "one" }], "gate": named })));
            assert_eq!(found.len(), usize::from(named.contains("two")), "{found:?}");
        }
        for sound in [
            one(policy, json!({ "guard": "size(inputs) <= state.policy.max" })),
            one(typed, json!({ "guard": "state.order.id == 1 && state['order']['id'] == 1" })),
            one(json!({}), stage("result.fields.reason")),
            one(
                json!({}),
                json!({
                    "allowed": ["get"], "writes": { "why": "result.fields.reason" },
                    "completion": { "$defs": { "why": { "required": ["reason"] } }, "allOf": [{ "$ref": "#/$defs/why" }] },
                }),
            ),
            one(json!({ "fields": { "n": {} } }), json!({ "guard": "state.n.anything > size(state.n)" })),
        ] {
            assert_eq!(errors(sound), Vec::<String>::new());
        }
    }

    #[test]
    fn what_another_part_of_a_schema_requires_is_required() {
        let named = json!({ "n": { "properties": { "n": { "type": "integer" } }, "required": ["n"] } });
        let warned = |input: Value| {
            let machine = one(json!({}), json!({ "input": input, "guard": "inputs.n == 1" }));
            let found = looked(&machines(json!({ "m": machine })), Weight::Warning);
            found.iter().any(|found| found.contains("reads `inputs.n`, which is not required"))
        };
        assert!(!warned(json!({ "$defs": named, "$ref": "#/$defs/n" })));
        assert!(!warned(json!({ "$defs": named, "allOf": [{ "type": "object" }, { "$ref": "#/$defs/n" }] })));
        assert!(warned(json!({ "$defs": named, "anyOf": [{ "type": "object" }, { "$ref": "#/$defs/n" }] })));
        assert!(warned(json!({ "$ref": "#/$defs/n" })), "there is no such part");
        assert!(warned(json!({ "$defs": { "n": { "$ref": "#/$defs/n" } }, "$ref": "#/$defs/n" })), "it ends");
    }

    #[test]
    fn what_is_done_in_another_machine_counts_as_steps() {
        let order = |steps: u32, more: Value| {
            let mut go = json!({ "from": ["a"], "to": "b", "machine": "inner" });
            go.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let leg = |from: &str, to: &str| json!({ "from": [from], "to": to });
            let outer = json!({
                "initial": "a", "terminal": ["z"], "limits": { "steps": steps },
                "actions": { "go": go, "end": leg("b", "z") },
            });
            let inner = json!({
                "initial": "p", "terminal": ["r"],
                "actions": { "one": leg("p", "q"), "two": leg("q", "r") },
            });
            looked(&machines(json!({ "m": outer, "inner": inner })), Weight::Error)
        };
        let said = "actions.end.from: it can never be taken: 3 actions come before it, and `limits.steps` is 3; allow at least 4 steps";
        assert_eq!((order(3, json!({})), order(4, json!({}))), (vec![said.to_owned()], Vec::new()));
        let said = "actions.go.machine: what it runs can never end: 0 actions come before it, it takes 3 with those within, and `limits.steps` is 2; allow at least 3 steps";
        assert!(order(2, json!({})).contains(&said.to_owned()));
        // What is passed over is not entered.
        for passed in [json!({ "gate": "inputs.known ? 'skip' : 'proceed'" }), json!({ "resolution": "skip" })] {
            assert_eq!(order(2, passed), Vec::<String>::new());
        }
        assert_eq!(order(3, json!({ "gate": "inputs.known ? 'proceed' : 'proceed'" })).len(), 1);
    }

    #[test]
    fn machines_that_many_others_run_are_gone_through_once() {
        let runs = |n: usize| {
            let action =
                |k: usize| (format!("go{k}"), json!({ "from": ["a"], "to": "z", "machine": format!("m{}", n + 1) }));
            let actions: serde_json::Map<String, Value> = (0..40).map(action).collect();
            (
                format!("m{n}"),
                json!({ "initial": "a", "terminal": ["z"], "limits": { "steps": 20 }, "actions": actions }),
            )
        };
        let last = ("m7".to_owned(), one(json!({}), json!({ "tool": "irreversible" })));
        let all: serde_json::Map<String, Value> = (0..7).map(runs).chain([last]).collect();
        // Each by each way to it, that would be 40 to the seventh.
        assert_eq!(looked(&machines(Value::Object(all)), Weight::Error), Vec::<String>::new());
    }

    #[test]
    fn what_has_no_name_leads_nowhere_and_says_no_word_is_refused() {
        for (action, said) in [
            (json!({ "queue": " " }), "actions.end.queue: nobody looks at a queue without a name"),
            (json!({ "to": [{ "when": "inputs.n == 1" }, { "state": "z" }] }), "actions.end.to: it leads nowhere"),
            (
                json!({ "gate": "inputs.n > 1" }),
                "actions.end.gate: `inputs.n > 1` is true or false, and it must say a word",
            ),
            (json!({ "tool": "get", "assert": "true" }), "actions.end.assert: `true` is true or false"),
            (
                json!({ "gate": "size(inputs)" }),
                "actions.end.gate: `size(inputs)` is a whole number, and it must say a word",
            ),
            (json!({ "gate": "inputs" }), "actions.end.gate: `inputs` is a table, and it must say a word"),
            (json!({ "tool": "get", "assert": "['ok']" }), "actions.end.assert: `['ok']` is a list"),
        ] {
            let found = errors(one(json!({}), action));
            assert!(found.iter().any(|found| found.starts_with(said)), "{said}: {found:?}");
        }
    }

    #[test]
    fn what_another_machine_gives_is_known() {
        let runs = |writes: &str| {
            let machine = json!({ "machine": "inner", "writes": { "note": writes } });
            let inner = one(json!({ "fields": { "note": "" } }), json!({}));
            looked(&machines(json!({ "m": one(json!({}), machine), "inner": inner })), Weight::Error)
        };
        assert_eq!(runs("result.fields.note"), Vec::<String>::new());
        let found = runs("result.fields.nte");
        assert!(
            found[0].contains("reads `result.fields.nte`, which there is not; did you mean `result.fields.note`?"),
            "{found:?}"
        );
    }

    #[test]
    fn what_cannot_be_undone_within_another_machine_is_a_point_of_no_return() {
        let order = |tool: &str| {
            let outer = json!({
                "initial": "a", "terminal": ["z"],
                "actions": {
                    "go": { "from": ["a"], "to": "b", "machine": "inner" },
                    "end": { "from": ["b"], "to": "z", "tool": "reversible" },
                },
            });
            let inner = one(json!({}), json!({ "tool": tool }));
            looked(&machines(json!({ "m": outer, "inner": inner })), Weight::Warning)
        };
        let found = order("irreversible");
        let said = "actions.end: it can be undone, and comes after `go`, which cannot";
        assert!(found.iter().any(|found| found.starts_with(said)), "{found:?}");
        let said_so = |word: bool| {
            let outer = json!({
                "initial": "a", "terminal": ["z"],
                "actions": {
                    "go": { "from": ["a"], "to": "b", "machine": "inner" },
                    "end": { "from": ["b"], "to": "z", "parallel": { "x": { "tool": "reversible" }, "y": { "tool": "irreversible" } } },
                },
            });
            let inner = one(json!({}), json!({ "tool": "unknown", "reversible": word }));
            let found = looked(&machines(json!({ "m": outer, "inner": inner })), Weight::Warning);
            found.iter().any(|found| found.starts_with(said))
        };
        assert!(said_so(false) && !said_so(true), "an action's own word counts, and so does each of several calls");
        for harmless in ["reversible", "get"] {
            let found = order(harmless);
            assert!(!found.iter().any(|found| found.contains("it can be undone")), "{harmless}: {found:?}");
        }
    }

    #[test]
    fn what_was_taken_once_is_still_read() {
        let spec: MachineSpec =
            serde_json::from_value(one(json!({ "limits": { "steps": 0 } }), json!({ "guard": "foo(inputs.n)" })))
                .unwrap();
        assert!(crate::machine::Machine::read("m", &spec).is_ok(), "a walk goes on by what it began with");
    }
}
