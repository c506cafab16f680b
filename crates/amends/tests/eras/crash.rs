//! The gateway is killed between the rounds of a call.

use serde_json::json;

use crate::asking::{Server, again, by_url, call_alone, done, events, only_key, params, serve};
use crate::support::{Place, eventually};

#[test]
fn a_round_goes_on_after_kill_9() {
    for declared in ["", "[tools.twice]\neffect = \"read\""] {
        let place = Place::new();
        let server = Server::http(&place, "modern");
        let mut gateway = serve(&place, &by_url(&server), declared);
        let call = params("twice", &json!({ "order": 1 }));
        let (_, asked) = call_alone(&gateway, &call);
        eventually("that it waits is on the ledger", || events(&place, "inquiry_opened") == 1);
        gateway.kill();
        drop(gateway);
        let gateway = serve(&place, &by_url(&server), declared);
        let answers = json!({ only_key(&asked): { "action": "accept", "content": { "n": 1 } } });
        let back = again(&call, &asked, &answers);
        // The dead node's lease must be over before another can go on.
        let mut next = json!(null);
        eventually("another node goes on with it", || {
            next = call_alone(&gateway, &back).1;
            next["result"]["resultType"] == "input_required"
        });
        let roots = json!({ only_key(&next): { "roots": [] } });
        let (_, answer) = call_alone(&gateway, &again(&call, &next, &roots));
        assert_eq!(answer["result"]["structuredContent"]["inputs"][1], json!({ "roots": [] }), "{answer}");
        assert_eq!(done(&place).len(), 1);
        place.assert_verified();
    }
}

#[test]
fn an_upstream_that_waited_is_in_doubt_after_kill_9() {
    let place = Place::new();
    let server = Server::http(&place, "legacy");
    let mut gateway = serve(&place, &by_url(&server), "");
    let call = params("book", &json!({ "order": 1 }));
    let (_, asked) = call_alone(&gateway, &call);
    eventually("that it waits is on the ledger", || events(&place, "inquiry_opened") == 1);
    gateway.kill();
    drop(gateway);
    let gateway = serve(&place, &by_url(&server), "");
    eventually("the call is judged", || events(&place, "call_ended") == 1);
    let answers = json!({ only_key(&asked): { "action": "accept", "content": { "n": 1 } } });
    let (_, answer) = call_alone(&gateway, &again(&call, &asked, &answers));
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["certainty"], "in_doubt", "{answer}");
    assert_eq!(error["safe_to_repeat"], false, "{answer}");
    assert!(done(&place).is_empty());
}
