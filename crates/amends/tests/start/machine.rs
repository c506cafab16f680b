//! Machines in a configuration: drawn, checked, explained, compared with what their tools take, and told.

use serde_json::Value;

use crate::support::{AMENDS, Place};
use crate::{run, text};

const ORDER: &str = r#"
[tools.charge_card]
effect = "write"

[machines.order]
initial = "new"
terminal = ["paid", "dropped"]

[machines.order.actions.pay]
from = ["new"]
to = "paid"
tool = "charge_card"
args = { order = "inputs.order", amount = "inputs.amount" }
input = { type = "object", properties = { order = { type = "string" }, amount = { type = "number" } }, required = ["order", "amount"] }

[machines.order.actions.drop]
from = ["new"]
to = "dropped"
"#;

fn written(config: &str) -> Place {
    let place = Place::new();
    place.write("amends.toml", config);
    place
}

/// The same machine before a shop.
fn with_shop(config: &str) -> Place {
    written(&format!("[upstreams.shop]\ncommand = [{AMENDS:?}, \"shop\"]\nprefix = \"\"\n{config}"))
}

/// What a command says, and its exit code.
fn told(place: &Place, arguments: &[&str]) -> (i32, String) {
    let output = run(place, arguments);
    (output.status.code().unwrap_or(-1), text(&output.stdout))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_machine_is_drawn_in_four_ways() {
    let place = written(ORDER);
    let drawn = |how: &[&str]| {
        let (code, said) = told(&place, &[&["machine", "graph", "order"], how].concat());
        assert_eq!(code, 0, "{said}");
        said
    };
    assert_eq!(drawn(&[]), "new        drop -> [dropped]\n           pay -> [paid]\n[dropped]\n[paid]\n");
    assert!(drawn(&["--mermaid"]).starts_with("stateDiagram-v2\n"));
    assert!(drawn(&["--dot"]).starts_with("digraph \"order\" {\n"));
    assert!(drawn(&["--svg"]).starts_with("<svg xmlns="));
    let (code, said) = told(&place, &["machine", "graph", "oder"]);
    assert_eq!(code, 2, "{said}");
}

#[test]
fn every_mistake_is_told_with_its_line_and_what_to_do() {
    let place = written(&ORDER.replace("from = [\"new\"]\nto = \"dropped\"", "from = [\"neww\"]\nto = \"dropped\""));
    let (code, said) = told(&place, &["machine", "check", "amends.toml"]);
    assert_eq!(code, 1, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    // What follows from it stands in an earlier line of the file, and names it.
    assert!(
        lines[0].starts_with("amends.toml:7: error: order.terminal: nothing leads to `dropped` but `drop`"),
        "{said}"
    );
    assert_eq!(
        lines[1],
        "amends.toml:17: error: order.actions.drop.from: it can never be taken: nothing leads to `neww`; did you mean `new`?"
    );
    let (code, said) = told(&place, &["machine", "check", "amends.toml", "--json"]);
    assert_eq!(
        (code, json(&said)["valid"].as_bool(), json(&said)["findings"][1]["line"].as_u64()),
        (1, Some(false), Some(17))
    );
    let (code, said) = told(&place, &["check", "--json"]);
    assert_eq!((code, json(&said)["line"].as_u64()), (1, Some(7)), "{said}");
    let found = &json(&said)["findings"][1];
    assert_eq!((found["machine"].as_str(), found["action"].as_str()), (Some("order"), Some("drop")), "{said}");
    assert_eq!((found["line"].as_u64(), found["level"].as_str()), (Some(17), Some("error")), "{said}");
    assert_eq!(found["fix"], "did you mean `new`?", "{said}");
    let place = written(&ORDER.replace("tool = \"charge_card\"", "tool = \"charge_cash\""));
    let (code, said) = told(&place, &["check", "--json"]);
    let found = &json(&said)["machines"][0]["findings"][0];
    assert_eq!((code, found["level"].as_str(), found["line"].as_u64()), (0, Some("warning"), Some(12)), "{said}");
    assert_eq!(found["message"], "nothing is known of the tool `charge_cash`", "{said}");
    let place = written(ORDER);
    let (code, said) = told(&place, &["machine", "check", "amends.toml"]);
    assert_eq!((code, said.as_str()), (0, "amends.toml: `order` can be served\n"));
}

#[test]
fn a_machine_is_explained_and_compared_with_what_its_tools_take() {
    let place = with_shop(ORDER);
    let (code, said) = told(&place, &["check"]);
    assert_eq!(code, 0, "{said}");
    for line in [
        "machine order  one tool for all actions, 3 states, 2 actions (line 8)",
        "  drawing   new        drop -> [dropped]",
        "  action    pay: calls `charge_card(amount: inputs.amount, order: inputs.order)`",
        "  only by   this machine are reached `charge_card`",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    let (code, said) = told(&place, &["check", "--live", "--json"]);
    assert_eq!(code, 0, "{said}");

    let place = with_shop(&ORDER.replace("amount = \"inputs.amount\" }", "amnt = \"inputs.amount\" }"));
    let (code, said) = told(&place, &["check", "--live", "--json"]);
    assert_eq!(code, 1, "{said}");
    let problems = json(&said)["live"]["problems"].to_string();
    assert!(
        problems.contains(
            "line 16: machine `order`: actions.pay.args: `charge_card` takes no `amnt`; did you mean `amount`?"
        ),
        "{problems}"
    );
    assert!(problems.contains("`charge_card` requires `amount`"), "{problems}");

    let place = with_shop(&ORDER.replace("tool = \"charge_card\"", "tool = \"charge_cards\""));
    let (code, said) = told(&place, &["check", "--live", "--json"]);
    assert_eq!(code, 1, "{said}");
    let problems = json(&said)["live"]["problems"].to_string();
    assert!(
        problems.contains("`charge_cards`, used by a machine, is offered by no upstream; did you mean `charge_card`?"),
        "{problems}"
    );
}

#[test]
fn a_scenario_that_goes_otherwise_is_shown_and_fails() {
    let place = written(ORDER);
    let scenario = "config = \"amends.toml\"\nmachine = \"order\"\nstory = \"it is paid\"\n\
                    [[steps]]\naction = \"pay\"\ninputs = { order = \"o\", amount = 3 }\n\
                    answers = [{ tool = \"charge_card\", with = { order = \"o\", amount = 3 }, result = {} }]\n\
                    expect = { state = \"paid\" }\n";
    place.write("a.scenario.toml", scenario);
    place.write("b.scenario.toml", &scenario.replace("state = \"paid\"", "state = \"new\""));
    let (code, said) = told(&place, &["machine", "test", "a.scenario.toml"]);
    assert_eq!((code, said.as_str()), (0, "a.scenario.toml: as written: it is paid\n1 of 1 go as written\n"));
    let (code, said) = told(&place, &["machine", "test", "a.scenario.toml", "b.scenario.toml"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("b.scenario.toml: goes otherwise: it is paid\n  step 1, `pay`, which leads to `paid`:\n    state\n    - new\n    + paid\n1 of 2 go as written"), "{said}");
    let (code, said) = told(&place, &["machine", "test", "--json", "b.scenario.toml"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(json(&said)["scenarios"][0]["steps"][0]["mismatches"][0]["got"], "paid");
    place.write("c.scenario.toml", "config = \"amends.toml\"\nmachne = \"order\"\n");
    assert_eq!(told(&place, &["machine", "test", "c.scenario.toml"]).0, 2);
}
