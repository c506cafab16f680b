//! `amends golden`.

use crate::support::{Place, root};
use crate::{SURFACE, faults, json, over, recovered, run, said};

#[test]
fn a_recorded_call_becomes_a_golden_without_its_content() {
    let (place, _gateway, call) = recovered();
    let output = over(&place, &["golden", "add", &call, "--name", "order-fails-once"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let file = place.path("goldens/order-fails-once.toml");
    let text = std::fs::read_to_string(&file).expect("the golden");
    for content in [call.as_str(), "ord_1", "ses_", "internal"] {
        assert!(!text.contains(content), "{content}: {text}");
    }
    let output = run(&place, &["golden", "run", "goldens"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));

    place.write("rules.toml", SURFACE);
    let output = run(&place, &["golden", "run", "goldens", "--playbook", "rules.toml"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("- ") && text.contains("server_error_5xx -> retry_with_backoff"), "{text}");
    assert!(text.contains("server_error_5xx -> surface"), "{text}");

    let output = run(&place, &["golden", "run", "goldens", "--playbook", "rules.toml", "--update"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = run(&place, &["golden", "run", "goldens", "--playbook", "rules.toml", "--json"]);
    assert_eq!(json(&output)["failed"], 0);
    assert_eq!(run(&place, &["golden", "run", "goldens"]).status.code(), Some(1));
    let output = over(&place, &["golden", "add", &call, "--name", "order-fails-once"]);
    assert!(said(&output).contains("is there already"), "{}", said(&output));
}

#[test]
fn calls_of_every_kind_can_be_kept() {
    let place = Place::new();
    let script = [
        faults("issue_refund", "ord_lost", &["lose_response"]),
        faults("charge_card", "ord_lost", &["lose_response"]),
        faults("issue_refund", "ord_500", &["status_500", "status_500", "status_500"]),
        faults("charge_card", "ord_403", &["forbidden"]),
    ];
    let gateway = place.up(&script.concat());
    let lost = r#"{"order":"ord_lost","amount":5}"#;
    gateway.call("issue_refund", lost);
    gateway.call("charge_card", lost);
    gateway.call("charge_card", lost);
    gateway.call("issue_refund", r#"{"order":"ord_500","amount":5}"#);
    gateway.call("charge_card", r#"{"order":"ord_403","amount":5}"#);
    gateway.call("charge_card", r#"{"order":"ord_1","amount":"five"}"#);
    place.settled();
    let calls = place.events_named("call_received");
    assert!(calls.len() >= 7, "{}", calls.len());
    let mut runs: Vec<String> = Vec::new();
    for (n, received) in calls.iter().enumerate() {
        let call = received["call"].as_str().expect("a call");
        let output = over(&place, &["golden", "add", call, "--name", &format!("g{n}")]);
        assert_eq!(output.status.code(), Some(0), "{received}: {}", said(&output));
        let text = std::fs::read_to_string(place.path(&format!("goldens/g{n}.toml"))).expect("the golden");
        runs.extend(text.lines().filter(|line| line.starts_with("shop = ")).map(str::to_owned));
    }
    runs.dedup();
    assert_eq!(runs, ["shop = 1"], "an upstream's runs are counted, not named");
    let output = run(&place, &["golden", "run", "goldens"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn the_stories_of_this_repository_are_goldens_too() {
    let place = Place::new();
    let folder = root().join("fixtures/scenarios").display().to_string();
    let output = run(&place, &["golden", "run", &folder]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    place.write("broken.toml", "story = \"x\"\ninputs = [{ at = 0, result = \"c1\", says = \"hello\" }]\n");
    let output = run(&place, &["golden", "run", "broken.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("`says = \"hello\"` is nothing that a result can say"), "{}", said(&output));
}
