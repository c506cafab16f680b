//! What is known of values by their schemas: those that have no members, and those that never fit where they are written.

use std::collections::BTreeSet;

use serde_json::Value;

use super::inputs::{is_of, property};
use super::satisfiable::kinds;
use super::{Action, Finding, Machine};
use crate::expression::{Expression, Path};
use crate::id::ActionName;

impl Machine {
    /// Fields that are written with what is never of their type. What is written out is compared where the schema is used.
    pub(super) fn mistyped(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let typed = |field: &str| self.schema.as_ref().and_then(|schema| property(schema, schema, field));
        for (field, write) in action.writes.iter().filter(|(_, write)| !write.variables().is_empty()) {
            let Some(schema) = typed(field) else { continue };
            let Some((gives, takes)) = self.never_of(write, schema, action) else { continue };
            let message = format!("`{}` is {gives}, and `state` says that `{field}` is {takes}", write.source());
            let fix = "mend it, or the schema: an action that writes what does not fit never arrives";
            found.push(Finding::error(&["actions", name.as_str(), "writes", field], message, fix));
        }
    }

    /// What an expression of an action is and what that schema wants instead, where they have no type in common.
    pub(super) fn never_of(
        &self,
        expression: &Expression,
        schema: &Value,
        action: &Action,
    ) -> Option<(String, String)> {
        let gives = expression.kinds(&|path| self.kinds_at(path, action))?;
        let takes = of(schema);
        gives.is_disjoint(&takes).then(|| (words(&gives), words(&takes)))
    }

    /// What an expression of an action is instead, where it is never of that type.
    pub(super) fn never(&self, expression: &Expression, kind: &str, action: &Action) -> Option<String> {
        let kinds = expression.kinds(&|path| self.kinds_at(path, action))?;
        (!kinds.is_empty() && !kinds.contains(kind)).then(|| words(&kinds))
    }

    /// The types of what is at the end of a path, where its schema tells them.
    pub(super) fn kinds_at(&self, path: &Path, action: &Action) -> Option<BTreeSet<&'static str>> {
        if path.fields.is_empty() && ["state", "inputs", "setup"].contains(&path.variable.as_str()) {
            return Some(BTreeSet::from(["object"]));
        }
        let schema = match path.variable.as_str() {
            "inputs" => action.input.as_ref()?,
            "state" => self.schema.as_ref()?,
            _ => return None,
        };
        let end = path.fields.iter().try_fold(schema, |at, field| property(schema, at, field))?;
        Some(of(end))
    }
}

/// Why what a schema describes has no members by name, where it has none.
pub(super) fn memberless(schema: &Value) -> Option<String> {
    let kinds = of(schema);
    (!kinds.is_empty() && !kinds.contains("object")).then(|| words(&kinds))
}

/// Whether what a schema describes is a list for sure.
pub(super) fn is_list(schema: &Value) -> bool {
    of(schema).iter().eq([&"array"])
}

/// The types that a schema allows, by what it says itself.
fn of(schema: &Value) -> BTreeSet<&'static str> {
    let named = schema.get("enum").and_then(Value::as_array).map(|all| all.iter().collect::<Vec<_>>());
    let named = named.or_else(|| Some(vec![schema.get("const")?]));
    let may = |kind: &&str| named.as_ref().is_none_or(|named| named.iter().any(|value| is_of(value, kind)));
    kinds(schema).into_iter().filter(may).collect()
}

fn words(kinds: &BTreeSet<&'static str>) -> String {
    // A whole number is said where no other is meant.
    let said = kinds.iter().filter(|kind| **kind != "integer" || !kinds.contains("number"));
    let said: Vec<&str> = said
        .map(|kind| match *kind {
            "string" => "a text",
            "number" => "a number",
            "integer" => "a whole number",
            "boolean" => "true or false",
            "object" => "a table",
            "array" => "a list",
            _ => "null",
        })
        .collect();
    said.join(" or ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::machine::{MachineSpec, Machines, Weight};

    /// The errors of a machine with typed fields and inputs, whose one action has more said of it.
    fn errors(more: Value) -> Vec<String> {
        let mut action = json!({
            "from": ["a"], "to": "z",
            "input": {
                "properties": {
                    "name": { "type": "string" }, "n": { "type": "integer" }, "x": { "type": "number" },
                    "any": {}, "size": { "enum": ["s", "m"] }, "list": { "type": "array" }, "to": { "type": ["object", "null"] },
                },
                "required": ["name", "n", "x", "any", "size", "list", "to"],
            },
        });
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let machine = json!({
            "initial": "a", "terminal": ["z"], "fields": { "count": 0, "note": "", "free": null },
            "state": { "properties": { "count": { "type": "integer" }, "note": { "type": ["string", "null"] }, "free": {} } },
            "actions": { "go": action, "tell": { "from": ["a"], "to": "a", "times": 1, "writes": { "free": "size(inputs)" } } },
        });
        let specs: BTreeMap<crate::id::MachineName, MachineSpec> =
            serde_json::from_value(json!({ "m": machine })).unwrap();
        let machines = Machines::read(&specs).unwrap_or_else(|found| panic!("it is read: {found:?}"));
        let found = machines.declared().flat_map(|machine| machines.look(machine, |_| None));
        found.filter(|finding| finding.weight == Weight::Error).map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn members_of_what_has_none_are_refused() {
        for (guard, said) in [
            (
                "state.count.x == 1",
                "reads `state.count.x`, which there is not; `state.count` is a whole number, and has no members",
            ),
            (
                "state.note['x'] == 1",
                "reads `state.note.x`, which there is not; `state.note` is null or a text, and has no members",
            ),
            ("inputs.name.first == 'a'", "reads `inputs.name.first`, which there is not; `inputs.name` is a text"),
            ("inputs.size.x == 'a'", "reads `inputs.size.x`, which there is not; `inputs.size` is a text"),
            ("inputs.list.first == 'a'", "reads `inputs.list.first`, which there is not; `inputs.list` is a list"),
            ("has(inputs.n.x)", "reads `inputs.n.x`, which there is not; `inputs.n` is a whole number"),
        ] {
            let found = errors(json!({ "guard": guard }));
            assert!(found.len() == 1 && found[0].contains(said), "{guard}: {found:#?}");
        }
        for sound in [
            "inputs.any.x == 1",
            "inputs.to.x == 1",
            "state.free.x.y == 1",
            "inputs.name.size() > 1 && inputs.list[0].x == 1",
        ] {
            assert_eq!(errors(json!({ "guard": sound })), Vec::<String>::new(), "{sound}");
        }
    }

    #[test]
    fn what_never_is_of_a_fields_type_is_not_written_into_it() {
        for (field, write, said) in [
            ("count", "inputs.name", "`inputs.name` is a text, and `state` says that `count` is a whole number"),
            ("count", "string(state.count)", "`string(state.count)` is a text"),
            ("count", "state.count > 3", "`state.count > 3` is true or false"),
            ("count", "inputs.n > 3 ? 'many' : inputs.size", "is a text"),
            ("count", "[inputs.n]", "`[inputs.n]` is a list"),
            ("count", "{'n': inputs.n}", "is a table"),
            ("count", "inputs.name + '!'", "is a text"),
            (
                "note",
                "size(inputs.list)",
                "`size(inputs.list)` is a whole number, and `state` says that `note` is null or a text",
            ),
            ("note", "state.count + 1", "is a whole number"),
            ("note", "has(inputs.any) && inputs.any", "is true or false"),
        ] {
            let found = errors(json!({ "writes": { field: write } }));
            assert!(found.len() == 1 && found[0].contains(said), "{write}: {found:#?}");
            assert!(found[0].starts_with(&format!("actions.go.writes.{field}: ")), "{found:?}");
        }
        for (field, write) in [
            ("count", "inputs.x"),
            ("count", "inputs.any"),
            ("count", "state.count + 1"),
            ("count", "size(inputs.list) * 2"),
            ("count", "inputs.n > 3 ? 1 : inputs.any"),
            ("count", "double(inputs.n)"),
            ("note", "inputs.name + inputs.size"),
            ("note", "inputs.n > 3 ? null : 'few'"),
            ("free", "inputs.list.filter(x, x > 1)"),
        ] {
            assert_eq!(errors(json!({ "writes": { field: write } })), Vec::<String>::new(), "{write}");
        }
    }

    #[test]
    fn what_never_gives_an_answer_is_refused() {
        for (more, at, said) in [
            (json!({ "writes": { "free": "inputs.name + 1" } }), "writes.free", "a text and a number cannot be added"),
            (json!({ "writes": { "free": "1 + 'a'" } }), "writes.free", "add"),
            (json!({ "writes": { "free": "[1, 2][5]" } }), "writes.free", ""),
            (json!({ "writes": { "count": "1 / 0" } }), "writes.count", ""),
            (json!({ "writes": { "free": "int('x')" } }), "writes.free", ""),
            (json!({ "writes": { "free": "inputs.n + [1][3]" } }), "writes.free", ""),
            (
                json!({ "writes": { "free": "size(inputs.list) * inputs.size" } }),
                "writes.free",
                "a number and a text cannot be calculated with",
            ),
            (
                json!({ "writes": { "free": "inputs.name > inputs.x" } }),
                "writes.free",
                "a text and a number cannot be compared",
            ),
            (
                json!({ "tool": "t", "writes": { "free": "string(result.n) + state.count" } }),
                "writes.free",
                "a text and a number",
            ),
            (json!({ "tool": "t", "args": { "n": "inputs.name - 1" } }), "args", "a text and a number"),
            (json!({ "tool": "t", "args": { "n": "9223372036854775807 + 1" } }), "args", ""),
            (json!({ "setup": [{ "tool": "t", "as": "s", "args": { "n": "1 % 0" } }] }), "setup", ""),
        ] {
            let found = errors(more.clone());
            let begins = format!("actions.go.{at}: `");
            assert!(found.len() == 1 && found[0].starts_with(&begins), "{more}: {found:#?}");
            assert!(found[0].contains("` never gives an answer: ") && found[0].contains(said), "{found:?}");
        }
        for sound in [
            "inputs.any + 1",
            "inputs.n + 1.5",
            "inputs.n / inputs.x - state.count % 2",
            "inputs.n > 3 ? 1 / 0 : 2",
            "inputs.n > 3 || inputs.name + 1 > 2",
            "inputs.list.map(i, i + 'a' + inputs.name)",
            "inputs.list.map(i, inputs.name + 1)",
            "[1, 2][inputs.n]",
            "int(inputs.name)",
            "state.note + 'a'",
            "inputs.list + [1]",
            "{ 'a': 1, 'b': 'x' }[inputs.name] + 1",
            "result.n + 1 > result.name - 2",
            "inputs.n == inputs.name",
            "inputs.name in ['a', 1]",
            "has(inputs.name) ? 'x' : inputs.name - 1",
        ] {
            assert_eq!(errors(json!({ "tool": "t", "writes": { "free": sound } })), Vec::<String>::new(), "{sound}");
        }
    }

    #[test]
    fn a_machine_is_not_begun_with_what_never_fits_it() {
        let runs = |given: &str| {
            let specs: BTreeMap<crate::id::MachineName, MachineSpec> = serde_json::from_value(json!({
                "m": {
                    "initial": "a", "terminal": ["z"],
                    "actions": { "go": {
                        "from": ["a"], "to": "z", "machine": "inner", "args": { "q": given },
                        "input": { "properties": { "name": { "type": "string" }, "n": { "type": "integer" } }, "required": ["name", "n"] },
                    } },
                },
                "inner": {
                    "initial": "s", "terminal": ["t"], "fields": { "q": 1 },
                    "state": { "properties": { "q": { "type": "integer", "maximum": 9 } } },
                    "actions": { "w": { "from": ["s"], "to": "t" } },
                },
            }))
            .unwrap();
            let machines = Machines::read(&specs).unwrap_or_else(|found| panic!("it is read: {found:?}"));
            let found = machines.declared().flat_map(|machine| machines.look(machine, |_| None));
            let found = found.filter(|finding| finding.weight == Weight::Error);
            found.map(|finding| finding.to_string()).collect::<Vec<_>>()
        };
        for wrong in ["'text'", "10", "1.5", "null", "inputs.name", "[inputs.n]"] {
            let found = runs(wrong);
            let said = format!("actions.go.args.q: `{wrong}` does not fit the `q` that `state` of `inner` describes");
            assert!(found.len() == 1 && found[0].starts_with(&said), "{wrong}: {found:?}");
        }
        for sound in ["2", "2.0", "inputs.n", "inputs.n + 1", "int(inputs.name)"] {
            assert_eq!(runs(sound), Vec::<String>::new(), "{sound}");
        }
    }
}
