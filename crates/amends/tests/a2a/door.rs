//! The door.

use serde_json::json;

use crate::peer::{Client, rpc};
use crate::support::Place;

#[test]
fn a_call_is_a_task_that_ends_with_the_envelope() {
    let place = Place::new();
    let gateway = place.up("");
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let mut client = Client::of(&gateway.address, &json!({ "binding": binding }));
        let order = format!("ord_{}", binding.len());
        let task = client.call(&format!("m-{binding}"), "charge_card", json!({ "order": order, "amount": 5 }));
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        let envelope = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!((envelope["status"].as_str(), envelope["outcome"].as_str()), (Some("success"), Some("succeeded")));
        assert_eq!(place.effects_on("charge_card", &order), 1);
        let again = client.ask("get", json!({ "id": task["id"] }));
        assert_eq!(again, task, "what is asked for later is the same");
    }
    let none = rpc(&gateway.address, "1.0", "GetTask", json!({ "id": "ses_nobody" }));
    assert_eq!(none["error"]["code"], -32001, "{none}");
    assert_eq!(none["error"]["data"][0]["reason"], "TASK_NOT_FOUND");
}
