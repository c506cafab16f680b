//! Questions to people that are forms of several fields: asked with their schema, answered with what fits it.

use serde_json::{Value, json};

use crate::agent::{Agent, envelope, interrupt, outcome, results, statuses};
use crate::support::{Gateway, Place};

/// Charges whose terms a person gives, and an order whose next move is to ask for them.
const TERMS: &str = r#"
[questions.terms]
message = "How much, and from which card?"
queue = "finance"
schema = { type = "object", properties = { amount = { type = "integer", minimum = 1, maximum = 100 }, card = { type = "string", enum = ["giro", "visa"] }, gift = { type = "boolean" } }, required = ["amount", "card"], additionalProperties = false }

[tools.charge_card]
effect = "write"
ask = ["amount"]

[questions.amount]
message = "How much is it, and which order?"
queue = "finance"
schema = { type = "object", properties = { amount = { type = "integer", minimum = 1, maximum = 100 }, order = { type = "string" } }, required = ["amount", "order"] }

[machines.order]
initial = "created"
terminal = ["agreed"]

[machines.order.actions.agree]
from = ["created"]
to = "agreed"
tool = "terms"
writes = { amount = "result.amount", card = "result.card" }
"#;

fn asking(place: &Place, requester: bool) -> Gateway {
    let whose = format!("[questions.terms]\nrequester = {requester}\n");
    let config = place.write("forms.toml", &TERMS.replace("[questions.terms]\n", &whose)).display().to_string();
    place.up_with("", &["--config", &config])
}

fn id(asks: &Value) -> &str {
    asks["id"].as_str().expect("an id")
}

fn refused(went: &Value) {
    let said = (&went["status"], &went["refused"]["error"]["kind"]);
    assert_eq!(said, (&json!(422), &json!("invalid_argument")), "{went:#}");
}

#[test]
fn a_form_is_an_interrupt_with_its_schema_and_only_what_fits_is_carried_back() {
    let place = Place::new();
    let gateway = asking(&place, true);
    let mut agent = Agent::of(&gateway);
    let asks = interrupt(&agent.moves("t", "order", json!([{ "action": "agree" }])));
    assert_eq!(asks["reason"], "input_required", "{asks:#}");
    let schema = &asks["responseSchema"];
    assert_eq!(schema["required"], json!(["amount", "card"]), "{asks:#}");
    assert_eq!(schema["properties"]["card"]["enum"], json!(["giro", "visa"]), "{asks:#}");
    assert_eq!(schema["properties"]["gift"]["type"], "boolean", "{asks:#}");
    for odd in [
        json!({}),
        json!({ "amount": 12 }),
        json!({ "amount": 1200, "card": "visa" }),
        json!({ "amount": "12", "card": "visa" }),
        json!({ "amount": 12, "card": "amex" }),
        json!({ "amount": 12, "card": "visa", "more": 1 }),
        json!("12"),
    ] {
        refused(&agent.resume("t", id(&asks), odd));
    }
    // What somebody wrote that does not fit is in no trace either.
    assert!(!place.events().iter().any(|event| event.to_string().contains("amex")));
    let went = agent.resume("t", id(&asks), json!({ "amount": 12, "card": "visa" }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    let fields = &went["state"]["amends"]["walk"]["state"]["fields"];
    assert_eq!(fields, &json!({ "amount": 12, "card": "visa" }), "{went:#}");
    place.settled();
}

#[test]
fn what_a_person_fills_in_before_a_call_is_what_is_sent_once() {
    let place = Place::new();
    let gateway = asking(&place, true);
    let mut agent = Agent::of(&gateway);
    let plan = json!([{ "tool": "charge_card", "args": { "order": "ord_wrong", "amount": 99 } },
                      { "tool": "send_email", "args": { "to": "a@b.example", "subject": "s", "body": "b" } }]);
    let asks = interrupt(&agent.calls("t", plan.clone()));
    assert_eq!(asks["responseSchema"]["required"], json!(["amount", "order"]), "{asks:#}");
    refused(&agent.resume("t", id(&asks), json!({ "amount": 0, "order": "ord_1" })));
    assert_eq!(place.requests("charge_card"), 0);
    let went = agent.resume("t", id(&asks), json!({ "amount": 12, "order": "ord_1" }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!((place.requests_on("charge_card", "ord_1"), place.effects_on("charge_card", "ord_1")), (1, 1));
    assert_eq!((place.effects("charge_card"), place.effects("send_email")), (1, 1));
    // A form that is put away, and one that is answered with a no, are a no.
    for (thread, entry) in [
        ("u", json!({ "status": "cancelled" })),
        ("v", json!({ "status": "resolved", "payload": { "choice": "deny" } })),
    ] {
        let plan = json!([{ "tool": "charge_card", "args": { "order": thread, "amount": 99 } }]);
        let mut entry = entry;
        entry["interruptId"] = interrupt(&agent.calls(thread, plan))["id"].clone();
        let went = agent.run(json!({ "thread": thread, "resume": [entry] }));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed"]), "{went:#}");
        assert_eq!(envelope(results(&went)[0])["error"]["kind"], "approval_denied", "{went:#}");
    }
    assert_eq!(place.requests("charge_card"), 1);
    place.settled();
}

#[test]
fn a_form_of_whoever_called_does_not_count_where_others_are_asked() {
    let place = Place::new();
    let gateway = asking(&place, false);
    let mut agent = Agent::of(&gateway);
    let asks = interrupt(&agent.moves("t", "order", json!([{ "action": "agree" }])));
    let again = interrupt(&agent.resume("t", id(&asks), json!({ "amount": 12, "card": "visa" })));
    assert_eq!(again["id"], asks["id"]);
    assert!(again["metadata"]["amends"]["not_counted"].is_string(), "{again:#}");
    let content = r#"{"amount":7,"card":"giro"}"#;
    let (code, said) = place.amends(&["answer", id(&asks), "answer", "--content", content, "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    let went = agent.resume("t", id(&asks), Value::Null);
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!(went["state"]["amends"]["walk"]["state"]["fields"]["amount"], 7, "{went:#}");
    place.settled();
}
