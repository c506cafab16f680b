//! Every fixture of `fixtures/wire/a2a/classify`: what an agent said, and what it means for each effect. `UPDATE=1` writes them anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amends_core::{EffectKind, Verdict};
use serde::{Deserialize, Serialize};

use super::*;
use crate::a2a::agent::{Said, Task};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    /// What the story is.
    story: String,
    given: Given,
    #[serde(default)]
    expect: BTreeMap<String, Expected>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Given {
    Task(Value),
    Error { code: i64, message: String, data: Option<Box<RawValue>> },
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
struct Expected {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    certainty: Certainty,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Fixture {
    fn heard(&self, effect: EffectKind) -> Expected {
        let mut contract = Contract::undeclared(1000, 1000, 1000);
        contract.effect = effect;
        let report = match &self.given {
            Given::Task(value) => {
                let task: Task = match Said::read(value) {
                    Some(Said::Task(task) | Said::Status(task)) => *task,
                    other => panic!("{other:?}"),
                };
                ended(task.state, &task.result().to_string(), &contract, &[])
            }
            Given::Error { code, message, data } => error(*code, message, data.as_deref(), &contract, &[]),
        };
        let failure = report.failure.as_ref();
        Expected {
            code: failure.map(|failure| failure.code),
            certainty: report.certainty,
            verdict: failure.map(|failure| Verdict::judge(failure.code, report.certainty, effect)),
            text: failure.and_then(|failure| failure.upstream.as_ref()?.text.clone()),
        }
    }
}

#[test]
fn everything_an_agent_says_means_what_its_fixture_says() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/a2a/classify"));
    let update = std::env::var_os("UPDATE").is_some();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut fixture: Fixture = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let effects = [EffectKind::Read, EffectKind::Write];
        let heard = BTreeMap::from(effects.map(|effect| (effect.as_str().to_owned(), fixture.heard(effect))));
        if update {
            fixture.expect = heard;
            std::fs::write(&path, serde_json::to_string_pretty(&fixture).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(heard, fixture.expect, "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 14, "only {seen} fixtures in {}", folder.display());
}
