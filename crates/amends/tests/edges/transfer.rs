//! Sessions taken out of one ledger and into another.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{AMENDS, Place};

/// A place whose ledger has a few sessions, and the lines of its export.
fn exported() -> (Place, Vec<String>) {
    let place = Place::new();
    let gateway = place.up("");
    for order in ["ord_1", "ord_2"] {
        let (_, charge) = gateway.call("charge_card", &format!(r#"{{"order":"{order}","amount":5}}"#));
        assert_eq!(charge["status"], "success", "{charge}");
    }
    drop(gateway);
    let file = place.path("all.jsonl");
    let (code, said) = place.amends(&["export", "--output", &file.display().to_string()]);
    assert_eq!((code, said.as_str()), (0, ""));
    let lines = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    (place, lines)
}

/// Imports bytes into a ledger of that name: the exit code and what was said.
fn import(place: &Place, into: &str, bytes: &[u8]) -> (i32, Value) {
    let file = place.path("in.jsonl");
    fs::write(&file, bytes).unwrap();
    let ledger = format!("sqlite:{}", place.path(into).display());
    let output = Command::new(AMENDS).args(["import", "--json", "--ledger", &ledger]).arg(file).output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), said)
}

fn sessions(place: &Place, ledger: &str) -> usize {
    let ledger = format!("sqlite:{}", place.path(ledger).display());
    let output =
        Command::new(AMENDS).args(["sessions", "--json", "--limit", "100", "--ledger", &ledger]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    said["sessions"].as_array().unwrap().len()
}

#[test]
fn a_ledger_comes_out_of_another_byte_for_byte() {
    let (place, lines) = exported();
    let (code, said) = import(&place, "other.db", (lines.join("\n") + "\n").as_bytes());
    assert_eq!(code, 0, "{said}");
    assert!(said["sessions"].as_u64() > Some(1), "{said}");
    let ledger = format!("sqlite:{}", place.path("other.db").display());
    let again = Command::new(AMENDS).args(["export", "--ledger", &ledger]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout), lines.join("\n") + "\n");
    let verified = Command::new(AMENDS).args(["verify", "--ledger", &ledger]).output().unwrap();
    assert!(verified.status.success());
    let verified = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.contains("decided again") && !verified.contains("not decidable"), "{verified}");

    let (code, said) = import(&place, "other.db", (lines.join("\n") + "\n").as_bytes());
    assert_eq!((code, &said["sessions"]), (0, &Value::from(0)), "{said}");
}

#[test]
fn a_damaged_file_is_refused_with_the_line_and_nothing_is_kept() {
    let (place, lines) = exported();
    let last = lines.len() as u64;
    let whole = lines.join("\n") + "\n";
    let event = lines.iter().rposition(|line| line.contains("call_ended")).unwrap();
    let changed = |at: usize, change: &dyn Fn(&str) -> String| {
        let mut lines = lines.clone();
        lines[at] = change(&lines[at]);
        (lines.join("\n") + "\n").into_bytes()
    };
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        (lines.join("\n") + "\n").into_bytes()
    };
    let twice = |at: usize| {
        let mut lines = lines.clone();
        lines.insert(at, lines[at].clone());
        (lines.join("\n") + "\n").into_bytes()
    };
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines.insert(at, line.to_owned());
        (lines.join("\n") + "\n").into_bytes()
    };
    let line = event as u64 + 1;
    let head = lines.iter().position(|line| line.starts_with("{\"session\"")).unwrap();
    let rules = lines.iter().position(|line| line.starts_with("{\"rules\"")).unwrap();
    let damaged: Vec<(&str, Vec<u8>, Option<u64>)> = vec![
        ("a torn last line", whole.as_bytes()[..whole.len() - 9].to_vec(), Some(last)),
        ("no last newline", whole.trim_end().as_bytes().to_vec(), Some(last)),
        ("no last line", without(lines.len() - 1), Some(last)),
        ("another event", changed(event, &|line| line.replace("\"succeeded\"", "\"cancelled\"")), None),
        ("another hash", changed(event, &|line| line.replacen("\"hash\":\"", "\"hash\":\"f", 1)), None),
        ("an event twice", twice(event), Some(line + 1)),
        ("a missing event", without(event), Some(line)),
        ("spaces", changed(event, &|line| line.replacen("\"body\":{", "\"body\":{ ", 1)), Some(line)),
        (
            "an unknown member",
            changed(head, &|line| line.replacen("{\"id\"", "{\"more\":1,\"id\"", 1)),
            Some(head as u64 + 1),
        ),
        ("not JSON", changed(event, &|_| "}{".into()), Some(line)),
        ("not UTF-8", [&whole.as_bytes()[..200], b"\xff\xfe", &whole.as_bytes()[200..]].concat(), None),
        ("a huge line", [whole.as_bytes(), &vec![b'x'; 17 << 20]].concat(), Some(last + 1)),
        (
            "another session's row",
            changed(head, &|line| line.replacen("\"door\":\"http\"", "\"door\":\"mcp\"", 1)),
            None,
        ),
        ("no header", without(0), Some(1)),
        ("a newer version", changed(0, &|line| line.replace("\"version\":", "\"version\":9")), Some(1)),
        ("an answer of no session", with(head, r#"{"answer":{"call":"call_1","gave":1}}"#), Some(head as u64 + 1)),
        ("other rules", changed(rules, &|line| line.replacen("_ms\":", "_ms\":1", 1)), None),
        ("nothing", Vec::new(), Some(1)),
    ];
    for (what, bytes, line) in damaged {
        let (code, said) = import(&place, "other.db", &bytes);
        assert_eq!(code, 1, "{what}: {said}");
        assert!(said["error"].is_string() && said["line"].is_u64(), "{what}: {said}");
        if line.is_some() {
            assert_eq!(said["line"].as_u64(), line, "{what}: {said}");
        }
        assert_eq!(sessions(&place, "other.db"), 0, "{what}");
    }
}

#[test]
fn a_session_that_is_there_and_differs_is_refused() {
    let (place, lines) = exported();
    let whole = lines.join("\n") + "\n";
    assert_eq!(import(&place, "other.db", whole.as_bytes()).0, 0);
    let (_, listed) = place.amends(&["sessions", "--json", "--limit", "1"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let newest = listed["sessions"][0]["session"].as_str().unwrap();
    assert_eq!(place.amends(&["forget", newest, "--yes"]).0, 0);
    let (_, forgotten) = place.amends(&["export"]);
    let (code, said) = import(&place, "other.db", forgotten.as_bytes());
    assert_eq!(code, 1, "{said}");
    assert!(said["error"].as_str().unwrap().contains("not the same"), "{said}");
    // What was retired comes whole into a ledger that has not seen it.
    assert_eq!(import(&place, "third.db", forgotten.as_bytes()).0, 0);
}

#[test]
fn an_export_is_limited_to_a_time_or_a_session_and_is_a_table_where_asked() {
    let (place, _) = exported();
    let (_, listed) = place.amends(&["sessions", "--json", "--limit", "1"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let newest = listed["sessions"][0]["session"].as_str().unwrap();
    let (code, one) = place.amends(&["export", "--session", newest]);
    assert_eq!((code, one.matches("{\"session\":{\"id\"").count()), (0, 1), "{one}");
    assert_eq!(place.amends(&["export", "--session", "ses_none"]).0, 2);
    assert_eq!(place.amends(&["export", "--since", "yesterday"]).0, 2);
    let (_, recent) = place.amends(&["export", "--since", "1d"]);
    assert!(recent.matches("{\"session\":{\"id\"").count() > 1, "{recent}");
    let (code, table) = place.amends(&["export", "--format", "csv"]);
    assert_eq!(code, 0);
    let mut rows = table.lines();
    assert!(rows.next().unwrap().starts_with("session,call,tool,upstream,principal,"));
    let charges: Vec<&str> = rows.filter(|row| row.contains(",charge_card,")).collect();
    assert_eq!(charges.len(), 2, "{table}");
    assert!(charges.iter().all(|row| row.contains(",succeeded,processed,0,")), "{table}");
}
