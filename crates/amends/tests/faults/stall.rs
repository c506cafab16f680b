//! A gateway that stalls until another one over the same ledger has taken up its calls, and then goes on.

use std::io::Read;
use std::process::Command;

use serde_json::Value;

use crate::more_faults;
use crate::support::{Gateway, Place, eventually, http};

const ARGUMENTS: &str = r#"{"order":"ord_1","amount":5}"#;

#[test]
fn a_charge_in_flight_at_a_gateway_that_stalls_is_in_doubt_at_the_other_and_not_sent_again() {
    let place = Place::new();
    let script = more_faults("charge_card", "ord_1", &["late"], "late_ms = 1000");
    let (stalls, other) = (place.up_patient(&script), place.up_patient(&script));
    let mut stream = stalls.begin("charge_card", ARGUMENTS);
    eventually("the effect is there", || place.effects("charge_card") == 1);
    signal(&stalls, "-STOP");
    let (_, repeat) = other.call("charge_card", ARGUMENTS);
    signal(&stalls, "-CONT");
    assert_eq!(repeat["outcome"], "unresolved", "{repeat}");
    assert_eq!(repeat["replayed"], true, "{repeat}");

    // Whoever waited at the stalled one is not told more than is on the ledger.
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    let answer: Value = serde_json::from_slice(&http::parse(&text).1).expect("JSON");
    assert_eq!(answer["status"], "error", "{answer}");
    assert_eq!(answer["error"]["certainty"], "in_doubt", "{answer}");
    assert_eq!(answer["error"]["safe_to_repeat"], false, "{answer}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    assert_works(&stalls, &place);
    place.settled();
}

#[test]
fn a_charge_that_waits_at_a_gateway_that_stalls_is_sent_by_only_one_of_the_two() {
    let place = Place::new();
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"20s\"\n\
                  rejects_before_effect = [429]\n";
    let config = place.write("amends.toml", config).display().to_string();
    let script = more_faults("charge_card", "ord_1", &["rate_limited"], "retry_after = 3");
    let up = || place.up_with(&script, &["--config", &config]);
    let (stalls, other) = (up(), up());
    let mut stream = stalls.begin("charge_card", ARGUMENTS);
    eventually("the charge waits", || place.events_named("wait_began").len() == 1);
    signal(&stalls, "-STOP");
    // The other gateway ends what the stalled one began, since nothing was done; only then is an equal call another one.
    eventually("the call is taken up", || !place.events_named("resumed").is_empty() && place.open_calls() == 0);
    let (_, repeat) = other.call("charge_card", ARGUMENTS);
    signal(&stalls, "-CONT");
    assert_eq!(repeat["status"], "success", "{repeat}");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    let answer: Value = serde_json::from_slice(&http::parse(&text).1).expect("JSON");
    assert_ne!(answer["status"], "success", "{answer}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 2));
    assert_works(&stalls, &place);
    place.settled();
}

/// A gateway that has stalled goes on with new calls.
fn assert_works(gateway: &Gateway, place: &Place) {
    eventually("the gateway works again", || {
        let (_, answer) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
        answer["status"] == "success"
    });
    assert_eq!(place.effects_on("charge_card", "ord_2"), 1);
}

fn signal(gateway: &Gateway, signal: &str) {
    let sent = Command::new("kill").args([signal, &gateway.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{signal}");
}
