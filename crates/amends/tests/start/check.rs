//! `amends check --live`: whether a configuration fits what the upstreams offer.

use serde_json::{Value, json};

use crate::support::Place;
use crate::{listed, run, text, words};

fn tools() -> Value {
    let takes = |names: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
    };
    json!([
        { "name": "pay", "inputSchema": takes(&["order", "idempotency_key"]) },
        { "name": "get_payment", "inputSchema": takes(&["order"]) },
        { "name": "wipe", "inputSchema": takes(&[]), "annotations": { "readOnlyHint": false } },
        { "name": "other", "inputSchema": takes(&[]) },
    ])
}

fn live(place: &Place, config: &str) -> (Option<i32>, Value) {
    let command = listed(place, "tools.json", &tools(), &["--log", &place.path("asked.log").display().to_string()]);
    place.write(
        "amends.toml",
        &format!("[ledger]\nurl = \"sqlite:here.db\"\n[upstreams.a]\ncommand = {command:?}\nprefix = \"\"\n{config}"),
    );
    let output = run(place, &["check", "--live", "--json"]);
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn what_fits_fits_and_nothing_is_called_or_recorded() {
    let place = Place::new();
    let (code, said) = live(
        &place,
        "[tools.pay]\neffect = \"keyed\"\nkey = { argument = \"idempotency_key\", window = \"1h\" }\nsettles_within = \"5s\"\n\
         status = { tool = \"get_payment\", args = { order = \"args.order\" }, happened = \"result.found\" }\n[tools.get_payment]\neffect = \"read\"\n",
    );
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said["live"]["undeclared"], json!(["other", "wipe"]));
    assert!(said["live"]["upstreams"]["a"].as_str().is_some_and(|words| words.contains("4 tools")), "{said}");
    let asked = std::fs::read_to_string(place.path("asked.log")).expect("the log");
    assert!(asked.contains("tools/list") && !asked.contains("tools/call"), "{asked}");
    assert!(!place.path("here.db").exists(), "no ledger is made");
}

#[test]
fn what_does_not_fit_is_a_problem_each() {
    let place = Place::new();
    let (code, said) = live(
        &place,
        "[tools.pays]\neffect = \"write\"\n[tools.wipe]\neffect = \"read\"\n\
         [tools.pay]\neffect = \"keyed\"\nkey = { argument = \"request\" }\nstatus = { tool = \"get_payment\", args = { ordr = \"args.order\" }, happened = \"true\" }\n\
         reverse = { tool = \"refund\", args = {} }\n",
    );
    assert_eq!(code, Some(1), "{said}");
    let problems = said["live"]["problems"].to_string();
    for word in [
        "`pays` is declared",
        "did you mean `pay`",
        "key goes into `request`",
        "`ordr`",
        "does not give `get_payment` its `order`",
        "`refund`, named by `reverse`",
    ] {
        assert!(problems.contains(word), "{word}: {problems}");
    }
    assert!(said["live"]["warnings"].to_string().contains("`wipe`"), "{said}");
    let tool = said["tools"].as_array().expect("tools").iter().find(|tool| tool["tool"] == "pay").expect("pay").clone();
    assert!(tool["warnings"].to_string().contains("no `window`"), "{tool}");
    assert_eq!(tool["origins"]["key"]["from"], "own");
    assert_eq!(tool["origins"]["timeout"]["from"], "default");
}

#[test]
fn an_upstream_that_is_away_is_a_problem_and_its_tools_are_not() {
    let place = Place::new();
    place.write(
        "amends.toml",
        "[upstreams.a]\ncommand = [\"no-such-program-anywhere\"]\nprefix = \"\"\n[tools.pay]\neffect = \"write\"\n",
    );
    let output = run(&place, &["check", "--live", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problems = said["live"]["problems"].as_array().expect("problems");
    assert!(problems.len() == 1 && problems[0].to_string().contains("does not answer"), "{said}");
}

#[test]
fn a_file_for_wrap_is_compared_with_the_command_behind_it() {
    let place = Place::new();
    let command = listed(&place, "tools.json", &tools(), &[]);
    place.write("wrap.toml", "[upstreams.wrapped]\ntimeout = \"5s\"\n[tools.get_payment]\neffect = \"read\"\n");
    let mut arguments = vec!["check", "--config", "wrap.toml", "--live", "--"];
    arguments.extend(words(&command));
    let output = run(&place, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("no section, and so a write: other, pay, wipe"), "{}", text(&output.stdout));
}
