//! Questions of a wrapped server.

use serde_json::json;

use crate::asking::{command, done, events};
use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Place};

#[test]
fn a_wrapped_server_asks_its_client_and_the_clock_stands_meanwhile() {
    let place = Place::new();
    let mut words = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger(), "--".into()];
    words.extend(command(&place, "legacy"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let inputs = json!({ "elicitation/create": { "action": "accept", "content": { "n": 2 } } });
    let mut client = Client::stdio_with_inputs(Sdk::Python, "legacy", &inputs, &words);
    let answer = client.call("book", json!({ "order": 1 }));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], 2, "{answer}");
    assert_eq!(done(&place).len(), 1);
    drop(client);
    assert_eq!((events(&place, "inquiry_opened"), events(&place, "inputs_given")), (1, 1));
}
