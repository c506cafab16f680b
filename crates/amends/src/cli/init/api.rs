//! A configuration for an HTTP API, from its document.

use std::path::{Path, PathBuf};

use amends_gateway::upstream::openapi::Api;
use amends_gateway::upstream::openapi::propose::propose;
use anyhow::{Context, Result};

use super::name;

/// The proposed text for a document, as a configuration at `out` names it.
pub(super) fn text(document: &Path, named: Option<&str>, out: Option<&Path>) -> Result<String> {
    let api = Api::read(document)?;
    let name = named.map_or_else(|| name_of(document), str::to_owned);
    let seen = seen_from(out, document)?;
    Ok(propose(&api, &seen.display().to_string(), &name))
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
