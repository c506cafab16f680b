//! What the A2A compatibility kit asks of an agent, asked of the example that is made for it.

use std::process::Command;

use crate::peer::{python, root};
use crate::support::{AMENDS, Gateway, Place, eventually, http};

/// The example over a ledger and a port of its own.
fn parrot(place: &Place) -> Gateway {
    let text = std::fs::read_to_string(root().join("examples/a2a/amends.toml")).expect("the example");
    let text = text.replace("\"127.0.0.1:7070\"", "\"127.0.0.1:0\"");
    let text = format!("{text}\n[ledger]\nurl = \"{}\"\n", place.ledger());
    let config = place.write("parrot.toml", &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config).current_dir(root());
    let gateway = Gateway::listening(command);
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    eventually("the tool is served", || {
        let (_, answer) = http::post(&gateway.address, "/mcp", &[], list);
        answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    });
    gateway
}

/// Runs one check of the kit's requirements, over both bindings.
fn holds(check: &str) {
    let place = Place::new();
    let gateway = parrot(&place);
    let mut command = python(root().join("crates/amends/tests/a2a/kit.py"));
    let ran = command.arg(format!("http://{}", gateway.address)).arg(check).output().expect("it runs");
    let (said, wrong) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && said.contains(&format!("{check} holds")), "{said}{wrong}");
}

#[test]
fn the_card_has_what_it_must_and_can_be_kept_for_a_while() {
    holds("card");
}

#[test]
fn a_message_is_a_task_of_its_own_whatever_its_id_is() {
    holds("sending");
}

#[test]
fn texts_data_and_files_are_artifacts() {
    holds("artifacts");
}

#[test]
fn each_error_has_its_number_and_its_reason() {
    holds("errors");
}

#[test]
fn a_task_that_waits_is_answered_cancelled_or_signed_in_for() {
    holds("turns");
}

#[test]
fn every_stream_of_a_task_says_the_same_and_ends_with_it() {
    holds("streams");
}

#[test]
fn tasks_are_listed_page_by_page_and_by_what_is_asked_for() {
    holds("lists");
}

#[test]
fn every_task_is_listed_once_however_many_there_are() {
    holds("many");
}

#[test]
fn addresses_are_kept_looked_at_and_called() {
    holds("pushes");
}
