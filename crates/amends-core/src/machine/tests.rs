//! Machines by example: what is found in a declaration, and where a machine can go.

use serde_json::{Value, json};

use super::{Finding, Machine, MachineSpec, No, ToolFacts, Weight};
use crate::id::ToolName;

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
        (vec![("/initial", json!("creatd"))], "actions.drop.from: nothing leads to `created`; did you mean `creatd`?"),
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
            vec![("/actions/take_order/guard", json!("inputs.item == 'juice'"))],
            "actions.take_order.guard: `inputs.item == 'juice'` is false for all the inputs there are; mend the guard or the schema of the inputs",
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
            vec![("/actions/take_order/input", json!({ "type": "string", "enum": [] }))],
            "actions.take_order.input: no inputs fit its schema: its `enum` is empty; mend the schema, so that an agent can give what it asks for",
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
            "actions.drop.args: there are arguments and no tool; name the tool, or drop `args`",
        ),
        (
            vec![("/actions/drop/parallel", json!({ "one": { "tool": "x" } }))],
            "actions.drop.parallel: there is only one of them; make it the action's `tool`",
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
    let found = Machine::read("an order", &spec(order())).unwrap_err();
    assert!(found[0].to_string().starts_with("name: the machine's name is not one that agents can say"), "{found:?}");
}

#[test]
fn what_is_legal_and_may_surprise_is_told() {
    let facts = |tool: &ToolName| match tool.as_str() {
        "charge_card" => Some(ToolFacts { reads: false, reversible: true }),
        "wire_money" => Some(ToolFacts { reads: false, reversible: false }),
        "get_order" => Some(ToolFacts { reads: true, reversible: false }),
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
    let found =
        look(&with(&[("/actions/drop/guard", json!("state.receipt == ''")), ("/actions/pay/tool", json!("unheard"))]));
    for said in [
        "actions.drop.guard: `state.receipt == ''` reads `state.receipt`, which may not be there in `created`",
        "actions.pay.tool: nothing is declared of the tool `unheard`",
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
