//! What was recorded of a walk, given again by the faked tools of a scenario.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::order::{ORDER, serve};
use crate::support::{AMENDS, Place};

/// Exports everything: the whole file.
fn exported(place: &Place, file: &str, flags: &[&str]) -> String {
    let path = place.path(file);
    let (code, said) = place.amends(&[&["export", "--output", &path.display().to_string()], flags].concat());
    assert_eq!(code, 0, "{said}");
    std::fs::read_to_string(path).expect("an export")
}

/// Tells a scenario: the exit code and what is said of it.
fn told(scenario: &Path) -> (i32, Value) {
    let output = Command::new(AMENDS).args(["machine", "test", "--json"]).arg(scenario).output().expect("it runs");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (output.status.code().unwrap_or(-1), said["scenarios"][0].clone())
}

#[test]
fn what_a_tool_gave_is_exported_where_that_is_wanted_and_given_again_by_a_scenario() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let take = |action: &str, inputs: Value, session: &Value| {
        let mut args = json!({ "action": action, "inputs": inputs });
        if session.is_string() {
            args["session"] = session.clone();
        }
        let answer = gateway.call("step", &args.to_string()).1;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    };
    let begun = take("take_order", json!({ "item": "latte", "order": "ord_1" }), &Value::Null);
    let paid = take("pay", json!({ "amount": 5 }), &begun["session"]);
    let charge = paid["state"]["fields"]["charge"].as_str().unwrap_or_else(|| panic!("{paid}")).to_owned();
    place.settled();
    let received = place.events_named("call_received");
    let of_pay = received.iter().find(|event| event["tool"] == "charge_card");
    let call = of_pay.and_then(|event| event["call"].as_str()).unwrap_or_else(|| panic!("{received:?}"));
    let scenario = |export: &str, result: &str| {
        let text = format!(
            "config = \"serve.toml\"\nmachine = \"order\"\nexport = \"{export}\"\n\
             [[steps]]\naction = \"take_order\"\ninputs = {{ item = \"latte\", order = \"ord_1\" }}\n\
             [[steps]]\naction = \"pay\"\ninputs = {{ amount = 5 }}\n\
             answers = [{{ tool = \"charge_card\", recorded = \"{call}\"{result} }}]\n\
             expect = {{ state = \"paid\", fields = {{ charge = \"{charge}\" }} }}\n"
        );
        place.write("replayed.scenario.toml", &text)
    };

    let plain = exported(&place, "plain.jsonl", &[]);
    let whole = exported(&place, "whole.jsonl", &["--answers"]);
    assert!(!plain.contains(&charge), "what tools gave may be private");
    let events = |lines: &str| lines.lines().filter(|line| !line.starts_with(r#"{"answer""#)).count();
    assert_eq!(events(&plain), events(&whole));
    let (code, report) = told(&scenario("whole.jsonl", ""));
    assert_eq!(code, 0, "{report}");

    let (code, report) = told(&scenario("plain.jsonl", ""));
    let said = report["error"].as_str().unwrap_or_default();
    assert_eq!(code, 2, "{report}");
    assert!(
        said.starts_with(&format!("step 2: what `{call}` gave is not in the export: write it in `result`")),
        "{said}"
    );
    let (code, report) = told(&scenario("plain.jsonl", &format!(", result = {{ id = \"{charge}\" }}")));
    assert_eq!(code, 0, "{report}");

    let (code, said) = place.amends(&["export", "--answers", "--format", "csv"]);
    assert_eq!((code, said.as_str()), (2, ""), "a table has no answers");
    let other = format!("sqlite:{}", place.path("other.db").display());
    let run = |arguments: &[&str]| {
        let output = Command::new(AMENDS).args(arguments).args(["--ledger", &other]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["import", &place.path("whole.jsonl").display().to_string()]);
    run(&["verify"]);
    assert_eq!(run(&["export", "--answers"]), plain, "answers are read past, and the events are the same");
}
