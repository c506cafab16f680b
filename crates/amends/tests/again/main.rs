//! Deciding again, through the real binary: replay, whatif, goldens, proposals and releases.

#[path = "../support/mod.rs"]
mod support;

mod golden;
mod release;
mod replay;
mod whatif;

use std::process::Output;

use support::{AMENDS, Gateway, Place};

/// Rules under which a read that fails is not sent again.
const SURFACE: &str = "# A word.\n[tools.get_order.playbook.server_error_5xx]\ncompensation = \"surface\"\n";

/// A folder whose ledger has one read that failed once and was sent again, and its call.
fn recovered() -> (Place, Gateway, String) {
    let place = Place::new();
    let gateway = place.up(&faults("get_order", "ord_1", &["status_500"]));
    let (_, answer) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(answer["outcome"], "succeeded_after_compensation", "{answer}");
    place.settled();
    let judged = place.events_named("failure_judged");
    assert_eq!(judged.len(), 1, "{judged:?}");
    let call = judged[0]["attempt"]["call"].as_str().expect("a call").to_owned();
    (place, gateway, call)
}

fn faults(tool: &str, order: &str, attempts: &[&str]) -> String {
    format!("[[fault]]\ntool = \"{tool}\"\nwhen = {{ order = \"{order}\" }}\nattempts = {attempts:?}\n")
}

/// Runs the binary in the folder, over its ledger.
fn over(place: &Place, arguments: &[&str]) -> Output {
    run(place, &[arguments, &["--ledger", &place.ledger()]].concat())
}

/// Runs the binary in the folder.
fn run(place: &Place, arguments: &[&str]) -> Output {
    let folder = place.path("");
    std::process::Command::new(AMENDS).args(arguments).current_dir(folder).output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}
