//! Proofs of one event: made by the binary, checked by it and by a checker of its own in another language.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Place, root};
use crate::{run, signed, terminate, text};

/// Who says what of a proof: our binary, and the Python checker.
fn checked(place: &Place, proof: &Value, key: &str) -> [(bool, String); 2] {
    let file = place.write("proof.json", &proof.to_string());
    let (code, said) = run(&["prove", "--check", &file.display().to_string(), "--key", key]);
    assert!(code < 2, "{said}");
    let python = Command::new(root().join("target/clients/venv/bin/python"))
        .arg(root().join("examples/check_proof.py"))
        .args([&file.display().to_string(), key])
        .output()
        .expect("the virtual environment that tests/clients/setup.sh makes");
    let words = String::from_utf8_lossy(&[python.stdout, python.stderr].concat()).into_owned();
    let python_code = python.status.code().unwrap_or(-1);
    assert!(words.contains("proven:"), "it must give a verdict: {words}");
    [(code == 0, said), (python_code == 0, words)]
}

fn some_call(place: &Place) -> (String, String) {
    let ended = place.events_named("call_ended");
    let last = ended.last().expect("a call that ended");
    (last["call"].as_str().expect("an id").to_owned(), last["hash"].as_str().expect("a hash").to_owned())
}

#[test]
fn a_proof_holds_without_the_ledger_and_no_touched_one_does() {
    let (place, site) = signed();
    let key = text(Path::new(&format!("{}.sign.pub", site.ledger().display())));
    let key = key.trim();
    let (call, hash) = some_call(&place);
    let (code, proof) = place.amends(&["prove", &call]);
    assert_eq!(code, 0, "{proof}");
    let proof: Value = serde_json::from_str(&proof).expect("JSON");
    for (holds, said) in checked(&place, &proof, key) {
        assert!(holds, "{said}");
    }
    let (code, by_hash) = place.amends(&["prove", &hash]);
    assert_eq!(code, 0, "{by_hash}");
    let by_hash: Value = serde_json::from_str(&by_hash).expect("JSON");
    assert_eq!(by_hash["session"], proof["session"]);
    for (holds, said) in checked(&place, &by_hash, key) {
        assert!(holds, "{said}");
    }

    for (what, touched) in touched(&proof) {
        for (holds, said) in checked(&place, &touched, key) {
            assert!(!holds, "{what}: {said}");
        }
    }
    let others = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    for (holds, said) in checked(&place, &proof, others) {
        assert!(!holds, "{said}");
    }
}

/// The proof with one thing changed at a time.
fn touched(proof: &Value) -> Vec<(&'static str, Value)> {
    let with = |what, touch: &dyn Fn(&mut Value)| {
        let mut touched = proof.clone();
        touch(&mut touched);
        assert_ne!(&touched, proof, "{what} changes nothing");
        (what, touched)
    };
    let event = proof["events"][0].as_str().expect("an event").to_owned();
    let note = proof["checkpoint"].as_str().expect("a note").to_owned();
    let zeros = "0".repeat(64);
    vec![
        with("another event", &|p| p["events"][0] = event.replace("processed", "not_processed").into()),
        with("no event", &|p| p["events"] = json!([])),
        with("another place in the session", &|p| p["seq"] = 1.into()),
        with("another session", &|p| p["session"] = "ses_other".into()),
        with("another link before", &|p| p["before"] = zeros.clone().into()),
        with("another head", &|p| p["entry"]["head"] = zeros.clone().into()),
        with("another place in the log", &|p| p["entry"]["place"] = 99.into()),
        with("another sequence in the log", &|p| p["entry"]["seq"] = 99.into()),
        with("another path", &|p| p["path"][0] = zeros.clone().into()),
        with("a shorter path", &|p| p["path"] = json!([])),
        with("another checkpoint", &|p| p["checkpoint"] = note.replacen("\n\n", "\nmore\n\n", 1).into()),
        with("no signature", &|p| p["checkpoint"] = note.split("\n\n").next().unwrap_or("").into()),
        with("another form", &|p| p["format"] = "amends/proof/2".into()),
    ]
}

#[test]
fn a_receipt_is_enough_to_ask_for_a_proof_later() {
    let place = Place::new();
    let mut gateway = place.up("");
    let mut answer = String::new();
    let mut connection = gateway.begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    connection.read_to_string(&mut answer).expect("an answer");
    let receipt = answer.lines().find_map(|line| line.strip_prefix("amends-receipt: ")).expect("a receipt").to_owned();
    terminate(&mut gateway);
    let (code, proof) = place.amends(&["prove", &receipt]);
    assert_eq!(code, 0, "{proof}");
    let key = text(&place.path("amends.db.sign.pub"));
    let proof = serde_json::from_str(&proof).expect("JSON");
    for (holds, said) in checked(&place, &proof, key.trim()) {
        assert!(holds, "{said}");
    }
}

#[test]
fn what_no_checkpoint_covers_is_not_proven() {
    let (place, _site) = signed();
    let mut gateway = place.up("");
    gateway.call("charge_card", r#"{"order":"ord_new","amount":5}"#);
    gateway.kill();
    let (call, _) = some_call(&place);
    let (code, said) = run(&["prove", &call, "--ledger", &place.ledger()]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no checkpoint covers it yet; `amends checkpoint` signs one now"), "{said}");
    assert_eq!(place.amends(&["checkpoint"]).0, 0);
    assert_eq!(place.amends(&["prove", &call]).0, 0);
    assert_eq!(run(&["prove", "call_nobody", "--ledger", &place.ledger()]).0, 2);
}
