//! The suite as a client: against a server, and against Amends in front of it.

use crate::suite::{Findings, Verdict, serve};
use crate::support::served::{Listening, serve_tools};
use crate::support::{Place, root};

/// The server answers malformed input with an error of JSON-RPC, which the suite only warns about where it is missing. Through
/// Amends a call that failed is answered with an envelope: a result that says it is an error.
const OTHERWISE: &str = "input-required-result-validate-input: sep-2322-validate-input-responses/";

/// Several scenarios call this one with the same arguments, and some leave before it is answered. Were it a write, the next
/// equal call would be the repeat of the one that waits.
const READ: &str = "[tools.test_input_required_result_elicitation]\neffect = \"read\"\n";

/// Runs the suite on both, and compares.
fn compare(revision: &str, era: &str, upstream: impl Fn(&Listening) -> String) -> (Findings, Findings) {
    let server = Listening::start(&words(&["--http", "0", era]));
    let (direct, conforms) = serve(&server.url, revision);
    assert!(conforms, "the server itself does not conform");
    let place = Place::new();
    let gateway = serve_tools(&place, &upstream(&server), READ);
    let (through, conforms) = serve(&gateway.mcp(), revision);
    let mut worse = through.worse_than(&direct);
    worse.retain(|line| !line.starts_with(OTHERWISE));
    assert!(worse.is_empty(), "{} checks are worse through Amends:\n{}", worse.len(), worse.join("\n"));
    assert_eq!(through.scenarios(), direct.scenarios());
    assert!(conforms, "the suite says that what Amends serves does not conform");
    eprintln!("{revision}: {} passed, directly {}", through.count(Verdict::Passed), direct.count(Verdict::Passed));
    (through, direct)
}

fn over_http(server: &Listening) -> String {
    format!("url = {:?}", server.url)
}

/// The same server as a child process of Amends.
fn over_stdio(era: &str) -> String {
    format!("command = {:?}", words(&["--stdio", era]))
}

/// The command of the server under test.
fn words(flags: &[&str]) -> Vec<String> {
    let home = root();
    let python = home.join("target/clients/venv/bin/python").display().to_string();
    let script = home.join("tests/conformance/server.py").display().to_string();
    [python, script].into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect()
}

#[test]
fn a_stateful_server_conforms_through_amends_as_it_does_directly() {
    compare("2025-11-25", "legacy", over_http);
}

#[test]
fn a_stateless_server_conforms_through_amends_as_it_does_directly() {
    compare("2026-07-28", "modern", over_http);
}

#[test]
fn a_stateful_server_over_stdio_conforms_through_amends_as_it_does_over_http() {
    compare("2025-11-25", "legacy", |_| over_stdio("legacy"));
}

#[test]
fn a_stateless_server_over_stdio_conforms_through_amends_as_it_does_over_http() {
    compare("2026-07-28", "modern", |_| over_stdio("modern"));
}
