//! What `amends machine check` and `amends machine test` say of declarations, by the program itself.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{AMENDS, Place};

/// What a command says as JSON, and its exit code.
fn told(arguments: &[&str]) -> (i32, Value) {
    let output = Command::new(AMENDS).args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let said = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap_or(-1), said)
}

fn checked(place: &Place, text: &str) -> (i32, Value) {
    let file = place.write("checked.toml", text);
    told(&["machine", "check", "--json", &file.display().to_string()])
}

#[test]
fn machines_that_run_each_other_many_times_over_are_checked_soon() {
    let mut text = String::new();
    for n in 0..7 {
        text += &format!("[machines.m{n}]\ninitial = \"a\"\nterminal = [\"z\"]\nlimits = {{ steps = 100 }}\n");
        for k in 0..60 {
            let next = n + 1;
            text += &format!("[machines.m{n}.actions.go{k}]\nfrom = [\"a\"]\nto = \"z\"\nmachine = \"m{next}\"\n");
        }
    }
    text +=
        "[machines.m7]\ninitial = \"a\"\nterminal = [\"z\"]\n[machines.m7.actions.end]\nfrom = [\"a\"]\nto = \"z\"\n";
    let (code, said) = checked(&Place::new(), &text);
    assert_eq!((code, &said["valid"]), (0, &json!(true)), "{said}");
}

#[test]
fn every_key_that_cannot_be_read_is_a_finding_with_its_place() {
    let text = "[machines.m]\ninitial = 5\nmode = \"tool\"\nfields = { begun = 2026-01-02 }\nlimits = [3]\n\
                [machines.m.actions.go]\nfrom = \"a\"\nto = \"z\"\ntims = 3\n";
    let (code, said) = checked(&Place::new(), text);
    let found = said["findings"].as_array().expect("findings");
    let places: Vec<Value> =
        found.iter().map(|found| json!([found["line"], found["machine"], found["at"], found["action"]])).collect();
    assert_eq!(
        (code, places),
        (
            1,
            vec![
                json!([2, "m", "m.initial", null]),
                json!([3, "m", "m.mode", null]),
                json!([4, "m", "m.fields.begun", null]),
                json!([5, "m", "m.limits", null]),
                json!([7, "m", "m.actions.go.from", "go"]),
                json!([9, "m", "m.actions.go.tims", "go"]),
            ]
        ),
        "{said}"
    );
    assert!(found.iter().all(|found| found["fix"].as_str().is_some_and(|fix| !fix.is_empty())), "{said}");
}

#[test]
fn what_an_agent_says_of_a_stage_is_kept_as_it_is() {
    let place = Place::new();
    place.write(
        "stage.toml",
        "[tools.look]\neffect = \"read\"\n[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\n[machines.m.actions.go]\n\
         from = [\"a\"]\nto = \"z\"\nallowed = [\"look\"]\nwrites = { cause = \"result.fields.cause\", all = \"result.fields\" }\n\
         completion = { allOf = [{ type = \"object\", properties = { cause = { type = \"string\" } }, required = [\"cause\"] }] }\n",
    );
    let scenario = place.write(
        "stage.scenario.toml",
        "config = \"stage.toml\"\nmachine = \"m\"\n[[steps]]\naction = \"go\"\n[[steps]]\naction = \"complete\"\n\
         inputs = { cause = \"heat\", sure = true }\n\
         expect = { state = \"z\", fields = { cause = \"heat\", all = { cause = \"heat\", sure = true } } }\n",
    );
    let (code, said) = told(&["machine", "test", "--json", &scenario.display().to_string()]);
    assert_eq!((code, &said["passed"]), (0, &json!(true)), "{said}");
}
