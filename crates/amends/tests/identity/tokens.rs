//! Tokens that are known to the gateway.

use serde_json::json;

use crate::house::{ADA, BOB, House, SHOP, ask, two_tokens};
use crate::support::{Place, eventually};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn nobody_comes_in_without_a_token_that_counts() {
    let house = House::of_two("", "");
    let before = house.place.requests("get_order");
    for shown in [None, Some("Bearer x"), Some("Bearer "), Some("Basic YWRhOng="), Some(ADA), Some("Bearer ada")] {
        let headers: Vec<(&str, &str)> = shown.iter().map(|shown| ("authorization", *shown)).collect();
        for (method, path, body) in [
            ("POST", "/mcp", PING),
            ("GET", "/mcp", ""),
            ("DELETE", "/mcp", ""),
            ("POST", "/call/get_order", r#"{"order":"ord_1"}"#),
            ("GET", "/metrics", ""),
        ] {
            let answer = house.ask(method, path, &headers, body);
            assert_eq!(answer.status, 401, "{method} {path} with {shown:?}: {answer:?}");
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            assert!(challenge.starts_with("Bearer"), "{answer:?}");
            assert!(!challenge.contains("resource_metadata"), "there is no issuer to be sent to");
        }
    }
    assert_eq!(house.place.requests("get_order"), before, "nothing of it was sent");
    assert_eq!(house.ask("GET", "/healthz", &[], "").status, 200, "whether it lives is no secret");
    assert_eq!(house.ask("POST", "/mcp", &[("authorization", &format!("bearer {ADA}"))], PING).status, 200);
    assert_eq!(house.call(BOB, "get_order", r#"{"order":"ord_1"}"#).status, 200);
    let opened = house.place.events_named("session_opened");
    let of = |name: &str| opened.iter().filter(|event| event["principal"] == name).count();
    assert!(of("ada") > 0 && of("bob") == 1 && of("local") == 0, "{opened:?}");
}

#[test]
fn a_token_in_an_address_is_refused_and_written_nowhere() {
    let house = House::of_two("", "");
    for query in ["access_token", "access%5Ftoken", "ACCESS_TOKEN", "token", "a=b&access_token"] {
        let path = format!("/mcp?{query}=query-{ADA}");
        let answer = house.ask("POST", &path, &[("authorization", &format!("Bearer {ADA}"))], PING);
        assert_eq!((answer.status, &answer.body["error"]), (400, &json!("invalid_request")), "{answer:?}");
        assert!(!answer.text.contains("t0ken"), "{answer:?}");
        assert_eq!(house.ask("POST", &format!("/call/get_order?{query}=query-{ADA}"), &[], "{}").status, 400);
    }
    assert_eq!(house.ask("GET", &format!("/healthz?access_token=query-{ADA}"), &[], "").status, 400, "anywhere");
    house.place.settled();
    assert_eq!(house.keeps("query-"), None);
    assert_eq!(house.keeps("t0ken"), None);
}

#[test]
fn a_token_that_is_changed_or_taken_away_counts_no_more() {
    let house = House::of_two("", "");
    house.place.write("bob.token", "another-t0ken-0123456789abcdef");
    eventually("the old one counts no more", || house.call(BOB, "get_order", r#"{"order":"ord_1"}"#).status == 401);
    assert_eq!(house.call("another-t0ken-0123456789abcdef", "get_order", r#"{"order":"ord_1"}"#).status, 200);
    std::fs::remove_file(house.place.path("ada.token")).expect("it was there");
    eventually("nobody can show it", || house.call(ADA, "get_order", r#"{"order":"ord_1"}"#).status == 401);
}

#[test]
fn a_right_that_a_token_has_not_is_named() {
    let place = Place::new();
    let config = format!("{SHOP}\n{}scopes = [\"admin\"]\nrole = \"viewer\"\n", two_tokens(&place));
    let house = House::up(place, &config, "");
    let refused = house.call(BOB, "get_order", r#"{"order":"ord_1"}"#);
    assert_eq!((refused.status, &refused.body["error"]), (403, &json!("insufficient_scope")), "{refused:?}");
    assert!(refused.header("www-authenticate").is_some_and(|text| text.contains("scope=\"call\"")), "{refused:?}");
    let metrics = |token: &str| {
        let shown = format!("Bearer {token}");
        house.ask("GET", "/metrics", &[("authorization", &shown)], "")
    };
    assert_eq!(metrics(ADA).status, 403, "she may call, and no more");
    let numbers = metrics(BOB);
    assert!(numbers.status == 200 && numbers.text.contains("amends_"), "{}", numbers.status);
}

#[test]
fn the_token_of_the_metrics_still_reads_them_where_others_must_say_who_they_are() {
    let place = Place::new();
    place.write("metrics.token", "metrics-t0ken-0123456789abcdef");
    let tokens = two_tokens(&place);
    let config = format!("{SHOP}\n[listen]\nmetrics = {{ file = \"metrics.token\" }}\n{tokens}");
    let house = House::up(place, &config, "");
    let metrics =
        |token: &str| house.ask("GET", "/metrics", &[("authorization", &format!("Bearer {token}"))], "").status;
    assert_eq!(metrics("metrics-t0ken-0123456789abcdef"), 200);
    assert_eq!(metrics(ADA), 403);
    assert_eq!(
        house.call("metrics-t0ken-0123456789abcdef", "get_order", "{}").status,
        401,
        "it is for the metrics alone"
    );
}

#[test]
fn who_may_come_in_is_reloaded_with_the_rest() {
    let house = House::of_two("", "");
    let config = std::fs::read_to_string(house.place.path("amends.toml")).expect("the configuration");
    let without = config.replace("[auth.tokens.bob]\nsecret = { file = \"bob.token\" }\n", "");
    assert_ne!(config, without);
    assert_eq!(house.call(BOB, "get_order", r#"{"order":"ord_1"}"#).status, 200);
    house.place.write("amends.toml", &without);
    eventually("bob is out", || house.call(BOB, "get_order", r#"{"order":"ord_1"}"#).status == 401);
    assert_eq!(house.call(ADA, "get_order", r#"{"order":"ord_1"}"#).status, 200);
    let everybody =
        |status: u16| ask(&house.address, "POST", "/call/get_order", &[], r#"{"order":"ord_1"}"#).status == status;
    assert!(everybody(401));
    house.place.write("amends.toml", SHOP);
    eventually("on this machine everybody is local again", || everybody(200));
}
