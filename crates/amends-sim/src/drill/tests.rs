//! The drill over every kind of contract: the promises hold where the upstream keeps its word, and break where it does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::contract::{KeyPlace, Place, Reading, Reverse, StatusReader};
use amends_core::expression::Expression;
use amends_core::playbook::RuleSpec;
use amends_core::{Contract, EffectKind, Playbook, Rules};

use super::{Assume, Drilled, Fault, Promise, Row, Scene, Subject, drill};

const SEED: u64 = 1;

#[test]
fn every_promise_holds_for_every_kind_of_contract() {
    for (name, contract) in contracts() {
        assert_holds(&drill(&subject(name, contract, &[], true), None, true, SEED));
    }
}

#[test]
fn every_promise_holds_for_keys_at_an_upstream_whose_restarts_are_not_seen() {
    for (name, contract) in contracts().into_iter().filter(|(_, contract)| contract.key.is_some()) {
        assert_holds(&drill(&subject(name, contract, &[], false), None, true, SEED));
    }
}

#[test]
fn every_promise_holds_with_other_playbooks() {
    let rules: [(&str, &str); 6] = [
        ("server_error_5xx", "escalate_to_human"),
        ("transient_timeout", "escalate_to_human"),
        ("rate_limited", "surface"),
        ("upstream_unavailable", "fail_fast"),
        ("input_rejected", "escalate_to_human"),
        ("unclassified", "deprecate_tool_call"),
    ];
    for rule in rules {
        for (name, contract) in contracts().into_iter().filter(|(name, _)| ["plain", "keyed", "by_key"].contains(name))
        {
            assert_holds(&drill(&subject(name, contract, &[rule], true), None, true, SEED));
        }
    }
}

#[test]
fn what_was_stopped_after_it_was_done_is_undone_once() {
    let (name, contract) = contracts().into_iter().find(|(name, _)| *name == "reversible").expect("it is in the list");
    let drilled = drill(&subject(name, contract, &[("cancelled", "issue_reversal")], true), None, true, SEED);
    assert_holds(&drilled);
    let row = single(&drilled, Fault::CancelAfter);
    assert_eq!((row.sends, row.effects, row.undone), (1, 1, 1), "{row:?}");
}

#[test]
fn a_plain_write_in_doubt_is_sent_once_and_a_person_is_asked() {
    let drilled = drill(&subject("plain", plain(), &[], true), None, false, SEED);
    let row = single(&drilled, Fault::LoseResponse);
    assert_eq!((row.sends, row.effects, row.asked.len()), (1, 1, 1));
    assert_eq!(row.told[0].outcome, "unresolved");
    assert!(!row.told[0].safe_to_repeat);
}

#[test]
fn a_token_is_redeemed_once_whatever_befalls_the_undoing() {
    let day_ms = 24 * 60 * 60 * 1000;
    let reverse = Some(Reverse { tool: "undo".into(), args: BTreeMap::new(), within_ms: day_ms });
    let undos = contracts().into_iter().filter(|(_, undo)| !undo.effect.is_read() && undo.reverse.is_none());
    for (name, undo) in undos {
        let mut subject = subject(name, Contract { reverse: reverse.clone(), ..plain() }, &[], true);
        let playbook = Playbook::parse(&BTreeMap::new(), &undo).expect("it is a playbook");
        subject.undo = Some(Arc::new(Rules { contract: undo, playbook }));
        let drilled = drill(&subject, None, false, SEED);
        assert_holds(&drilled);
        let undoing: Vec<_> = drilled.scenes.iter().filter(|row| row.scene == Scene::Undoing).collect();
        assert!(undoing.len() > 25, "{name}: {} rows", undoing.len());
        assert!(undoing.iter().all(|row| row.effects <= 1 || name.contains("idempotent") || name == "on_an_object"));
    }
}

#[test]
fn an_undoing_in_doubt_is_not_sent_again() {
    let reverse = Some(Reverse { tool: "undo".into(), args: BTreeMap::new(), within_ms: 600_000 });
    let drilled = drill(&subject("reversible", Contract { reverse, ..plain() }, &[], true), None, false, SEED);
    let row = drilled.scenes.iter().find(|row| row.faults == [Fault::LoseResponse]).expect("it is drilled");
    assert_eq!((row.scene, row.sends, row.effects), (Scene::Undoing, 1, 1), "{row:?}");
    assert_eq!(row.told[0].outcome, "unresolved");
}

#[test]
fn another_agent_is_refused_while_a_write_to_the_same_object_is_in_doubt() {
    let object = Some(Expression::parse("args.order").expect("it is an expression"));
    let drilled = drill(&subject("on_an_object", Contract { object, ..plain() }, &[], true), None, false, SEED);
    assert_holds(&drilled);
    let beside = |fault: Fault, after_ms: u64| {
        let wanted = |row: &&Row| row.faults == [fault] && row.scene == Scene::Beside { after_ms };
        let row = drilled.scenes.iter().find(wanted).expect("it is drilled");
        row.other.iter().map(|told| told.outcome).collect::<Vec<_>>()
    };
    assert_eq!(beside(Fault::Ok, 30), ["in_flight"]);
    assert_eq!(beside(Fault::Ok, 60_000), ["succeeded"]);
    assert_eq!(beside(Fault::LoseResponse, 60_000), ["in_flight"], "nobody knows what became of the first");
}

#[test]
fn evidence_that_changed_is_not_sent_again_and_evidence_that_did_not_is() {
    let (name, contract) = contracts().into_iter().find(|(name, _)| *name == "evidence").expect("it is in the list");
    let drilled = drill(&subject(name, contract, &[], true), None, false, SEED);
    assert_eq!(single(&drilled, Fault::Precondition).told[0].outcome, "deprecated");
    assert_eq!(single(&drilled, Fault::PreconditionSame).told[0].outcome, "succeeded_after_compensation");
}

#[test]
fn an_upstream_that_does_not_keep_its_word_breaks_the_promise_that_rests_on_it() {
    for (contract, assume, promise) in [
        ("keyed", Assume::UpstreamForgetsKeys, Promise::AtMostOnce),
        ("idempotent", Assume::RepeatsAddUp, Promise::AtMostOnce),
        ("read", Assume::ReadsWrite, Promise::AtMostOnce),
        ("by_key", Assume::StatusLies, Promise::AtMostOnce),
        ("by_key", Assume::SettlesLate, Promise::ToldTruthfully),
        ("trusted", Assume::RejectsAfterEffect, Promise::AtMostOnce),
    ] {
        let (name, contract) = contracts().into_iter().find(|(name, _)| *name == contract).expect("it is in the list");
        let drilled = drill(&subject(name, contract, &[], true), Some(assume), true, SEED);
        let stories: Vec<_> = drilled.rows().filter_map(|row| row.broken.as_ref()).collect();
        assert!(stories.iter().any(|story| story.broken.promise == promise), "{name} {assume:?}: {stories:?}");
        assert!(stories.iter().all(|story| !story.lines.is_empty()));
    }
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let rows = || {
        let drilled = drill(&subject("plain", plain(), &[], true), None, true, 7);
        drilled.rows().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    assert_eq!(rows(), rows());
}

fn assert_holds(drilled: &Drilled) {
    for row in drilled.rows() {
        let Some(story) = row.broken.as_ref() else {
            continue;
        };
        let faults: Vec<_> = row.faults.iter().map(|fault| fault.name()).collect();
        panic!(
            "{} {faults:?} (reading first: {}, {:?}, {:?}): {}\n{}",
            drilled.subject.tool,
            row.reading_first,
            story.manner,
            story.person,
            story.broken,
            story.lines.join("\n")
        );
    }
}

fn single(drilled: &Drilled, fault: Fault) -> &Row {
    let found = drilled.singles.iter().find(|row| row.faults == [fault] && !row.reading_first);
    found.expect("every fault that concerns the tool has a row")
}

fn subject(name: &str, contract: Contract, rules: &[(&str, &str)], restarts_seen: bool) -> Subject {
    let rule = |(verdict, compensation): &(&str, &str)| {
        ((*verdict).to_owned(), RuleSpec { compensation: (*compensation).into(), ..RuleSpec::default() })
    };
    let spec: BTreeMap<_, _> = rules.iter().map(rule).collect();
    let playbook = Playbook::parse(&spec, &contract).expect("it is a playbook");
    let plain = Arc::new(Rules { playbook: Playbook::default(), contract: plain() });
    Subject {
        tool: name.into(),
        upstream: "shop".into(),
        undo: contract.reverse.is_some().then_some(plain),
        rules: Arc::new(Rules { contract, playbook }),
        translate: Vec::new(),
        restarts_seen,
    }
}

fn plain() -> Contract {
    Contract { declared: true, ..Contract::undeclared(2_000, 30_000, 600_000) }
}

fn contracts() -> Vec<(&'static str, Contract)> {
    let expression = |text: &str| Expression::parse(text).expect("it is an expression");
    let of = |effect| Contract { effect, ..plain() };
    let keyed = |window_ms, durable| Contract {
        key: Some(KeyPlace { place: Place::Argument("key".into()), window_ms, durable }),
        ..of(EffectKind::Keyed)
    };
    let read = |contract, by_key, settles_within_ms| Contract {
        status: Some(StatusReader {
            tool: "status".into(),
            args: BTreeMap::new(),
            happened: expression("result.found"),
            by_key,
        }),
        settles_within_ms,
        ..contract
    };
    let reading = || Reading { tool: "look".into(), args: BTreeMap::new() };
    let day_ms = 24 * 60 * 60 * 1000;
    vec![
        ("read", of(EffectKind::Read)),
        ("idempotent", of(EffectKind::Idempotent)),
        ("on_an_object", Contract { object: Some(expression("args.order")), ..of(EffectKind::Idempotent) }),
        ("keyed", keyed(day_ms, true)),
        ("keyed_by_process", keyed(day_ms, false)),
        ("keyed_briefly", keyed(300_000, true)),
        ("keyed_with_status", read(keyed(day_ms, false), true, Some(10_000))),
        ("keyed_unsettled", read(keyed(day_ms, true), true, None)),
        ("plain", plain()),
        ("undeclared", Contract { declared: false, ..plain() }),
        ("by_key", read(plain(), true, Some(10_000))),
        ("by_baseline", read(plain(), false, Some(10_000))),
        ("unsettled", read(plain(), true, None)),
        ("trusted", Contract { rejects_before_effect: vec![429, 500, 503], ..plain() }),
        (
            "writes_an_object",
            Contract { object: Some(expression("args.order")), queue: Some("refunds".into()), ..plain() },
        ),
        ("evidence", Contract { evidence: vec![reading(), reading()], ..plain() }),
        ("evidence_and_baseline", Contract { evidence: vec![reading()], ..read(plain(), false, Some(10_000)) }),
        (
            "reversible",
            Contract {
                reverse: Some(Reverse { tool: "undo".into(), args: BTreeMap::new(), within_ms: day_ms }),
                ..read(plain(), true, Some(10_000))
            },
        ),
        ("impatient", Contract { timeout_ms: 5_000, deadline_ms: 3_000, ..read(plain(), true, Some(60_000)) }),
    ]
}
