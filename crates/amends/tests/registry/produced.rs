//! Every code and every refusal of the registry is produced by something, and a golden shows it.

use std::collections::BTreeSet;
use std::fs;

use amends_core::refusal::RefusalKind;
use amends_core::registry::Code;
use serde_json::Value;

use crate::goldens::{classified, root, stories};

/// What only an operator can know of an upstream: no protocol has a word for it, so a rule is what produces it.
const BY_RULE: [&str; 3] = ["MissingStreaming", "MissingToolCalling", "ContextWindowTooSmall"];

/// A code counts as produced when a golden shows the running code come to it: by classifying a signal (without an operator's rule that
/// names it, but for those of `BY_RULE`), by deciding a story, by answering a call, or by refusing a configuration. Golden replies do
/// not count, since their envelopes are built by hand.
#[test]
fn every_code_is_produced() {
    let mut produced = BTreeSet::new();
    for (_, golden) in classified() {
        let by_rule = !golden.translate.is_empty();
        let codes = golden.expect.into_values().filter_map(|heard| heard.code);
        produced.extend(codes.filter(|code| !by_rule || BY_RULE.contains(&code.as_str())));
    }
    let told = stories().into_iter().flat_map(|(_, story)| story.envelopes());
    for envelope in told.chain(kept("refusals")).chain(kept("failures")) {
        produced.extend(envelope.pointer("/error/code").and_then(|code| code.as_str()).map(str::to_owned));
        let attempts = envelope["attempts"].as_array().cloned().unwrap_or_default();
        produced.extend(attempts.iter().filter_map(|line| line["code"].as_str()).map(str::to_owned));
    }
    produced.extend(kept("configurations").into_iter().filter_map(|said| said["code"].as_str().map(str::to_owned)));
    all_in(&produced, Code::ALL.iter().map(|code| code.as_str()));
}

/// A refusal counts as produced when the dispatcher comes to it in a story that did not hand it in, or when a running gateway
/// answered with it.
#[test]
fn every_refusal_is_produced() {
    let mut produced = BTreeSet::new();
    for (_, story) in stories() {
        let given = story.inputs.iter().any(|input| input.contains_key("refusal"));
        let told = story.envelopes().into_iter().filter(|_| !given);
        produced.extend(told.filter(is_refusal).filter_map(|envelope| kind(&envelope)));
    }
    let answered = kept("refusals").into_iter().chain(kept("failures"));
    produced.extend(answered.filter(is_refusal).filter_map(|envelope| kind(&envelope)));
    all_in(&produced, RefusalKind::ALL.iter().map(|kind| kind.as_str()));
}

/// What the real binary said, by its goldens in that folder.
fn kept(folder: &str) -> Vec<Value> {
    let folder = root().join("fixtures/registry").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path| fs::read_to_string(path).expect("it can be read");
    entries
        .map(|entry| serde_json::from_str(&read(entry.expect("it can be listed").path())).expect("a golden is JSON"))
        .collect()
}

fn kind(envelope: &Value) -> Option<String> {
    envelope.pointer("/error/kind").and_then(Value::as_str).map(str::to_owned)
}

/// Whether an envelope's kind is a refusal's, and not its code's own: `rate_limited` and `action_error` are the names of both.
fn is_refusal(envelope: &Value) -> bool {
    let code = envelope.pointer("/error/code").and_then(Value::as_str).and_then(Code::parse);
    envelope["status"] == "refused" || code.is_some_and(|code| kind(envelope).as_deref() != Some(code.kind()))
}

fn all_in<'a>(produced: &BTreeSet<String>, all: impl Iterator<Item = &'a str>) {
    let missing: Vec<&str> = all.filter(|name| !produced.contains(*name)).collect();
    assert!(missing.is_empty(), "nothing produces `{}`: add what does, and its golden", missing.join("`, `"));
}
