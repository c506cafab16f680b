//! Private data in the fields of a walk.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, serve};
use crate::support::Place;

const CARD: &str = "4111 1111 1111 1111";

fn step(client: &Bare, args: Value) -> Value {
    client.call("step", args)["structuredContent"].clone()
}

#[test]
fn a_card_in_a_walks_fields_is_shown_nowhere_and_sent_to_no_tool_that_does_not_take_it() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateful(&gateway);
    let inputs = json!({ "item": format!("latte, by {CARD}"), "order": CARD });
    let ordered = step(&client, json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(ordered["status"], "success", "{ordered}");
    let fields = &ordered["data"]["state"]["fields"];
    assert_eq!(fields["item"], "latte, by [redacted:payment_card]", "{ordered}");
    assert_eq!(fields["order"], "[redacted:payment_card]", "{ordered}");
    let session = ordered["data"]["session"].as_str().expect("a walk").to_owned();
    for what in ["next", "history", "state", "trace"] {
        let uri = format!("amends://{session}/{what}");
        let read = client.result("resources/read", json!({ "uri": uri })).to_string();
        let mirror = client.call("walk", json!({ "session": session, "what": what })).to_string();
        assert!(!read.contains("4111 1111") && !mirror.contains("4111 1111"), "{what}: {read} {mirror}");
    }
    let refused = step(&client, json!({ "action": "pay", "inputs": { "amount": 5 } }));
    assert_eq!(
        (&refused["status"], &refused["error"]["certainty"]),
        (&json!("error"), &json!("not_sent")),
        "{refused}"
    );
    let said = refused.to_string();
    assert!(
        said.contains("hold `payment_card`, which `charge_card` is not to be sent") && !said.contains("4111 1111"),
        "{said}"
    );
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
    let (_, told) = place.amends(&["trace", &session, "--json"]);
    assert!(told.contains("move_made") && !told.contains("4111 1111"), "{told}");
    for entry in std::fs::read_dir(place.path(".")).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(CARD.len()).any(|part| part == CARD.as_bytes());
        assert!(!found, "it rests in `{name}`");
    }
}

#[test]
fn a_card_in_a_walks_fields_reaches_a_tool_that_takes_it() {
    let place = Place::new();
    let machine = ORDER.replace("[tools.charge_card]\n", "[tools.charge_card]\ntakes = [\"payment_card\"]\n");
    let gateway = serve(&place, &machine);
    let client = Bare::stateful(&gateway);
    step(&client, json!({ "action": "take_order", "inputs": { "item": "latte", "order": CARD } }));
    let paid = step(&client, json!({ "action": "pay", "inputs": { "amount": 5 } }));
    assert_eq!(paid["status"], "success", "{paid}");
    assert_eq!(place.effects_on("charge_card", CARD), 1);
    place.settled();
}
