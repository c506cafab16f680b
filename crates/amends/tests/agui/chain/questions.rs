//! A question at each hop, answered at the top.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Chain, PATIENT, Told, call, charge};
use crate::agent::{Agent, interrupt, outcome, statuses};
use crate::support::{Place, served};

fn id(asks: &Value) -> &str {
    asks["id"].as_str().expect("an id")
}

#[test]
fn what_each_gateway_asks_is_an_interrupt_and_its_yes_lets_the_call_through_once() {
    let asks = "approval = \"finance\"\n[queues.finance]\nrequester = true\n";
    let second = PATIENT.replace("[tools.charge_card]\neffect = \"write\"\n", "");
    let second = format!("{second}[tools.charge_card]\neffect = \"write\"\n{asks}");
    let first = format!("[tools.clerk]\neffect = \"write\"\n{asks}");
    let chain = Chain::start(Told { first: &first, second: &second, ..Told::default() });
    let mut agent = Agent::of(&chain.first);
    // The first one asks before anything is sent, the second one once the agent has called.
    let above = interrupt(&agent.calls("t", json!([charge("ord_1")])));
    assert_eq!((&above["reason"], chain.noted("calls charge_card")), (&json!("tool_call"), 0), "{above:#}");
    let below = interrupt(&agent.resume("t", id(&above), json!({ "approved": true })));
    assert_eq!(below["reason"], "input_required", "{below:#}");
    assert_eq!(below["responseSchema"]["properties"]["approve"]["type"], "boolean", "{below:#}");
    assert_eq!(chain.charged("ord_1"), (0, 0));
    let went = agent.resume("t", id(&below), json!({ "approve": true }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!((chain.charged("ord_1"), chain.noted("calls charge_card")), ((1, 1), 1));
    // A no at the second is a no at the top, and nothing is charged.
    let above = interrupt(&agent.calls("u", json!([charge("ord_2")])));
    let below = interrupt(&agent.resume("u", id(&above), json!({ "approved": true })));
    let went = agent.resume("u", id(&below), json!({ "approve": false }));
    assert_eq!(statuses(&went), ["failed"], "{went:#}");
    let error = super::error(&went);
    assert_eq!((&error["code"], &error["class"]), (&json!("Forbidden"), &json!("ToolTerminal")), "{error:#}");
    assert_eq!(chain.charged("ord_2"), (0, 0));
    chain.settled();
}

#[test]
fn a_form_of_the_agent_is_asked_at_the_top_and_only_what_fits_goes_back() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let asks = interrupt(&agent.calls("t", json!([{ "tool": "clerk", "args": { "data": { "do": "ask" } } }])));
    assert_eq!(asks["message"], "which seat?", "{asks:#}");
    assert_eq!(asks["responseSchema"]["required"], json!(["seat", "bags"]), "{asks:#}");
    for odd in
        [json!({ "seat": "12a" }), json!({ "seat": "12a", "bags": "two" }), json!({ "seat": 12, "bags": -1 }), json!(7)]
    {
        let refused = agent.resume("t", id(&asks), odd);
        let said = (&refused["status"], &refused["refused"]["error"]["kind"]);
        assert_eq!(said, (&json!(422), &json!("invalid_argument")), "{refused:#}");
        assert!(
            refused["refused"]["error"]["details"][0]["field"]
                .as_str()
                .is_some_and(|it| it.starts_with("resume.payload"))
        );
    }
    assert_eq!(chain.notes(), ["asked"]);
    let went = agent.resume("t", id(&asks), json!({ "seat": "12a", "bags": 2, "meal": "soup" }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!(chain.notes(), ["asked", r#"is told {"bags": 2, "meal": "soup", "seat": "12a"}"#]);
    chain.settled();
}

#[test]
fn what_the_tool_itself_asks_goes_through_every_hop_and_its_answer_back() {
    let below = Place::new();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/eras/servers/asks.py");
    let done = below.path("done.jsonl").display().to_string();
    let words = ["python3".to_owned(), script.display().to_string(), "modern".to_owned(), done.clone()];
    let upstream = format!("command = {}", serde_json::to_string(&words).expect("JSON"));
    let second = served::serve_tools(&below, &upstream, "[tools.book]\neffect = \"write\"\n");
    let chain = Chain::over(below, second, String::new(), Told::default());
    let mut agent = Agent::of(&chain.first);
    let asks = interrupt(&agent.calls("t", json!([call("book", json!({ "room": 1 }))])));
    assert_eq!((&asks["reason"], &asks["message"]), (&json!("input_required"), &json!("how many?")), "{asks:#}");
    assert_eq!(asks["responseSchema"]["properties"]["n"]["type"], "integer", "{asks:#}");
    let went = agent.resume("t", id(&asks), json!({ "n": 3 }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    let book = std::fs::read_to_string(&done).expect("something was done");
    assert_eq!((book.lines().count(), book.contains(r#""n": 3"#)), (1, true), "{book}");
    chain.settled();
}
