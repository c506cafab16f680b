//! Files that are generated and checked in. `UPDATE=1` writes them anew; the difference is read like code.

use std::fs;
use std::process::Command;

use amends_core::envelope::schema;
use amends_core::registry;
use serde_json::Value;

use crate::goldens::root;
use crate::support::AMENDS;
use crate::{decisions, pages, pydantic_ai, python, translation, typescript};

#[test]
fn the_types_for_python_are_fresh() {
    fresh(vec![("types/python/amends_envelope.py".to_owned(), python::module())]);
}

#[test]
fn the_table_and_the_types_of_the_package_for_pydantic_ai_are_fresh() {
    let file = |name: &str| format!("python/amends-pydantic-ai/src/amends_pydantic_ai/{name}.py");
    fresh(vec![(file("_registry"), pydantic_ai::module()), (file("_envelope"), python::module())]);
}

#[test]
fn the_page_of_the_translations_is_fresh() {
    fresh(vec![("docs/translation.md".to_owned(), translation::page())]);
}

#[test]
fn the_types_for_typescript_are_fresh() {
    fresh(vec![("types/typescript/envelope.d.ts".to_owned(), typescript::module())]);
}

#[test]
fn the_pages_of_the_codes_are_fresh_and_there_are_no_others() {
    let mut pages = pages::pages();
    pages.push(("docs/codes/decisions.md".to_owned(), decisions::page()));
    let known: Vec<String> = pages.iter().map(|(path, _)| path.clone()).collect();
    fresh(pages);
    for entry in fs::read_dir(root().join("docs/codes")).expect("the folder is there") {
        let name = entry.expect("it can be listed").file_name();
        let path = format!("docs/codes/{}", name.to_string_lossy());
        assert!(known.contains(&path), "nothing generates {path}");
    }
}

#[test]
fn the_command_prints_the_schemas_and_the_codes() {
    for (what, expected) in [("envelope", schema::whole()), ("meta", schema::beside()), ("codes", registry::json())] {
        let output = Command::new(AMENDS).args(["schema", what]).output().expect("the binary runs");
        let printed: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        assert_eq!((output.status.success(), printed), (true, expected), "{what}");
    }
}

/// Fails where a file does not say what it should, or writes it.
fn fresh(files: Vec<(String, String)>) {
    let update = std::env::var_os("UPDATE").is_some();
    let mut stale = Vec::new();
    for (path, text) in files {
        let file = root().join(&path);
        if update {
            fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("the folder can be made");
            fs::write(&file, text).expect("the file can be written");
        } else if fs::read_to_string(&file).unwrap_or_default() != text {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "stale: {}; rewrite with UPDATE=1", stale.join(", "));
}
