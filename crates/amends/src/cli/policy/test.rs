//! `amends policy test`: put cases to the policies, and compare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amends_core::nearest::nearest;
use amends_core::{EffectKind, Principal, Timestamp};
use amends_gateway::Config;
use amends_gateway::config::UpstreamConfig;
use amends_gateway::policy::{Asked, Decided, KnownTool, Origin, Policies, Shape, ToolFacts};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TestArgs, known};
use crate::cli::check::home;
use crate::cli::outcome::print;

/// A file with cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// The configuration whose policies are asked, beside this file.
    config: PathBuf,
    /// What tools take, where their upstreams are not asked.
    #[serde(default)]
    tools: BTreeMap<String, ToolSpec>,
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolSpec {
    /// Its input schema.
    input: Option<Value>,
    /// What it does, where the configuration does not say.
    effect: Option<EffectKind>,
}

/// A call, and what is expected of the policies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What it shows, in a sentence.
    says: String,
    principal: String,
    #[serde(default)]
    tenant: Option<String>,
    tool: String,
    #[serde(default)]
    args: serde_json::Map<String, Value>,
    /// The door it comes through.
    #[serde(default)]
    door: String,
    /// What the token is good for that it shows.
    #[serde(default)]
    scopes: std::collections::BTreeSet<String>,
    /// When it is made; the beginning of 1970 where that does not matter.
    at: Option<toml::value::Datetime>,
    /// What is decided.
    expect: Expected,
    /// The queue of an approval.
    queue: Option<String>,
    /// How many persons must say yes.
    persons: Option<u8>,
    /// A policy that decides it.
    by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Permit,
    Forbid,
    Approval,
}

/// What came of a case.
struct Told {
    says: String,
    got: String,
    /// What was expected, where that is something else.
    otherwise: Option<String>,
}

pub(super) async fn test(args: &TestArgs) -> Result<ExitCode> {
    let mut told = Vec::new();
    for file in &args.files {
        let cases =
            put(file, args).await.with_context(|| format!("cannot put `{}` to the policies", file.display()))?;
        told.push((file.display().to_string(), cases));
    }
    let all = told.iter().flat_map(|(_, cases)| cases);
    let (count, right) = (all.clone().count(), all.filter(|case| case.otherwise.is_none()).count());
    if args.json {
        let file = |(file, cases): &(String, Vec<Told>)| json!({ "file": file, "cases": cases.iter().map(Told::to_json).collect::<Vec<_>>() });
        let said = json!({ "passed": right == count, "files": told.iter().map(file).collect::<Vec<_>>() });
        print(&serde_json::to_string_pretty(&said)?)?;
    } else {
        let mut text = String::new();
        for (file, cases) in &told {
            for case in cases {
                text.push_str(&match &case.otherwise {
                    None => format!("{file}: as written: {}\n", case.says),
                    Some(expected) => {
                        format!("{file}: otherwise: {}\n  expected {expected}\n  got      {}\n", case.says, case.got)
                    }
                });
            }
        }
        print(&format!("{text}{right} of {count} are decided as written"))?;
    }
    Ok(if right == count { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn put(file: &Path, args: &TestArgs) -> Result<Vec<Told>> {
    let cases: Cases = toml::from_str(&std::fs::read_to_string(file)?)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let config = Config::load_wrap(&folder.join(&cases.config))?;
    let Some(policies) = config.policies.clone() else { bail!("`{}` has no policies", cases.config.display()) };
    let mut tools = known::tools(&config, args.live.then_some(args.wait)).await?;
    for (name, spec) in &cases.tools {
        let shape = spec.input.as_ref().map(Shape::of_schema).unwrap_or_default();
        match tools.iter_mut().find(|tool| tool.name == *name) {
            Some(tool) => {
                tool.shape = shape;
                tool.effect = spec.effect.unwrap_or(tool.effect);
            }
            None => tools.push(KnownTool { name: name.clone(), effect: spec.effect.unwrap_or_default(), shape }),
        }
    }
    cases.case.iter().map(|case| told(case, &config, &policies, &tools)).collect()
}

fn told(case: &Case, config: &Config, policies: &Policies, tools: &[KnownTool]) -> Result<Told> {
    let hint = |name: &str, known: Vec<&str>| {
        nearest(name, known).first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    };
    let Some(tool) = tools.iter().find(|tool| tool.name == case.tool) else {
        let names = tools.iter().map(|tool| tool.name.as_str()).collect();
        bail!("`{}`: there is no tool `{}`{}", case.says, case.tool, hint(&case.tool, names));
    };
    let ids = policies.ids();
    if let Some(by) = case.by.as_ref().filter(|by| !ids.contains(by)) {
        bail!("`{}`: there is no policy `{by}`{}", case.says, hint(by, ids.iter().map(String::as_str).collect()));
    }
    let nowhere = UpstreamConfig::undeclared();
    let (upstream, settled) = home(config, &tool.name).unwrap_or(("", &nowhere));
    let contract = config.rules(&tool.name, settled, tool.effect)?.contract;
    let principal = Principal::new(case.principal.as_str());
    let arguments = Value::Object(case.args.clone());
    let decided = policies.decide(&Asked {
        principal: &principal,
        tenant: case.tenant.as_deref(),
        tool: ToolFacts {
            name: &tool.name,
            upstream,
            effect: tool.effect,
            reversible: contract.reverse.is_some(),
            declared: contract.declared,
            shape: &tool.shape,
        },
        arguments: &arguments,
        origin: Origin { session: "", door: &case.door, step: None },
        scopes: &case.scopes,
        now: case.at.map(moment).transpose()?.unwrap_or_default(),
    });
    Ok(Told { says: case.says.clone(), otherwise: case.otherwise(&decided), got: words(&decided) })
}

impl Case {
    /// What was expected, where something else was decided.
    fn otherwise(&self, decided: &Decided) -> Option<String> {
        let by = |ids: &[String]| self.by.as_ref().is_none_or(|by| ids.contains(by));
        let as_written = match (self.expect, decided) {
            (Expected::Permit, Decided::Permitted { by: ids }) => by(ids),
            (Expected::Forbid, Decided::Denied(ruling)) => by(&ruling.policies),
            (Expected::Approval, Decided::Approval(approval)) => {
                self.queue.as_ref().is_none_or(|queue| *queue == approval.queue)
                    && self.persons.is_none_or(|persons| persons == approval.persons)
                    && by(std::slice::from_ref(&approval.policy))
            }
            _ => false,
        };
        let expected = match self.expect {
            Expected::Permit => "permit".to_owned(),
            Expected::Forbid => "forbid".to_owned(),
            Expected::Approval => {
                let queue = self.queue.as_ref().map(|queue| format!(" on `{queue}`")).unwrap_or_default();
                let persons = self.persons.map(|persons| format!(" by {persons} persons")).unwrap_or_default();
                format!("approval{queue}{persons}")
            }
        };
        let by = self.by.as_ref().map(|by| format!(", by policy `{by}`")).unwrap_or_default();
        (!as_written).then(|| format!("{expected}{by}"))
    }
}

impl Told {
    fn to_json(&self) -> Value {
        let mut told = json!({ "says": self.says, "passed": self.otherwise.is_none(), "got": self.got });
        if let Some(expected) = &self.otherwise {
            told["expected"] = json!(expected);
        }
        told
    }
}

/// What was decided, and by which policies.
fn words(decided: &Decided) -> String {
    let of = |ids: &[String]| if ids.is_empty() { "no policy".to_owned() } else { format!("`{}`", ids.join("`, `")) };
    match decided {
        Decided::Permitted { by } => format!("permit, by policy {}", of(by)),
        Decided::Approval(approval) => {
            format!("approval on `{}` by {} persons, by policy `{}`", approval.queue, approval.persons, approval.policy)
        }
        Decided::Denied(ruling) => {
            let why = ruling.reasons.iter().map(|reason| format!("; {reason}")).collect::<String>();
            format!("forbid, by policy {}{why}", of(&ruling.policies))
        }
    }
}

/// A time as TOML writes it, in UTC where it names no offset.
fn moment(at: toml::value::Datetime) -> Result<Timestamp> {
    let Some(date) = at.date else { bail!("`at` names a day") };
    let (year, month) = (i64::from(date.year), i64::from(date.month));
    // Days are counted in eras of 400 years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(date.day) - 1;
    let of_era = year.rem_euclid(400);
    let days = year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = at
        .time
        .map_or(0, |time| i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + time.second.map_or(0, i64::from));
    let offset = match at.offset {
        Some(toml::value::Offset::Custom { minutes }) => i64::from(minutes) * 60,
        Some(toml::value::Offset::Z) | None => 0,
    };
    let ms = (days * 86_400 + seconds - offset).checked_mul(1000).and_then(|ms| u64::try_from(ms).ok());
    ms.map(Timestamp::from_ms).context("`at` is before 1970")
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_gateway::policy::Moment;

    #[test]
    fn a_time_is_that_of_the_calendar() {
        for (text, is) in [
            ("1970-01-01", "1970-01-01T00:00:00.000Z"),
            ("2000-02-29T10:20:30Z", "2000-02-29T10:20:30.000Z"),
            ("2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00.000Z"),
        ] {
            assert_eq!(Moment::of(moment(text.parse().unwrap()).unwrap()).text, is);
        }
        assert!(moment("1969-12-31".parse().unwrap()).is_err());
    }
}
