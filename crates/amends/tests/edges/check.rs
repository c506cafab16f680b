//! `amends check`: what a configuration means, and what is wrong with one.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{AMENDS, Place, root};

fn check(place: &Place, flags: &[&str]) -> Output {
    let mut command = Command::new(AMENDS);
    command.args(["check", "--config", "amends.toml"]).args(flags).current_dir(place.path(""));
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A place with the configuration that the golden is about.
fn written() -> Place {
    let place = Place::new();
    let config = std::fs::read_to_string(root().join("fixtures/check/amends.toml")).expect("the fixture");
    place.write("amends.toml", &config);
    place
}

fn explained(place: &Place) -> Value {
    let output = check(place, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rule<'a>(tools: &'a Value, tool: &str, verdict: &str, code: &str) -> &'a Value {
    let tools = tools["tools"].as_array().expect("tools");
    let found = tools.iter().find(|checked| checked["tool"] == tool).expect("the tool");
    let rules = found["rules"].as_array().expect("rules");
    rules.iter().find(|rule| rule["verdict"] == verdict && rule["code"] == code).expect("the rule")
}

#[test]
fn a_configuration_is_explained_as_the_golden_says() {
    let place = written();
    let output = check(&place, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let golden = root().join("fixtures/check/explained.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &output.stdout).expect("the golden is written");
    }
    let expected = std::fs::read_to_string(&golden).expect("the golden");
    assert_eq!(text(&output.stdout), expected, "UPDATE=1 writes it anew");
}

#[test]
fn every_rule_says_where_it_comes_from_and_the_nearest_one_is_it() {
    let place = written();
    let tools = explained(&place);
    let from = |tool, verdict, code| {
        let rule = rule(&tools, tool, verdict, code);
        (rule["origin"].as_str().expect("an origin").to_owned(), rule["line"].as_u64())
    };
    let lines: Vec<String> =
        std::fs::read_to_string(place.path("amends.toml")).expect("the file").lines().map(str::to_owned).collect();
    let line = |section: &str| lines.iter().position(|line| line == section).map(|at| at as u64 + 1);
    assert_eq!(
        from("shop__get_order", "transient_timeout", "NetworkTimeout"),
        ("class".into(), line("[retry.class.ProviderTransient]"))
    );
    assert_eq!(
        from("shop__get_order", "server_error_5xx", "Provider5xx"),
        ("verdict".into(), line("[retry.verdict.server_error_5xx]"))
    );
    assert_eq!(from("shop__get_order", "transient_timeout", "ExecutionTimeout"), ("default".into(), None));
    assert_eq!(
        from("shop__issue_refund", "transient_timeout", "NetworkTimeout"),
        ("tool_retry".into(), line("[tools.shop__issue_refund.retry]"))
    );
    assert_eq!(
        from("shop__issue_refund", "transient_timeout", "ExecutionTimeout"),
        ("tool_class".into(), line("[tools.shop__issue_refund.retry.class.ToolTransient]"))
    );
    assert_eq!(
        from("shop__issue_refund", "server_error_5xx", "Provider5xx"),
        ("tool_verdict".into(), line("[tools.shop__issue_refund.retry.verdict.server_error_5xx]"))
    );
    assert_eq!(
        from("shop__charge_card", "upstream_unavailable", "ConnectRefused"),
        ("tool".into(), line("[tools.shop__charge_card.playbook.upstream_unavailable]"))
    );
    let ladder = &rule(&tools, "shop__issue_refund", "transient_timeout", "NetworkTimeout")["backoff_ms"];
    assert_eq!(ladder, &serde_json::json!([100, 200, 400]));
}

#[test]
fn a_mistake_is_refused_with_its_file_and_line() {
    let place = Place::new();
    for (config, says) in [
        ("[tools.a]\nefect = \"read\"\n", "amends.toml:2: unknown key `efect`; did you mean `effect`?"),
        ("\n[tools.a]\neffect = \"keyed\"\n", "amends.toml:2: `tools.a.key`"),
        ("[retry.verdict.in_doubt]\nretryable = true\n", "amends.toml:1: `retry.verdict.in_doubt`"),
        ("[retry.class.ProviderTransient]\nmax_attempts = 1000\n", "amends.toml:2: `retry.class.ProviderTransient`"),
        ("[tools.a.retry]\ncodes = [\"NetworkTimout\"]\n", "amends.toml:2: `tools.a.retry`"),
        ("\n[tools.a.playbook.policy_denied]\ncompensation = \"wait\"\n", "amends.toml:2: `tools.a.playbook.policy"),
    ] {
        place.write("amends.toml", config);
        let output = check(&place, &[]);
        assert_eq!(output.status.code(), Some(1), "{config}");
        assert!(text(&output.stderr).contains(says), "{config}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
        let output = check(&place, &["--json"]);
        assert_eq!(output.status.code(), Some(1));
        let refused: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(refused["valid"] == false && refused["error"].as_str().is_some_and(|error| error.contains(says)));
        assert!(refused["line"].is_u64(), "{refused}");
    }
    std::fs::remove_file(place.path("amends.toml")).expect("it was there");
    assert_eq!(check(&place, &[]).status.code(), Some(2));
}
