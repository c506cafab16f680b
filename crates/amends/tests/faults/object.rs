//! Objects: while a write to one is in doubt, others to it are refused with the reason.

use serde_json::json;

use crate::faults;
use crate::support::Place;

const CONFIG: &str = r#"
[tools.charge_card]
effect = "write"
object = "args.order"
[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
object = "args.order"
"#;

#[test]
fn another_write_to_what_is_in_doubt_is_refused_until_that_is_settled() {
    let place = Place::new();
    let config = place.write("object.toml", CONFIG).display().to_string();
    let gateway = place.up_with(&faults("charge_card", "ord_1", &["lose_response"]), &["--config", &config]);
    let (_, doubt) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(doubt["outcome"], "unresolved", "{doubt}");
    for (tool, arguments) in
        [("charge_card", r#"{"order":"ord_1","amount":7}"#), ("issue_refund", r#"{"order":"ord_1","amount":5}"#)]
    {
        let (_, refused) = gateway.call(tool, arguments);
        assert_eq!(
            (&refused["status"], &refused["error"]["kind"]),
            (&json!("refused"), &json!("in_flight")),
            "{refused}"
        );
        assert_eq!(refused["error"]["code"], "ResourceBusy", "{refused}");
    }
    let (_, other) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(other["status"], "success", "{other}");
    assert_eq!((place.requests("charge_card"), place.requests("issue_refund")), (2, 0));

    let asked = doubt["error"]["interaction"].as_str().expect("a question");
    assert_eq!(place.amends(&["answer", asked, "happened"]).0, 0);
    let (_, refund) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refund["status"], "success", "{refund}");
    place.settled();
}

#[test]
fn a_write_that_does_not_say_what_it_writes_is_not_sent() {
    let place = Place::new();
    let config = CONFIG.replace("object = \"args.order\"", "object = \"args.nobody\"");
    let config = place.write("object.toml", &config).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let (_, refused) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refused["error"]["kind"], "invalid_argument", "{refused}");
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}
