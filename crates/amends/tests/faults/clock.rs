//! A machine's clock that somebody sets while we run.

use std::process::Command;
use std::thread;

use crate::more_faults;
use crate::support::{Gateway, Place, eventually};

const HOUR_MS: &str = "3600000";

/// A gateway whose machine's clock is set forward by as much as the file says.
fn up(place: &Place, faults: &str, config: &str) -> Gateway {
    let config = place.write("clock.toml", config).display().to_string();
    let mut command: Command = place.up_command(faults, &["--config", &config]);
    command.env("AMENDS_CLOCK_FORWARD_MS", place.path("forward"));
    Gateway::start(command)
}

#[test]
fn a_clock_that_is_set_forward_does_not_make_a_no_count_too_early() {
    let place = Place::new();
    let config = "[tools.issue_refund]\neffect = \"write\"\ntimeout = \"1s\"\nsettles_within = \"9s\"\n\
                  status = { tool = \"get_refund\", args = { order = \"args.order\" }, happened = \"result.found\" }\n";
    let late = more_faults("issue_refund", "ord_1", &["late_effect", "ok"], "late_ms = 6000");
    let gateway = up(&place, &late, config);
    let address = gateway.address.clone();
    let call = thread::spawn(move || {
        crate::support::http::post(&address, "/call/issue_refund", &[], br#"{"order":"ord_1","amount":5}"#).1
    });
    eventually("the status says no", || {
        let reads = place.requests_on("get_refund", "ord_1");
        place.requests_on("issue_refund", "ord_1") == 1 && reads >= 2
    });
    assert_eq!(place.effects("issue_refund"), 0, "the machine is too slow for this test");
    place.write("forward", HOUR_MS);
    let answer = call.join().expect("a call");
    assert_eq!(answer["outcome"], "succeeded_after_compensation", "{answer}");
    assert_eq!((place.effects("issue_refund"), place.requests_on("issue_refund", "ord_1")), (1, 1), "{answer}");
    place.settled();
}

#[test]
fn a_gateway_that_starts_after_the_clock_was_set_leaves_the_sessions_of_one_that_lives_alone() {
    let place = Place::new();
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n";
    let late = more_faults("charge_card", "ord_1", &["late"], "late_ms = 8000");
    let first = up(&place, &late, config);
    let address = first.address.clone();
    let call = thread::spawn(move || {
        crate::support::http::post(&address, "/call/charge_card", &[], br#"{"order":"ord_1","amount":5}"#).1
    });
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    place.write("forward", HOUR_MS);
    let second = up(&place, "", config);
    let (_, charge) = second.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(charge["status"], "success", "{charge}");
    let answer = call.join().expect("a call");
    assert_eq!(answer["status"], "success", "{answer}");
    assert!(place.events_named("resumed").is_empty());
    assert_eq!((place.effects("charge_card"), place.requests_on("charge_card", "ord_1")), (2, 1));
    place.settled();
}
