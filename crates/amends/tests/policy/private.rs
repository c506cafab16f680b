//! What may not pass between agents and tools.

use serde_json::json;

use crate::support::Place;
use crate::up_plain;

const CARD: &str = r#"{"order":"ord_1","amount":5,"card":"4111 1111 1111 1111"}"#;

#[test]
fn a_card_is_sent_only_to_a_tool_that_takes_it() {
    let place = Place::new();
    let gateway = up_plain(&place, "");
    let (status, refused) = gateway.call("charge_card", CARD);
    assert_eq!((status, &refused["error"]["kind"]), (403, &json!("pii_blocked")), "{refused}");
    let told = refused.to_string();
    assert!(told.contains("payment_card") && !told.contains("4111"), "{told}");
    assert_eq!(place.requests("charge_card"), 0);
    drop(gateway);
    let gateway = up_plain(&place, "[tools.charge_card]\neffect = \"write\"\ntakes = [\"payment_card\"]\n");
    assert_eq!(gateway.call("charge_card", CARD).0, 200);
    assert_eq!(place.requests("charge_card"), 1);
    place.settled();
    let rows = place.events().iter().map(ToString::to_string).collect::<String>();
    assert!(!rows.contains("4111 1111"), "{rows}");
}

#[test]
fn an_ordinary_call_is_untouched() {
    let place = Place::new();
    let gateway = up_plain(&place, "");
    for (tool, body) in [
        ("get_order", r#"{"order":"ord_1001"}"#),
        (
            "issue_refund",
            r#"{"order":"ord_1001","amount":12.5,"idempotency_key":"2f1d7c3e-8a74-4a4c-9a3c-6d2f4e8b7a10"}"#,
        ),
        ("charge_card", r#"{"order":"ord_1001","amount":5,"card":"visa-on-file"}"#),
        ("send_email", r#"{"to":"ada@example.org","subject":"1731726337000","body":"call +44 20 7946 0958"}"#),
    ] {
        let (status, envelope) = gateway.call(tool, body);
        assert_eq!((status, &envelope["status"]), (200, &json!("success")), "{tool}: {envelope}");
    }
}
