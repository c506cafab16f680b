//! `amends propose` and `amends release`.

use serde_json::Value;

use crate::support::Place;
use crate::{SURFACE, faults, over, recovered, run, said};

fn propose(place: &Place) -> std::process::Output {
    over(place, &["propose", "--playbook", "rules.toml", "--goldens", "goldens", "-o", "proposal.json"])
}

#[test]
fn a_change_is_proposed_released_by_a_person_and_named_by_every_call_under_it() {
    let (place, mut gateway, call) = recovered();
    place.write("rules.toml", SURFACE);
    assert_eq!(over(&place, &["golden", "add", &call, "--name", "order"]).status.code(), Some(0));

    // A golden ends otherwise: the proposal says so, and it is not released.
    assert_eq!(propose(&place).status.code(), Some(0), "{}", said(&propose(&place)));
    let page = std::fs::read_to_string(place.path("proposal.md")).expect("the page");
    for words in
        ["| `get_order` | `server_error_5xx` | 1 |", "retry_with_backoff 500ms 2s ±20%", "1 were told, 1 end otherwise"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let refused = run(&place, &["release", "proposal.json", "--by", "ada"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("1 goldens end otherwise"), "{}", said(&refused));

    run(&place, &["golden", "run", "goldens", "--playbook", "rules.toml", "--update"]);
    let refused = run(&place, &["release", "proposal.json", "--by", "ada"]);
    assert!(said(&refused).contains("were changed since; propose again"), "{}", said(&refused));
    assert_eq!(propose(&place).status.code(), Some(0));
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\n[tools.get_order]\neffect = \"read\"\n";
    place.write("amends.toml", config);
    let released = run(&place, &["release", "proposal.json", "--by", "ada", "--config", "amends.toml"]);
    assert_eq!(released.status.code(), Some(0), "{}", said(&released));
    assert!(said(&released).contains("release = \"playbook-1.toml\""), "{}", said(&released));
    assert_eq!(std::fs::read_to_string(place.path("amends.toml")).expect("it"), config, "no command edits it");

    place.write("amends.toml", &format!("{config}[playbook]\nrelease = \"playbook-1.toml\"\n"));
    let checked = said(&run(&place, &["check", "--config", "amends.toml"]));
    assert!(checked.contains("released rules: version 1, released by ada"), "{checked}");
    assert!(checked.contains("from [tools.get_order.playbook.server_error_5xx], line"), "{checked}");
    gateway.kill();
    let flags = ["--config", "amends.toml"];
    let gateway = place.up_with(&faults("get_order", "ord_2", &["status_500"]), &flags);
    let (_, answer) = gateway.call("get_order", r#"{"order":"ord_2"}"#);
    assert_eq!(answer["outcome"], "exhausted", "{answer}");
    place.settled();
    let under: Vec<Value> =
        place.events_named("call_received").into_iter().filter(|call| call["release"]["version"] == 1).collect();
    assert!(!under.is_empty());
    let (_, trace) = place.amends(&["trace", under[0]["call"].as_str().expect("a call")]);
    assert!(trace.contains("under release 1 ("), "{trace}");

    // Another release in its place would drop its rules; what is compared says that it does not count that.
    place.write("other.toml", "[tools.get_order.playbook.transient_timeout]\ncompensation = \"surface\"\n");
    let found = crate::json(&over(&place, &["whatif", "--playbook", "other.toml", "--json"]));
    assert_eq!(found["had_release"][0]["version"], 1, "{found}");
    assert_eq!(found["had_release"][0]["calls"].as_u64(), Some(under.len() as u64), "{found}");
    let text = said(&over(&place, &["whatif", "--playbook", "other.toml"]));
    assert!(text.contains("calls had rules of release 1."), "{text}");
    // With the configuration that names the release, it is counted, and so it is in a proposal.
    let named = |playbook: &str| {
        crate::json(&over(&place, &["whatif", "--playbook", playbook, "--config", "amends.toml", "--json"]))
    };
    let (same, other) = (named("rules.toml"), named("other.toml"));
    assert!(same["had_release"].as_array().is_some_and(Vec::is_empty), "{same}");
    let differs =
        |found: &Value| found["all"]["otherwise"].as_u64().zip(found["all"]["beyond"].as_u64()) != Some((0, 0));
    assert!(differs(&other), "{other}");
    assert_ne!(same["all"], other["all"]);
    assert_eq!(other["playbook"], "other.toml");
    // The whole configuration without the release counts it.
    place.write("amends.toml", config);
    let found = crate::json(&over(&place, &["whatif", "--playbook", "amends.toml", "--json"]));
    assert!(found["had_release"].as_array().is_some_and(Vec::is_empty), "{found}");
    assert!(found["all"]["otherwise"].as_u64().zip(found["all"]["beyond"].as_u64()) != Some((0, 0)), "{found}");
}

#[test]
fn what_was_changed_after_it_was_proposed_or_released_is_refused() {
    let (place, _gateway, _) = recovered();
    place.write("rules.toml", SURFACE);
    let proposed = over(&place, &["propose", "--playbook", "rules.toml", "-o", "proposal.json"]);
    assert_eq!(proposed.status.code(), Some(0), "{}", said(&proposed));
    let proposal = std::fs::read_to_string(place.path("proposal.json")).expect("the proposal");

    place.write("proposal.json", &proposal.replace("surface", "fail_fast"));
    let refused = run(&place, &["release", "proposal.json", "--by", "ada"]);
    assert!(said(&refused).contains("was changed after it was made"), "{}", said(&refused));
    place.write("proposal.json", &proposal);
    place.write("rules.toml", &SURFACE.replace("surface", "fail_fast"));
    let refused = run(&place, &["release", "proposal.json", "--by", "ada"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("`rules.toml` was changed since; propose again"), "{}", said(&refused));
    // A comment changes nothing.
    place.write("rules.toml", &SURFACE.replace("A word", "Another word"));
    assert_eq!(run(&place, &["release", "proposal.json", "--by", "ada"]).status.code(), Some(0));
    assert_eq!(run(&place, &["release", "proposal.json", "--by", "bob"]).status.code(), Some(0));
    assert!(place.path("playbook-2.toml").exists(), "each release is another version");

    let text = std::fs::read_to_string(place.path("playbook-1.toml")).expect("the release");
    place.write("playbook-1.toml", &text.replace("surface", "fail_fast"));
    place.write("amends.toml", "[tools.get_order]\neffect = \"read\"\n[playbook]\nrelease = \"playbook-1.toml\"\n");
    let refused = run(&place, &["check", "--config", "amends.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("the rules were changed after their release"), "{}", said(&refused));
}
