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
    assert!(told.contains("payment_card") && !told.contains("4111 1111"), "{told}");
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

#[test]
fn what_is_masked_in_arguments_never_reaches_the_tool() {
    let place = Place::new();
    let gateway = up_plain(&place, "[pii]\narguments = { payment_card = \"mask\", contact = \"mask\" }\n");
    let (status, sent) = gateway.call("charge_card", CARD);
    assert_eq!((status, &sent["status"]), (200, &json!("success")), "{sent}");
    let mail = r#"{"to":"shop","subject":"for ada@example.org","body":"hello"}"#;
    assert_eq!(gateway.call("send_email", mail).0, 200);
    let book = rusqlite::Connection::open(place.path("book.db")).expect("the shop's book");
    let args = |tool: &str| -> String {
        book.query_row("SELECT args FROM requests WHERE tool = ?1", [tool], |row| row.get(0)).expect("a request")
    };
    assert!(args("charge_card").contains("[redacted:payment_card]"), "{}", args("charge_card"));
    assert!(args("send_email").contains("for [redacted:contact]"), "{}", args("send_email"));
    place.settled();
}

#[test]
fn a_result_that_holds_what_is_refused_is_withheld_as_a_whole() {
    let place = Place::new();
    let gateway = up_plain(&place, "[pii]\nresults = { contact = \"refuse\" }\n");
    let (_, plain) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(plain["status"], "success", "{plain}");
    // The shop says what it was asked for.
    let (_, told) = gateway.call("get_order", r#"{"order":"ord_ada@example.org"}"#);
    assert_eq!(told["status"], "degraded", "{told}");
    let text = told.to_string();
    assert!(text.contains("[withheld:contact]") && !text.contains("ada@example.org"), "{text}");
}
