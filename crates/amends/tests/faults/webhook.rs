//! Questions posted to a real receiver, signed, until it takes them; and its answers.

use std::process::Command;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::support::desk::{Desk, SECRET};
use crate::support::{Gateway, Place, eventually, http, root};

const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;

fn asking(place: &Place, desk: &Desk) -> Gateway {
    let secret = place.write("secret.txt", SECRET);
    let text = format!(
        "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n[people]\nhold = \"0s\"\n\
         [queues.finance]\nwebhook = {{ url = \"http://{}/desk\", secret = {{ file = \"{}\" }} }}\n",
        desk.address,
        secret.display()
    );
    let config = place.write("webhook.toml", &text).display().to_string();
    place.up_with("", &["--config", &config])
}

/// The signature of a body, as another program makes it.
fn signed(at: &str, body: &str) -> String {
    let script = "import hmac,sys;print(hmac.new(sys.argv[1].encode(),(sys.argv[2]+'.'+sys.argv[3]).encode(),'sha256').hexdigest())";
    let python = root().join("target/clients/venv/bin/python");
    let output = Command::new(python).args(["-c", script, SECRET, at, body]).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_question_is_posted_until_it_is_taken_and_its_answer_counts_once() {
    let place = Place::new();
    let desk = Desk::open(false);
    let gateway = asking(&place, &desk);
    let (_, waits) = gateway.call("charge_card", CHARGE);
    let id = waits["error"]["interaction"].clone();
    eventually("it is posted again after a failure", || desk.posted().len() >= 2);
    desk.takes.store(true, Ordering::SeqCst);
    let tried = desk.posted().len();
    eventually("it is taken", || desk.posted().len() > tried);
    let posted = desk.posted();
    assert!(posted.iter().all(|one| one.json()["id"] == id), "{posted:?}");
    let last = posted.last().expect("one");
    let (at, hex) = last.signature.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect("a signature");
    assert_eq!(hex, signed(at, &last.body));

    let token = last.json()["callback"]["token"].clone();
    let path = last.json()["callback"]["path"].as_str().expect("a path").to_owned();
    let answer = |body: Value| http::post(&gateway.address, &path, &[], body.to_string().as_bytes());
    let says = |choice: &str, by: &str| json!({ "interaction": id, "token": token, "choice": choice, "by": by });
    let (status, told) = answer(json!({ "interaction": id, "token": "guessed", "choice": "approve", "by": "ada" }));
    assert_eq!((status, &told["fate"]), (403, &json!("forbidden")), "{told}");
    let other = json!({ "interaction": "int_other", "token": token, "choice": "approve", "by": "ada" });
    assert_eq!(answer(other).0, 403);
    assert_eq!(answer(json!({ "interaction": id })).0, 400);
    assert_eq!(answer(says("perhaps", "ada")).0, 400);
    assert_eq!(answer(says("approve", "")).0, 400);
    assert_eq!(answer(says("approve", "local")).0, 403);
    assert_eq!(place.requests("charge_card"), 0);
    let (status, told) = answer(says("approve", "ada"));
    assert_eq!((status, &told["fate"]), (200, &json!("taken")), "{told}");
    let (status, told) = answer(says("deny", "bob"));
    assert_eq!((status, &told["fate"]), (409, &json!("late")), "{told}");

    eventually("the yes is kept", || place.events_named("call_approved").len() == 1);
    assert_eq!(gateway.call("charge_card", CHARGE).1["status"], "success");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn a_crash_loses_no_question() {
    let place = Place::new();
    let desk = Desk::open(false);
    let mut gateway = asking(&place, &desk);
    let (_, waits) = gateway.call("charge_card", CHARGE);
    eventually("it is posted", || !desk.posted().is_empty());
    gateway.kill();
    desk.takes.store(true, Ordering::SeqCst);
    let before = desk.posted().len();
    let _gateway = asking(&place, &desk);
    eventually("it is posted by the next gateway", || desk.posted().len() > before);
    assert_eq!(desk.posted().last().expect("one").json()["id"], waits["error"]["interaction"]);
}

#[test]
fn a_question_that_was_taken_is_not_posted_again_after_a_restart() {
    let place = Place::new();
    let desk = Desk::open(true);
    let mut gateway = asking(&place, &desk);
    let (_, waits) = gateway.call("charge_card", CHARGE);
    let first = waits["error"]["interaction"].clone();
    eventually("it is known to be taken", || {
        let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
        let taken = "SELECT count(*) FROM interactions WHERE posted IS NOT NULL";
        ledger.query_row(taken, [], |row| row.get::<_, i64>(0)).is_ok_and(|taken| taken == 1)
    });
    gateway.kill();
    let gateway = asking(&place, &desk);
    let (_, waits) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    let second = waits["error"]["interaction"].clone();
    eventually("the next one is posted", || desk.posted().iter().any(|one| one.json()["id"] == second));
    // Old questions are looked at with new ones, and by whichever node after five seconds.
    std::thread::sleep(std::time::Duration::from_secs(7));
    let posted: Vec<Value> = desk.posted().iter().map(|one| one.json()["id"].clone()).collect();
    assert_eq!(posted, [first, second]);
}
