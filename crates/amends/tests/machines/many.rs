//! Many walks at once: none is in another's way.

use std::thread;

use serde_json::json;

use crate::order::{ORDER, serve};
use crate::support::Place;

const WALKS: usize = 1_000;
const AGENTS: usize = 16;

#[test]
fn a_thousand_walks_go_on_at_once_while_one_waits_for_its_tool() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let ordered = |order: String| {
        let inputs = json!({ "item": "latte", "order": order });
        let (_, began) = gateway.call("step", &json!({ "action": "take_order", "inputs": inputs }).to_string());
        assert_eq!(began["data"]["state"]["name"], "ordered", "{began}");
        began["data"]["session"].as_str().expect("a handle").to_owned()
    };
    let slow = ordered("ord_slow".to_owned());
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let pay = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": slow });
            gateway.call("step", &pay.to_string()).1
        });
        let agents: Vec<_> = (0..AGENTS)
            .map(|agent| {
                let ordered = &ordered;
                let gateway = &gateway;
                scope.spawn(move || {
                    for n in (agent..WALKS).step_by(AGENTS) {
                        let session = ordered(format!("ord_{n}"));
                        let dropped = json!({ "action": "drop_order", "session": session });
                        let (_, over) = gateway.call("step", &dropped.to_string());
                        assert_eq!(over["data"]["state"]["name"], "dropped", "{over}");
                        assert_eq!(over["data"]["state"]["fields"]["order"], format!("ord_{n}"), "{over}");
                    }
                })
            })
            .collect();
        for agent in agents {
            agent.join().expect("an agent");
        }
        let late = waits.join().expect("the one that waits");
        assert_eq!(late["data"]["state"]["name"], "paid", "{late}");
    });
    place.assert_verified();
}
