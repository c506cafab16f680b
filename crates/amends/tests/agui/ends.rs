//! Whatever goes wrong under a run, its stream has one last event, and what was begun is done once.

use std::process::Command;

use serde_json::{Value, json};

use crate::agent::{Agent, envelope, last, outcome, results, statuses};
use crate::postgres_server::Cluster;
use crate::support::{Gateway, Place, eventually, http};

const LATE: &str =
    "[[fault]]\ntool = \"charge_card\"\nwhen = { order = \"ord_late\" }\nattempts = [\"late\"]\nlate_ms = 5000\n";

fn charge(order: &str, id: &str) -> Value {
    json!({ "tool": "charge_card", "args": { "order": order, "amount": 5 }, "id": id })
}

fn signal(gateway: &Gateway, name: &str) {
    let sent = Command::new("kill").args([name, &gateway.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name}");
}

/// It ends with an error of that code, once.
fn fails(went: &Value, code: &str) {
    assert_eq!(went["whole"], true, "the stream broke off: {went:#}");
    let ends = |event: &&Value| ["RUN_FINISHED", "RUN_ERROR"].contains(&event["type"].as_str().unwrap_or_default());
    assert_eq!(went["events"].as_array().expect("events").iter().filter(ends).count(), 1, "{went:#}");
    assert_eq!((&last(went)["type"], &last(went)["code"]), (&json!("RUN_ERROR"), &json!(code)), "{went:#}");
}

#[test]
fn a_driver_that_fails_ends_the_run_with_what_is_known_and_nothing_is_sent_again() {
    for (point, effects) in [("before_intent", 0), ("after_intent", 0), ("after_result", 1), ("before_reply", 1)] {
        let place = Place::new();
        let mut command = place.up_command("", &[]);
        command.env("AMENDS_PANIC_AT", point);
        let gateway = Gateway::start(command);
        let mut agent = Agent::of(&gateway);
        let went = agent.calls("t", json!([charge("ord_1", "a"), charge("ord_2", "b")]));
        fails(&went, "LifecycleFailure");
        assert_eq!(statuses(&went), ["failed", "pending"], "{point}: {went:#}");
        let error = &envelope(results(&went)[0])["error"];
        assert_eq!(
            (&error["code"], &error["certainty"]),
            (&json!("LifecycleFailure"), &json!("in_doubt")),
            "{point}: {error:#}"
        );
        // The session is taken up from the ledger; its repeat hears what became of it.
        place.settled();
        let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": { "calls": [charge("ord_1", "a")] } }));
        assert!(place.effects_on("charge_card", "ord_1") <= 1, "{point}: {again:#}");
        assert!(place.effects_on("charge_card", "ord_1") >= effects, "{point}: {again:#}");
        place.settled();
    }
}

#[test]
fn a_gateway_that_is_told_to_end_ends_its_runs_and_the_next_one_finds_what_was_begun() {
    let place = Place::new();
    let mut gateway = place.up_patient(LATE);
    let (mut agent, mut idle) = (Agent::of(&gateway), Agent::of(&gateway));
    let plan = json!([charge("ord_1", "a"), charge("ord_late", "b"), charge("ord_2", "c")]);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": plan } }));
    let m = idle.begin(json!({ "thread": "u", "amends": { "calls": [{ "tool": "slow_report", "args": { "steps": 1000, "step_ms": 60 } }] } }));
    eventually("both are under way", || {
        place.effects_on("charge_card", "ord_late") == 1 && place.requests("slow_report") == 1
    });
    signal(&gateway, "-TERM");
    for went in [agent.finish(n), idle.finish(m)] {
        fails(&went, "LifecycleFailure");
    }
    gateway.ended();
    let gateway = place.up_patient(LATE);
    let mut agent = Agent::of(&gateway);
    let went = agent.calls("t", plan);
    assert_eq!(statuses(&went)[0], "done", "{went:#}");
    assert_eq!(envelope(results(&went)[0])["replayed"], true, "{went:#}");
    // A write that was under way is in doubt, since its shop died with the gateway: it is not sent again.
    assert_eq!(
        (&envelope(results(&went)[1])["error"]["certainty"], statuses(&went)[1]),
        (&json!("in_doubt"), "failed"),
        "{went:#}"
    );
    for order in ["ord_1", "ord_late"] {
        assert_eq!(
            (place.requests_on("charge_card", order), place.effects_on("charge_card", order)),
            (1, 1),
            "{order}"
        );
    }
    place.settled();
}

#[test]
fn a_configuration_that_changes_under_a_run_does_not_end_it() {
    let place = Place::new();
    let config = |timeout: &str| {
        let text = format!(
            "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n\
                            [tools.charge_card]\neffect = \"write\"\n[tools.get_order]\neffect = \"read\"\ntimeout = \"{timeout}\"\n"
        );
        place.write("patient.toml", &text).display().to_string()
    };
    let gateway = place.up_with(LATE, &["--config", &config("20s")]);
    let reloads = || {
        let (_, body) = http::parse(&crate::bad_input::get(&gateway.address, "/health"));
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        said["config"]["reloads"].as_u64()
    };
    let before = reloads().expect("it says how often its configuration was read");
    let mut agent = Agent::of(&gateway);
    let plan = json!([charge("ord_late", "a"), { "tool": "get_order", "args": { "order": "ord_1" } }]);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": plan } }));
    eventually("the charge arrives", || place.effects_on("charge_card", "ord_late") == 1);
    config("21s");
    signal(&gateway, "-HUP");
    eventually("the configuration is read anew", || reloads().is_some_and(|now| now > before));
    let went = agent.finish(n);
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!(place.requests_on("charge_card", "ord_late"), 1);
    place.settled();
}

#[test]
fn a_ledger_that_goes_away_under_a_run_ends_it_and_one_that_is_away_begins_none() {
    let database = Cluster::own().database();
    let place = Place::with_ledger(database.url());
    let gateway = place.up_patient(LATE);
    let mut agent = Agent::of(&gateway);
    let n =
        agent.begin(json!({ "thread": "t", "amends": { "calls": [charge("ord_late", "a"), charge("ord_2", "b")] } }));
    eventually("the charge arrives", || place.effects_on("charge_card", "ord_late") == 1);
    database.cluster.crash();
    let went = agent.finish(n);
    fails(&went, "StoreUnavailable");
    assert_eq!(envelope(results(&went)[0])["error"]["certainty"], "in_doubt", "{went:#}");
    let away = agent.calls("u", json!([charge("ord_3", "a")]));
    fails(&away, "StoreUnavailable");
    assert_eq!(envelope(results(&away)[0])["error"]["certainty"], "not_sent", "{away:#}");
    database.cluster.start_again();
    eventually("calls work again", || {
        statuses(&agent.calls("v", json!([{ "tool": "get_order", "args": { "order": "ord_1" } }]))) == ["done"]
    });
    let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": { "calls": [charge("ord_late", "a")] } }));
    assert!(!again["events"].as_array().expect("events").is_empty(), "{again:#}");
    assert_eq!(
        (place.requests_on("charge_card", "ord_late"), place.effects_on("charge_card", "ord_late")),
        (1, 1),
        "{again:#}"
    );
    assert_eq!((place.requests_on("charge_card", "ord_2"), place.requests_on("charge_card", "ord_3")), (0, 0));
    place.settled();
}
