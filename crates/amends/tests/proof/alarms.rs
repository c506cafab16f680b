//! What must never look like a fault: others writing, several processes, a crash.

use std::sync::atomic::{AtomicBool, Ordering};

use amends::attacks::Site;
use serde_json::json;

use crate::support::client::{Client, Sdk};
use crate::support::{Place, eventually};
use crate::{run, terminate, verify};

/// How often the ledger is verified while others write.
const ROUNDS: usize = 8;

#[test]
fn verifying_does_not_mind_gateways_that_write_and_sign_meanwhile() {
    let place = Place::new();
    let site = Site::at(place.path("amends.db").parent().expect("a folder"));
    let gateways = [place.up(""), place.up("")];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, gateway) in gateways.iter().enumerate() {
            let done = &done;
            scope.spawn(move || {
                let mut call = 0;
                while !done.load(Ordering::Relaxed) {
                    let arguments = format!(r#"{{"order":"ord_{number}_{call}","amount":5}}"#);
                    gateway.call("charge_card", &arguments);
                    call += 1;
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let (code, said) = place.amends(&["checkpoint"]);
                assert_eq!(code, 0, "{said}");
            }
        });
        let rounds: Vec<_> = (0..ROUNDS).map(|_| verify(&site)).collect();
        done.store(true, Ordering::Relaxed);
        for (code, report) in rounds {
            assert_eq!(code, 0, "{report}");
        }
    });
    for mut gateway in gateways {
        terminate(&mut gateway);
    }
    let (code, report) = verify(&site);
    assert_eq!((code, &report["proven"]["events_after"]), (0, &0.into()), "{report}");
    assert!(report["log_entries"].as_u64().is_some_and(|entries| entries > 0), "{report}");
}

#[test]
fn wraps_that_share_a_file_give_no_alarm() {
    let place = Place::new();
    let site = Site::at(place.path("amends.db").parent().expect("a folder"));
    let command = place.wrap("", None);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut clients = [(); 2].map(|()| Client::stdio(Sdk::Python, None, &command));
    for (number, client) in clients.iter_mut().enumerate() {
        client.call("charge_card", json!({ "order": format!("ord_{number}"), "amount": 5 }));
    }
    let (code, report) = verify(&site);
    assert_eq!(code, 0, "{report}");
    drop(clients);
    assert_eq!(place.amends(&["checkpoint"]).0, 0);
    let (code, report) = verify(&site);
    assert_eq!((code, &report["proven"]["events_after"]), (0, &0.into()), "{report}");
}

#[test]
fn an_attempt_orphaned_by_a_kill_gives_no_alarm_before_or_after_it_is_settled() {
    let place = Place::new();
    let site = Site::at(place.path("amends.db").parent().expect("a folder"));
    let mut gateway = place.up_crashing("", "after_intent");
    let connection = gateway.begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    gateway.ended();
    drop(connection);
    let (code, report) = verify(&site);
    assert_eq!(code, 0, "{report}");
    assert_eq!(place.amends(&["checkpoint"]).0, 0, "an open session can be signed");
    let mut gateway = place.up("");
    eventually("the orphan is settled", || place.open_calls() == 0);
    terminate(&mut gateway);
    let (code, report) = verify(&site);
    assert_eq!((code, &report["proven"]["events_after"]), (0, &0.into()), "{report}");
}

#[test]
fn a_torn_last_note_in_the_anchor_gives_no_alarm_and_is_repaired() {
    let (place, site) = crate::signed();
    let anchor = std::fs::read(site.anchor()).expect("an anchor");
    std::fs::write(site.anchor(), &anchor[..anchor.len() - 60]).expect("a torn anchor");
    let (code, report) = verify(&site);
    assert_eq!(code, 0, "{report}");
    let (code, note) = place.amends(&["checkpoint"]);
    assert_eq!(code, 0);
    assert!(crate::text(&site.anchor()).ends_with(&format!("{note}\n")), "{note}");
    let (code, report) = verify(&site);
    assert_eq!((code, &report["proven"]["events_after"]), (0, &0.into()), "{report}");
}

#[test]
fn a_ledger_that_was_never_signed_is_consistent() {
    let place = Place::new();
    let mut gateway = place.up("");
    gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    gateway.kill();
    for ending in ["sign", "sign.pub", "checkpoints"] {
        let _ = std::fs::remove_file(place.path(&format!("amends.db.{ending}")));
    }
    let ledger = place.ledger();
    let (code, said) = run(&["verify", "--ledger", &ledger]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("consistent; completeness not proven"), "{said}");
}
