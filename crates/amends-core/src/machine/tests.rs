//! Machines by example: what is found in a declaration, and where a machine can go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ActionSpec, Finding, Machine, MachineSpec, Machines, No, ToolFacts, Weight};
use crate::id::{MachineName, ToolName};

fn spec(declared: Value) -> MachineSpec {
    serde_json::from_value(declared).unwrap()
}

fn order() -> Value {
    json!({
        "initial": "created",
        "terminal": ["fulfilled", "dropped"],
        "actions": {
            "take_order": {
                "from": ["created"], "to": "ordered",
                "input": {
                    "type": "object", "properties": { "item": { "enum": ["tea", "cake", "coffee"] } },
                    "required": ["item"], "additionalProperties": false,
                },
                "guard": "inputs.item != 'tea'",
                "writes": { "item": "inputs.item" },
            },
            "pay": {
                "from": ["ordered"], "to": [{ "when": "result.ok", "state": "paid" }, { "state": "ordered" }],
                "tool": "charge_card", "args": { "what": "state.item" }, "times": 2,
                "writes": { "receipt": "has(result.receipt) ? result.receipt : ''" },
            },
            "hand_over": { "from": ["paid"], "to": "fulfilled", "guard": "state.item == 'cake'" },
            "drop": { "from": ["created", "ordered"], "to": "dropped" },
        },
    })
}

/// The order, changed at those places.
fn with(changes: &[(&str, Value)]) -> MachineSpec {
    let mut declared = order();
    for (at, value) in changes {
        let (parent, last) = at.rsplit_once('/').unwrap();
        declared.pointer_mut(parent).unwrap()[last] = value.clone();
    }
    spec(declared)
}

fn errors(spec: &MachineSpec) -> Vec<String> {
    Machine::read("order", spec).err().unwrap_or_default().iter().map(Finding::to_string).collect()
}

#[test]
fn a_machine_that_fits_together_is_read_and_shows_its_states() {
    let machine = Machine::read("order", &spec(order())).unwrap();
    let states: Vec<&str> = machine.states().into_iter().map(|state| state.as_str()).collect();
    assert_eq!(states, ["created", "dropped", "fulfilled", "ordered", "paid"]);
}

#[test]
fn each_mistake_is_named_with_its_place_and_its_fix() {
    for (changes, said) in [
        (
            vec![("/initial", json!("creatd"))],
            "actions.drop.from: nothing leads to `created`; did you mean `created` in `initial`?",
        ),
        (
            vec![("/initial", json!("creatd"))],
            "initial: `creatd` is a dead end: nothing leads away from it; did you mean `created`?",
        ),
        (
            vec![("/actions/take_order/to", json!("orderd"))],
            "actions.take_order.to: `orderd` is a dead end: nothing leads away from it; did you mean `ordered`?",
        ),
        (
            vec![("/actions/take_order/to", json!("orderd"))],
            "actions.hand_over.from: it can never be taken: nothing leads to `paid` but `pay`, which can never be taken; see that `pay` can be taken",
        ),
        (
            vec![("/terminal", json!(["dropped"]))],
            "actions.hand_over.to: `fulfilled` is a dead end: nothing leads away from it; add `fulfilled` to `terminal`, or an action that leads away from it",
        ),
        (
            vec![("/terminal", json!(["fulfilled", "dropped", "fullfilled"]))],
            "terminal: nothing leads to `fullfilled`; did you mean `fulfilled`?",
        ),
        (
            vec![("/terminal", json!(["fulfilled", "dropped", "paid"]))],
            "terminal: `paid` is terminal, and actions lead away from it; take it out of `terminal`, or out of their `from`",
        ),
        (
            vec![("/actions/hand_over/from", json!(["payed"]))],
            "actions.hand_over.from: it can never be taken: nothing leads to `payed`; did you mean `paid`?",
        ),
        (
            vec![("/actions/pay/times", Value::Null)],
            "limits: it can go round `ordered` without an end; bound it: `limits = { loops = 10 }` for the machine, or `times = 3` for an action on the way",
        ),
        (
            vec![("/actions/take_order/guard", json!("inputs.itm != 'tea'"))],
            "actions.take_order.guard: `inputs.itm != 'tea'` reads `inputs.itm`, which its schema does not allow; did you mean `inputs.item`?",
        ),
        (
            vec![("/actions/hand_over/guard", json!("state.itme == 'cake'"))],
            "actions.hand_over.guard: `state.itme == 'cake'` reads `state.itme`, which nothing writes; did you mean `state.item`?",
        ),
        (
            vec![("/actions/hand_over/guard", json!("sate.item == 'cake'"))],
            "actions.hand_over.guard: nothing is called `sate` here; did you mean `state`?",
        ),
        (
            vec![("/actions/hand_over/guard", json!("state.item =="))],
            "actions.hand_over.guard: `state.item ==` is not a CEL expression",
        ),
        (
            vec![("/actions/pay/to", json!([{ "when": "result.ok", "state": "paid" }]))],
            "actions.pay.to: every target has a condition, and none may hold",
        ),
        (
            vec![("/actions/pay/to", json!([{ "state": "paid" }, { "state": "ordered" }]))],
            "actions.pay.to: nothing after `paid` is ever chosen",
        ),
        (
            vec![("/actions/pay/function", json!("charge"))],
            "actions.pay: it has `tool` and `function` at once; keep one, or make two actions of it",
        ),
        (
            vec![("/actions/drop/args", json!({ "why": "'late'" }))],
            "actions.drop.args: there are arguments and nothing that takes them; name the tool, or drop `args`",
        ),
        (
            vec![("/actions/drop/parallel", json!({ "one": { "tool": "x" } }))],
            "actions.drop.parallel: there is only one of them; make it the action's `tool`",
        ),
        (
            vec![("/actions/drop/parallel", json!({}))],
            "actions.drop.parallel: it makes no call at all; name the calls: `parallel = { stock = { tool = \"get_stock\" }, price",
        ),
        (
            vec![("/actions/pay/parallel", json!({}))],
            "actions.pay: it has `tool` and `parallel` at once; keep one, or make two actions of it",
        ),
        (
            vec![("/actions/drop/to", json!([]))],
            "actions.drop.to: it leads nowhere: there is no target in it; name a state: `to = \"paid\"`",
        ),
        (
            vec![("/actions/drop/from", json!([]))],
            "actions.drop.from: it leads away from nowhere; name its states: `from = [\"created\"]`",
        ),
        (
            vec![("/state", json!({ "properties": { "item": {} }, "additionalProperties": false }))],
            "actions.pay.writes: it writes `receipt`, which the machine's `state` does not allow",
        ),
        (vec![("/actions", json!({}))], "actions: there is nothing to do"),
        (vec![("/initial", json!(""))], "initial: there is no state to begin in"),
    ] {
        let found = errors(&with(&changes));
        assert!(found.iter().any(|found| found.starts_with(said)), "{changes:?}: {found:#?}");
    }
    let many: Vec<String> = (0..300).map(|n| format!("s{n}")).collect();
    let found = errors(&with(&[("/actions/drop/from", json!(many))]));
    assert!(found[0].starts_with("actions: there are 305 states, more than 256"), "{found:?}");
    let found = Machine::read("an order", &spec(order())).unwrap_err();
    assert!(found[0].to_string().starts_with("name: the machine's name is not one that agents can say"), "{found:?}");
}

#[test]
fn what_is_legal_and_may_surprise_is_told() {
    let facts = |tool: &ToolName| match tool.as_str() {
        "charge_card" => Some(ToolFacts { reads: false, reversible: true, undoes: false }),
        "wire_money" => Some(ToolFacts { reads: false, reversible: false, undoes: false }),
        "get_order" => Some(ToolFacts { reads: true, reversible: false, undoes: false }),
        _ => None,
    };
    let look = |spec: &MachineSpec| -> Vec<String> {
        let found = Machine::read("order", spec).unwrap().look(facts);
        assert!(found.iter().all(|finding| finding.weight == Weight::Warning));
        found.iter().map(Finding::to_string).collect()
    };
    let plain = look(&spec(order()));
    assert_eq!(
        plain,
        [
            "actions.hand_over.guard: `paid` is a dead end while the guards of `hand_over` do not hold; add an action without a guard that leads away, so that an agent is never stuck",
        ]
    );
    let pivot = json!({ "from": ["created"], "to": "created", "tool": "wire_money", "times": 1 });
    let found = look(&with(&[("/actions/wire", pivot.clone())]));
    assert!(
        found
            .iter()
            .any(|found| found.starts_with("actions.pay: it can be undone, and comes after `wire`, which cannot")),
        "{found:?}"
    );
    let mut read = pivot;
    read["tool"] = json!("get_order");
    assert_eq!(look(&with(&[("/actions/wire", read)])), plain);
    let found = look(&with(&[
        ("/actions/drop/guard", json!("state.receipt == ''")),
        ("/actions/pay/tool", json!("unheard")),
        ("/actions/take_order/setup", json!([{ "tool": "look" }])),
        ("/actions/take_order/guard", json!("state.receipt == 'none'")),
    ]));
    for said in [
        "actions.drop.guard: `state.receipt == ''` reads `state.receipt`, which may not be there in `created`",
        "actions.pay.tool: nothing is known of the tool `unheard`",
        "actions.take_order.setup: nothing is known of the tool `look`",
        "actions.drop.guard: `created` is a dead end while the guards of `drop`, `take_order` do not hold",
    ] {
        assert!(found.iter().any(|found| found.starts_with(said)), "{said}: {found:#?}");
    }
    let found =
        look(&with(&[("/fields", json!({ "receipt": "" })), ("/actions/drop/guard", json!("state.receipt == ''"))]));
    assert!(!found.iter().any(|found| found.contains("may not be there")), "{found:#?}");
    let circle = json!({ "from": ["created"], "to": "limbo" });
    let back = json!({ "from": ["limbo"], "to": "limbo", "times": 3 });
    let found = look(&with(&[("/actions/stray", circle), ("/actions/wait", back)]));
    assert!(found.iter().any(|found| found.starts_with("terminal: from `limbo` it can never end")), "{found:#?}");
}

#[test]
fn moves_are_found_guarded_bounded_and_lead_where_their_result_says() {
    let machine = Machine::read("order", &spec(order())).unwrap();
    let names = |at| machine.moves(at).iter().map(|it| it.name.as_str().to_owned()).collect::<Vec<_>>();
    let begun = machine.begin();
    assert_eq!(names(&begun), ["drop", "take_order"]);
    assert_eq!(machine.find(&begun, "pay", None), Err(No::NotFromHere));
    assert_eq!(machine.find(&begun, "tak_order", None), Err(No::Unknown { nearest: vec!["take_order".into()] }));
    assert_eq!(machine.find(&begun, "take_order", Some(1)), Err(No::Stale { seq: 0 }));
    let take = machine.find(&begun, "take_order", Some(0)).unwrap();
    let guarded = take.action.admits(&begun, &json!({ "item": "tea" })).unwrap_err();
    assert_eq!(guarded, No::Guarded { guard: "inputs.item != 'tea'".into(), reason: None });
    assert!(matches!(take.action.admits(&begun, &json!({})), Err(No::Guarded { reason: Some(_), .. })));
    take.action.admits(&begun, &json!({ "item": "coffee" })).unwrap();
    let ordered = take.action.arrive(take.name, &begun, &json!({ "item": "coffee" }), &Value::Null).unwrap();
    assert_eq!((ordered.state.as_str(), ordered.seq, &ordered.fields["item"]), ("ordered", 1, &json!("coffee")));

    let pay = machine.find(&ordered, "pay", None).unwrap();
    let unpaid = pay.action.arrive(pay.name, &ordered, &json!({}), &json!({ "ok": false })).unwrap();
    assert_eq!(unpaid.state.as_str(), "ordered");
    let again = pay.action.arrive(pay.name, &unpaid, &json!({}), &json!({ "ok": false })).unwrap();
    assert_eq!(machine.find(&again, "pay", None), Err(No::Exhausted { bound: "times", most: 2 }));
    let paid = pay.action.arrive(pay.name, &unpaid, &json!({}), &json!({ "ok": true, "receipt": "r1" })).unwrap();
    assert_eq!((paid.state.as_str(), &paid.fields["receipt"]), ("paid", &json!("r1")));
    assert_eq!(names(&paid), Vec::<String>::new(), "its guard speaks of the state alone");
    assert!(pay.action.arrive(pay.name, &unpaid, &json!({}), &json!({})).is_err(), "no answer leads nowhere");

    let drop = machine.find(&ordered, "drop", None).unwrap();
    let over = drop.action.arrive(drop.name, &ordered, &json!({}), &Value::Null).unwrap();
    assert_eq!(machine.find(&over, "pay", None), Err(No::Over));
    assert_eq!(names(&over), Vec::<String>::new());
    let kept: super::Position = serde_json::from_value(serde_json::to_value(&over).unwrap()).unwrap();
    assert_eq!(kept, over);
}

#[test]
fn each_mistake_in_a_stage_is_named_with_its_place_and_its_fix() {
    let pay = |more: Value| {
        let mut pay = order()["actions"]["pay"].clone();
        pay.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with(&[("/actions/pay", pay)])
    };
    let drop = |more: Value| {
        let mut drop = order()["actions"]["drop"].clone();
        drop.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with(&[("/actions/drop", drop)])
    };
    for (spec, said) in [
        (
            pay(json!({ "gate": "'procede'" })),
            "actions.pay.gate: `'procede'` is not among what it may say; did you mean `'proceed'`?",
        ),
        (
            pay(json!({ "gate": "state.item == 'x' ? 'skip' : 'skip'" })),
            "actions.pay.gate: it never says `'proceed'`, so the action can never be done",
        ),
        (
            pay(json!({ "assert": "result.ok ? 'ok' : 'retry'" })),
            "actions.pay.assert: it may say `'retry'`, and nothing says how often it is tried again",
        ),
        (
            pay(json!({ "assert": "setup.before.ok ? 'ok' : 'fail'" })),
            "actions.pay.assert: nothing is called `setup` here",
        ),
        (
            pay(json!({ "setup": [{ "tool": "get", "as": "before" }], "gate": "setup.befor.ok ? 'proceed' : 'skip'" })),
            "actions.pay.gate: `setup.befor.ok ? 'proceed' : 'skip'` reads `setup.befor`, which nothing is called in `setup`; did you mean `setup.before`?",
        ),
        (
            pay(json!({ "setup": [{ "tool": "get", "args": { "a": "setup.b.x" } }, { "tool": "get", "as": "b" }] })),
            "actions.pay.setup: `get` reads `setup.b`, which is not there yet",
        ),
        (
            pay(json!({ "setup": [{ "tool": "get" }, { "tool": "get" }] })),
            "actions.pay.setup: two results would be called `get`",
        ),
        (pay(json!({ "setup": [{}] })), "actions.pay.setup: it names no tool"),
        (
            pay(json!({ "setup": [{ "tool": "get", "args": { "x": "result.y" } }] })),
            "actions.pay.setup.get.x: nothing is called `result` here",
        ),
        (
            pay(json!({ "later": "5m" })),
            "actions.pay.later: nothing is taken again later; drop it, or add `resolution = \"retry_later\"`",
        ),
        (pay(json!({ "resolution": "retry_later", "later": "0s" })), "actions.pay.later: it is no time at all"),
        (drop(json!({ "retry": { "max_attempts": 2 } })), "actions.drop.retry: there is nothing to try again"),
        (drop(json!({ "resolution": "skip" })), "actions.drop.resolution: there is nothing that could fail"),
        (pay(json!({ "retry": { "max_attempts": 99 } })), "actions.pay.retry: `max_attempts` is above 17"),
        (
            pay(json!({ "completion": {} })),
            "actions.pay.completion: an agent says it when it calls tools itself, and none is allowed",
        ),
        (pay(json!({ "turns": 3 })), "actions.pay.turns: an agent has them when it calls tools itself"),
        (pay(json!({ "allowed": ["get"] })), "actions.pay: it has `tool` and `allowed` at once"),
        (
            drop(json!({ "allowed": ["get"], "assert": "'ok'", "exit": [{ "tool": "x" }] })),
            "actions.drop.assert: the action is over once the other machine is entered; choose by `result` in `to`",
        ),
        (drop(json!({ "machine": "m", "exit": [{ "tool": "x" }] })), "actions.drop.exit: the action is over once"),
        (drop(json!({ "allowed": [] })), "actions.drop.allowed: no tool is allowed"),
        (
            drop(json!({ "allowed": ["complete"] })),
            "actions.drop.allowed: `complete` is the action that ends the stage",
        ),
        (
            drop(json!({ "allowed": ["get"], "turns": 0 })),
            "actions.drop.turns: so many calls cannot be allowed; give a number from 1 to 256",
        ),
        (
            drop(json!({ "writes": { "why": "result.why" } })),
            "actions.drop.writes: `result.why` reads `result.why`, which it does not give; there is nothing in `result`",
        ),
        (
            drop(
                json!({ "parallel": { "a": { "tool": "x" }, "b": { "tool": "y" } }, "writes": { "why": "result.c" } }),
            ),
            "actions.drop.writes: `result.c` reads `result.c`, which it does not give; known: `a`, `b`",
        ),
        (
            pay(json!({ "gate": format!("'{}'", "x".repeat(2000)) })),
            "actions.pay.gate: an expression has at most 1024 bytes",
        ),
    ] {
        let found = errors(&spec);
        assert!(found.iter().any(|found| found.starts_with(said)), "{said}: {found:#?}");
    }
    let sound = pay(json!({
        "setup": [{ "tool": "get", "as": "before" }, { "tool": "get", "as": "then", "args": { "id": "setup.before.id" } }],
        "gate": "setup.then.ok ? 'proceed' : 'retry'",
        "assert": "result.ok ? 'ok' : setup.before.x == 1 ? 'fail' : 'skip'",
        "exit": [{ "tool": "log", "args": { "what": "string(result)" } }],
        "retry": { "max_attempts": 3, "backoff": "linear", "initial": "1s", "jitter": 0.1 },
        "resolution": "retry_later", "later": "2m",
    }));
    let machine = Machine::read("order", &sound).unwrap();
    let stage = &machine.action("pay").unwrap().1.stage;
    let ladder = stage.retry.as_ref().unwrap();
    assert_eq!((ladder.backoff_ms.as_slice(), ladder.jitter_percent), ([1000, 2000].as_slice(), 10));
    assert_eq!(stage.resolution, Some(super::Resolution::RetryLater { after_ms: 120_000 }));
    assert_eq!(stage.setup[1].1.args["id"].source(), "setup.before.id");
    let written: MachineSpec = serde_json::from_value(serde_json::to_value(&sound).unwrap()).unwrap();
    assert_eq!(Machine::read("order", &written).unwrap(), machine, "what is in a trace means the same");
}

#[test]
fn setups_only_read_and_what_may_be_passed_over_has_a_result_to_ask_for() {
    let mut pay = order()["actions"]["pay"].clone();
    pay["setup"] = json!([{ "tool": "charge_card", "as": "twice" }]);
    pay["resolution"] = json!("skip");
    let machine = Machine::read("order", &with(&[("/actions/pay", pay)])).unwrap();
    let found = machine.look(|_| Some(ToolFacts { reads: false, reversible: true, undoes: false }));
    let wrong: Vec<String> = found.iter().filter(|it| it.weight == Weight::Error).map(Finding::to_string).collect();
    assert!(
        wrong[0].starts_with("actions.pay.setup: `charge_card` changes something, and a setup only reads"),
        "{wrong:?}"
    );
    let told = "actions.pay.to: it may be passed over, and then `result.ok` has no `result`; ask first";
    assert!(found.iter().any(|found| found.to_string().starts_with(told)), "{found:#?}");
}

#[test]
fn what_tools_are_given_is_compared_with_what_they_take() {
    let machine = Machine::read("order", &spec(order())).unwrap();
    let misfits = |schema: Value| {
        let found = machine.misfits(|_| Some(schema.clone()));
        found.iter().map(Finding::to_string).collect::<Vec<_>>()
    };
    assert!(misfits(json!({ "properties": { "what": { "type": "string" } }, "required": ["what"] })).is_empty());
    let closed =
        json!({ "properties": { "wat": {}, "amount": {} }, "required": ["amount"], "additionalProperties": false });
    assert_eq!(
        misfits(closed),
        [
            "actions.pay.args: `charge_card` takes no `what`; did you mean `wat`?",
            "actions.pay.args: `charge_card` requires `amount`; give it: `args = { amount = \"inputs.amount\" }`",
        ]
    );
    let machine = Machine::read("order", &with(&[("/actions/pay/args", json!({ "what": "'tea'" }))])).unwrap();
    let found = machine.misfits(|_| Some(json!({ "properties": { "what": { "enum": ["cake"] } } })));
    assert!(
        found[0].to_string().contains("`what` is always `\"tea\"`, and `charge_card` takes one of `\"cake\"`"),
        "{found:?}"
    );
}

fn together(declared: Value) -> Result<Machines, Vec<String>> {
    let specs: BTreeMap<MachineName, MachineSpec> = serde_json::from_value(declared).unwrap();
    Machines::read(&specs).map_err(|found| found.iter().map(Finding::to_string).collect())
}

#[test]
fn machines_that_run_each_other_are_read_together() {
    let refund = json!({
        "initial": "asked", "terminal": ["done"], "fields": { "order": null },
        "actions": {
            "look": {
                "from": ["asked"], "to": "looked", "allowed": ["get_order", "search"], "turns": 2,
                "completion": { "properties": { "why": { "type": "string" }, "how-bad": {} }, "required": ["why"] },
                "writes": { "why": "result.fields.why" },
            },
            "end": { "from": ["looked"], "to": "done" },
        },
    });
    let runs = |args: Value| {
        let action = json!({ "from": ["created"], "to": "done", "machine": "refund", "args": args });
        json!({ "initial": "created", "terminal": ["done"], "actions": { "refund": action } })
    };
    let machines =
        together(json!({ "order": runs(json!({ "order": "'o1'" })), "refund": refund, "alone": order() })).unwrap();
    let names = machines.definition(&"order".into()).into_keys().map(|name| name.to_string()).collect::<Vec<_>>();
    assert_eq!(names, ["order", "refund"]);
    assert_eq!(machines.declared().count(), 3);

    let stage = machines.get(&"refund.look".into()).unwrap();
    assert!(stage.is_stage() && !machines.get(&"refund".into()).unwrap().is_stage());
    let mut at = stage.begin();
    for _ in 0..2 {
        let found = stage.find(&at, "search", None).unwrap();
        let super::Does::Tool(used) = &found.action.does else { panic!("{found:?}") };
        assert!(used.whole);
        at = found.action.arrive(found.name, &at, &json!({}), &Value::Null).unwrap();
    }
    assert_eq!(stage.find(&at, "get_order", None), Err(No::Exhausted { bound: "turns", most: 2 }));
    let end = stage.find(&at, "complete", None).expect("the end is free");
    let complete = |inputs: Value| end.action.arrive(end.name, &at, &inputs, &Value::Null).unwrap();
    let over = complete(json!({ "why": "late" }));
    assert_eq!((over.state.as_str(), Value::Object(over.fields)), ("done", json!({ "why": "late", "how-bad": null })));
    let more = json!({ "why": "late", "how-bad": 3, "seen": ["a"] });
    assert_eq!(Value::Object(complete(more.clone()).fields), more, "all that the agent says is kept");

    for (declared, said) in [
        (
            json!({ "order": runs(json!({})), "refnd": refund }),
            "order.actions.refund.machine: there is no machine `refund`; did you mean `refnd`?",
        ),
        (
            json!({ "order": runs(json!({})), "refund": {} }),
            "order.actions.refund.machine: `refund` never ends, so what waits for it never goes on",
        ),
        (json!({ "order": runs(json!({})), "refund": {} }), "refund.actions: there is nothing to do"),
        (
            json!({ "order": { "initial": "a", "terminal": ["z"], "actions": { "run": { "from": ["a"], "to": "z", "machine": "" } } } }),
            "order.actions.run.machine: there is no machine ``; name the machine that it runs, or drop the key",
        ),
        (
            json!({ "refund": runs(json!({})) }),
            "refund.actions.refund.machine: `refund` would run itself by way of `refund`",
        ),
        (
            json!({ "order": runs(json!({ "oder": "1" })), "refund": refund }),
            "order.actions.refund.args: `refund` has no field `oder`; did you mean `order`?",
        ),
        (json!({ "refund": { "initial": "" } }), "refund.initial: there is no state to begin in"),
    ] {
        let found = together(declared).unwrap_err();
        assert!(found.iter().any(|found| found.starts_with(said)), "{said}: {found:#?}");
    }
    let chain = (0..10).map(|n| {
        let does = json!({ "from": ["a"], "to": "b", "machine": format!("m{}", n + 1) });
        let does = if n == 9 { json!({ "from": ["a"], "to": "b" }) } else { does };
        (format!("m{n}"), json!({ "initial": "a", "terminal": ["b"], "actions": { "go": does } }))
    });
    let found = together(Value::Object(chain.collect())).unwrap_err();
    assert!(found[0].starts_with("m0.actions.go.machine: more than 8 machines would run in each other"), "{found:?}");
}

#[test]
fn a_state_that_one_comes_back_to_too_often_is_a_dead_end() {
    let told = |actions: Value, limits: Value| {
        let spec = json!({
            "initial": "a", "terminal": ["z"], "limits": limits, "actions": actions, "fields": { "stop": false },
            "state": { "properties": { "stop": { "type": "boolean" } } },
        });
        let machine = Machine::read("m", &serde_json::from_value(spec).unwrap()).unwrap();
        let found = machine.look(|_| None).into_iter().map(|finding| finding.to_string());
        found.filter(|found| found.contains("is a dead end once")).collect::<Vec<_>>()
    };
    let choice = json!([{ "when": "inputs.ok", "state": "z" }, { "state": "a" }]);
    let around = |times: Value| {
        json!({
            "go": { "from": ["a"], "to": "b", "times": 2 }, "back": { "from": ["b"], "to": "a", "times": times },
            "end": { "from": ["b"], "to": "z" },
        })
    };
    let said = "actions.go.times: `a` is a dead end once `go` was taken 2 times, and one can come back to it as often; add an action without `times` that leads away from it, such as one that gives up";
    assert_eq!(told(json!({ "go": { "from": ["a"], "to": choice, "times": 2 } }), json!({})), [said]);
    assert_eq!(told(around(json!(2)), json!({})), [said]);
    assert_eq!(told(around(Value::Null), json!({ "loops": 9 })), [said]);
    let often = |times: u32| {
        format!(
            "limits.loops: `a` is a dead end once `go` was taken {times} times, and one can come back to it as often; add an \
             action that leads away from it for good, such as one that gives up"
        )
    };
    assert_eq!(told(json!({ "go": { "from": ["a"], "to": choice } }), json!({ "loops": 3 })), [often(3)]);
    assert_eq!(told(around(json!(2)), json!({ "loops": 1 })), [often(1)]);
    // A guard that may not hold leads nobody out; one over inputs does, and so do two of which one always holds.
    let guarded = |stop: &str, more: &str| {
        json!({
            "go": { "from": ["a"], "to": choice, "times": 2, "writes": { "stop": "inputs.stop == true" } },
            "stop": { "from": ["a"], "to": "z", "guard": stop }, "more": { "from": ["a"], "to": "z", "guard": more },
        })
    };
    for open in [guarded("inputs.stop", "state.stop"), guarded("!state.stop", "state.stop")] {
        assert_eq!(told(open, json!({})), Vec::<String>::new());
    }
    let found = told(guarded("state.stop", "state.stop"), json!({}));
    let said = "actions.go.times: `a` is a dead end once `go` was taken 2 times and the guards of `more`, `stop` do not hold, and";
    assert!(found.len() == 1 && found[0].starts_with(said), "{found:?}");
    for (actions, limits) in [
        (around(json!(1)), json!({})),
        (around(json!(2)), json!({ "steps": 4 })),
        (json!({ "go": { "from": ["a"], "to": choice, "times": 2 }, "stop": { "from": ["a"], "to": "z" } }), json!({})),
        (json!({ "go": { "from": ["a"], "to": "z", "times": 1 } }), json!({})),
    ] {
        assert_eq!(told(actions.clone(), limits), Vec::<String>::new(), "{actions}");
    }
}

#[test]
fn an_action_that_a_program_declares_twice_is_refused() {
    let go = |to: &str| ActionSpec::new(["a"], to);
    let spec = MachineSpec::new("a").terminal(["b", "c"]).action("go", go("b")).action("go", go("c"));
    let found = Machine::read("m", &spec).unwrap_err();
    let said = "actions.go: two actions have this name; call one of them otherwise";
    assert!(found.iter().any(|finding| finding.to_string() == said), "{found:?}");
}

#[test]
fn one_mistake_does_not_hide_those_elsewhere() {
    let leg = |more: Value| {
        let mut leg = json!({ "from": ["a"], "to": "z" });
        leg.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        leg
    };
    let specs: BTreeMap<MachineName, MachineSpec> = serde_json::from_value(json!({
        "bad": {
            "initial": "a", "terminal": ["z"], "limits": { "steps": 0 },
            "actions": { "one": leg(json!({ "guard": "state.x ==" })), "two": leg(json!({ "guard": "foo(inputs.n)" })) },
        },
        "other": { "initial": "a", "terminal": ["z"], "actions": { "one": leg(json!({ "times": 0 })) } },
        "given": { "initial": "a", "terminal": ["z"], "fields": { "n": 0 }, "actions": { "one": leg(json!({ "guard": "state.n == 1" })) } },
        "gives": {
            "initial": "a", "terminal": ["z"],
            "actions": { "one": leg(json!({ "machine": "given", "args": { "n": "1" }, "guard": "state.x ==" })) },
        },
    }))
    .unwrap();
    assert!(Machines::read(&specs).is_err());
    let (_, found) = Machines::mistakes(&specs);
    let at: Vec<String> = found.iter().map(|finding| finding.at.join(".")).collect();
    let told = ["bad.actions.one.guard", "gives.actions.one.guard", "bad.actions.two.guard", "other.actions.one.times"];
    assert_eq!(at, told, "{found:#?}");
    let round: BTreeMap<MachineName, MachineSpec> = serde_json::from_value(json!({
        "m": { "initial": "a", "terminal": ["z"], "limits": { "steps": 9 }, "actions": { "one": leg(json!({ "machine": "m", "guard": "state.x ==" })) } },
    }))
    .unwrap();
    assert_eq!(Machines::mistakes(&round).1.len(), 2, "a machine that runs itself is left at that");
}
