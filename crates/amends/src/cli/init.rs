//! `amends init`: a configuration to begin with.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amends_gateway::upstream::openapi::Api;
use amends_gateway::upstream::openapi::propose::propose;
use anyhow::{Context, Result, ensure};
use clap::Args;

use super::outcome::print;

const EXAMPLES: &str = "\
Examples:
  amends init --openapi shop.yaml                      print a configuration for the API
  amends init --openapi shop.yaml --out amends.toml    write it to a file that is not there yet";

/// The flags of `amends init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InitArgs {
    /// The document of an HTTP API: OpenAPI 3.0 or 3.1, as JSON or YAML.
    #[arg(long, value_name = "FILE")]
    openapi: PathBuf,
    /// The upstream's name. The default is the document's, without its ending.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file to write, which must not be there yet. Without it the configuration is printed.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn init(args: &InitArgs) -> Result<ExitCode> {
    let api = Api::read(&args.openapi)?;
    let name = match &args.name {
        Some(name) => {
            let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            ensure!(
                !name.is_empty() && name.chars().all(sound),
                "a name is made of `A-Za-z0-9_-`, and `{name}` is not"
            );
            name.clone()
        }
        None => name_of(&args.openapi),
    };
    let document = seen_from(args.out.as_deref(), &args.openapi)?;
    let text = propose(&api, &document.display().to_string(), &name);
    let Some(out) = &args.out else {
        print(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    let refused = || format!("cannot write `{}`", out.display());
    let mut file = OpenOptions::new().write(true).create_new(true).open(out).with_context(refused)?;
    file.write_all(text.as_bytes()).with_context(refused)?;
    eprintln!("{} is written; `amends check --config {}` says what it means", out.display(), out.display());
    Ok(ExitCode::SUCCESS)
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
    let sound = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = stem.chars().map(sound).take(24).collect();
    if name.is_empty() { "api".into() } else { name }
}
