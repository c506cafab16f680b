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
    let mut whole = json!({ "initial": "a", "terminal": ["z"], "actions": { "end": { "from": ["a"], "to": "z" } } });
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
        (one(json!({}), json!({ "times": 0 })), "actions.end.times: it can never be taken; drop it, or say how often"),
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
        assert_eq!(errors(one(json!({}), json!({ "input": lines, "guard": sound }))), Vec::<String>::new(), "{sound}");
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
        (format!("m{n}"), json!({ "initial": "a", "terminal": ["z"], "limits": { "steps": 20 }, "actions": actions }))
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
        serde_json::from_value(one(json!({ "limits": { "steps": 0 } }), json!({ "guard": "foo(inputs.n)" }))).unwrap();
    assert!(crate::machine::Machine::read("m", &spec).is_ok(), "a walk goes on by what it began with");
}
