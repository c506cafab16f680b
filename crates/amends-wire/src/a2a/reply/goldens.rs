//! Every fixture of `fixtures/wire/a2a/reply`: the events of a call, and the task they tell of in both versions. `UPDATE=1` writes them
//! anew.

use std::path::PathBuf;

use amends_core::Event;
use serde::{Deserialize, Serialize};

use super::*;
use crate::a2a::life;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    /// What the story is.
    story: String,
    events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelope: Option<Box<RawValue>>,
    #[serde(default)]
    v1: Value,
    #[serde(default)]
    v03: Value,
}

impl Fixture {
    fn told(&self, version: Version) -> Value {
        let life = life(&self.events, None).expect("a call");
        let (mut says, mut given) = (Vec::new(), Vec::new());
        match (&self.envelope, life.asks) {
            (_, Some(asks)) => says = question(asks, false),
            (Some(envelope), None) if life.state == State::Completed => given = artifacts(envelope),
            (Some(envelope), None) => says = failure(envelope),
            (None, None) => {}
        }
        let view = TaskView {
            id: "ses_1".into(),
            context: life.context.unwrap_or("ses_1").to_owned(),
            state: life.state,
            since: life.since.ms().to_string(),
            says,
            artifacts: given,
            metadata: json!({}),
        };
        serde_json::from_str(&view.answer(version)).expect("a task is JSON")
    }
}

#[test]
fn every_life_of_a_call_is_told_as_its_fixture_says() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/a2a/reply"));
    let update = std::env::var_os("UPDATE").is_some();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut fixture: Fixture = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (v1, v03) = (fixture.told(Version::V1), fixture.told(Version::V03));
        if update {
            (fixture.v1, fixture.v03) = (v1, v03);
            std::fs::write(&path, serde_json::to_string_pretty(&fixture).unwrap() + "\n").unwrap();
        } else {
            assert_eq!((&v1, &v03), (&fixture.v1, &fixture.v03), "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} fixtures in {}", folder.display());
}
