//! The command line: reading what happened, for people and for programs.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{AMENDS, Place, eventually};

fn run(place: &Place, arguments: &[&str]) -> Output {
    Command::new(AMENDS)
        .args(arguments)
        .current_dir(place.path(""))
        .env("HOME", place.path(""))
        .env_remove("XDG_DATA_HOME")
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let (code, said) = place.amends(arguments);
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).expect("JSON")
}

/// A ledger with one read, one write and one refusal, and the write's call.
fn written() -> (Place, String) {
    let place = Place::new();
    let gateway = place.up("");
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200);
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).0, 200);
    assert_eq!(gateway.call("charge_card", "{}").0, 422);
    eventually("all is recorded", || place.events().iter().any(|event| event["event"] == "call_refused"));
    place.settled();
    let charged = place.events().into_iter().find_map(|event| {
        let received = event["event"] == "call_received" && event["tool"] == "charge_card";
        event["call"].as_str().filter(|_| received).map(str::to_owned)
    });
    (place, charged.expect("the charge was received"))
}

#[test]
fn a_shell_completes_every_command_and_every_command_has_a_manual_page() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&place, &["completions", shell]);
        let said = text(&script.stdout);
        assert!(script.status.success() && said.contains("whatif") && said.contains("anchor"), "{shell}: {said}");
    }
    let bash = text(&run(&place, &["completions", "bash"]).stdout);
    let asked = format!(
        "{bash}\nCOMP_WORDS=(amends verify --anc); COMP_CWORD=2; _amends amends --anc verify; echo \"${{COMPREPLY[*]}}\""
    );
    let completed = Command::new("bash").args(["-c", &asked]).output().expect("bash runs");
    assert_eq!(text(&completed.stdout).trim(), "--anchor", "{}", text(&completed.stderr));

    let whole = text(&run(&place, &["man"]).stdout);
    assert!(whole.contains(".TH") && whole.contains("Exit codes"), "{whole}");
    assert!(run(&place, &["man", "--into", "pages/man1"]).status.success());
    let page = |name: &str| std::fs::read_to_string(place.path("pages/man1").join(name)).expect(name);
    assert!(page("amends.1").contains("amends\\-trace"), "{}", page("amends.1"));
    assert!(page("amends-trace.1").contains("amends trace"), "{}", page("amends-trace.1"));
    assert!(page("amends-machine-graph.1").contains("amends machine graph"));
    assert!(!place.path("pages/man1/amends-guard.1").exists(), "what is hidden has no page");
    assert_eq!(run(&place, &["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn help_has_examples_and_every_command_a_sentence() {
    let place = Place::new();
    let help = run(&place, &["--help"]);
    let said = text(&help.stdout);
    assert!(help.status.success() && said.contains("Examples:") && said.contains("Exit codes:"), "{said}");
    for command in ["up", "serve", "wrap", "check", "sessions", "trace", "verify", "checkpoint", "prove"] {
        assert!(said.contains(&format!("\n  {command}")), "{command}: {said}");
        let own = run(&place, &[command, "--help"]);
        assert!(own.status.success() && text(&own.stdout).contains("Usage: amends"), "{command}");
    }
    assert!(text(&run(&place, &["--version"]).stdout).starts_with("amends "));
    let unknown = run(&place, &["tarce"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("trace"), "{}", text(&unknown.stderr));
    assert_eq!(run(&place, &[]).status.code(), Some(2));
}

#[test]
fn sessions_and_traces_are_shown_to_people_and_to_programs() {
    let (place, call) = written();
    let (code, human) = place.amends(&["sessions"]);
    assert!(code == 0 && human.starts_with("SESSION") && human.contains("ses_"), "{human}");
    let sessions = json(&place, &["sessions", "--json"]);
    let sessions = sessions["sessions"].as_array().expect("a list");
    assert!(sessions.len() >= 3 && sessions.iter().all(|row| row["events"].as_u64() > Some(0)), "{sessions:?}");
    assert_eq!(json(&place, &["sessions", "--json", "--limit", "1"])["sessions"].as_array().map(Vec::len), Some(1));
    let (code, human) = place.amends(&["trace", &call]);
    assert_eq!(code, 0);
    for word in ["call_received", "attempt_started", "attempt_ended", "call_ended", "receipt"] {
        assert!(human.contains(word), "{word}: {human}");
    }
    let trace = json(&place, &["trace", &call, "--json"]);
    let events = trace["events"].as_array().expect("a list");
    assert!(events.len() >= 4 && events.iter().all(|event| event["hash"].is_string()), "{trace}");
    assert!(events.iter().all(|event| event.to_string().contains(&call)), "only this call's: {trace}");
    let session = trace["session"].as_str().expect("a session");
    let whole = json(&place, &["trace", session, "--json"]);
    assert!(whole["events"].as_array().map_or(0, Vec::len) > events.len());
}

#[test]
fn verify_finds_an_edited_event() {
    let (place, call) = written();
    place.assert_verified();
    let verified = json(&place, &["verify", "--json"]);
    assert_eq!((&verified["consistent"], &verified["completeness"]), (&true.into(), &"not proven".into()));
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    let edited = ledger
        .execute(
            "UPDATE events SET body = replace(body, 'charge_card', 'charge_cart') WHERE call = ?1 AND kind = 'call_received'",
            [&call],
        )
        .expect("an edit");
    assert_eq!(edited, 1);
    let (code, human) = place.amends(&["verify"]);
    assert!(code == 1 && human.contains("NOT consistent") && human.contains("ses_"), "{code}: {human}");
    let (code, found) = place.amends(&["verify", "--json"]);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!((code, &found["consistent"]), (1, &false.into()));
    let faults = found["faults"].as_array().expect("a list");
    assert!(faults.len() == 1 && faults[0]["session"].is_string() && faults[0]["seq"].is_u64(), "{found}");
}

#[test]
fn verify_finds_a_removed_event_and_a_cut_tail() {
    for removed in [
        "DELETE FROM events WHERE kind = 'attempt_started'",
        "DELETE FROM events WHERE (session, seq) IN (SELECT session, max(seq) FROM events GROUP BY session)",
    ] {
        let (place, _) = written();
        let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
        assert!(ledger.execute(removed, []).expect("a removal") > 0);
        drop(ledger);
        let (code, said) = place.amends(&["verify"]);
        assert_eq!(code, 1, "{removed}: {said}");
    }
}

#[test]
fn an_unknown_id_is_not_found_and_says_where_to_look() {
    let (place, _) = written();
    for id in ["ses_nosuch", "call_nosuch", "nosuch"] {
        let output = run(&place, &["trace", id, "--ledger", &place.ledger()]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty() && said.contains(id) && said.contains("amends sessions"), "{said}");
    }
}

#[test]
fn looking_at_a_ledger_that_is_not_there_makes_none() {
    let place = Place::new();
    let missing = place.path("missing.db");
    let url = format!("sqlite:{}", missing.display());
    for command in [&["sessions"][..], &["trace", "ses_x"], &["verify"]] {
        for json in [false, true] {
            let mut arguments = command.to_vec();
            arguments.extend(["--ledger", &url]);
            arguments.extend(json.then_some("--json"));
            let output = run(&place, &arguments);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains("missing.db") && said.contains("--ledger"), "{said}");
        }
        let output = run(&place, command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
    }
    assert_eq!(std::fs::read_dir(place.path("")).expect("the folder").count(), 0);
    let output = run(&place, &["sessions", "--ledger", "postgres"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("sqlite:FILE"), "{}", text(&output.stderr));
}

#[test]
fn a_wrong_configuration_says_where_and_what() {
    let place = Place::new();
    for (config, hint) in [
        ("[upstreams.shop]\ncomand = [\"x\"]\n", "did you mean `command`"),
        ("[tools.pay]\neffect = \"writes\"\n", "line"),
        ("[upstreams.shop]\n", "shop"),
        ("[upstreams.shop]\nurl = \"not a url\"\n", "url"),
        ("[listen]\nhttp = \"everywhere\"\n", "http"),
        ("[limits\n", "serve.toml:1"),
    ] {
        place.write("serve.toml", config);
        let output = run(&place, &["serve", "--config", "serve.toml"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{config}: {said}");
        let found = said.contains(hint) || (hint == "line" && said.contains("serve.toml:2"));
        assert!(found, "{config}: {said}");
    }
    let output = run(&place, &["serve", "--config", "no.toml"]);
    assert!(text(&output.stderr).contains("no.toml"), "{}", text(&output.stderr));
}
