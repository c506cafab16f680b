//! The suite as a server: a client uses it, and the same client uses it through Amends.

use crate::suite::{call, client_scenarios};
use crate::support::{AMENDS, root};

/// Authorisation is between an agent and whoever it talks to: what the suite asks of an agent there, it cannot see
/// through a gateway that has an authorisation of its own.
const NOT_OURS: &str = "auth/";

/// What differs for a reason, and why.
const OTHERWISE: [(&str, &str); 3] = [
    // The scenario offers nothing to use. So only requests of our own reach it, for which nobody could be asked.
    ("request-metadata", "sep-2575-client-declares-elicitation-capability/ClientDeclaresElicitationCapability"),
    // The scenario gives null for what its own schema says is a boolean, and Amends sends no arguments that do not fit. That
    // nothing is repeated for null is tested where headers are made.
    ("http-custom-headers", "sep-2243-client-omit-null/ClientCustomHeaderOmitNull"),
    ("http-custom-headers", "sep-2243-client-omit-null/NotObserved"),
];

fn compare(revision: &str) {
    let home = root();
    let python = home.join("target/clients/venv/bin/python").display().to_string();
    let file = |name: &str| home.join("tests/conformance").join(name).display().to_string();
    let direct = format!("{python} {}", file("client.py"));
    let through = format!("{python} {} {AMENDS}", file("through.py"));
    let scenarios: Vec<String> =
        client_scenarios(revision).into_iter().filter(|scenario| !scenario.starts_with(NOT_OURS)).collect();
    assert!(!scenarios.is_empty());
    let mut worse = Vec::new();
    for scenario in scenarios {
        worse.extend(call(&through, revision, &scenario).worse_than(&call(&direct, revision, &scenario)));
    }
    let excused =
        |line: &String| OTHERWISE.iter().any(|(scenario, check)| line.starts_with(&format!("{scenario}: {check}:")));
    worse.retain(|line| !excused(line));
    assert!(worse.is_empty(), "{} checks are worse through Amends:\n{}", worse.len(), worse.join("\n"));
}

#[test]
fn a_stateful_client_conforms_through_amends_as_it_does_directly() {
    compare("2025-11-25");
}

#[test]
fn a_stateless_client_conforms_through_amends_as_it_does_directly() {
    compare("2026-07-28");
}
