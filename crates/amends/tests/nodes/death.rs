//! Nodes that die or stall, and what the others make of it.

use crate::postgres_server::Cluster;
use crate::support::{Gateway, eventually};
use crate::{Site, answer, faults, signal};

const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;

#[test]
fn a_charge_in_flight_at_a_node_that_is_killed_is_settled_by_another_and_not_sent_again() {
    let site = Site::over(Cluster::shared().database());
    let script = faults("charge_card", "ord_1", &["late"], "late_ms = 30000");
    let (mut dies, other, third) =
        (site.place.up_patient(&script), site.place.up_patient(&script), site.place.up_patient(&script));
    let _waiting = dies.begin("charge_card", CHARGE);
    eventually("the effect is there", || site.place.effects("charge_card") == 1);
    dies.kill();
    eventually("another node takes it up", || !site.place.events_named("resumed").is_empty());
    for node in [&other, &third] {
        let (_, repeat) = node.call("charge_card", CHARGE);
        assert_eq!(repeat["outcome"], "unresolved", "{repeat}");
        assert_eq!(repeat["error"]["certainty"], "in_doubt", "{repeat}");
        assert_eq!(repeat["replayed"], true, "{repeat}");
    }
    assert_eq!((site.place.effects("charge_card"), site.place.requests("charge_card")), (1, 1));
    assert_eq!(site.place.events_named("resumed").len(), 1, "one of the two took it up");
    site.place.settled();
}

#[test]
fn a_keyed_refund_of_a_node_that_is_killed_is_finished_by_another_with_the_same_key() {
    let site = Site::over(Cluster::shared().database());
    let script = faults("issue_refund", "ord_1", &["late"], "late_ms = 30000");
    let (mut dies, other) = (site.place.up_patient(&script), site.place.up_patient(&script));
    let _waiting = dies.begin("issue_refund", CHARGE);
    eventually("the effect is there", || site.place.effects("issue_refund") == 1);
    dies.kill();
    eventually("the call is over", || site.place.open_calls() == 0);
    let (_, repeat) = other.call("issue_refund", CHARGE);
    assert_eq!((&repeat["status"], &repeat["replayed"]), (&"success".into(), &true.into()), "{repeat}");
    assert_eq!(site.place.effects("issue_refund"), 1);
    let keys = site.place.keys_on("issue_refund", "ord_1");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    site.place.settled();
}

#[test]
fn what_a_node_that_stalled_writes_late_is_refused_by_the_fence() {
    let site = Site::over(Cluster::shared().database());
    let script = faults("charge_card", "ord_1", &["late"], "late_ms = 1000");
    let (stalls, other) = (site.place.up_patient(&script), site.place.up_patient(&script));
    let stream = stalls.begin("charge_card", CHARGE);
    eventually("the effect is there", || site.place.effects("charge_card") == 1);
    signal(&stalls, "-STOP");
    let (_, repeat) = other.call("charge_card", CHARGE);
    signal(&stalls, "-CONT");
    assert_eq!(repeat["outcome"], "unresolved", "{repeat}");

    // Whoever waited at the stalled one is not told more than is on the ledger.
    let late = answer(stream);
    assert_eq!((&late["status"], &late["error"]["certainty"]), (&"error".into(), &"in_doubt".into()), "{late}");
    assert_eq!((site.place.effects("charge_card"), site.place.requests("charge_card")), (1, 1));
    assert_works(&stalls, &site);
    site.place.settled();
}

#[test]
fn a_retry_that_waits_at_a_node_that_is_killed_is_resumed_by_another() {
    let site = Site::over(Cluster::shared().database());
    let script = faults("issue_refund", "ord_1", &["status_503"], "retry_after = 3");
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"20s\"\ndeadline = \"50s\"\n";
    let config = site.place.write("patient.toml", config).display().to_string();
    let up = || site.place.up_with(&script, &["--config", &config]);
    let (mut dies, other) = (up(), up());
    let _waiting = dies.begin("issue_refund", CHARGE);
    eventually("the refund waits", || !site.place.events_named("wait_began").is_empty());
    dies.kill();
    eventually("another node takes it up", || !site.place.events_named("resumed").is_empty());
    let (_, repeat) = other.call("issue_refund", CHARGE);
    assert_eq!(repeat["status"], "success", "{repeat}");
    assert_eq!(site.place.effects("issue_refund"), 1);
    let keys = site.place.keys_on("issue_refund", "ord_1");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    site.place.settled();
}

/// A node that has stalled goes on with new calls.
fn assert_works(node: &Gateway, site: &Site) {
    eventually("the node works again", || {
        node.call("charge_card", r#"{"order":"ord_2","amount":5}"#).1["status"] == "success"
    });
    assert_eq!(site.place.effects_on("charge_card", "ord_2"), 1);
}
