//! A policy that looks at where a machine is.

use serde_json::{Value, json};

use crate::support::{Gateway, Place};
use crate::up;

const DESK: &str = r#"
[machines.desk]
initial = "open"
terminal = ["closed"]

[machines.desk.actions.charge_early]
from = ["open"]
to = "closed"
tool = "charge_card"
args = { order = "'ord_1'", amount = "5" }

[machines.desk.actions.look]
from = ["open"]
to = "looked"

[machines.desk.actions.charge]
from = ["looked"]
to = "closed"
tool = "charge_card"
args = { order = "'ord_1'", amount = "5" }
"#;

const POLICIES: &str = r#"
@id("charges") permit (principal, action == Action::"charge_card", resource)
when { context has step && context.step.machine == "desk" && context.step.state == "looked" };
"#;

#[test]
fn a_policy_sees_where_the_machine_is_that_makes_a_call() {
    let place = Place::new();
    let gateway = up(&place, DESK, POLICIES);
    let step = |gateway: &Gateway, args: Value| gateway.call("step", &args.to_string()).1;
    let early = step(&gateway, json!({ "action": "charge_early" }));
    assert_eq!(
        (&early["error"]["code"], &early["error"]["certainty"]),
        (&json!("Forbidden"), &json!("not_sent")),
        "{early}"
    );
    assert_eq!(place.requests("charge_card"), 0);

    let looked = step(&gateway, json!({ "action": "look" }));
    assert_eq!(looked["status"], "success", "{looked}");
    let charged = step(&gateway, json!({ "action": "charge", "session": looked["data"]["session"] }));
    assert_eq!(charged["data"]["state"]["name"], "closed", "{charged}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}
