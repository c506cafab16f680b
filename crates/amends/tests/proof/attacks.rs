//! Everything that verifying must find.

use amends::attacks::ATTACKS;

use crate::{run, signed, text, verify};

#[test]
fn the_selftest_finds_every_attack() {
    let (code, said) = run(&["verify", "--selftest"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("NOT FOUND"), "{said}");
    assert!(said.contains(&format!("{0} of {0} found", ATTACKS.len())), "{said}");
}

#[test]
fn every_attack_on_the_ledger_of_a_real_gateway_is_found() {
    let (place, site) = signed();
    let (code, report) = verify(&site);
    assert_eq!((code, &report["consistent"]), (0, &true.into()), "{report}");
    assert_eq!(report["completeness"], "proven to the anchor's last checkpoint", "{report}");
    assert_eq!(report["proven"]["events_after"], 0, "{report}");
    assert_eq!(report["not_decidable_again"], 0, "{report}");
    for (number, attack) in ATTACKS.iter().enumerate() {
        let copy = site.copy_to(&place.path(&format!("copy-{number}"))).expect("a copy");
        attack.run(&copy).unwrap_or_else(|error| panic!("{}: {error:#}", attack.name));
        let (code, report) = verify(&copy);
        assert_eq!(code, 1, "{}: {report}", attack.name);
        let kinds: Vec<&str> =
            report["faults"].as_array().expect("faults").iter().filter_map(|fault| fault["kind"].as_str()).collect();
        assert!(kinds.contains(&attack.found_as.as_str()), "{}: {kinds:?}", attack.name);
        assert_eq!(report["completeness"], "not proven", "{}", attack.name);
    }
}

#[test]
fn a_changed_anchor_is_found_and_a_key_of_somebody_else_too() {
    let (place, site) = signed();
    let ledger = format!("sqlite:{}", site.ledger().display());
    let anchor = text(&site.anchor());
    let size = anchor.lines().nth(1).expect("a size").to_owned();
    let forged = place.write("forged", &anchor.replacen(&format!("\n{size}\n"), "\n1\n", 1)).display().to_string();
    let (code, said) = run(&["verify", "--ledger", &ledger, "--anchor", &forged]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("checkpoint: a checkpoint in the anchor is not accepted"), "{said}");
    let others = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let (code, said) = run(&["verify", "--ledger", &ledger, "--key", others]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("it is not signed with that key"), "{said}");
}

#[test]
fn without_an_anchor_nothing_is_called_complete() {
    let (_place, site) = signed();
    std::fs::remove_file(site.anchor()).expect("an anchor");
    let ledger = format!("sqlite:{}", site.ledger().display());
    let (code, said) = run(&["verify", "--ledger", &ledger]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("consistent; completeness not proven"), "{said}");
    assert!(!said.contains("intact"), "{said}");
}

#[test]
fn what_cannot_be_looked_at_is_told_from_what_is_wrong() {
    let (place, site) = signed();
    let ledger = format!("sqlite:{}", site.ledger().display());
    let nowhere = place.path("nowhere").display().to_string();
    assert_eq!(run(&["verify", "--ledger", &format!("sqlite:{nowhere}")]).0, 2);
    assert_eq!(run(&["verify", "--ledger", &ledger, "--anchor", &nowhere]).0, 2);
    assert_eq!(run(&["verify", "--ledger", &ledger, "--key", &nowhere]).0, 2);
    std::fs::remove_file(format!("{}.sign.pub", site.ledger().display())).expect("a key");
    let anchor = site.anchor().display().to_string();
    let (code, said) = run(&["verify", "--ledger", &ledger, "--anchor", &anchor]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--key"), "{said}");
}

#[test]
fn a_restored_ledger_is_served_and_not_signed() {
    let (place, site) = signed();
    let restore = ATTACKS.iter().find(|attack| attack.name == "an older file restored").expect("that attack");
    restore.run(&site).expect("a restored file");
    let anchor = text(&site.anchor());
    let mut gateway = place.up("");
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_9","amount":5}"#).0, 200);
    let (code, said) = place.amends(&["checkpoint"]);
    assert_eq!((code, said.as_str()), (1, ""));
    crate::terminate(&mut gateway);
    assert_eq!(text(&site.anchor()), anchor, "nothing was signed");
    assert_eq!(verify(&site).0, 1);
}
