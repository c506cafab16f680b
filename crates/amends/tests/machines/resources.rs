//! What can be read of a walk, and that its mirror shows the same; who asks to hear of it does.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{Agent, Mode, ORDER, assert_legal, serve};
use crate::support::client::{Client, Sdk};
use crate::support::{Place, eventually};

fn walked(client: Client, names: bool) -> Agent {
    let mut agent = Agent::new(client, Mode::Step, names);
    agent.takes("pay", json!({ "amount": 5 }));
    agent.takes("take_order", json!({ "item": "latte", "order": "ord_1" }));
    agent
}

fn text(agent: &mut Agent, uri: &str) -> (String, String) {
    let read = agent.client.run(json!({ "op": "ask", "method": "resources/read", "params": { "uri": uri } }));
    assert_eq!(read["ok"], true, "{uri}: {read}");
    let content = &read["result"]["contents"][0];
    let part = |name: &str| content[name].as_str().unwrap_or_else(|| panic!("{name} of {content}")).to_owned();
    (part("mimeType"), part("text"))
}

#[test]
fn resources_and_their_mirror_agree_and_show_the_walk() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    for (sdk, era) in
        [(Sdk::Python, "legacy"), (Sdk::Python, "modern"), (Sdk::TypeScript, "legacy"), (Sdk::TypeScript, "modern")]
    {
        let mut agent = walked(Client::http(sdk, Some(era), &gateway.mcp()), era == "modern");
        let session = agent.handle();
        for what in ["next", "history", "state", "graph", "graph.mmd", "graph.dot", "trace"] {
            let (mime, read) = text(&mut agent, &format!("amends://{session}/{what}"));
            let mirror = agent.calls("walk", json!({ "session": session, "what": what }));
            assert_legal(&mirror, &["drop_order", "pay"]);
            assert!(mirror["next_hint"].as_str().is_some_and(|hint| hint.contains("`pay`")), "{what}: {mirror}");
            let mirror = mirror["data"].clone();
            if mime == "application/json" {
                assert_eq!(serde_json::from_str::<Value>(&read).expect("JSON"), mirror, "{what}");
            } else {
                assert_eq!(json!(read), mirror, "{what}");
            }
            if era == "legacy" {
                assert_eq!(text(&mut agent, &format!("amends://{what}")).1, read, "its own walk needs no name: {what}");
            }
        }
        let read = |agent: &mut Agent, what: &str| text(agent, &format!("amends://{session}/{what}")).1;
        let json = |text: String| serde_json::from_str::<Value>(&text).expect("JSON");
        let state = json(read(&mut agent, "state"));
        assert_eq!((&state["state"]["name"], &state["seq"]), (&json!("ordered"), &json!(1)), "{state}");
        let history = json(read(&mut agent, "history"));
        let moves = history["moves"].as_array().expect("moves");
        assert_eq!(moves.len(), 2, "{history}");
        assert_eq!((&moves[0]["action"], &moves[0]["refused"]), (&json!("pay"), &json!("invalid_transition")));
        let made = (&moves[1]["from"], &moves[1]["to"], &moves[1]["seq"]);
        assert_eq!(made, (&json!("created"), &json!(["ordered"]), &json!(1)), "{history}");
        let trace = json(read(&mut agent, "trace"));
        assert!(trace.to_string().contains("move_made"), "{trace}");
        let svg = read(&mut agent, "graph");
        assert_eq!(svg.matches("class=\"state now\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("class=\"way taken\"").count(), 1, "{svg}");
    }
}

#[test]
fn a_client_with_a_session_hears_of_its_walk_and_of_one_it_names() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateful(&gateway);
    let step = |args: Value| client.call("step", args)["structuredContent"]["data"].clone();
    client.result("resources/subscribe", json!({ "uri": "amends://next" }));
    let mut heard = client.hears(None);
    let order = json!({ "item": "latte", "order": "ord_1" });
    let walk = step(json!({ "action": "take_order", "inputs": order }))["session"].clone();
    let told = heard.until("notifications/resources/updated");
    assert_eq!(told.last().map(|it| &it["params"]["uri"]), Some(&json!("amends://next")), "{told:?}");
    client.result("resources/unsubscribe", json!({ "uri": "amends://next" }));
    let named = format!("amends://{}/state", walk.as_str().expect("a handle"));
    client.result("resources/subscribe", json!({ "uri": named }));
    step(json!({ "action": "drop_order" }));
    let told = heard.until("notifications/resources/updated");
    assert_eq!(told.last().map(|it| &it["params"]["uri"]), Some(&json!(named)), "{told:?}");
    let (_, code) = client.error("resources/subscribe", json!({ "uri": "amends://ses_unknown/next" }));
    assert_eq!(code, -32002);
}

#[test]
fn a_client_without_a_session_listens_to_a_walk() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut agent = walked(Client::http(Sdk::Python, Some("modern"), &gateway.mcp()), true);
    let uri = format!("amends://{}/next", agent.handle());
    let listening = agent.client.run(json!({ "op": "listen", "filter": { "resourceSubscriptions": [uri] } }));
    assert_eq!(listening["ok"], true, "{listening}");
    agent.takes("drop_order", json!({}));
    eventually("the move was heard of", || {
        agent.client.run(json!({ "op": "heard" }))["heard"].to_string().contains(&uri)
    });
}

#[test]
fn where_no_walk_has_begun_every_machine_is_drawn() {
    let place = Place::new();
    let other = ORDER.split_once("[machines.order]").expect("the tools come first").1;
    let other = format!("[machines.again]{}", other.replace("machines.order.", "machines.again."));
    let gateway = serve(&place, &format!("{ORDER}\n{other}"));
    let client = Bare::stateless(&gateway);
    let read = |uri: &str| client.result("resources/read", json!({ "uri": uri }))["contents"][0]["text"].clone();
    let svg = read("amends://graph").as_str().expect("a picture").to_owned();
    assert_eq!(svg.matches("class=\"state now\"").count(), 2, "each where it would begin: {svg}");
    for text in [read("amends://graph.mmd"), read("amends://graph.dot")] {
        let text = text.as_str().expect("a text");
        assert!(text.contains("again") && text.contains("order"), "{text}");
    }
}
