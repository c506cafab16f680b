//! `amends replay`.

use crate::support::Place;
use crate::{SURFACE, faults, json, over, recovered, said};

#[test]
fn a_call_is_decided_as_it_was_and_shows_its_path() {
    let (place, _gateway, call) = recovered();
    let output = over(&place, &["replay", &call]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in [
        "attempt 1: server_error_5xx -> retry_with_backoff (default rule)",
        "attempt_started    attempt 2 to act",
        "recorded    succeeded_after_compensation (processed), sent 2 times",
        "by its own rules: the same",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_first_difference_is_named_with_the_rule_that_makes_it() {
    let (place, _gateway, call) = recovered();
    place.write("rules.toml", SURFACE);
    let output = over(&place, &["replay", &call, "--playbook", "rules.toml"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in [
        "would be    exhausted",
        "sent once",
        "first otherwise failure_judged attempt 1: server_error_5xx -> surface (tool rule)",
        "because of      [tools.get_order.playbook.server_error_5xx], rules.toml:2",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let shown = json(&over(&place, &["replay", &call, "--playbook", "rules.toml", "--json"]));
    assert_eq!(shown["same"], true);
    assert_eq!(shown["calls"][0]["would_be"]["same"], false, "{shown}");
    assert_eq!(shown["calls"][0]["would_be"]["path"]["sends"], 1);
    assert_eq!(shown["calls"][0]["would_be"]["first_difference"]["recorded"]["compensation"], "retry_with_backoff");
}

#[test]
fn todays_configuration_is_settled_as_the_gateway_would() {
    let (place, _gateway, call) = recovered();
    let upstream = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"2s\"\ndeadline = \"30s\"\n";
    place.write("same.toml", &format!("{upstream}[tools.get_order]\neffect = \"read\"\n"));
    let output = over(&place, &["replay", &call, "--config", "same.toml"]);
    assert!(said(&output).contains("by same.toml: the same"), "{}", said(&output));
    let never = "[tools.get_order.retry]\nretryable = false\n";
    place.write("other.toml", &format!("{upstream}[tools.get_order]\neffect = \"read\"\n{never}"));
    let output = over(&place, &["replay", &call, "--config", "other.toml"]);
    assert!(said(&output).contains("because of      [tools.get_order.retry], other.toml:8"), "{}", said(&output));
    place.write("elsewhere.toml", "[upstreams.bank]\nurl = \"http://127.0.0.1:1/\"\n");
    let output = over(&place, &["replay", &call, "--config", "elsewhere.toml"]);
    assert!(said(&output).contains("not decidable: `elsewhere.toml` has no upstream `shop`"), "{}", said(&output));
}

#[test]
fn a_changed_record_is_not_the_same_and_one_without_its_rules_cannot_be_decided() {
    let (place, mut gateway, call) = recovered();
    gateway.kill();
    let change = |sql: &str| {
        let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
        ledger.execute(sql, []).expect("it can be changed")
    };
    let event = |place: &Place| over(place, &["replay", &call]);
    let changed = change(
        "UPDATE events SET body = replace(body, 'succeeded_after_compensation', 'exhausted') WHERE kind = 'call_ended'",
    );
    assert!(changed > 0);
    let output = event(&place);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("NOT the same: at event"), "{}", said(&output));
    change("DELETE FROM rules");
    let output = event(&place);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("not decidable again: its rules are no longer kept"), "{}", said(&output));
    assert_eq!(over(&place, &["replay", "call_nobody"]).status.code(), Some(2));
}

#[test]
fn a_person_is_part_of_the_path() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", "ord_1", &["lose_response"]));
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    let asked = charge["error"]["interaction"].as_str().expect("a question").to_owned();
    let (code, said_of_it) = place.amends(&["answer", &asked, "happened", "--by", "ada"]);
    assert_eq!(code, 0, "{said_of_it}");
    let opened = place.events_named("interaction_opened");
    let call = opened[0]["interaction"]["call"].as_str().expect("a call");
    let output = over(&place, &["replay", call]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("{asked}: happened by ada")), "{text}");
    assert!(text.contains("recorded    unresolved (in_doubt), sent once, people asked 1"), "{text}");
}

#[test]
fn what_a_newer_version_wrote_is_said_to_be_so() {
    let (place, mut gateway, call) = recovered();
    gateway.kill();
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    ledger.execute("UPDATE events SET body = replace(body, '\"v\":1', '\"v\":2')", []).expect("it can be changed");
    drop(ledger);
    for command in ["replay", "trace"] {
        let output = over(&place, &[command, &call]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("was written by a newer Amends"), "{}", said(&output));
    }
}
