//! Every fixture of `fixtures/wire/mcp/classify`: what was heard, and what it means for each effect. `UPDATE=1` writes them anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amends_core::{Certainty, Code, Contract, EffectKind, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::schema::Schema;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    /// What the story is.
    story: String,
    given: Given,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rejects_before_effect: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    translate: Vec<Rule>,
    #[serde(default)]
    expect: BTreeMap<String, Expected>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Given {
    Result(Box<RawValue>),
    Error { code: i64, message: String, data: Option<Box<RawValue>> },
    ConnectRefused,
    Unstartable(String),
    NotWritten,
    TimedOut,
    Lost,
    TooLarge,
    Unreadable(String),
    Http { status: u16, retry_after: Option<String>, body: String },
    SessionGone,
    SessionPerhapsGone(String),
}

#[derive(Deserialize, Serialize)]
struct Rule {
    when: amends_core::expression::Expression,
    failure: Code,
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
struct Expected {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    certainty: Certainty,
    answered: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// The time of all fixtures: Sunday, 15 November 2026, noon.
const NOW_MS: u64 = 1_794_744_000_000;

const EFFECTS: [EffectKind; 4] = [EffectKind::Read, EffectKind::Idempotent, EffectKind::Keyed, EffectKind::Write];

impl Fixture {
    fn heard(&self, effect: EffectKind) -> Expected {
        let mut contract = Contract::undeclared(1000, 1000, 1000);
        contract.effect = effect;
        contract.rejects_before_effect.clone_from(&self.rejects_before_effect);
        let rules: Vec<_> =
            self.translate.iter().map(|rule| TranslateRule { when: rule.when.clone(), code: rule.failure }).collect();
        let schema = self.output_schema.clone().map(|schema| Schema::from_value(schema).unwrap());
        let of = |given| signal(given, &contract, &rules, NOW_MS);
        let classified = match &self.given {
            Given::Result(raw) => result(raw.get(), &contract, schema.as_ref(), &rules),
            Given::Error { code, message, data } => rpc_error(*code, message, data.as_deref(), &contract, &rules),
            Given::ConnectRefused => of(Signal::ConnectRefused),
            Given::Unstartable(reason) => of(Signal::Unstartable { reason }),
            Given::NotWritten => of(Signal::NotWritten),
            Given::TimedOut => of(Signal::TimedOut),
            Given::Lost => of(Signal::Lost),
            Given::TooLarge => of(Signal::TooLarge),
            Given::Unreadable(text_start) => of(Signal::Unreadable { text_start }),
            Given::Http { status, retry_after, body } => of(Signal::HttpStatus {
                status: *status,
                retry_after: retry_after.as_deref(),
                content_type: None,
                body,
            }),
            Given::SessionGone => of(Signal::SessionGone),
            Given::SessionPerhapsGone(body) => of(Signal::SessionPerhapsGone { body }),
        };
        let report = classified.report;
        let failure = report.failure.as_ref();
        Expected {
            code: failure.map(|failure| failure.code),
            certainty: report.certainty,
            answered: report.answered,
            verdict: failure.map(|failure| Verdict::judge(failure.code, report.certainty, effect)),
            retry_after_ms: failure.and_then(|failure| failure.retry_after_ms),
        }
    }
}

#[test]
fn everything_that_can_be_heard_means_what_its_fixture_says() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/mcp/classify"));
    let update = std::env::var_os("UPDATE").is_some();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut fixture: Fixture = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let heard = EFFECTS.map(|effect| (effect.as_str().to_owned(), fixture.heard(effect)));
        let heard = BTreeMap::from(heard);
        if update {
            fixture.expect = heard;
            std::fs::write(&path, serde_json::to_string_pretty(&fixture).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(heard, fixture.expect, "{name}");
        }
        seen += 1;
    }
    assert!(seen > 40, "only {seen} fixtures in {}", folder.display());
}

#[test]
fn a_write_in_doubt_is_never_told_as_anything_else() {
    let contract = Contract::undeclared(1, 1, 1);
    for given in [Signal::TimedOut, Signal::Lost, Signal::TooLarge, Signal::Unreadable { text_start: "<html>" }] {
        let report = signal(given, &contract, &[], 0).report;
        let code = report.failure.unwrap().code;
        assert_eq!(Verdict::judge(code, report.certainty, EffectKind::Write), Verdict::InDoubt);
    }
}
