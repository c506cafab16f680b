//! Access tokens of an issuer: what counts, what does not, and what whoever shows them is told.

use serde_json::{Value, json};

use crate::house::{House, SHOP};
use crate::issuer::{AUDIENCE, Issuer, Key, now, shared, unsigned};
use crate::support::Place;

const GET: &str = r#"{"order":"ord_1"}"#;

/// A gateway that believes an issuer, once the shop is served to whoever shows that.
pub(crate) fn house(issuer: &Issuer, more: &str, token: &str) -> House {
    let house = House::up(Place::new(), &format!("{SHOP}\n{}", issuer.section(more)), "");
    house.served(token);
    house
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    match value {
        Value::Null => drop(claims.as_object_mut().expect("claims").remove(name)),
        value => claims[name] = value,
    }
    claims
}

#[test]
fn a_token_counts_by_every_algorithm_that_is_taken() {
    let (ed, p256, p384, rsa) = (Key::ed25519("ed"), Key::p256("p256"), Key::p384("p384"), Key::rsa("rsa"));
    let issuer = Issuer::start(&[&ed, &p256, &p384, &rsa]);
    let claims = issuer.claims("ada");
    let house = house(&issuer, "", &ed.token(&claims));
    for token in [p256.token(&claims), p384.token(&claims)] {
        assert_eq!(house.call(&token, "get_order", GET).status, 200);
    }
    for algorithm in ["RS256", "RS384", "RS512", "PS256"] {
        let answer = house.call(&rsa.token_by(algorithm, &claims), "get_order", GET);
        assert_eq!(answer.status, 200, "{algorithm}: {answer:?}");
    }
    let opened = house.place.events_named("session_opened");
    assert!(opened.iter().any(|event| event["principal"] == "ada"), "{opened:?}");
    assert!(opened.iter().all(|event| event["principal"] != "local"), "{opened:?}");
}

#[test]
fn policies_see_what_a_token_is_good_for_over_both_doors() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let policy = "[policy]\ntext = '''\npermit (principal, action in Action::\"read\", resource);\n\
                  permit (principal, action, resource) when { context.scopes.contains(\"refunds:write\") };\n'''\n";
    let plain = key.token(&issuer.claims("ada"));
    let more = key.token(&with(&issuer.claims("ada"), "scope", json!("tools:call refunds:write")));
    let house = house(&issuer, policy, &plain);
    let charge = r#"{"order":"ord_1","amount":5}"#;
    let denied = house.call(&plain, "charge_card", charge);
    assert_eq!(denied.body["error"]["kind"], "policy_blocked", "{denied:?}");
    let made = house.call(&more, "charge_card", charge);
    assert_eq!(made.body["status"], "success", "{made:?}");
    let params = json!({ "name": "charge_card", "arguments": { "order": "ord_2", "amount": 5 } });
    let denied = house.alone(&plain, "tools/call", "charge_card", params.clone());
    assert!(denied.text.contains("policy_blocked"), "{denied:?}");
    let made = house.alone(&more, "tools/call", "charge_card", params);
    assert!(!made.text.contains("policy_blocked"), "{made:?}");
    assert_eq!(house.place.effects("charge_card"), 2);
}

#[test]
fn a_token_that_does_not_count_is_refused_with_the_place_where_one_is_had() {
    let (key, other) = (Key::p256("k1"), Key::p256("k1"));
    let issuer = Issuer::start(&[&key]);
    let good = issuer.claims("ada");
    let house = house(&issuer, "", &key.token(&good));
    let before = house.place.requests("get_order");
    let public = key.public();
    let point = format!("{}{}", public["x"].as_str().expect("x"), public["y"].as_str().expect("y"));
    let of = |claims: Value| key.token(&claims);
    let mut cut = key.token(&good);
    cut.truncate(cut.len() - 8);
    let good_token = key.token(&good);
    let (head, _) = good_token.rsplit_once('.').expect("three parts");
    let swapped = {
        let other = key.token(&with(&good, "sub", json!("root")));
        let payload = other.split('.').nth(1).expect("a payload").to_owned();
        let parts: Vec<&str> = good_token.split('.').collect();
        format!("{}.{payload}.{}", parts[0], parts[2])
    };
    let cases = [
        ("wrong audience", of(with(&good, "aud", json!("https://other.example/mcp")))),
        ("audiences without us", of(with(&good, "aud", json!(["a", "b"])))),
        ("no audience", of(with(&good, "aud", Value::Null))),
        ("a longer audience", of(with(&good, "aud", json!(format!("{AUDIENCE}/x"))))),
        ("wrong issuer", of(with(&good, "iss", json!("https://evil.example")))),
        ("no issuer", of(with(&good, "iss", Value::Null))),
        ("expired", of(with(&good, "exp", json!(now() - 600)))),
        ("no expiry", of(with(&good, "exp", Value::Null))),
        ("an expiry that is none", of(with(&good, "exp", json!("tomorrow")))),
        ("not yet valid", of(with(&good, "nbf", json!(now() + 600)))),
        ("nobody", of(with(&good, "sub", Value::Null))),
        ("a number", of(with(&good, "sub", json!(7)))),
        ("somebody of ours", of(with(&good, "sub", json!("operator")))),
        ("everybody's name", of(with(&good, "sub", json!("local")))),
        ("two lines", of(with(&good, "sub", json!("a\nb")))),
        ("no signature", unsigned(&good)),
        ("alg none with a signature", key.token_with(&json!({ "alg": "none", "kid": "k1" }), &good)),
        ("a shared secret", shared(point.as_bytes(), &json!({ "alg": "HS256", "kid": "k1" }), &good)),
        ("the public key as the secret", shared(public.to_string().as_bytes(), &json!({ "alg": "HS256" }), &good)),
        ("another algorithm than the key's", key.token_with(&json!({ "alg": "RS256", "kid": "k1" }), &good)),
        ("an unknown key", key.token_with(&json!({ "alg": "ES256", "kid": "k2" }), &good)),
        ("another's key of the same name", other.token(&good)),
        ("something critical", key.token_with(&json!({ "alg": "ES256", "kid": "k1", "crit": ["x"], "x": "1" }), &good)),
        ("a cut signature", cut),
        ("an empty signature", format!("{head}.")),
        ("other claims", swapped),
        ("not a token", "abc".to_owned()),
        ("dots", "...".to_owned()),
        ("a long one", "a".repeat(20_000)),
    ];
    for (what, token) in cases {
        for answer in [
            house.call(&token, "get_order", GET),
            house.mcp(&token, &[], "tools/call", json!({ "name": "get_order", "arguments": { "order": "ord_1" } })),
        ] {
            assert_eq!(answer.status, 401, "{what}: {answer:?}");
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            let metadata = "resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"";
            assert!(challenge.starts_with("Bearer ") && challenge.contains(metadata), "{what}: {challenge}");
            assert!(challenge.contains("error=\"invalid_token\""), "{what}: {challenge}");
            assert!(token.len() < 10 || !answer.text.contains(&token), "{what}: {answer:?}");
        }
    }
    let nothing = house.ask("POST", "/mcp", &[], "{}");
    let challenge = nothing.header("www-authenticate").unwrap_or_default();
    assert!(
        nothing.status == 401 && challenge.contains("resource_metadata") && !challenge.contains("error="),
        "{nothing:?}"
    );
    assert_eq!(house.place.requests("get_order"), before, "nothing of it was sent");
    for good in [
        of(with(&good, "aud", json!(["https://other.example", AUDIENCE]))),
        of(with(&good, "nbf", json!(now() - 5))),
        of(with(&good, "exp", json!(now() - 5))),
        key.token_with(&json!({ "alg": "ES256" }), &good),
    ] {
        assert_eq!(house.call(&good, "get_order", GET).status, 200, "{good}");
    }
}

#[test]
fn a_token_without_the_scope_is_told_which_one_it_needs() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let good = issuer.claims("ada");
    let house = house(&issuer, "", &key.token(&good));
    for claims in [
        with(&good, "scope", Value::Null),
        with(&good, "scope", json!("tools:list tools")),
        with(&good, "scope", json!("")),
        with(&good, "scope", json!(7)),
    ] {
        let answer = house.call(&key.token(&claims), "get_order", GET);
        assert_eq!((answer.status, &answer.body["error"]), (403, &json!("insufficient_scope")), "{answer:?}");
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(
            challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"tools:call\""),
            "{challenge}"
        );
        assert!(challenge.contains("resource_metadata="), "{challenge}");
    }
    let listed = with(&with(&good, "scope", Value::Null), "scp", json!(["x", "tools:call"]));
    assert_eq!(house.call(&key.token(&listed), "get_order", GET).status, 200, "some issuers list them");
    let metrics = |token: &str| house.ask("GET", "/metrics", &[("authorization", &format!("Bearer {token}"))], "");
    let refused = metrics(&key.token(&good));
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(
        refused.header("www-authenticate").is_some_and(|text| text.contains("scope=\"amends:admin\"")),
        "{refused:?}"
    );
    assert_eq!(metrics(&key.token(&with(&good, "scope", json!("amends:admin")))).status, 200);
}

#[test]
fn agents_are_told_where_to_get_a_token() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let house = house(&issuer, "", &key.token(&issuer.claims("ada")));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let described = house.ask("GET", path, &[], "");
        assert_eq!(described.status, 200, "{described:?}");
        assert_eq!(described.body["resource"], AUDIENCE);
        assert_eq!(described.body["authorization_servers"], json!([issuer.url]));
        assert_eq!(described.body["bearer_methods_supported"], json!(["header"]));
        assert_eq!(described.body["scopes_supported"], json!(["amends:admin", "tools:call"]));
    }
    assert_eq!(house.ask("GET", "/.well-known/oauth-protected-resource/else", &[], "").status, 404);
    let plain = House::of_two("", "");
    assert_eq!(plain.ask("GET", "/.well-known/oauth-protected-resource", &[], "").status, 404, "there is no issuer");
}

#[test]
fn claims_say_who_calls_and_for_which_tenant() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let mut claims = issuer.claims("x");
    claims["app"] = json!({ "name": "a/b" });
    claims["https://example.com/org"] = json!("acme");
    let more = "principal_claim = \"app.name\"\ntenant_claim = \"https://example.com/org\"";
    let house = house(&issuer, more, &key.token(&claims));
    let opened = house.place.events_named("session_opened");
    let who = opened.iter().find(|event| event["tenant"] == "acme").unwrap_or_else(|| panic!("{opened:?}"));
    assert_eq!(who["principal"], "acme/a%2Fb", "a name with a slash is nobody else's tenant");
    let without = with(&claims, "https://example.com/org", Value::Null);
    assert_eq!(house.call(&key.token(&without), "get_order", GET).status, 401, "no tenant is not all tenants");
    let nested = with(&claims, "app", json!({ "name": { "first": "a" } }));
    assert_eq!(house.call(&key.token(&nested), "get_order", GET).status, 401);
}
