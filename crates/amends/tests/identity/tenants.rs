//! Tenants: their calls, questions and traces are kept apart.

use serde_json::{Value, json};

use crate::house::{ADA, BOB, House, SHOP, two_tokens};
use crate::support::Place;

/// Two principals of one name, in two tenants.
fn house(faults: &str) -> House {
    let place = Place::new();
    let tokens = two_tokens(&place)
        .replace("ada.token\" }", "ada.token\" }\nprincipal = \"agent\"\ntenant = \"acme\"")
        .replace("bob.token\" }", "bob.token\" }\nprincipal = \"agent\"\ntenant = \"rival\"");
    let house = House::up(place, &format!("{SHOP}\n{tokens}"), faults);
    house.served(ADA);
    house
}

fn listed(house: &House, command: &[&str], member: &str) -> Vec<Value> {
    let (code, said) = house.place.amends(command);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said[member].as_array().cloned().expect("a list")
}

#[test]
fn sessions_and_questions_are_listed_by_tenant() {
    let faults = "[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\nrepeat = true\n";
    let house = house(faults);
    for token in [ADA, BOB] {
        let charged = house.call(token, "charge_card", r#"{"order":"ord_1","amount":5}"#).body;
        assert_eq!(charged["outcome"], "unresolved", "{charged}");
    }
    for tenant in ["acme", "rival"] {
        let sessions = listed(&house, &["sessions", "--json", "--limit", "100", "--tenant", tenant], "sessions");
        assert!(!sessions.is_empty());
        for session in &sessions {
            assert_eq!(
                (&session["tenant"], &session["principal"]),
                (&json!(tenant), &json!(format!("{tenant}/agent")))
            );
        }
        let queue = listed(&house, &["queue", "--json", "--tenant", tenant], "queue");
        assert_eq!(queue.len(), 1, "{queue:?}");
        assert_eq!(queue[0]["principal"], format!("{tenant}/agent"), "{queue:?}");
    }
    assert_eq!(listed(&house, &["queue", "--json"], "queue").len(), 2);
    assert!(listed(&house, &["queue", "--json", "--tenant", "nobody"], "queue").is_empty());
    assert!(listed(&house, &["sessions", "--json", "--tenant", "nobody"], "sessions").is_empty());
    let opened = house.place.events_named("session_opened");
    assert!(opened.iter().any(|event| event["tenant"] == "acme"), "{opened:?}");
    house.place.assert_verified();
}

#[test]
fn equal_calls_of_two_tenants_are_two_calls() {
    let house = house("");
    let charge = |token: &str| {
        house.call_with(token, "charge_card", &[("idempotency-key", "k1")], r#"{"order":"ord_1","amount":5}"#).body
    };
    for token in [ADA, BOB] {
        let charged = charge(token);
        assert_eq!((&charged["status"], &charged["replayed"]), (&json!("success"), &Value::Null), "{charged}");
        assert_eq!(charge(token)["replayed"], true);
    }
    assert_eq!(house.place.effects("charge_card"), 2);
    house.place.settled();
}
