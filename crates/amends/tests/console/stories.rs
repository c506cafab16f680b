//! The pages in a real browser. Each story is a script in `tests/console/stories`, which starts a gateway of its own.

use std::process::Command;

use crate::support::{AMENDS, root};

fn told(story: &str) {
    let script = root().join("tests/console/stories").join(story);
    let output = Command::new("node").arg(script).env("AMENDS_BIN", AMENDS).output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{story} failed; tests/console/setup.sh installs what it needs:\n{said}");
}

#[test]
fn a_link_signs_in_once_and_nobody_else_gets_in() {
    told("sign-in.mjs");
}

#[test]
fn people_sign_in_at_an_issuer_and_only_with_what_it_says_of_them() {
    told("issuer.mjs");
}

#[test]
fn a_session_is_told_with_its_lines_of_time_and_its_chain_is_made_again() {
    told("session.mjs");
}

#[test]
fn an_approval_leads_to_the_tools_result_a_denial_does_not_and_the_first_answer_counts() {
    told("approval.mjs");
}

#[test]
fn a_policy_asks_two_persons_and_a_form_is_filled_in() {
    told("policy.mjs");
}

#[test]
fn hostile_texts_are_shown_as_texts() {
    told("hostile.mjs");
}

#[test]
fn a_machine_is_drawn_with_where_a_walk_is() {
    told("machine.mjs");
}

#[test]
fn a_page_survives_a_gateway_that_is_killed_and_started_again() {
    told("restart.mjs");
}

#[test]
fn the_pages_are_used_by_keys_in_any_colours_and_on_a_phone() {
    told("keys.mjs");
}

#[test]
fn the_ledger_is_verified_and_rules_are_tried_in_the_browser() {
    told("ledger.mjs");
}

#[test]
fn a_run_ends_with_what_is_asked_and_goes_on_with_the_answer() {
    told("run.mjs");
}

#[test]
fn a_person_finds_where_to_sign_in_for_an_upstream_and_the_call_goes_on() {
    told("upstream.mjs");
}
