//! A configuration for an HTTP API, from its document.

use std::path::{Path, PathBuf};

use amends_gateway::upstream::openapi::Api;
use amends_gateway::upstream::openapi::propose::propose;
use anyhow::{Context, Result};

use super::name;

/// An HTTP API that a configuration is written for.
#[derive(Debug)]
pub(super) struct Described {
    document: PathBuf,
    /// The upstream's name.
    pub(super) name: String,
}

impl Described {
    /// The API of that document.
    pub(super) fn by(document: &Path, named: Option<&str>) -> Self {
        let name = named.map_or_else(|| name_of(document), str::to_owned);
        Self { document: document.to_owned(), name }
    }

    /// The proposed text, as a configuration at `out` names the document.
    pub(super) fn text(&self, out: Option<&Path>) -> Result<String> {
        let api = Api::read(&self.document)?;
        let seen = seen_from(out, &self.document)?;
        Ok(propose(&api, &seen.display().to_string(), &self.name))
    }
}

/// The document as a configuration beside `out` names it.
fn seen_from(out: Option<&Path>, document: &Path) -> Result<PathBuf> {
    let folder = out.and_then(Path::parent).unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() || document.is_absolute() {
        return Ok(document.to_owned());
    }
    if let Ok(beside) = document.strip_prefix(folder) {
        return Ok(beside.to_owned());
    }
    document.canonicalize().with_context(|| format!("cannot find `{}`", document.display()))
}

/// An upstream's name from that of its document.
fn name_of(document: &Path) -> String {
    let stem = document.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name::sound(&stem);
    if name.is_empty() { "api".into() } else { name.to_string() }
}
