//! A walk goes on at whichever gateway its agent reaches.

use std::process::Command;

use serde_json::{Value, json};

use crate::postgres_server::Cluster;
use crate::support::{AMENDS, Gateway, eventually};
use crate::{Site, signal};

const ORDER: &str = r#"
[tools.get_order]
effect = "read"

[tools.charge_card]
effect = "write"

[machines.order]
initial = "created"
terminal = ["paid"]

[machines.order.actions.take_order]
from = ["created"]
to = "ordered"
writes = { order = "inputs.order" }

[machines.order.actions.note]
from = ["ordered"]
to = "ordered"
times = 1000
writes = { note = "inputs.note" }

[machines.order.actions.pay]
from = ["ordered"]
to = "paid"
tool = "charge_card"
args = { order = "state.order", amount = "5" }
"#;

fn node(site: &Site, name: &str) -> Gateway {
    let book = site.place.path("book.db").display().to_string();
    let command = [AMENDS, "shop", "--book", &book];
    let text = format!(
        "[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n[upstreams.shop]\ncommand = {command:?}\nprefix = \"\"\n{ORDER}\n",
        site.place.ledger()
    );
    let config = site.place.write(&format!("{name}.toml"), &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    let gateway = Gateway::listening(command);
    eventually("the shop's tools are served", || {
        gateway.call("get_order", r#"{"order":"ord_ready"}"#).1["status"] == "success"
    });
    gateway
}

fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

#[test]
fn a_walk_is_driven_by_whichever_node_its_agent_reaches() {
    let site = Site::over(Cluster::shared().database());
    let (a, b) = (node(&site, "a"), node(&site, "b"));
    let began = step(&a, json!({ "action": "take_order", "inputs": { "order": "ord_1" } }));
    let session = began["data"]["session"].clone();
    assert_eq!(began["data"]["state"]["name"], "ordered", "{began}");
    for n in 0..6_u64 {
        let node = if n % 2 == 0 { &b } else { &a };
        let note = json!({ "action": "note", "inputs": { "note": n }, "session": session, "expect_seq": n + 1 });
        let noted = step(node, note);
        assert_eq!(noted["data"]["state"]["fields"], json!({ "order": "ord_1", "note": n }), "{noted}");
    }
    let paid = step(&b, json!({ "action": "pay", "inputs": {}, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    let over = step(&a, json!({ "action": "pay", "inputs": {}, "session": session, "expect_seq": 8 }));
    assert_eq!(over["error"]["kind"], "invalid_transition", "{over}");
    assert_eq!(site.place.effects_on("charge_card", "ord_1"), 1);
    site.place.settled();
}

#[test]
fn a_walk_of_a_dead_node_goes_on_at_another() {
    let site = Site::over(Cluster::shared().database());
    let (a, b) = (node(&site, "a"), node(&site, "b"));
    let began = step(&a, json!({ "action": "take_order", "inputs": { "order": "ord_1" } }));
    let session = began["data"]["session"].clone();
    signal(&a, "-KILL");
    let paid = step(&b, json!({ "action": "pay", "inputs": {}, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    assert_eq!(site.place.effects_on("charge_card", "ord_1"), 1);
    site.place.settled();
}
