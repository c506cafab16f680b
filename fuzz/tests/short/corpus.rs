//! The kept inputs of a target.

use std::fs;
use std::path::{Path, PathBuf};

/// One kept input and the name of its file.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The kept inputs of a target, in the order of their names; recorded fixtures of the same shape are among them.
pub(crate) fn corpus(target: &str) -> Vec<Kept> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("corpus").join(target)];
    if target == "classify" {
        folders.push(root.join("../fixtures/wire/mcp/classify"));
    }
    let mut all: Vec<Kept> = folders.iter().flat_map(|folder| files(folder)).map(read).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() > 2, "the corpus of `{target}` is missing");
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("a folder can be listed").path()).collect()
}

fn read(path: PathBuf) -> Kept {
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Kept { name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes }
}
