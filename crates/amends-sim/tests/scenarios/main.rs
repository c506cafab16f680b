//! Stories: a contract, what arrives and when, and the trace and answers that follow.
//!
//! Each file in `fixtures/scenarios` is one story. Its last table, `[expected]`, is golden data: `UPDATE=1` rewrites it,
//! and the difference is read like code.

use std::fs;
use std::path::{Path, PathBuf};

use amends_sim::golden::{Golden, difference};

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
        let told = Golden::read(&text).and_then(|golden| Ok((golden.tell(&golden.rules()?)?, golden)));
        let (told, golden) = told.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if update {
            fs::write(&path, golden.with_end(&told)).expect("it can be written");
        } else if let Some(difference) = difference(golden.expected().unwrap_or_default(), &told) {
            wrong.push(format!("{}\n{difference}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\nrewrite with UPDATE=1", wrong.join("\n"));
}
