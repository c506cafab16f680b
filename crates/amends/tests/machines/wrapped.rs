//! The same over standard input and output, around one server.

use serde_json::{Value, json};

use crate::order::{Agent, FAULTS, Mode, ORDER, assert_refused};
use crate::support::client::{Client, Sdk};
use crate::support::{Place, eventually};

fn wrapped(place: &Place, sdk: Sdk, era: &str) -> Agent {
    let command = place.wrap(FAULTS, Some(ORDER));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    Agent::new(Client::stdio(sdk, Some(era), &command), Mode::Step, era == "modern")
}

#[test]
fn a_wrapped_server_is_served_with_machines_of_ours() {
    for (sdk, era) in [(Sdk::Python, "legacy"), (Sdk::Python, "modern"), (Sdk::TypeScript, "legacy")] {
        let place = Place::new();
        let mut agent = wrapped(&place, sdk, era);
        let mut tools = Value::Null;
        eventually("the server's tools are listed", || {
            tools = agent.client.run(json!({ "op": "list" }))["tools"].clone();
            tools.to_string().contains("get_order")
        });
        let named = |name: &str| tools.as_array().is_some_and(|tools| tools.iter().any(|tool| tool == name));
        assert!(named("step") && named("walk") && !named("charge_card"), "{tools}");
        let early = agent.takes("pay", json!({ "amount": 5 }));
        assert_refused(&early, "invalid_transition", &["drop_order", "take_order"]);
        agent.takes("take_order", json!({ "item": "latte", "order": "ord_1" }));
        let paid = agent.takes("pay", json!({ "amount": 5 }));
        assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
        let uri = format!("amends://{}/state", agent.handle());
        let read = agent.client.run(json!({ "op": "ask", "method": "resources/read", "params": { "uri": uri } }));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
        assert!(text.contains("\"paid\""), "{text}");
        let refused = agent.calls("charge_card", json!({ "order": "ord_1", "amount": 5 }));
        assert_eq!(refused["error"]["kind"], "invalid_transition", "{refused}");
        if era == "legacy" {
            let asked = json!({ "op": "ask", "method": "resources/subscribe", "params": { "uri": "amends://next" } });
            assert_eq!(agent.client.run(asked)["ok"], true);
            agent.takes("hand_over", json!({}));
            eventually("the move was heard of", || {
                agent.client.run(json!({ "op": "heard" }))["heard"].to_string().contains("amends://next")
            });
        }
        assert_eq!(place.effects("charge_card"), 1);
        drop(agent);
        place.settled();
    }
}
