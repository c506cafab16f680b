//! A released version of the rules: a fragment with a number, a hash, and the name of whoever released it.

use std::path::{Path, PathBuf};

use amends_core::Digest;
use amends_core::playbook::Release;
use serde::Deserialize;

use super::fragment::{Fragment, RulesSpec, hash_of};
use super::{ConfigError, Source, spec};

/// The keys of a release file that are not rules.
const HEAD: [&str; 5] = ["version", "hash", "by", "at", "proposal"];

/// `[playbook]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlaybookSectionSpec {
    /// The file of the released rules, from the configuration's folder. They replace the same sections of this file.
    pub release: Option<PathBuf>,
}

/// A released version of the rules, as its file says.
#[derive(Clone, Debug)]
pub struct Released {
    /// Its number and the digest of its rules.
    pub release: Release,
    /// Who released it.
    pub by: String,
    /// When, in UTC.
    pub at: String,
    /// The digest of the proposal it was released from.
    pub proposal: Option<Digest>,
    /// Its rules.
    pub rules: Fragment,
}

#[derive(Debug, Deserialize)]
struct Head {
    version: u64,
    hash: Digest,
    by: String,
    at: String,
    proposal: Option<Digest>,
    #[serde(flatten)]
    rest: toml::Table,
}

impl Released {
    /// Reads a file. One whose rules are not those that were released is refused.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::of(Source::read(path)?)
    }

    /// Reads a text.
    pub fn of(source: Source) -> Result<Self, ConfigError> {
        let head: Head = spec::parse(source.text(), source.origin())?;
        let hash = hash_of(source.text(), &HEAD);
        if hash != head.hash {
            let reason = format!("the rules were changed after their release: they hash to `{hash}`");
            return Err(source.placed(ConfigError::Invalid { key: "hash".into(), reason }));
        }
        let rules = RulesSpec::deserialize(toml::Value::Table(head.rest)).map_err(|error| {
            let reason = error.to_string().trim().to_owned();
            ConfigError::Malformed { origin: source.origin().to_owned(), line: 1, reason }
        })?;
        Ok(Self {
            release: Release { version: head.version, hash: hash.clone() },
            by: head.by,
            at: head.at,
            proposal: head.proposal,
            rules: Fragment::new(source, rules, hash),
        })
    }

    /// The text of the file that releases a fragment.
    pub fn text(fragment: &Fragment, version: u64, by: &str, at: &str, proposal: &Digest) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        format!(
            "# A released version of the rules. It is not edited: its hash would no longer fit.\n\
             version = {version}\nhash = {}\nby = {}\nat = {}\nproposal = {}\n\n{}",
            quoted(fragment.hash().as_str()),
            quoted(by),
            quoted(at),
            quoted(proposal.as_str()),
            fragment.source().text().trim_start(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_reads_back_and_one_that_was_edited_is_refused() {
        let rules = "[tools.pay.playbook.server_error_5xx]\ncompensation = \"surface\"\n";
        let fragment = Fragment::of(Source::of(rules.to_owned(), "f.toml")).unwrap();
        let text = Released::text(&fragment, 3, "ada \"l\"", "2026-03-01", &"p".into());
        let read = Released::of(Source::of(text.clone(), "r.toml")).unwrap();
        assert_eq!((read.release.version, &read.release.hash), (3, fragment.hash()));
        assert_eq!(read.by, "ada \"l\"");
        let edited = text.replace("surface", "fail_fast");
        let refused = Released::of(Source::of(edited, "r.toml")).unwrap_err().to_string();
        assert!(refused.starts_with("r.toml:3: `hash`: the rules were changed after their release"), "{refused}");
    }
}
