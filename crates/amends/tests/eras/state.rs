//! The state that an agent brings back: bound, once, and in its time.

use serde_json::{Value, json};

use crate::asking::{
    Server, again, by_url, call_alone, done, events, headers, message, only_key, params, params_of, serve,
};
use crate::support::{Gateway, Place, eventually, http};

/// What is read is recorded by no claim, so that its answer is known to its node alone.
const READ: &str = "[tools.book]\neffect = \"read\"\n";

fn accept(key: &str) -> Value {
    json!({ key: { "action": "accept", "content": { "n": 1 } } })
}

fn envelope(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

fn stand(place: &Place, era: &str, more: &str) -> (Server, Gateway) {
    let server = Server::http(place, era);
    let gateway = serve(place, &by_url(&server), more);
    (server, gateway)
}

#[test]
fn a_state_that_was_used_finds_the_answer_and_sends_nothing() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let (_server, gateway) = stand(&place, era, "");
        let call = params("book", &json!({ "order": 1 }));
        let (_, asked) = call_alone(&gateway, &call);
        let back = again(&call, &asked, &accept(&only_key(&asked)));
        let (_, first) = call_alone(&gateway, &back);
        assert_eq!(first["result"]["structuredContent"]["inputs"][0]["action"], "accept", "{first}");
        let (_, second) = call_alone(&gateway, &back);
        assert_eq!(second["result"]["structuredContent"], first["result"]["structuredContent"], "{second}");
        assert_eq!(second["result"]["_meta"]["amends/envelope"]["replayed"], true, "{second}");
        assert_eq!(done(&place).len(), 1, "{era}");
    }
}

#[test]
fn an_agent_that_comes_back_at_another_node_finds_its_call() {
    for (era, more) in [("legacy", ""), ("modern", ""), ("legacy", READ), ("modern", READ)] {
        let place = Place::new();
        let (server, here) = stand(&place, era, more);
        let there = serve(&place, &by_url(&server), more);
        let call = params("book", &json!({ "order": 1 }));
        let (_, mut asked) = call_alone(&here, &call);
        let key = only_key(&asked);
        // What is missing is asked for again, at whichever node the agent is then.
        if era == "legacy" {
            asked = call_alone(&there, &again(&call, &asked, &json!({}))).1;
            assert_eq!(only_key(&asked), key, "{asked}");
        }
        let back = again(&call, &asked, &accept(&key));
        let (_, first) = call_alone(&there, &back);
        assert_eq!(first["result"]["structuredContent"]["inputs"][0]["action"], "accept", "{era}: {first}");
        assert_eq!(done(&place).len(), 1, "{era}");
        let (_, late) = call_alone(&there, &back);
        if more.is_empty() {
            assert_eq!(late["result"]["structuredContent"], first["result"]["structuredContent"], "{era}: {late}");
        } else {
            assert_eq!(late["error"]["data"]["error"]["certainty"], "not_sent", "{era}: {late}");
        }
        assert_eq!(done(&place).len(), 1, "{era}");
    }
}

#[test]
fn a_state_for_other_arguments_or_none_of_ours_is_refused() {
    let place = Place::new();
    let (_server, gateway) = stand(&place, "modern", "");
    let call = params("book", &json!({ "order": 1 }));
    let (_, asked) = call_alone(&gateway, &call);
    let answers = accept(&only_key(&asked));
    let other = again(&params("book", &json!({ "order": 2 })), &asked, &answers);
    let tool = again(&params("visit", &json!({ "order": 1 })), &asked, &answers);
    let mut forged = again(&call, &asked, &answers);
    forged["requestState"] = json!("c3RhdGU");
    for odd in [other, tool, forged] {
        let (_, refused) = call_alone(&gateway, &odd);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let error = &refused["error"]["data"]["error"];
        assert_eq!(error["kind"], "invalid_argument", "{refused}");
        assert_eq!((&error["certainty"], &error["details"][0]["field"]), (&json!("not_sent"), &json!("requestState")));
    }
    let mut number = again(&call, &asked, &answers);
    number["requestState"] = json!(7);
    let (_, refused) = call_alone(&gateway, &number);
    assert_eq!(envelope(&refused)["error"]["kind"], "invalid_argument", "{refused}");
    // Answers without a state are for the server to judge, which asks.
    let mut alone = params("book", &json!({ "order": 3 }));
    alone["inputResponses"] = answers.clone();
    let (_, first) = call_alone(&gateway, &alone);
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert!(done(&place).is_empty());
    // The state is still good for what it was given for.
    let (_, answer) = call_alone(&gateway, &again(&call, &asked, &answers));
    assert!(answer["result"]["structuredContent"]["inputs"].is_array(), "{answer}");
    assert_eq!(done(&place).len(), 1);
}

#[test]
fn an_answer_that_is_none_is_asked_for_again() {
    let place = Place::new();
    let (_server, gateway) = stand(&place, "legacy", "");
    let call = params("book", &json!({ "order": 1 }));
    let (_, mut asked) = call_alone(&gateway, &call);
    let key = only_key(&asked);
    for odd in [json!({}), json!({ key.as_str(): 12345 }), json!(null)] {
        asked = call_alone(&gateway, &again(&call, &asked, &odd)).1;
        assert_eq!(only_key(&asked), key, "{asked}");
    }
    assert!(done(&place).is_empty());
    let (_, answer) = call_alone(&gateway, &again(&call, &asked, &accept(&key)));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["action"], "accept", "{answer}");
}

#[test]
fn a_call_that_is_repeated_while_it_waits_is_asked_the_same_again() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let (_server, gateway) = stand(&place, era, "");
        let call = params("book", &json!({ "order": 1 }));
        // The first answer never arrives: the client knows nothing but its call.
        let given = headers(&call);
        let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let lost = http::send(&gateway.address, "/mcp", &given, message(&call).as_bytes());
        eventually("the agent is asked", || events(&place, "inquiry_opened") == 1);
        let (_, asked) = call_alone(&gateway, &call);
        drop(lost);
        let (_, answer) = call_alone(&gateway, &again(&call, &asked, &accept(&only_key(&asked))));
        assert!(answer["result"]["structuredContent"]["inputs"].is_array(), "{answer}");
        assert_eq!(done(&place).len(), 1, "{era}");
    }
}

#[test]
fn what_nobody_answers_in_time_counts_as_cancelled() {
    let declared = "[tools.book]\neffect = \"write\"\ninput_within = \"1s\"";
    let place = Place::new();
    let (_server, gateway) = stand(&place, "modern", declared);
    let call = params("book", &json!({ "order": 1 }));
    let (_, asked) = call_alone(&gateway, &call);
    eventually("its time is over", || events(&place, "call_ended") == 1);
    let (_, late) = call_alone(&gateway, &again(&call, &asked, &accept(&only_key(&asked))));
    assert_eq!(envelope(&late)["error"]["kind"], "tool_cancelled", "{late}");
    assert_eq!(envelope(&late)["error"]["certainty"], "not_processed", "{late}");
    assert!(done(&place).is_empty());

    let place = Place::new();
    let (_server, gateway) = stand(&place, "legacy", declared);
    let call = params("book", &json!({ "order": 1 }));
    let (_, asked) = call_alone(&gateway, &call);
    only_key(&asked);
    // A server that waits is told that the user dismissed it.
    eventually("the server goes on", || done(&place).len() == 1);
    assert_eq!(done(&place)[0]["inputs"][0]["action"], "cancel");
}

#[test]
fn nobody_is_asked_what_it_did_not_declare() {
    let place = Place::new();
    let (_server, gateway) = stand(&place, "modern", "");
    let call = params_of("book", &json!({}), &json!({ "sampling": {} }));
    let (status, refused) = call_alone(&gateway, &call);
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32021)), "{refused}");
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{refused}");
    assert_eq!(refused["error"]["data"]["error"]["certainty"], "not_processed", "{refused}");
    assert!(done(&place).is_empty());

    let place = Place::new();
    let (_server, gateway) = stand(&place, "legacy", "");
    let call = params_of("book", &json!({}), &json!({ "sampling": {} }));
    let (_, answer) = call_alone(&gateway, &call);
    let told = &answer["result"]["structuredContent"]["inputs"][0]["error"];
    assert_eq!(told["code"], -32601, "{answer}");
    assert!(told["message"].as_str().is_some_and(|text| text.contains("elicitation")), "{answer}");
}
