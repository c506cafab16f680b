//! Failures that nothing recognised, and proposals of what they mean.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amends_core::expression::Expression;
use amends_core::limits::EXPRESSION_BYTES_MAX;
use amends_core::nearest::nearest;
use amends_core::{Code, Fact, UpstreamName, Verdict};
use hyper::StatusCode;
use serde::Serialize;

use super::fields::Fields;
use super::problem::Problem;
use super::sessions::sees;
use crate::gateway::Gateway;
use crate::identity::Person;
use crate::{mint, told};

/// How many of the newest sessions are looked at, and how many kinds of failures are told apart.
const LOOKED_AT_MAX: usize = 500;
const KINDS_MAX: usize = 100;
/// How many calls of a kind are named.
const EXAMPLES_MAX: usize = 3;
/// How many proposals may lie there unread.
const PROPOSALS_MAX: usize = 1000;

/// One kind of failure that nothing recognised.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Kind {
    pub(crate) upstream: String,
    pub(crate) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The upstream's own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// The upstream's own words, which nobody vouches for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    pub(crate) attempts: u64,
    pub(crate) last: u64,
    pub(crate) examples: Vec<String>,
    /// An expression that would recognise it, as far as one can be made of what is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) when: Option<String>,
}

/// A proposal that was written.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proposed {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// The kinds of failures that nothing recognised, the most frequent first.
pub(crate) async fn list(gateway: &Arc<Gateway>, person: &Person) -> Result<Vec<Kind>, Problem> {
    let mut kinds: BTreeMap<(String, String, Option<u16>, Option<String>), Kind> = BTreeMap::new();
    for row in gateway.ledger.sessions(LOOKED_AT_MAX).await? {
        if row.cut > 0 || !sees(person, &row) {
            continue;
        }
        let Some(trace) = gateway.ledger.trace(&row.session).await? else { continue };
        let mut tools = BTreeMap::new();
        for stored in &trace.events {
            match &stored.event.fact {
                Fact::CallReceived { received, .. } => {
                    tools.insert(&received.call, (received.upstream.to_string(), received.tool.to_string()));
                }
                Fact::AttemptEnded { attempt, report, .. } => {
                    let Some(failure) = report.failure.as_ref() else { continue };
                    let Some((upstream, tool)) = tools.get(&attempt.call) else { continue };
                    if failure.code.verdict() != Verdict::Unclassified {
                        continue;
                    }
                    let words = failure.upstream.clone().unwrap_or_default();
                    let key = (upstream.clone(), tool.clone(), failure.status, words.code.clone());
                    if kinds.len() >= KINDS_MAX && !kinds.contains_key(&key) {
                        continue;
                    }
                    let kind = kinds.entry(key).or_insert_with(|| Kind {
                        upstream: upstream.clone(),
                        tool: tool.clone(),
                        status: failure.status,
                        when: recognising(failure.status, words.code.as_deref()),
                        code: words.code,
                        text: words.text,
                        attempts: 0,
                        last: 0,
                        examples: Vec::new(),
                    });
                    kind.attempts += 1;
                    kind.last = kind.last.max(stored.event.at.ms());
                    if kind.examples.len() < EXAMPLES_MAX {
                        kind.examples.push(attempt.call.to_string());
                    }
                }
                _ => {}
            }
        }
    }
    let mut kinds: Vec<Kind> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.attempts));
    Ok(kinds)
}

/// An expression over what an upstream answered that holds for such a failure.
fn recognising(status: Option<u16>, code: Option<&str>) -> Option<String> {
    let by_code = code.map(|code| match code.parse::<i64>() {
        Ok(number) => format!("error.code == {number}"),
        Err(_) => format!("result.code == {}", quoted(code)),
    });
    let by_status = status.map(|status| format!("result.status == {status}"));
    by_code.or(by_status)
}

/// A text as a string of CEL.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '\\' => "\\\\".to_owned(),
            '\'' => "\\'".to_owned(),
            c if c.is_control() => String::new(),
            c => c.to_string(),
        })
        .collect();
    format!("'{escaped}'")
}

/// Writes a proposal of what a failure means. Nothing is applied: somebody reads the file and takes it over.
pub(crate) async fn propose(gateway: &Arc<Gateway>, person: &Person, fields: &mut Fields) -> Result<Proposed, Problem> {
    let upstream = fields.needed("upstream", 100)?;
    let when = fields.needed("when", EXPRESSION_BYTES_MAX)?;
    let failure = fields.needed("failure", 100)?;
    fields.finish()?;
    let config = gateway.config();
    if !config.upstreams.contains_key(&UpstreamName::new(upstream.as_str())) {
        return Err(Problem::field("upstream", "there is no such upstream"));
    }
    let code = Code::parse(&failure).ok_or_else(|| {
        let near = nearest(&failure, Code::ALL.map(Code::as_str));
        let hint = near.first().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Problem::field("failure", format!("it is not a failure code{hint}"))
    })?;
    Expression::parse(&when).map_err(|error| Problem::field("when", error.to_string()))?;
    let text = written(&upstream, &when, code.as_str(), &person.name);
    let name = format!("translate-{}.toml", &mint::token()[..12]);
    let (folder, body) = (config.console.proposals.clone(), text.clone());
    let path = folder.join(name);
    let file = path.display().to_string();
    let wrote = tokio::task::spawn_blocking(move || write(&folder, &path, &body)).await;
    match wrote {
        Ok(Ok(())) => Ok(Proposed { file, text }),
        Ok(Err(error)) => {
            tracing::warn!(%error, file, "a proposal could not be written");
            let words = format!("it could not be written: {error}");
            Err(Problem::of(StatusCode::INTERNAL_SERVER_ERROR, "not_written", words))
        }
        Err(_) => Err(Problem::of(StatusCode::INTERNAL_SERVER_ERROR, "not_written", "the gateway stopped")),
    }
}

fn write(folder: &Path, path: &PathBuf, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.take(PROPOSALS_MAX).count() == PROPOSALS_MAX {
        return Err(std::io::Error::other(format!(
            "there are {PROPOSALS_MAX} files in `{}` already",
            folder.display()
        )));
    }
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// The proposal as it stands in its file.
fn written(upstream: &str, when: &str, failure: &str, by: &str) -> String {
    let string = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let by: String = by.chars().filter(|c| !c.is_control()).collect();
    format!(
        "# Proposed by {by} at {} UTC. Nothing is applied: put it into the configuration, and look at it with `amends check`.\n\
         [[upstreams.{}.translate]]\nwhen = {}\nfailure = {}\n",
        told::utc(crate::clock::now()),
        string(upstream),
        string(when),
        string(failure),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_reads_as_a_configuration_whatever_it_holds() {
        let text = written("shop", "result.code == 'a\"b'", "KeyInFlight", "ada\n[ledger]");
        let read: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["upstreams"], "{text}");
        let rule = &read["upstreams"]["shop"]["translate"][0];
        assert_eq!(rule["when"].as_str(), Some("result.code == 'a\"b'"));
    }

    #[test]
    fn a_failure_is_recognised_by_its_code_before_its_status() {
        assert_eq!(recognising(Some(418), Some("-32050")).as_deref(), Some("error.code == -32050"));
        let odd = recognising(None, Some("it's\u{7}")).unwrap();
        assert_eq!(odd, "result.code == 'it\\'s'");
        assert!(Expression::parse(&odd).is_ok());
        assert_eq!(recognising(Some(418), None).as_deref(), Some("result.status == 418"));
        assert_eq!(recognising(None, None), None);
    }
}
