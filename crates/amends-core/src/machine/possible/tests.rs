use super::*;
use crate::machine::{MachineSpec, Machines, Weight};

fn errors(machines: Value) -> Vec<String> {
    let specs: BTreeMap<crate::id::MachineName, MachineSpec> = serde_json::from_value(machines).unwrap();
    let machines = Machines::read(&specs).unwrap_or_else(|found| panic!("it is read: {found:?}"));
    let found = machines.declared().flat_map(|machine| machines.look(machine, |_| None));
    found.filter(|finding| finding.weight == Weight::Error).map(|finding| finding.to_string()).collect()
}

/// A machine with that guard, over an input schema and typed fields.
fn guarded(guard: &str) -> Value {
    let input = json!({
        "properties": {
            "n": { "type": "integer", "maximum": 10 }, "only": { "type": "integer", "minimum": 0.5, "maximum": 1.4 }, "kind": { "enum": ["a", "b"] }, "text": { "type": "string" },
            "any": {}, "large": { "type": "integer", "exclusiveMinimum": 9_007_199_254_740_992_i64 },
            "to": { "type": "object", "properties": { "zip": { "type": "integer", "minimum": 1000 } }, "required": ["zip"] },
        },
        "required": ["n", "kind", "to"],
    });
    json!({ "m": {
        "initial": "a", "terminal": ["z"], "fields": { "fixed": 0, "told": 0, "mood": "calm", "free": 0, "deep": { "most": 1 } },
        "state": { "type": "object", "properties": { "mood": { "enum": ["calm", "loud"] } } },
        "actions": {
            "go": { "from": ["a"], "to": "z", "input": input, "guard": guard },
            "tell": { "from": ["a"], "to": "a", "times": 1, "writes": { "told": "1", "mood": "'loud'", "deep": "{'most': 2}" } },
            "free": { "from": ["a"], "to": "a", "times": 1, "writes": { "free": "size(inputs)" } },
        },
    } })
}

#[test]
fn guards_that_never_hold_are_seen() {
    for never in [
        "inputs.n > 5 && inputs.n < 3",
        "inputs.n > 3 && inputs.n < 4",
        "inputs.n > 10",
        "inputs['n'] == 11",
        "inputs.n == 'b'",
        "inputs.n",
        "1",
        "false",
        "inputs.kind == 'c' && state.told == 1",
        "!(inputs.kind in ['a', 'b'])",
        "state.fixed == 5",
        "state.free > 5.5 && state.free < 5.5",
        "state.mood == 'cross'",
        "inputs.to.zip < 1000",
        "inputs.text == 'x' && inputs.text == 'y'",
        "state.told == 2",
        "state.deep.most == 3",
        "state.mood == 'loud' && state.mood != 'loud'",
        "inputs.n > 9223372036854775807",
        "inputs.n == inputs.n + 1",
        "size(inputs.text) < 0 && inputs.n > 3",
        "inputs.any != inputs.any",
        "inputs.n > 5 && inputs.n < 3 && size(inputs.text) > 1",
        "inputs.n > 3 && inputs.text + 1 == 2",
        "[1, 2][5] == inputs.n",
    ] {
        let found = errors(guarded(never));
        let said = format!("actions.go.guard: it can never be taken: `{never}` never holds");
        assert!(found.len() == 1 && found[0].starts_with(&said), "{never}: {found:?}");
    }
}

#[test]
fn guards_that_may_hold_pass() {
    for may in [
        "inputs['n'] == 1",
        "'text' in inputs",
        "size(inputs) > 1",
        "inputs == {'n': 1}",
        "inputs.exists(k, k == 'text')",
        "size(inputs['text']) > 2",
        "inputs.kind == 'a' && inputs['n'] == 1",
        "inputs.n > 3 && inputs.n < 5",
        "inputs.only != 7",
        "inputs.n > 3 && inputs.n < 10 && inputs.kind != 'a' && state.told == 1",
        "inputs.n + 1 > 100",
        "inputs.n < inputs.n + 1",
        "inputs.any == inputs.any + 1.0",
        "size(inputs.text) <= 0",
        "inputs.n > 5 && size(inputs.text) > 1",
        "inputs.n < state.told",
        "state.told == 7 || state.fixed == 0",
        "state.free > 5.25 && state.free < 5.5",
        "!has(inputs.text) && state.mood == 'loud'",
        "inputs.to.zip == 8000 && state.fixed < 1",
        "inputs.text > 'a' && inputs.text < 'b'",
        "inputs.kind == 'a' ? inputs.n == 1 : false",
        "inputs.any > 9007199254740992",
        "inputs.any < -9007199254740993",
        "inputs.any == 9007199254740993",
        "inputs.any > 9007199254740992 && inputs.any < 9007199254740994",
        "inputs.any > 1e20 && inputs.any < 1e21",
        "inputs.any > 1.7e308",
        "inputs.large > 9007199254740993",
    ] {
        assert_eq!(errors(guarded(may)), Vec::<String>::new(), "{may}");
    }
}

#[test]
fn guards_and_conditions_that_are_neither_true_nor_false_are_seen() {
    for (guard, what) in [
        ("size(inputs)", "a whole number"),
        ("inputs.n + 1", "a whole number"),
        ("string(inputs.n)", "a text"),
        ("[inputs.n > 1]", "a list"),
        ("inputs", "a table"),
    ] {
        let found = errors(guarded(guard));
        let said =
            format!("actions.go.guard: it can never be taken: `{guard}` is {what}, and a guard is true or false");
        assert!(found.len() == 1 && found[0].starts_with(&said), "{guard}: {found:?}");
    }
    for may in ["inputs.any", "inputs.to.open", "inputs.n > 1 ? inputs.any : false", "bool(inputs.text)"] {
        assert_eq!(errors(guarded(may)), Vec::<String>::new(), "{may}");
    }
    let found = choosing(json!([{ "when": "size(result.fields)", "state": "x" }, { "state": "z" }]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`x` is never chosen by `size(result.fields)`"), "{found:?}");
}

#[test]
fn a_field_is_what_is_written_into_it() {
    let order = |write: &str, guard: &str| {
        errors(json!({ "m": {
            "initial": "a", "terminal": ["z"], "fields": { "status": "new" },
            "actions": {
                "pay": { "from": ["a"], "to": "b", "writes": { "status": write } },
                "send": { "from": ["b"], "to": "z", "guard": guard }, "drop": { "from": ["b"], "to": "z" },
            },
        } }))
    };
    let said = "actions.send.guard: it can never be taken: `state.status == 'paid'` never holds";
    for write in ["'payed'", "inputs.cash ? 'payed' : 'open'", "null"] {
        let found = order(write, "state.status == 'paid'");
        assert!(found.len() == 1 && found[0].starts_with(said), "{write}: {found:?}");
    }
    for write in ["'paid'", "inputs.cash ? 'paid' : 'open'", "inputs.status", "'pa' + inputs.end"] {
        assert_eq!(order(write, "state.status == 'paid'"), Vec::<String>::new(), "{write}");
    }
    let said = "actions.send.guard: it can never be taken: `state.status == 'new'` never holds";
    let found = order("'paid'", "state.status == 'new'");
    assert!(found.len() == 1 && found[0].starts_with(said), "as it began, and as it is not any more: {found:?}");
}

/// A machine in which `pay` leads from `a` to `b`, with more said of it and more actions.
fn paying(machine: Value, actions: Value) -> Vec<String> {
    let mut whole = json!({
        "initial": "a", "terminal": ["z"], "fields": { "ok": false },
        "actions": { "pay": { "from": ["a"], "to": "b" }, "end": { "from": ["a", "b"], "to": "z" } },
    });
    whole.as_object_mut().unwrap().extend(machine.as_object().unwrap().clone());
    whole["actions"].as_object_mut().unwrap().extend(actions.as_object().unwrap().clone());
    errors(json!({ "m": whole }))
}

#[test]
fn what_is_written_only_later_is_not_there_yet() {
    let guarded = |from: &str, to: &str| json!({ "from": [from], "to": to, "guard": "state.ok", "times": 1 });
    let told = |from: &str, to: &str, times: u32| json!({ "from": [from], "to": to, "times": times, "writes": { "ok": "true" } });
    let said = "actions.go.guard: it can never be taken: `state.ok` never holds";
    for (actions, why) in [
        (json!({ "go": guarded("a", "z"), "tell": told("b", "z", 1) }), "it is written behind it"),
        (json!({ "go": guarded("a", "b"), "tell": told("b", "b", 1) }), "and there is no way back"),
        (
            json!({ "go": guarded("b", "z"), "tell": told("a", "b", 1), "pay": { "from": ["a"], "to": "z" }, "undo": { "from": ["b"], "to": "b", "times": 1, "writes": { "ok": "false" } } }),
            "",
        ),
    ] {
        let found = paying(json!({}), actions);
        assert_eq!(found.len(), usize::from(!why.is_empty()), "{why}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with(said)), "{found:?}");
    }
    // By a way back it is there.
    let back = json!({ "go": guarded("a", "z"), "tell": told("b", "a", 1) });
    assert_eq!(paying(json!({}), back.clone()), Vec::<String>::new());
    let never = json!({ "properties": { "seen": { "type": "boolean" } } });
    let seen = |guard: &str| json!({ "go": { "from": ["a"], "to": "z", "guard": guard } });
    let found = paying(json!({ "state": never }), seen("has(state.seen) && state.seen"));
    assert_eq!(found.len(), 1, "nothing writes it: {found:?}");
    assert_eq!(paying(json!({ "state": never }), seen("!has(state.seen)")), Vec::<String>::new());
    // A walk of another declaration may go on with whatever it has.
    let migrates = paying(json!({ "drift": "migrate" }), json!({ "go": guarded("a", "z") }));
    assert_eq!(migrates, Vec::<String>::new());
}

#[test]
fn a_guard_that_only_walks_of_before_meet_is_warned_of() {
    let spec = json!({
        "initial": "a", "terminal": ["z"], "fields": { "v": 2 }, "drift": "migrate",
        "actions": { "upgrade": { "from": ["a"], "to": "z", "guard": "state.v == 1" }, "go": { "from": ["a"], "to": "z" } },
    });
    let spec: MachineSpec = serde_json::from_value(spec).unwrap();
    let found = Machine::read("m", &spec).unwrap().look(|_| None);
    let found: Vec<String> = found.iter().map(|found| found.to_string()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("actions.upgrade.guard: no walk that begins today can take it"), "{found:?}");
}

/// A machine whose action runs another one, which ends in `good` or `bad`, and then chooses.
fn choosing(to: Value) -> Vec<String> {
    let leave = |to: &str| json!({ "from": ["s"], "to": to, "writes": { "n": "size(inputs)" } });
    errors(json!({
        "m": {
            "initial": "a", "terminal": ["x", "y", "z"],
            "actions": {
                "go": { "from": ["a"], "to": to, "machine": "inner" },
                "rest": { "from": ["a"], "to": "x" }, "more": { "from": ["a"], "to": "y" }, "end": { "from": ["a"], "to": "z" },
            },
        },
        "inner": {
            "initial": "s", "terminal": ["good", "bad"], "fields": { "n": 0 },
            "actions": { "win": leave("good"), "lose": leave("bad") },
        },
    }))
}

#[test]
fn targets_that_are_never_chosen_are_seen() {
    let when = |when: &str, state: &str| json!({ "when": when, "state": state });
    let last = || json!({ "state": "z" });
    for (to, said) in [
        (json!([when("false", "x"), last()]), "`x` is never chosen by `false`"),
        (json!([when("true", "x"), last()]), "`z` is never chosen: one of those before it always is"),
        (
            json!([when("result.state == 'good'", "x"), when("result.state == 'good'", "y"), last()]),
            "`y` is never chosen by `result.state == 'good'`",
        ),
        (json!([when("result.fields.n > result.fields.n", "x"), last()]), "`x` is never chosen by"),
        (json!([when("result.state == 'god'", "x"), last()]), "`x` is never chosen by `result.state == 'god'`"),
        (
            json!([when("result.fields.n > 3", "x"), when("result.fields.n > 4", "y"), last()]),
            "`y` is never chosen by `result.fields.n > 4`",
        ),
    ] {
        let found = choosing(to);
        assert!(found.iter().any(|found| found.starts_with(&format!("actions.go.to: {said}"))), "{said}: {found:?}");
    }
    for to in [
        json!([when("result.state == 'good'", "x"), when("result.state == 'bad'", "y"), last()]),
        json!([when("size(result.state) > 3", "x"), when("result.state == 'good'", "y"), last()]),
    ] {
        let found = choosing(to);
        assert!(!found.iter().any(|found| found.contains("never chosen")), "{found:?}");
    }
}

#[test]
fn what_another_machine_leaves_and_an_agent_completes_is_known() {
    let when = |when: &str| json!([{ "when": when, "state": "z" }, { "state": "y" }]);
    let run = |to: Value| {
        errors(json!({
            "m": { "initial": "a", "terminal": ["y", "z"], "actions": { "go": { "from": ["a"], "to": to, "machine": "inner" } } },
            "inner": {
                "initial": "s", "terminal": ["t"], "fields": { "status": "", "free": "" },
                "actions": { "pay": { "from": ["s"], "to": "t", "writes": { "status": "'paid'", "free": "size(inputs)" } } },
            },
        }))
    };
    let why = json!({ "type": "object", "properties": { "severity": { "enum": ["high", "low"] } }, "required": ["severity"], "additionalProperties": false });
    let completed = |to: Value| {
        let completion = json!({ "properties": { "why": why, "cause": { "type": "string" } }, "required": ["why"] });
        let go = json!({ "from": ["a"], "to": to, "allowed": ["get"], "completion": completion });
        errors(json!({ "m": { "initial": "a", "terminal": ["y", "z"], "actions": { "go": go } } }))
    };
    for wrong in ["result.fields.status == 'paidd'", "result.fields.status == ''"] {
        let found = run(when(wrong));
        let said = format!("actions.go.to: `z` is never chosen by `{wrong}`");
        assert!(found.len() == 1 && found[0].starts_with(&said), "{found:?}");
    }
    for sound in ["result.fields.status == 'paid'", "result.fields.free == 7", "result == null"] {
        assert_eq!(run(when(sound)), Vec::<String>::new(), "{sound}");
    }
    for wrong in
        ["result.fields.why.severity == 'hihg'", "result.fields.cause.txt == 'x'", "result.fields.why.sev == 'x'"]
    {
        assert_eq!(completed(when(wrong)).len(), 1, "{wrong}");
    }
    for sound in ["result.fields.why.severity == 'high'", "result.fields.cause == null", "result.fields.cause == 'x'"] {
        assert_eq!(completed(when(sound)), Vec::<String>::new(), "{sound}");
    }
}

#[test]
fn a_target_that_the_guard_excludes_is_warned_of() {
    let warned = |guard: &str, to: Value| {
        let input = json!({ "properties": { "n": { "type": "integer" }, "t": {} }, "required": ["n", "t"] });
        let spec = json!({
            "initial": "a", "terminal": ["x", "y", "z"], "fields": { "told": 0 },
            "actions": {
                "go": { "from": ["a"], "to": to, "guard": guard, "input": input },
                "tell": { "from": ["a"], "to": [{ "when": "size(inputs) == 0", "state": "x" }, { "when": "size(inputs) == 1", "state": "y" }, { "state": "a" }], "times": 1, "writes": { "told": "1" } },
                "end": { "from": ["a"], "to": "z" },
            },
        });
        let spec: MachineSpec = serde_json::from_value(spec).unwrap();
        let found = Machine::read("m", &spec).unwrap().look(|_| None);
        let found = found.into_iter().filter(|found| found.message.contains("is never chosen"));
        found.map(|found| (found.weight, found.at.join("."), found.message)).collect::<Vec<_>>()
    };
    let when = |when: &str, state: &str| json!({ "when": when, "state": state });
    let last = || json!({ "state": "z" });
    for (guard, to, state) in [
        ("inputs.n > 5", json!([when("inputs.n < 3", "x"), last()]), "x"),
        ("inputs.n > 5 && size(inputs.t) > 1", json!([when("inputs.n < 3", "x"), last()]), "x"),
        ("state.told == 1", json!([when("state.told == 0", "x"), when("inputs.n > 3", "y"), last()]), "x"),
        ("inputs.n > 5", json!([when("inputs.n > 4", "x"), when("inputs.n > 2", "y"), last()]), "y"),
    ] {
        let found = warned(guard, to);
        assert_eq!(found.len(), 1, "{guard}: {found:?}");
        let (weight, at, message) = &found[0];
        assert_eq!((*weight, at.as_str()), (Weight::Warning, "actions.go.to"));
        let said = format!("`{state}` is never chosen: where the guard `{guard}` holds, ");
        assert!(message.starts_with(&said), "{message}");
    }
    for (guard, to) in [
        ("inputs.n > 5", json!([when("inputs.n > 7", "x"), when("state.told == 0", "y"), last()])),
        ("inputs.n > 5", json!([when("inputs.n > 4", "x"), last()])),
        ("inputs.n > 5 || size(inputs.t) > 1", json!([when("inputs.n < 3", "x"), last()])),
        ("inputs.n > 5", json!([when("inputs.t < 3", "x"), when("size(inputs.t) == inputs.n", "y"), last()])),
    ] {
        assert_eq!(warned(guard, to), [], "{guard}");
    }
}

#[test]
fn a_dense_machine_is_looked_at_once() {
    let to = |n: usize| {
        let branch =
            |m: usize| json!({ "when": format!("inputs.n == {} && state.told < {}", m % 50, n + 1), "state": "a" });
        let mut to: Vec<Value> = (0..59).map(branch).collect();
        to.push(json!({ "state": "z" }));
        json!({ "from": ["a"], "to": to, "writes": { "told": "1" }, "input": { "properties": { "n": { "type": "integer" } }, "required": ["n"] } })
    };
    let actions: Map<String, Value> = (0..60).map(|n| (format!("go{n}"), to(n))).collect();
    let machine = json!({ "m": {
        "initial": "a", "terminal": ["z"], "fields": { "told": 0 }, "limits": { "loops": 3 }, "actions": actions,
    } });
    let begun = std::time::Instant::now();
    errors(machine);
    assert!(begun.elapsed().as_secs() < 10, "it took {:?}", begun.elapsed());
}
