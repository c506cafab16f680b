//! A tool before which people are asked, as a task: it waits for each answer, and then goes on with the call.

use serde_json::{Value, json};

use crate::peer::Client;
use crate::support::{Place, eventually};

const QUESTIONS: &str = r#"
[questions.terms]
message = "How much is it?"
queue = "finance"
schema = { type = "object", properties = { amount = { type = "integer", minimum = 1, maximum = 100 } }, required = ["amount"] }

[questions.which]
message = "Which order is it?"
queue = "finance"
field = "order"
options = ["ord_1", "ord_2"]

[tools.charge_card]
effect = "write"
ask = ["terms", "which"]
"#;

#[test]
fn a_task_waits_for_what_people_answer_and_goes_on_with_it_also_after_a_restart() {
    for dies in [false, true] {
        let place = Place::new();
        let config = place.write("questions.toml", QUESTIONS).display().to_string();
        let mut gateway = place.up_with("", &["--config", &config]);
        let mut client = Client::of(&gateway.address, &json!({}));
        let task = client.call("m1", "charge_card", json!({ "order": "?", "amount": 0 }));
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        let asked = task["status"]["message"]["parts"][1]["data"].clone();
        assert_eq!((&asked["kind"], &asked["queue"]), (&json!("ask"), &json!("finance")), "{asked}");
        assert_eq!(asked["form"]["properties"]["amount"]["maximum"].as_f64(), Some(100.0), "{asked}");
        if dies {
            gateway.kill();
            gateway = place.up_with("", &["--config", &config]);
            client = Client::of(&gateway.address, &json!({}));
        }
        let id = |asked: &Value| asked["interaction"].as_str().expect("a question").to_owned();
        let given = ["answer", &id(&asked), "answer", "--by", "ada", "--content", r#"{"amount":7}"#];
        let (code, said) = place.amends(&given);
        assert_eq!(code, 0, "{said}");
        let mut next = Value::Null;
        eventually("the next question is asked", || {
            let now = client.ask("get", json!({ "id": task["id"] }));
            next = now["status"]["message"]["parts"][1]["data"].clone();
            now["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" && next["kind"] == "select"
        });
        assert_eq!(place.requests("charge_card"), 0, "nothing is sent before the last answer");
        let (code, said) = place.amends(&["answer", &id(&next), "ord_2", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        let mut after = Value::Null;
        eventually("the task is done", || {
            after = client.ask("get", json!({ "id": task["id"] }));
            after["status"]["state"] == "TASK_STATE_COMPLETED"
        });
        assert_eq!(after["artifacts"][0]["parts"][0]["data"]["status"], "success", "{after}");
        assert_eq!((place.effects("charge_card"), place.effects_on("charge_card", "ord_2")), (1, 1));
        place.settled();
    }
}

#[test]
fn a_no_to_a_question_rejects_the_task() {
    let place = Place::new();
    let config = place.write("questions.toml", QUESTIONS).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    let task = client.call("m1", "charge_card", json!({ "order": "?", "amount": 0 }));
    let asked = task["status"]["message"]["parts"][1]["data"]["interaction"].as_str().expect("a question").to_owned();
    let (code, said) = place.amends(&["answer", &asked, "deny", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    eventually("the task is over", || {
        client.ask("get", json!({ "id": task["id"] }))["status"]["state"] == "TASK_STATE_REJECTED"
    });
    assert_eq!(place.requests("charge_card"), 0);
}
