//! What was ever recorded keeps loading, and keeps its bytes: the shapes in `fixtures/events`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use amends_core::event::VERSION;
use amends_core::interaction::Interaction;
use amends_core::{Dispatcher, Event, Report, Rules};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const WHAT_TO_DO: &str = "ledgers hold this shape, and its bytes are hashed: keep the field, or raise `event::VERSION`, leave \
                          this folder as it is, and bring the old shape up to date where an event is read";

fn lines(version: u32, file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/events/v{version}/{file}"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// Reads a line and writes it again: nothing may be lost, added or put otherwise.
fn round<T: DeserializeOwned + Serialize>(file: &str, n: usize, line: &str) -> T {
    let at = format!("{file}:{}", n + 1);
    let read: T =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{at} no longer loads: {error}\n{WHAT_TO_DO}"));
    let bytes = serde_json_canonicalizer::to_vec(&read).expect("it can be written");
    let again = String::from_utf8(bytes).expect("JSON is text");
    if again != line {
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
        let (mut was, mut is) = (BTreeSet::new(), BTreeSet::new());
        fields(&value(line), "", &mut was);
        fields(&value(&again), "", &mut is);
        let lost: Vec<_> = was.difference(&is).collect();
        let new: Vec<_> = is.difference(&was).collect();
        panic!("{at} is written otherwise than it was: lost {lost:?}, new {new:?}\n- {line}\n+ {again}\n{WHAT_TO_DO}");
    }
    read
}

fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                fields(member, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), found)),
        _ => drop(found.insert(path.to_owned())),
    }
}

/// Every kind of event there is, by the word of whoever reads them.
fn kinds() -> BTreeSet<String> {
    let refused = serde_json::from_str::<Event>(r#"{"v":1,"seq":1,"at":1,"event":"?"}"#).unwrap_err().to_string();
    let expected = refused.split("expected one of").nth(1).expect("it lists what it knows");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_event_that_was_ever_recorded_loads_and_keeps_its_bytes() {
    for version in 1..=VERSION {
        for (n, line) in lines(version, "facts.jsonl").iter().enumerate() {
            let event: Event = round("facts.jsonl", n, line);
            assert_eq!(event.v, version);
            assert_eq!(amends_ledger::chain::canonical(&event).expect("it can be written"), *line);
        }
    }
}

#[test]
fn every_kind_of_event_has_a_line() {
    let recorded: BTreeSet<String> = (1..=VERSION)
        .flat_map(|version| lines(version, "facts.jsonl"))
        .map(|line| serde_json::from_str::<Event>(&line).expect("it loads").fact.name().to_owned())
        .collect();
    let kinds = kinds();
    assert!(kinds.len() > 25, "{kinds:?}");
    let missing: Vec<_> = kinds.difference(&recorded).collect();
    assert!(
        missing.is_empty(),
        "add a line for {missing:?} to fixtures/events/v{VERSION}/facts.jsonl, with every field set"
    );
}

#[test]
fn a_recorded_session_folds() {
    for version in 1..=VERSION {
        let lines = lines(version, "session.jsonl");
        let events: Vec<Event> = lines.iter().enumerate().map(|(n, line)| round("session.jsonl", n, line)).collect();
        let rules: Rules = round("rules.jsonl", 0, &self::lines(version, "rules.jsonl")[0]);
        let rules = Arc::new(rules);
        let folded = Dispatcher::restore(&events, |_| Some(rules.clone())).expect("it folds");
        assert_eq!(folded.seq(), events.len() as u64);
        assert_eq!(folded.open_calls(), 0);
    }
}

#[test]
fn rules_reports_and_questions_load_and_keep_their_bytes() {
    for version in 1..=VERSION {
        for (n, line) in lines(version, "rules.jsonl").iter().enumerate() {
            round::<Rules>("rules.jsonl", n, line);
        }
        for (n, line) in lines(version, "reports.jsonl").iter().enumerate() {
            round::<Report>("reports.jsonl", n, line);
        }
        for (n, line) in lines(version, "interactions.jsonl").iter().enumerate() {
            round::<Interaction>("interactions.jsonl", n, line);
        }
    }
}
