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

#[test]
fn a_tenants_people_see_their_own_and_nothing_of_the_houses() {
    const MARY: &str = "mary-t0ken-0123456789abcdef";
    const ROOT: &str = "root-t0ken-0123456789abcdef";
    let place = Place::new();
    place.write("mary.token", MARY);
    place.write("root.token", ROOT);
    let tokens = two_tokens(&place)
        .replace("ada.token\" }", "ada.token\" }\nprincipal = \"agent\"\ntenant = \"acme\"")
        .replace("bob.token\" }", "bob.token\" }\nprincipal = \"agent\"\ntenant = \"rival\"");
    let people = "[auth.tokens.mary]\nsecret = { file = \"mary.token\" }\ntenant = \"acme\"\nrole = \"operator\"\n\
                  [auth.tokens.root]\nsecret = { file = \"root.token\" }\nrole = \"operator\"\n";
    let faults = "[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\nrepeat = true\n";
    let house = House::up(place, &format!("{SHOP}\n{tokens}{people}"), faults);
    house.served(ADA);
    for token in [ADA, BOB] {
        let charged = house.call(token, "charge_card", r#"{"order":"ord_1","amount":5}"#).body;
        assert_eq!(charged["outcome"], "unresolved", "{charged}");
    }
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        house.ask(method, path, &[("authorization", &format!("Bearer {token}"))], body)
    };
    let items =
        |token: &str, path: &str| ask(token, "GET", path, "").body["items"].as_array().cloned().expect("a list");

    // Her own tenant's, and no other's, listed or by name.
    let questions = items(MARY, "/api/interactions");
    assert_eq!((questions.len(), &questions[0]["principal"]), (1, &json!("acme/agent")), "{questions:?}");
    let sessions = items(MARY, "/api/sessions?limit=100");
    assert!(!sessions.is_empty() && sessions.iter().all(|it| it["principal"] == "acme/agent"), "{sessions:?}");
    let calls = items(MARY, "/api/calls?limit=100");
    let all = items(ROOT, "/api/calls?limit=100");
    assert!(!calls.is_empty() && calls.len() < all.len(), "{calls:?}");
    let rivals = items(ROOT, "/api/interactions").into_iter().find(|it| it["principal"] == "rival/agent").expect("it");
    let (id, session) = (rivals["id"].as_str().expect("an id"), rivals["session"].as_str().expect("a session"));
    for path in [format!("/api/interactions/{id}"), format!("/api/sessions/{session}"), format!("/queue/{id}")] {
        assert_eq!(ask(MARY, "GET", &path, "").status, 404, "{path}");
        assert_eq!(ask(ROOT, "GET", &path, "").status, 200, "{path}");
    }
    let answer = format!("/api/interactions/{id}/answer");
    assert_eq!(ask(MARY, "POST", &answer, r#"{"choice":"happened"}"#).status, 404);

    // What shows or changes everybody's is the house's, whatever her role.
    for (method, path, body) in [
        ("GET", "/api/live", ""),
        ("POST", "/api/whatif", r#"{"rules":""}"#),
        ("POST", "/api/verify", "{}"),
        ("GET", "/api/checkpoints", ""),
        ("POST", "/api/checkpoints", "{}"),
        ("POST", "/api/unclassified/proposals", "{}"),
        ("GET", "/ledger", ""),
        ("POST", "/ledger/verify", ""),
        ("POST", "/ledger/checkpoints", ""),
        ("POST", "/playbook/whatif", ""),
        ("POST", "/playbook/proposals", ""),
    ] {
        assert_eq!(ask(MARY, method, path, body).status, 403, "{method} {path}");
    }
    assert_eq!(ask(ROOT, "GET", "/api/checkpoints", "").status, 200);
    assert_eq!(ask(ROOT, "GET", "/ledger", "").status, 200);
    assert_eq!(ask(ROOT, "POST", "/api/verify", "{}").status, 200);
}
