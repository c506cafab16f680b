//! `amends drill` through the real binary: its table, its JSON, its exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const AMENDS: &str = env!("CARGO_BIN_EXE_amends");

#[test]
fn the_demo_keeps_every_promise_and_its_table_is_the_one_we_know() {
    let output = drill(&[]);
    let table = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{table}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "there is no progress without a terminal");
    let golden = root().join("fixtures/drill/demo.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &table).expect("the golden can be written");
    }
    let known = std::fs::read_to_string(&golden).expect("there is a golden");
    assert_eq!(known, table, "UPDATE=1 writes it anew");
}

#[test]
fn json_says_what_the_table_says() {
    let output = drill(&["--json", "--tool", "issue_refund"]);
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["holds"], true);
    let tools = document["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["tool"], "issue_refund");
    assert_eq!(tools[0]["effect"], "keyed");
    let rows = tools[0]["faults"].as_array().expect("a list");
    let lost = rows.iter().find(|row| row["faults"][0] == "lose_response").expect("it is drilled");
    assert_eq!((&lost["sends"], &lost["effects"]), (&2.into(), &1.into()), "{lost}");
    assert_eq!(lost["outcomes"][0], "succeeded_after_compensation");
    assert!(tools[0]["pairs"].as_array().is_some_and(|pairs| pairs.len() > 500));
    assert!(tools[0]["pairs"].as_array().is_some_and(|pairs| pairs.iter().all(|row| row["broken"].is_null())));
}

#[test]
fn an_upstream_that_forgets_its_keys_breaks_a_promise_and_the_story_is_told() {
    let output = drill(&["--tool", "issue_refund", "--no-pairs", "--assume", "upstream-forgets-keys"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("BROKEN at_most_once"), "{said}");
    assert!(said.contains("the first of them: issue_refund with lose_response"), "{said}");
    assert!(said.contains("breaks `at_most_once`: one wish took effect 2 times"), "{said}");
    assert!(said.contains("attempt_started call_1/2 (act)"), "{said}");
    let document = drill(&["--tool", "issue_refund", "--no-pairs", "--assume", "upstream-forgets-keys", "--json"]);
    let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
    assert_eq!(document["holds"], false);
}

#[test]
fn a_plain_write_declared_as_idempotent_or_read_breaks_a_promise() {
    let folder = tempfile::tempdir().expect("a folder");
    for (effect, assume) in [("idempotent", "repeats-add-up"), ("read", "reads-write")] {
        let config = config(folder.path(), &format!("[tools.shop__pay]\neffect = \"{effect}\"\n"));
        let honest = drill(&["--config", &config]);
        assert_eq!(honest.status.code(), Some(0), "{}", stdout(&honest));
        let lied = drill(&["--config", &config, "--assume", assume]);
        assert_eq!(lied.status.code(), Some(1), "{}", stdout(&lied));
        assert!(stdout(&lied).contains("breaks `at_most_once`"), "{}", stdout(&lied));
    }
}

#[test]
fn what_an_operator_overrides_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = "[tools.shop__look]\neffect = \"read\"\n";
    let row = |config: &str| {
        let document = drill(&["--config", config, "--json", "--no-pairs"]);
        let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
        let rows = document["tools"][0]["faults"].as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["faults"][0] == "status_500").expect("it is drilled")
    };
    assert_eq!(row(&config(folder.path(), tool))["outcomes"][0], "succeeded_after_compensation");
    let rule = format!("{tool}[tools.shop__look.playbook.server_error_5xx]\ncompensation = \"surface\"\n");
    assert_eq!(row(&config(folder.path(), &rule))["outcomes"][0], "exhausted");
}

#[test]
fn evidence_objects_reversals_and_queues_are_drilled_as_declared() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = r#"
        [tools.shop__refund]
        effect = "write"
        status = { tool = "shop__get_refund", args = { key = "key" }, happened = "result.found" }
        settles_within = "10s"
        object = "args.order"
        reverse = { tool = "shop__cancel", args = { id = "result.id" }, within = "24h" }
        evidence = [{ tool = "shop__look", args = { id = "args.order" } }]
        queue = "refunds"
        [tools.shop__refund.playbook.cancelled]
        compensation = "issue_reversal"
        [tools.shop__cancel]
        [tools.shop__get_refund]
        effect = "read"
        [tools.shop__look]
        effect = "read"
    "#;
    let output = drill(&["--config", &config(folder.path(), tools), "--tool", "shop__refund", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let rows = document["tools"][0]["faults"].as_array().expect("a list");
    let row = |fault: &str| rows.iter().find(|row| row["faults"][0] == fault).expect("it is drilled");
    assert_eq!(row("precondition")["outcomes"][0], "deprecated");
    assert_eq!(row("precondition_same")["outcomes"][0], "succeeded_after_compensation");
    assert_eq!((&row("cancel_after")["effects"], &row("cancel_after")["undone"]), (&1.into(), &1.into()));
    assert_eq!(row("reader_fails")["asked"][0]["queue"], "refunds");
    assert!(rows.iter().any(|row| row["reading_first"] == true));
}

#[test]
fn undoings_another_agent_and_what_nobody_declared_are_drilled_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = r#"
        [tools.shop__refund]
        effect = "write"
        object = "args.order"
        reverse = { tool = "shop__cancel", args = { id = "result.id" }, within = "24h" }
        [tools.shop__cancel]
        effect = "write"
    "#;
    let output = drill(&["--config", &config(folder.path(), tools), "--no-pairs", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let tool = |name: &str| {
        let tools = document["tools"].as_array().expect("a list");
        tools.iter().find(|tool| tool["tool"] == name).unwrap_or_else(|| panic!("`{name}` is drilled")).clone()
    };
    let row = |rows: &Value, fault: &str, after_ms: Option<u64>| {
        let wanted = |row: &&Value| row["faults"][0] == fault && row["after_ms"].as_u64() == after_ms;
        rows.as_array().expect("a list").iter().find(wanted).expect("it is drilled").clone()
    };
    let refund = tool("shop__refund");
    let undone = row(&refund["undoing"], "lose_response", None);
    assert_eq!((&undone["sends"], &undone["effects"]), (&1.into(), &1.into()), "{undone}");
    assert_eq!(undone["outcomes"][0], "unresolved");
    assert_eq!(row(&refund["beside"], "lose_response", Some(60_000))["other"][0], "in_flight");
    assert_eq!(row(&refund["beside"], "ok", Some(60_000))["other"][0], "succeeded");
    let other = tool("shop__*");
    assert_eq!((&other["declared"], &other["effect"]), (&false.into(), &"write".into()));
    let lost = row(&other["faults"], "lose_response", None);
    assert_eq!((&lost["sends"], &lost["asked"]), (&1.into(), &serde_json::json!([])), "nobody is asked: {lost}");
    assert_eq!(lost["who_must_act"], "agent");
}

#[test]
fn pairs_are_listed_or_left_out_as_asked() {
    let summed = stdout(&drill(&["--tool", "charge_card"]));
    assert!(summed.contains(" pairs: at most "), "{summed}");
    assert!(!summed.contains("lose_request, late"), "{summed}");
    let listed = stdout(&drill(&["--tool", "charge_card", "--pairs"]));
    assert!(listed.lines().any(|line| line.trim_start().starts_with("lose_request, lose_response ")), "{listed}");
    let left_out = stdout(&drill(&["--tool", "charge_card", "--no-pairs"]));
    assert!(!left_out.contains("pairs"), "{left_out}");
}

#[test]
fn a_configuration_that_cannot_be_drilled_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, says) in [
        ("[tools.pay]\nefect = \"write\"\n", "did you mean `effect`?"),
        ("", "declares no tools"),
        ("[tools.pay]\neffect = \"keyed\"\n", "where its key goes"),
    ] {
        let output = drill(&["--config", &config(folder.path(), text)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(output.stdout.is_empty());
    }
    let unknown = drill(&["--tool", "charge_cards"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `charge_card`?"));
}

#[test]
fn a_configuration_for_a_wrapped_server_is_drilled_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[upstreams.wrapped]\ntimeout = \"3s\"\n\n[tools.pay]\neffect = \"write\"\n";
    let file = folder.path().join("wrap.toml");
    std::fs::write(&file, text).expect("it can be written");
    let output = drill(&["--config", &file.display().to_string(), "--no-pairs"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("pay (write, at `wrapped`)"), "{said}");
    assert!(said.lines().any(|line| line.contains("lose_response") && line.ends_with("3.0 s")), "{said}");
}

#[test]
fn a_live_drill_finds_the_same_in_the_shops_book() {
    let output = drill(&["--live", "--no-pairs", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let rows = document["live"].as_array().expect("a list");
    assert_eq!(output.status.code(), Some(0), "{rows:#?}\n{said}");
    let found = |tool: &str, fault: &str| {
        let row = rows.iter().find(|row| row["tool"] == tool && row["fault"] == fault);
        row.cloned().unwrap_or_else(|| panic!("{tool} {fault} was not called"))
    };
    let lost = found("issue_refund", "lose_response");
    assert_eq!((&lost["effects"], &lost["told"]), (&1.into(), &"processed".into()), "{lost}");
    // It is sent again with its key, or found by its status where so much else fails at once that nothing is sent again.
    assert!(matches!(lost["sends"].as_u64(), Some(1 | 2)), "{lost}");
    let charged = found("charge_card", "lose_response");
    assert_eq!((&charged["sends"], &charged["effects"]), (&1.into(), &1.into()), "{charged}");
    assert_eq!(charged["outcome"], "unresolved");
    assert_eq!(found("charge_card", "lose_request")["effects"], 0);
    assert_eq!(found("get_order", "status_503")["told"], "processed");
}

/// Writes a configuration with one upstream and gives its path.
fn config(folder: &Path, tools: &str) -> String {
    let file = folder.join("amends.toml");
    let text = format!("[upstreams.shop]\nurl = \"http://127.0.0.1:1/mcp\"\n\n{tools}");
    std::fs::write(&file, text).expect("it can be written");
    file.display().to_string()
}

fn drill(flags: &[&str]) -> Output {
    Command::new(AMENDS).arg("drill").args(flags).output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
