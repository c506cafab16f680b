//! Stdio upstreams that break the rules.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pipe::{Pipe, envelope};
use crate::process::resident_mb;
use crate::servers::{events, python, serve, words};
use crate::support::{Gateway, Place, eventually};

/// Plain writes with little patience, and one read.
fn bad(place: &Place) -> Gateway {
    bad_within(place, "1s")
}

fn bad_within(place: &Place, timeout: &str) -> Gateway {
    let server = python(place, "bad.py", &[]);
    let upstream = format!("command = {server:?}\ntimeout = \"{timeout}\"\ndeadline = \"50s\"");
    let gateway = serve(place, &upstream, "[tools.exit_first]\neffect = \"read\"\n\n[tools.ok]\neffect = \"read\"\n");
    works(&gateway);
    gateway
}

fn works(gateway: &Gateway) {
    eventually("the upstream answers", || gateway.call("ok", "{}").0 == 200);
}

fn assert_in_doubt(failed: &Value, code: &str) {
    assert_eq!(failed["error"]["code"], code, "{failed}");
    assert_eq!(failed["error"]["certainty"], "in_doubt", "{failed}");
    assert_eq!(failed["error"]["safe_to_repeat"], false, "{failed}");
    assert_eq!(failed["attempts"].as_array().map(Vec::len), Some(1), "{failed}");
}

#[test]
fn what_is_no_answer_leaves_a_write_in_doubt_after_its_time() {
    let place = Place::new();
    let gateway = bad(&place);
    for tool in ["html", "silent", "wrong_id"] {
        let began = Instant::now();
        let (_, failed) = gateway.call(tool, "{}");
        assert_in_doubt(&failed, "NetworkTimeout");
        assert!(began.elapsed() < Duration::from_secs(8), "{tool}: {:?}", began.elapsed());
        works(&gateway);
    }
    place.settled();
}

#[test]
fn half_an_answer_leaves_a_write_in_doubt_at_once() {
    let place = Place::new();
    let gateway = bad(&place);
    assert_in_doubt(&gateway.call("half", "{}").1, "ConnectionLost");
    works(&gateway);
    let (_, failed) = gateway.call("exit_first", "{}");
    // A read is tried as often as the playbook says, and then given up.
    assert_eq!(failed["outcome"], "exhausted", "{failed}");
    works(&gateway);
    place.settled();
}

#[test]
fn an_answer_that_is_too_large_is_not_kept() {
    let place = Place::new();
    let gateway = bad_within(&place, "30s");
    let before = resident_mb(gateway.id());
    let (_, failed) = gateway.call("huge", "{}");
    assert_eq!(failed["error"]["code"], "OutputMalformed", "{failed}");
    assert_eq!(failed["error"]["certainty"], "in_doubt", "what it said is not known: {failed}");
    assert_eq!(failed["error"]["safe_to_repeat"], false, "{failed}");
    assert!(failed.to_string().len() < 10_000);
    works(&gateway);
    let after = resident_mb(gateway.id());
    assert!(after < before + 120, "{before} MB before and {after} MB after");
    place.settled();
}

#[test]
fn the_first_of_two_answers_counts() {
    let place = Place::new();
    let gateway = bad(&place);
    let (status, done) = gateway.call("twice", "{}");
    assert_eq!((status, &done["status"]), (200, &"success".into()), "{done}");
    assert!(done.to_string().contains("done") && !done.to_string().contains("again"), "{done}");
    let (status, spaced) = gateway.call("spaced", "{}");
    assert_eq!(status, 200, "odd spaces and line ends are no fault: {spaced}");
    place.settled();
}

#[test]
fn an_answer_after_its_time_is_recorded_as_late() {
    let place = Place::new();
    let gateway = bad(&place);
    assert_in_doubt(&gateway.call("late", "{}").1, "NetworkTimeout");
    eventually("the late answer is recorded", || events(&place, "late_result") == 1);
    works(&gateway);
    place.settled();
}

#[test]
fn an_answer_that_is_not_utf8_or_no_result_says_that_the_write_was_answered() {
    let place = Place::new();
    let gateway = bad(&place);
    for tool in ["bad_utf8", "not_a_result"] {
        let (_, failed) = gateway.call(tool, "{}");
        assert_eq!(failed["status"], "error", "{tool}: {failed}");
        assert_eq!(failed["error"]["code"], "OutputMalformed", "{tool}: {failed}");
        assert_eq!(failed["error"]["safe_to_repeat"], false, "{tool}: {failed}");
    }
    // Deep is not wrong.
    assert_eq!(gateway.call("deep", "{}").0, 200);
    works(&gateway);
    place.settled();
}

#[test]
fn an_endless_flood_of_notifications_neither_fills_memory_nor_stops_other_calls() {
    let place = Place::new();
    let gateway = bad(&place);
    let before = resident_mb(gateway.id());
    assert_in_doubt(&gateway.call("flood", "{}").1, "NetworkTimeout");
    for _ in 0..20 {
        let (status, done) = gateway.call("ok", "{}");
        assert_eq!(status, 200, "{done}");
    }
    let after = resident_mb(gateway.id());
    assert!(after < before + 100, "{before} MB before and {after} MB after");
}

#[test]
fn a_flood_at_a_client_that_does_not_read_fills_no_memory() {
    let place = Place::new();
    let server = python(&place, "bad.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    pipe.call("ok", "{}");
    let before = resident_mb(pipe.id());
    pipe.begin("flood", "{}");
    pipe.be_deaf(true);
    // Where nothing holds the flood back, it would be hundreds of megabytes by then.
    std::thread::sleep(Duration::from_secs(3));
    let after = resident_mb(pipe.id());
    assert!(after < before + 60, "{before} MB before and {after} MB after");
    pipe.be_deaf(false);
    let done = pipe.call("ok", "{}");
    assert_eq!(envelope(&done)["status"], "success", "{done}");
}
