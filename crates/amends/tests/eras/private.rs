//! Private data in what an agent gives when an upstream asks it for something.

use serde_json::json;

use crate::asking::{Server, again, by_command, by_url, call_alone, command, done, only_key, params, serve};
use crate::support::{Place, eventually, http};
use crate::withdrawn::{greeted, messages};

const CARD: &str = "4111 1111 1111 1111";

/// Whether a part of the card rests anywhere in the place's ledger.
fn rests(place: &Place) -> bool {
    let files = std::fs::read_dir(place.path(".")).expect("the folder").flatten().map(|entry| entry.path());
    let ledger =
        files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("amends.db")));
    ledger
        .map(|path| std::fs::read(path).unwrap_or_default())
        .any(|bytes| bytes.windows(CARD.len()).any(|part| part == CARD.as_bytes()))
}

#[test]
fn a_card_that_comes_back_with_a_call_reaches_no_server_and_does_not_rest() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let server = Server::http(&place, era);
        let gateway = serve(&place, &by_url(&server), "");
        let call = params("book", &json!({ "order": 1 }));
        let (_, asked) = call_alone(&gateway, &call);
        let given = json!({ only_key(&asked): { "action": "accept", "content": { "n": CARD } } });
        let (_, answer) = call_alone(&gateway, &again(&call, &asked, &given));
        let told = answer.to_string();
        assert!(
            !told.contains("4111 1111") && answer["result"]["structuredContent"]["inputs"].is_null(),
            "{era}: {told}"
        );
        place.settled();
        let effects: Vec<_> = done(&place).into_iter().filter(|line| line.get("cancelled").is_none()).collect();
        assert!(effects.is_empty(), "{era}: {effects:?}");
        assert!(!rests(&place), "{era}");
    }
}

#[test]
fn a_card_that_is_given_on_the_line_is_told_to_be_refused() {
    for http in [true, false] {
        let place = Place::new();
        let server = http.then(|| Server::http(&place, "legacy"));
        let reach = server.as_ref().map_or_else(|| by_command(&command(&place, "legacy")), by_url);
        let gateway = serve(&place, &reach, "");
        let session = greeted(&gateway);
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "book" } });
        let mut said = messages(http::send(&gateway.address, "/mcp", &headers, call.to_string().as_bytes()));
        let asked = said.next().expect("a question");
        let given = json!({ "jsonrpc": "2.0", "id": asked["id"],
            "result": { "action": "accept", "content": { "n": CARD } } });
        http::post(&gateway.address, "/mcp", &headers, given.to_string().as_bytes());
        let answer = said.next().expect("an answer");
        let heard = &answer["result"]["structuredContent"]["inputs"][0]["error"]["message"];
        assert!(heard.as_str().is_some_and(|heard| heard.contains("payment_card")), "{answer}");
        eventually("it is over", || done(&place).len() == 1);
        assert!(!format!("{answer}{:?}", done(&place)).contains("4111 1111"), "{answer}");
        assert!(!rests(&place));
    }
}

#[test]
fn a_tool_that_takes_cards_is_given_one() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    let rules = "[tools.book]\neffect = \"write\"\ntakes = [\"payment_card\"]\ngives = [\"payment_card\"]\n";
    let gateway = serve(&place, &by_url(&server), rules);
    let call = params("book", &json!({ "order": 1 }));
    let (_, asked) = call_alone(&gateway, &call);
    let given = json!({ only_key(&asked): { "action": "accept", "content": { "n": CARD } } });
    let (_, answer) = call_alone(&gateway, &again(&call, &asked, &given));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], CARD, "{answer}");
    place.settled();
    assert!(!rests(&place), "what rests is sealed");
}
