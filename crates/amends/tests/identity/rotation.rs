//! An issuer's keys: replaced, taken away, and not to be had.

use serde_json::json;

use crate::house::{House, SHOP};
use crate::issuer::{Issuer, Key};
use crate::oauth::house;
use crate::support::{Place, eventually};

const GET: &str = r#"{"order":"ord_1"}"#;

fn status(house: &House, token: &str) -> u16 {
    house.call(token, "get_order", GET).status
}

#[test]
fn a_new_key_is_found_when_its_first_token_comes_and_an_old_one_goes_with_the_next_set() {
    let (old, new) = (Key::ed25519("old"), Key::p256("new"));
    let issuer = Issuer::start(&[&old]);
    let claims = issuer.claims("ada");
    let house = house(&issuer, "refresh = \"1s\"", &old.token(&claims));
    assert_eq!(status(&house, &new.token(&claims)), 401, "it is not published yet");
    issuer.publish(&[&old, &new]);
    eventually("the new key is known", || status(&house, &new.token(&claims)) == 200);
    assert_eq!(status(&house, &old.token(&claims)), 200, "both count while both are published");
    issuer.publish(&[&new]);
    eventually("the old key counts no more", || status(&house, &old.token(&claims)) == 401);
    assert_eq!(status(&house, &new.token(&claims)), 200);
}

#[test]
fn tokens_of_unknown_keys_have_the_keys_read_only_so_often() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let claims = issuer.claims("ada");
    let house = house(&issuer, "", &key.token(&claims));
    let house_slow = {
        let section = issuer.section("").replace("refresh_min = \"1s\"", "refresh_min = \"1h\"");
        let slow = House::up(Place::new(), &format!("{SHOP}\n{section}"), "");
        slow.served(&key.token(&claims));
        slow
    };
    drop(house);
    let before = issuer.reads();
    for n in 0..50 {
        let unknown = key.token_with(&json!({ "alg": "EdDSA", "kid": format!("k{n}-unknown") }), &claims);
        assert_eq!(status(&house_slow, &unknown), 401);
    }
    assert!(issuer.reads() <= before + 1, "{} reads", issuer.reads() - before);
}

#[test]
fn an_issuer_that_is_away_keeps_known_keys_and_fails_unknown_ones() {
    let (known, unknown) = (Key::ed25519("known"), Key::ed25519("unknown"));
    let issuer = Issuer::start(&[&known]);
    let claims = issuer.claims("ada");
    let house = house(&issuer, "refresh = \"1s\"", &known.token(&claims));
    issuer.goes_away(true);
    issuer.publish(&[&known, &unknown]);
    eventually("it was missed", || house.log().contains("the issuer's keys could not be read"));
    assert_eq!(status(&house, &known.token(&claims)), 200, "what was known still counts");
    assert_eq!(status(&house, &unknown.token(&claims)), 401);
    issuer.goes_away(false);
    eventually("it is back", || status(&house, &unknown.token(&claims)) == 200);
}

#[test]
fn keys_that_could_not_be_read_again_count_for_a_bounded_time() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    let claims = issuer.claims("ada");
    let house = house(&issuer, "refresh = \"1s\"\nkeep = \"8s\"", &key.token(&claims));
    issuer.goes_away(true);
    let mut last = 0;
    eventually("they are too old", || {
        let answer = house.call(&key.token(&claims), "get_order", GET);
        last = answer.status;
        assert!(matches!(last, 200 | 503), "{answer:?}");
        last == 503 && answer.header("retry-after").is_some()
    });
    issuer.goes_away(false);
    eventually("they are read again", || status(&house, &key.token(&claims)) == 200);
}

#[test]
fn an_issuer_that_was_never_there_lets_nobody_in() {
    let key = Key::ed25519("k1");
    let issuer = Issuer::start(&[&key]);
    issuer.goes_away(true);
    let house = House::up(Place::new(), &format!("{SHOP}\n{}", issuer.section("")), "");
    assert_eq!(status(&house, &key.token(&issuer.claims("ada"))), 503);
    issuer.goes_away(false);
    eventually("it is there", || status(&house, &key.token(&issuer.claims("ada"))) == 200);
}

#[test]
fn nobody_leads_us_elsewhere_for_keys() {
    let key = Key::ed25519("k1");
    let (issuer, other) = (Issuer::start(&[&key]), Issuer::start(&[&key]));
    let start = |section: &str| House::up(Place::new(), &format!("{SHOP}\n{section}"), "");
    let refused = |house: &House, why: &str| {
        eventually("it was tried", || house.log().contains("the issuer's keys could not be read"));
        assert!(house.log().contains(why), "{}", house.log());
        assert_eq!(status(house, &key.token(&issuer.claims("ada"))), 503);
    };
    issuer.redirect(&format!("{}/keys", other.url));
    refused(&start(&issuer.section("")), "leads elsewhere");
    issuer.describe(json!({ "issuer": other.url, "jwks_uri": format!("{}/keys", other.url) }));
    refused(&start(&issuer.section("")), "another issuer's");
    issuer.describe(json!({ "issuer": issuer.url, "jwks_uri": "https://169.254.169.254/keys" }));
    refused(&start(&issuer.section("")), "no public address");
    issuer.describe(json!({ "issuer": issuer.url, "jwks_uri": "http://169.254.169.254/keys" }));
    refused(&start(&issuer.section("")), "not behind `https://`");
    assert_eq!(other.reads(), 0);
    let declared = start(&issuer.section(&format!("jwks = \"{}/keys\"", other.url)));
    eventually("what the operator names is read", || status(&declared, &key.token(&issuer.claims("ada"))) == 200);
}
