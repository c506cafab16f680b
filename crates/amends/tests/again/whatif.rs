//! `amends whatif`.

use crate::{SURFACE, json, over, recovered, said};

#[test]
fn a_rule_that_gives_up_sooner_sends_less_and_ends_otherwise() {
    let (place, _gateway, call) = recovered();
    place.write("rules.toml", SURFACE);
    let before = place.events().len();
    let found = json(&over(&place, &["whatif", "--playbook", "rules.toml", "--since", "1h", "--json"]));
    assert_eq!(found["all"]["otherwise"], 1, "{found}");
    assert_eq!(found["all"]["sends_fewer"], 1, "{found}");
    let number = |name: &str| found["all"][name].as_u64().expect("a number");
    assert_eq!(number("calls"), number("same") + 1, "{found}");
    let end = &found["ends_otherwise"][0];
    assert_eq!(end["from"], "succeeded_after_compensation (processed)", "{found}");
    assert!(end["to"].as_str().is_some_and(|to| to.starts_with("exhausted")), "{found}");
    assert_eq!(end["examples"][0], call);
    let row = found["by"].as_array().expect("rows").iter().find(|row| row["verdict"] == "server_error_5xx");
    assert_eq!(row.expect("its row")["tool"], "get_order", "{found}");
    let text = said(&over(&place, &["whatif", "--playbook", "rules.toml"]));
    assert!(text.contains("how they end otherwise") && text.contains(&call), "{text}");
    assert_eq!(place.events().len(), before, "nothing is written");
    place.assert_verified();
}

#[test]
fn what_the_record_cannot_answer_is_beyond_it() {
    let (place, _gateway, _) = recovered();
    // A person is asked whether to send again, and nobody ever was.
    let ask = "[tools.get_order.playbook.server_error_5xx]\ncompensation = \"escalate_to_human\"\nqueue = \"ops\"\n";
    place.write("ask.toml", ask);
    let found = json(&over(&place, &["whatif", "--playbook", "ask.toml", "--json"]));
    assert_eq!(found["all"]["beyond"], 1, "{found}");
    assert_eq!(found["beyond"][0]["why"], "a person is asked who was not", "{found}");
    assert_eq!(found["all"]["otherwise"], 0, "{found}");
}

#[test]
fn the_same_rules_change_nothing() {
    let (place, _gateway, _) = recovered();
    place.write("none.toml", "[tools.send_email.playbook.server_error_5xx]\ncompensation = \"surface\"\n");
    let found = json(&over(&place, &["whatif", "--playbook", "none.toml", "--json"]));
    assert_eq!(found["all"]["calls"], found["all"]["same"], "{found}");
    assert_eq!(found["not_called"][0], "send_email", "{found}");
    assert!(found["not_decidable"].as_array().is_some_and(Vec::is_empty), "{found}");
}

#[test]
fn forbidden_rules_are_refused_with_their_line() {
    let (place, _gateway, _) = recovered();
    for (rules, says) in [
        ("\n[retry.verdict.in_doubt]\nmax_attempts = 2\n", "rules.toml:2: `retry.verdict.in_doubt`"),
        ("[tools.get_order.playbok.in_doubt]\n", "rules.toml:1: unknown key `playbok`; did you mean `playbook`?"),
    ] {
        place.write("rules.toml", rules);
        let output = over(&place, &["whatif", "--playbook", "rules.toml"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(says), "{}", said(&output));
    }
    assert_eq!(over(&place, &["whatif", "--playbook", "nowhere.toml"]).status.code(), Some(2));
    let output = over(&place, &["whatif", "--playbook", "rules.toml", "--since", "yesterday"]);
    assert!(said(&output).contains("`yesterday` is not a length of time"), "{}", said(&output));
}
