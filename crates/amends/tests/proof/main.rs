//! What the ledger proves, through the real binary: what verifying finds, what it does not mistake for a fault, and proofs
//! that hold without the ledger.

#[path = "../support/mod.rs"]
mod support;

mod alarms;
mod attacks;
mod proofs;

use std::path::Path;
use std::process::Command;

use amends::attacks::Site;
use serde_json::Value;

use crate::support::{AMENDS, Gateway, Place};

/// A ledger with some writes in it, signed twice, and a copy from between. Nobody has it open any more.
fn signed() -> (Place, Site) {
    let place = Place::new();
    let site = Site::at(place.path("amends.db").parent().expect("a folder"));
    for orders in [["ord_1", "ord_2"], ["ord_3", "ord_4"]] {
        let mut gateway = place.up("");
        for order in orders {
            let (status, answer) = gateway.call("charge_card", &format!(r#"{{"order":"{order}","amount":5}}"#));
            assert_eq!(status, 200, "{answer}");
        }
        terminate(&mut gateway);
        if !site.older().exists() {
            let ledger = rusqlite::Connection::open(site.ledger()).expect("the ledger");
            ledger.execute("VACUUM INTO ?1", [site.older().to_string_lossy()]).expect("a copy");
        }
    }
    (place, site)
}

/// Asks a gateway to end, and waits until it has.
fn terminate(gateway: &mut Gateway) {
    let asked = Command::new("kill").args(["-TERM", &gateway.id().to_string()]).status().expect("kill runs");
    assert!(asked.success());
    gateway.ended();
}

/// What `amends verify --json` says of a ledger: its exit code and its report.
fn verify(site: &Site) -> (i32, Value) {
    let ledger = format!("sqlite:{}", site.ledger().display());
    let (code, said) = run(&["verify", "--json", "--ledger", &ledger]);
    (code, serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}")))
}

fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(AMENDS).args(arguments).output().expect("the binary runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
