//! A code that nothing produces is on the list of those that wait, with the reason; and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use amends_core::refusal::RefusalKind;
use amends_core::registry::Code;
use serde_json::Value;

use crate::goldens::{classified, root, stories};

/// What only an operator can know of an upstream: no protocol has a word for it, so a rule is what produces it.
const BY_RULE: [&str; 3] = ["MissingStreaming", "MissingToolCalling", "ContextWindowTooSmall"];

/// A code counts as produced when a golden shows the running code come to it: by classifying a signal (without an operator's rule that
/// names it, but for those of `BY_RULE`), by deciding a story, or by answering a call. Golden replies do not count, since their envelopes are built by hand.
#[test]
fn every_code_is_produced_or_waits_for_a_reason() {
    let mut produced = BTreeSet::new();
    for (_, golden) in classified() {
        let by_rule = !golden.translate.is_empty();
        let codes = golden.expect.into_values().filter_map(|heard| heard.code);
        produced.extend(codes.filter(|code| !by_rule || BY_RULE.contains(&code.as_str())));
    }
    for (_, story) in stories() {
        for envelope in story.envelopes() {
            produced.extend(envelope.pointer("/error/code").and_then(|code| code.as_str()).map(str::to_owned));
            let attempts = envelope["attempts"].as_array().cloned().unwrap_or_default();
            produced.extend(attempts.iter().filter_map(|line| line["code"].as_str()).map(str::to_owned));
        }
    }
    let codes = answered().into_iter().filter_map(|envelope| envelope["error"]["code"].as_str().map(str::to_owned));
    produced.extend(codes);
    let all = Code::ALL.iter().map(|code| code.as_str());
    agree("code", all, &produced);
}

/// A refusal counts as produced when the dispatcher comes to it in a story that did not hand it in, or when a running gateway
/// answered with it.
#[test]
fn every_refusal_is_produced_or_waits_for_a_reason() {
    let mut produced = BTreeSet::new();
    for (_, story) in stories() {
        let given = story.inputs.iter().any(|input| input.contains_key("refusal"));
        let kinds: Vec<String> = story
            .envelopes()
            .iter()
            .filter(|envelope| is_refusal(envelope))
            .filter_map(|envelope| envelope.pointer("/error/kind").and_then(|kind| kind.as_str()).map(str::to_owned))
            .collect();
        produced.extend(kinds.into_iter().filter(|_| !given));
    }
    let kinds = answered().into_iter().filter_map(|envelope| envelope["error"]["kind"].as_str().map(str::to_owned));
    produced.extend(kinds);
    let all: Vec<&str> = RefusalKind::ALL.iter().map(|kind| kind.as_str()).collect();
    agree("refusal", all.into_iter(), &produced);
}

/// What a running gateway answered, by its goldens.
fn answered() -> Vec<Value> {
    let entries = fs::read_dir(root().join("fixtures/registry/refusals")).expect("the goldens are there");
    let read = |path| fs::read_to_string(path).expect("it can be read");
    entries
        .map(|entry| serde_json::from_str(&read(entry.expect("it can be listed").path())).expect("a golden is JSON"))
        .collect()
}

/// Whether an envelope's kind is a refusal's: `rate_limited` is also the name of a code.
fn is_refusal(envelope: &Value) -> bool {
    let kind = envelope.pointer("/error/kind");
    let of_code = Code::ALL.iter().any(|code| kind.is_some_and(|kind| kind == code.kind()));
    envelope["status"] == "refused" || !of_code
}

/// Fails on what is neither produced nor waits, on what waits and is produced, and on a name that nobody knows.
fn agree<'a>(what: &str, all: impl Iterator<Item = &'a str>, produced: &BTreeSet<String>) {
    let all: BTreeSet<&str> = all.collect();
    let awaiting = awaiting(what);
    let mut wrong = Vec::new();
    for name in &all {
        match (produced.contains(*name), awaiting.contains_key(*name)) {
            (false, false) => wrong.push(format!("nothing produces `{name}`: add a golden, or a line with the reason")),
            (true, true) => wrong.push(format!("`{name}` is produced: take its line out")),
            (true, false) | (false, true) => {}
        }
    }
    let known = |name: &&String| !all.contains(name.as_str());
    wrong.extend(awaiting.keys().filter(known).map(|name| format!("`{name}` does not exist")));
    assert!(wrong.is_empty(), "of the {what}s in fixtures/registry/awaiting.txt:\n{}", wrong.join("\n"));
}

/// The lines of `fixtures/registry/awaiting.txt` about codes or refusals: name and reason.
fn awaiting(what: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("fixtures/registry/awaiting.txt")).expect("the list is there");
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (subject, reason) = line.split_once(": ").unwrap_or_else(|| panic!("a line has a reason: {line}"));
        let (kind, name) =
            subject.split_once(' ').unwrap_or_else(|| panic!("a line names a code or a refusal: {line}"));
        assert!(["code", "refusal"].contains(&kind) && !reason.trim().is_empty(), "{line}");
        if kind == what {
            assert!(found.insert(name.to_owned(), reason.to_owned()).is_none(), "twice: {line}");
        }
    }
    found
}
