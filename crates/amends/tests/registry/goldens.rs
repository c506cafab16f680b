//! The goldens as data: the envelopes, classifications and stories in `fixtures`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// An envelope found in a golden.
#[derive(Debug)]
pub(crate) struct Found {
    /// Where.
    pub(crate) at: String,
    /// Whether something beside it carries the data.
    pub(crate) beside: bool,
    pub(crate) envelope: Value,
}

/// A golden of `fixtures/wire/mcp/classify`.
#[derive(Debug, Deserialize)]
pub(crate) struct Classified {
    pub(crate) story: String,
    #[serde(default)]
    pub(crate) rejects_before_effect: Vec<u16>,
    #[serde(default)]
    pub(crate) translate: Vec<Value>,
    pub(crate) expect: BTreeMap<String, Heard>,
}

/// What one signal means for a tool of one effect.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub(crate) struct Heard {
    pub(crate) code: Option<String>,
    pub(crate) certainty: String,
    pub(crate) verdict: Option<String>,
}

/// A story of `fixtures/scenarios`.
#[derive(Debug, Deserialize)]
pub(crate) struct Story {
    pub(crate) story: String,
    pub(crate) tool: Option<toml::Table>,
    pub(crate) playbook: Option<toml::Table>,
    #[serde(default)]
    pub(crate) inputs: Vec<toml::Table>,
    /// The machine it is about, where it is about a walk.
    pub(crate) machine: Option<toml::Table>,
    expected: Expected,
}

#[derive(Debug, Deserialize)]
struct Expected {
    trace: String,
}

impl Story {
    /// The lines of its golden trace.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.expected.trace.lines()
    }

    /// The envelopes it answers with.
    pub(crate) fn envelopes(&self) -> Vec<Value> {
        let mut found = Vec::new();
        let mut open: Option<String> = None;
        for line in self.lines() {
            if line == "           {" {
                open = Some(String::new());
            }
            if let Some(text) = &mut open {
                text.push_str(line);
                text.push('\n');
            }
            if line == "           }" {
                let text = open.take().expect("a brace that closes was opened");
                found.push(serde_json::from_str(&text).expect("an answer in a trace is JSON"));
            }
        }
        found
    }
}

/// Every envelope in the replies and the stories.
pub(crate) fn envelopes() -> Vec<Found> {
    let mut found = Vec::new();
    // A dialect is another shape; its envelope in `_meta` stays ours.
    for (name, reply) in replies() {
        let dialect = ["schemabrain_", "theodosia_"].iter().any(|dialect| name.starts_with(dialect));
        let reply = if dialect { json!({ "_meta": reply["_meta"] }) } else { reply };
        look(&reply, &format!("reply/{name}"), false, &mut found);
    }
    for (name, story) in stories() {
        let beside = |envelope| Found { at: format!("scenarios/{name}"), beside: true, envelope };
        found.extend(story.envelopes().into_iter().map(beside));
    }
    found
}

fn look(value: &Value, at: &str, beside: bool, found: &mut Vec<Found>) {
    match value {
        Value::Object(object) if object.contains_key("charter_version") => {
            found.push(Found { at: at.to_owned(), beside, envelope: value.clone() });
        }
        Value::Object(object) => {
            for (name, member) in object {
                look(member, &format!("{at}/{name}"), name == "amends/envelope", found);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                look(item, &format!("{at}/{n}"), false, found);
            }
        }
        Value::String(text) => {
            if let Ok(value @ Value::Object(_)) = serde_json::from_str(text) {
                look(&value, at, false, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The golden replies, by name.
pub(crate) fn replies() -> Vec<(String, Value)> {
    read_all("fixtures/wire/mcp/reply", "json", |text| serde_json::from_str(text).expect("a reply is JSON"))
}

/// The classify goldens, by name.
pub(crate) fn classified() -> Vec<(String, Classified)> {
    read_all("fixtures/wire/mcp/classify", "json", |text| serde_json::from_str(text).expect("a golden is JSON"))
}

/// The stories, by name.
pub(crate) fn stories() -> Vec<(String, Story)> {
    read_all("fixtures/scenarios", "toml", |text| toml::from_str(text).expect("a story is TOML"))
}

fn read_all<T>(folder: &str, kind: &str, parse: impl Fn(&str) -> T) -> Vec<(String, T)> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    paths.sort();
    assert!(!paths.is_empty(), "{folder} is empty");
    let read = |path: &PathBuf| {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        (name, parse(&fs::read_to_string(path).expect("it can be read")))
    };
    paths.iter().map(read).collect()
}

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
