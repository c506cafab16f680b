//! The registry holds to its charter: what was promised in a version stays.

use std::fs;

use amends_core::envelope::CHARTER_VERSION;
use amends_core::registry;
use serde_json::Value;

use crate::goldens::root;

/// What clients rely on. A change of one of these is a change of meaning. The column for A2A joins when it is known to be
/// what its door answers.
const MEANING: [&str; 11] =
    ["kind", "class", "code", "verdict", "who_must_act", "retryable", "implies", "http", "mcp", "ag_ui", "since"];
/// What each entry is known by.
const LISTS: [(&str, &str); 3] = [("classes", "class"), ("codes", "code"), ("refusals", "kind")];

#[test]
fn nothing_that_was_promised_has_changed() {
    let path = root().join(format!("fixtures/registry/{CHARTER_VERSION}.json"));
    let now = registry::json();
    if std::env::var_os("UPDATE").is_some() && !path.exists() {
        fs::write(&path, serde_json::to_string_pretty(&now).expect("JSON can be written") + "\n")
            .expect("it is written");
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|_| {
        panic!("charter {CHARTER_VERSION} has no snapshot; UPDATE=1 writes the first one, and no later one")
    });
    let promised: Value = serde_json::from_str(&text).expect("a snapshot is JSON");
    let broken = broken(&promised, &now);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_removed_code_asks_for_a_major_version_and_a_new_one_for_a_minor() {
    let now = registry::json();
    let mut without = now.clone();
    without["codes"].as_array_mut().expect("a list").remove(3);
    let removed = broken(&now, &without);
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert!(removed[0].contains("`NetworkTimeout` is gone") && removed[0].contains("major"), "{removed:?}");
    let added = broken(&without, &now);
    assert_eq!(added.len(), 1, "{added:?}");
    assert!(added[0].contains("`NetworkTimeout` is new") && added[0].contains("minor"), "{added:?}");
}

#[test]
fn a_changed_meaning_asks_for_a_major_version_and_changed_words_for_none() {
    let now = registry::json();
    let mut changed = now.clone();
    changed["codes"][3]["retryable"] = Value::Bool(false);
    let hidden = std::mem::take(changed["codes"][4]["shows"].as_array_mut().expect("a list"));
    changed["refusals"][0]["http"] = 418.into();
    let broken = broken(&now, &changed);
    assert_eq!(broken.len(), 2 + hidden.len(), "{broken:?}");
    assert!(broken.iter().all(|broken| broken.contains("major")), "{broken:?}");
    let mut reworded = now.clone();
    reworded["codes"][3]["means"] = "No answer arrived.".into();
    assert!(self::broken(&now, &reworded).is_empty());
}

/// What differs from what was promised, each with the part of the version that must rise.
fn broken(promised: &Value, now: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for (list, name) in LISTS {
        let entries = |registry: &Value| registry[list].as_array().cloned().unwrap_or_default();
        let find = |entries: &[Value], key: &Value| entries.iter().find(|entry| entry[name] == *key).cloned();
        let (before, after) = (entries(promised), entries(now));
        for entry in &before {
            let called = entry[name].as_str().unwrap_or_default();
            let Some(today) = find(&after, &entry[name]) else {
                broken.push(format!("{list}: `{called}` is gone; the charter's major version must rise"));
                continue;
            };
            for column in MEANING.iter().filter(|column| entry.get(**column) != today.get(**column)) {
                let said = |entry: &Value| entry.get(*column).map_or("nothing".to_owned(), Value::to_string);
                broken.push(format!(
                    "{list}: `{called}` has `{column}` {} and not {}; the charter's major version must rise",
                    said(&today),
                    said(entry)
                ));
            }
            let fields = |entry: &Value| entry["shows"].as_array().cloned().unwrap_or_default();
            let (shown, shows) = (fields(entry), fields(&today));
            for field in shown.iter().filter(|field| !shows.contains(field)) {
                broken.push(format!("{list}: `{called}` hides {field}; the charter's major version must rise"));
            }
            for field in shows.iter().filter(|field| !shown.contains(field)) {
                broken.push(format!("{list}: `{called}` shows {field}; the charter's minor version must rise"));
            }
        }
        for entry in after.iter().filter(|entry| find(&before, &entry[name]).is_none()) {
            let called = entry[name].as_str().unwrap_or_default();
            broken.push(format!("{list}: `{called}` is new; the charter's minor version must rise"));
        }
    }
    broken
}
