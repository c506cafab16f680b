//! Stories: a contract, what arrives and when, and the trace and answers that follow.
//!
//! Each file in `fixtures/scenarios` is one story. Its last table, `[expected]`, is golden data: `UPDATE=1` rewrites it,
//! and the difference is read like code.

mod says;
mod story;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};

use story::Story;

const EXPECTED: &str = "\n[expected]\n";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios");
    let entries = fs::read_dir(folder).expect("the folder of scenarios is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_story_ends_as_it_is_told() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).expect("it can be read");
        let story: Story = match toml::from_str(&text) {
            Ok(story) => story,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let told = trace::tell(&story);
        if update {
            let head = text.split(EXPECTED).next().unwrap_or_default().trim_end();
            let whole = format!("{head}\n{EXPECTED}trace = '''\n{told}'''\n");
            fs::write(&path, whole).expect("it can be written");
        } else if story.expected.as_ref().map(|expected| expected.trace.as_str()) != Some(told.as_str()) {
            let expected = story.expected.map(|expected| expected.trace).unwrap_or_default();
            wrong.push(format!("{}\n{}", path.display(), difference(&expected, &told)));
        }
    }
    assert!(wrong.is_empty(), "{}\nrewrite with UPDATE=1", wrong.join("\n"));
}

/// The first lines in which two traces differ.
fn difference(expected: &str, told: &str) -> String {
    let mut lines = expected.lines().zip(told.lines()).enumerate();
    match lines.find(|(_, (expected, told))| expected != told) {
        Some((n, (expected, told))) => format!("line {}:\n  - {expected}\n  + {told}", n + 1),
        None => format!("{} lines became {}", expected.lines().count(), told.lines().count()),
    }
}
