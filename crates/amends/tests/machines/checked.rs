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

/// A machine with an error and a warning in each of two actions, beside a tool that is worth a word.
const BOTH: &str = "[tools.charge]\neffect = \"write\"\n\
    [machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\n\
    [machines.m.actions.go]\nfrom = [\"a\"]\nto = \"z\"\nparallel = {}\n\
    [machines.m.actions.pay]\nfrom = [\"a\"]\nto = \"z\"\ntool = \"unheard\"\n\
    [machines.n]\ninitial = \"a\"\nterminal = [\"z\"]\n\
    [machines.n.actions.go]\nfrom = [\"a\"]\nto = \"z\"\ntool = \"charge\"\nargs = { n = \"inputs.n\" }\n";

#[test]
fn warnings_are_told_beside_errors() {
    let place = Place::new();
    let places = |said: &Value| {
        let found = said["findings"].as_array().expect("findings").iter();
        found.map(|found| json!([found["line"], found["level"], found["at"]])).collect::<Vec<_>>()
    };
    let unread = vec![
        json!([9, "error", "m.actions.go.parallel"]),
        json!([13, "warning", "m.actions.pay.tool"]),
        json!([21, "warning", "n.actions.go.args"]),
    ];
    let (code, said) = checked(&place, BOTH);
    assert_eq!((code, places(&said)), (1, unread.clone()), "{said}");
    let file = place.path("checked.toml").display().to_string();
    let (code, said) = told(&["check", "--json", "--config", &file]);
    assert_eq!((code, places(&said)), (1, unread), "{said}");
    let beside = "`tools.charge`: a `write` without `status` or a key: every doubt goes to a person";
    assert!(said["warnings"].as_array().is_some_and(|all| all.contains(&json!(beside))), "{said}");

    let output = Command::new(AMENDS).args(["check", "--config", &file]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = [
        format!("amends: {file}:9: `machines.m.actions.go.parallel`: it makes no call at all; "),
        format!("amends: warning: {file}:13: `machines.m.actions.pay.tool`: nothing is known of the tool `unheard`; "),
        format!("amends: warning: {file}:21: `machines.n.actions.go.args`: `inputs.n` reads `inputs.n`, which is not"),
        format!("amends: warning: {beside}"),
    ];
    for line in lines {
        assert!(text.lines().any(|said| said.starts_with(&line)), "{line}: {text}");
    }

    // What is wrong with a machine that can be read hides no warning either.
    let read = BOTH.replace("parallel = {}", "guard = \"1 > 2\"");
    let (_, said) = checked(&place, &read);
    let found = places(&said);
    assert_eq!(found[0], json!([9, "error", "m.actions.go.guard"]), "{said}");
    assert!(found.contains(&json!([13, "warning", "m.actions.pay.tool"])), "{said}");
}

#[test]
fn every_mistake_of_a_scenario_is_told_with_its_line() {
    let place = Place::new();
    let text = "config = \"none.toml\"\nmachine = \"m\"\n[[steps]]\nreset = true\ninputs = { n = 1 }\n[[steps]]\nacton = \"go\"\n";
    let file = place.write("broken.scenario.toml", text).display().to_string();
    let (code, said) = told(&["machine", "test", "--json", &file]);
    let lines: Vec<&Value> =
        said["scenarios"][0]["mistakes"].as_array().expect("mistakes").iter().map(|it| &it["line"]).collect();
    assert_eq!((code, lines), (2, vec![&json!(5), &json!(7)]), "{said}");
    let output = Command::new(AMENDS).args(["machine", "test", &file]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with(&format!("{file}: cannot be told:\n  line 5: step 1: `reset` takes no `inputs`")),
        "{text}"
    );
    assert!(text.contains("\n  line 7: unknown key `acton`; did you mean `action`?\n"), "{text}");
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
