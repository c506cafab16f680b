//! Lost answers: what each kind of tool makes of them.

use serde_json::json;

use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};

#[test]
fn a_lost_answer_of_a_plain_write_is_in_doubt_and_never_sent_again() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\n");
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    let envelope = envelope(&answer);
    assert_eq!(envelope["outcome"], "unresolved", "{answer}");
    assert_eq!(envelope["error"]["certainty"], "in_doubt");
    assert_eq!(envelope["error"]["who_must_act"], "person");
    assert_eq!(envelope["error"]["safe_to_repeat"], false);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.assert_verified();
}
