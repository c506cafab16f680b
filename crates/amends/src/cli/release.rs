//! `amends release PROPOSAL --by NAME`: a person releases proposed rules as a version.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amends_gateway::config::{Fragment, Released, Source};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::golden;
use super::outcome::print;
use super::propose::Proposal;
use super::stamp::{now, utc};

const EXAMPLES: &str = "\
Examples:
  amends release proposal.json --by ada                          playbook-1.toml, in the current folder
  amends release proposal.json --by ada --config amends.toml     the next version, next to the configuration

It writes a file and changes nothing else. The configuration names the release that counts:
  [playbook]
  release = \"playbook-1.toml\"

Exit codes: 0 it was written, 2 it was not: the proposal, its rules or its goldens are not what they were.";

/// The flags of `amends release`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReleaseArgs {
    /// The proposal, as `amends propose` wrote it.
    proposal: PathBuf,
    /// Who releases it.
    #[arg(long, value_name = "NAME")]
    by: String,
    /// The configuration that will name it; the file is written next to it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn release(args: &ReleaseArgs) -> Result<ExitCode> {
    ensure!(!args.by.trim().is_empty(), "say who releases it with --by NAME");
    let proposal = Proposal::read(&args.proposal)?;
    let value = proposal.value();
    let fragment = still(value)?;
    let folder = args.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let version = next_version(folder)?;
    let name = format!("playbook-{version}.toml");
    let path = folder.join(&name);
    let text = Released::text(&fragment, version, args.by.trim(), &utc(now()), &proposal.hash());
    // What is written is read back before anybody relies on it.
    Released::of(Source::of(text.clone(), &name))?;
    let mut file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("cannot make `{}`", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
    print(&format!(
        "{}: version {version}, hash {}\nNothing is applied yet. To apply it, put this into the configuration and restart:\n\n\
         [playbook]\nrelease = \"{name}\"",
        path.display(),
        fragment.hash()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The proposed rules, if everything the proposal rests on is what it was.
fn still(value: &serde_json::Value) -> Result<Fragment> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let hash = text(&value["playbook"]["hash"]);
    let fragment = Fragment::of(Source::of(text(&value["playbook"]["text"]), "the proposal"))?;
    ensure!(fragment.hash().as_str() == hash, "the proposal's rules do not hash to what it says; propose again");
    let file = PathBuf::from(text(&value["playbook"]["file"]));
    let now = Fragment::read(&file).context("the rules it was made from cannot be read")?;
    ensure!(now.hash().as_str() == hash, "`{}` was changed since; propose again", file.display());
    let goldens = &value["goldens"];
    if goldens.is_null() {
        return Ok(fragment);
    }
    let folder = PathBuf::from(text(&goldens["folder"]));
    if golden::hash(&folder)? != text(&goldens["hash"]) {
        bail!("the goldens in `{}` were changed since; propose again", folder.display());
    }
    let failed = goldens["failed"].as_array().map_or(0, Vec::len);
    ensure!(
        failed == 0,
        "{failed} goldens end otherwise under these rules; if that is meant, write their ends anew with `amends golden run {} \
         --playbook {} --update`, and propose again",
        folder.display(),
        file.display()
    );
    Ok(fragment)
}

/// One more than the highest version there is in that folder.
fn next_version(folder: &Path) -> Result<u64> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(here).with_context(|| format!("cannot list `{}`", here.display()))?;
    let number = |name: &str| name.strip_prefix("playbook-")?.strip_suffix(".toml")?.parse::<u64>().ok();
    let versions = entries.flatten().filter_map(|entry| number(&entry.file_name().to_string_lossy()));
    Ok(versions.max().unwrap_or(0) + 1)
}
