//! Moves of machines whose calls go to an API, and are stopped.

use std::thread;

use serde_json::{Value, json};

use crate::before;
use crate::server::Api;
use crate::support::{Place, eventually};

/// A sale that is charged, and looked at afterwards however it went; or not.
const SALES: &str = r#"
[tools.charge]
effect = "write"
timeout = "15s"

[tools.getOrder]
effect = "read"

[machines.looked]
initial = "new"
terminal = ["paid"]

[machines.looked.actions.open]
from = ["new"]
to = "open"

[machines.looked.actions.pay]
from = ["open"]
to = "paid"
tool = "charge"
args = { order = "'hang'", amount = "5" }
exit = [{ tool = "getOrder", args = { order = "'after'" } }]

[machines.plain]
initial = "new"
terminal = ["paid"]

[machines.plain.actions.open]
from = ["new"]
to = "open"

[machines.plain.actions.pay]
from = ["open"]
to = "paid"
tool = "charge"
args = { order = "'hang'", amount = "5" }
"#;

#[test]
fn a_move_that_is_stopped_at_an_api_is_told_as_stopped() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", SALES);
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    for (n, machine) in ["plain", "looked"].into_iter().enumerate() {
        let opened = gateway.call("step", &json!({ "machine": machine, "action": "open" }).to_string()).1;
        let session = &opened["data"]["session"];
        let wish = json!({ "session": session, "action": "pay" }).to_string();
        let stopped = thread::scope(|scope| {
            let paying = scope.spawn(|| gateway.call("step", &wish).1);
            eventually("the charge arrived", || api.effects("hang") == n + 1);
            let cancelled = gateway.call("cancel", &json!({ "session": session }).to_string()).1;
            assert_eq!(cancelled["status"], "success", "{cancelled}");
            paying.join().expect("a call")
        });
        let error = &stopped["error"];
        assert_eq!((&error["kind"], &error["code"]), (&json!("turn_cancelled"), &json!("TurnCancelled")), "{stopped}");
        assert_eq!(error["certainty"], "in_doubt", "{stopped}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("`pay` was stopped; it may have happened"), "{stopped}");
        assert_eq!(stopped["waits"]["action"], Value::from("pay"), "{stopped}");
    }
    assert_eq!(api.seen("GET", "after").len(), 1, "what is called last is called");
    place.settled();
}
