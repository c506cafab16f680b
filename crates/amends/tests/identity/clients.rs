//! A real client with a token.

use serde_json::json;

use crate::house::House;
use crate::issuer::{Issuer, Key};
use crate::oauth;
use crate::support::client::{Client, Sdk};

fn url(house: &House) -> String {
    format!("http://{}/mcp", house.address)
}

#[test]
fn the_python_sdk_calls_with_an_issuers_token_in_both_eras() {
    let key = Key::p256("k1");
    let issuer = Issuer::start(&[&key]);
    let token = key.token(&issuer.claims("ada"));
    let house = oauth::house(&issuer, "", &token);
    for era in ["modern", "legacy"] {
        let mut client =
            Client::http_with_header(Sdk::Python, era, &format!("Authorization: Bearer {token}"), &url(&house));
        let tools = client.run(json!({ "op": "list" }));
        assert!(tools.to_string().contains("charge_card"), "{tools}");
        let done = client.call("charge_card", json!({ "order": format!("ord_{era}"), "amount": 5 }));
        assert_ne!(done["result"]["isError"], true, "{done}");
    }
    assert_eq!(house.place.effects("charge_card"), 2);
    house.place.settled();
}
