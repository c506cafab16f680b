//! Numbers that agents write in one way or another, and what becomes of the fields that they are added to.

use serde_json::{Value, json};

use crate::order::serve;
use crate::support::{Gateway, Place};

/// A machine that charges again and again and adds it up, with fields of that type that begin so.
fn adding(kind: &str, total: &str) -> String {
    format!(
        r#"
[tools.get_order]
effect = "read"

[tools.charge_card]
effect = "write"

[machines.bill]
initial = "open"
terminal = ["closed"]
limits = {{ loops = 9 }}
fields = {{ total = {total}, count = 0 }}
state = {{ type = "object", properties = {{ total = {{ type = "{kind}" }}, count = {{ type = "integer" }} }}, required = ["total", "count"] }}

[machines.bill.actions.pay]
from = ["open"]
to = "open"
tool = "charge_card"
input = {{ type = "object", properties = {{ order = {{ type = "string" }}, amount = {{ type = "{kind}", minimum = 1 }} }}, required = ["order", "amount"], additionalProperties = false }}
args = {{ order = "inputs.order", amount = "inputs.amount" }}
writes = {{ total = "state.total + inputs.amount", count = "state.count + 1" }}

[machines.bill.actions.close]
from = ["open"]
to = "closed"
"#
    )
}

/// What the fields are after each of those amounts, written as they are, was paid in one walk.
fn paid(gateway: &Gateway, amounts: &[&str]) -> Value {
    let mut session = Value::Null;
    for (n, amount) in amounts.iter().enumerate() {
        let inputs = format!(r#"{{ "order": "ord_{}_{n}", "amount": {amount} }}"#, amounts.len());
        let walk = if session.is_null() { String::new() } else { format!(r#", "session": {session}"#) };
        let (_, taken) = gateway.call("step", &format!(r#"{{ "action": "pay", "inputs": {inputs}{walk} }}"#));
        assert_eq!(taken["data"]["state"]["name"], "open", "{amount}: {taken}");
        session = taken["data"]["session"].clone();
    }
    let (_, closed) = gateway.call("step", &json!({ "action": "close", "session": session }).to_string());
    assert_eq!(closed["data"]["state"]["name"], "closed", "{closed}");
    closed["data"]["state"]["fields"].clone()
}

#[test]
fn whole_numbers_that_are_written_with_a_point_or_a_power_are_added_to_whole_ones() {
    let place = Place::new();
    let gateway = serve(&place, &adding("integer", "0"));
    assert_eq!(paid(&gateway, &["5", "5.0", "1e1", "5"]), json!({ "total": 25, "count": 4 }));
    assert_eq!(paid(&gateway, &["5.0", "5.0", "3"]), json!({ "total": 13, "count": 3 }));
    place.settled();
}

#[test]
fn whole_numbers_are_added_to_broken_ones() {
    let place = Place::new();
    let gateway = serve(&place, &adding("number", "0.0"));
    assert_eq!(paid(&gateway, &["2.5", "5", "1.25", "1e1"]), json!({ "total": 18.75, "count": 4 }));
    place.settled();
}
