//! A ledger that cannot record: nothing with an effect is sent.

use std::io::Read;
use std::process::Command;

use crate::support::{Gateway, Place, eventually};

#[test]
fn while_the_ledger_cannot_record_a_write_is_refused_and_never_sent() {
    let place = Place::new();
    let gateway = place.up("");
    std::fs::remove_file(place.path("amends.db")).expect("the ledger's file was there");
    for _ in 0..2 {
        let (status, envelope) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
        assert_eq!(status, 503, "{envelope}");
        assert_eq!(envelope["status"], "refused", "{envelope}");
        assert_eq!(envelope["error"]["kind"], "store_unavailable", "{envelope}");
        assert_eq!(envelope["error"]["certainty"], "not_sent");
        assert!(envelope["error"]["retry_after_ms"].is_u64(), "{envelope}");
    }
    // Even this answer has a receipt, which says that there is nothing to look up.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge_card","arguments":{"order":"ord_1","amount":5},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "charge_card")];
    let (_, answer) = crate::support::http::post(&gateway.address, "/mcp", &headers, call.as_bytes());
    let receipt = &answer["result"]["_meta"]["amends/receipt"];
    assert_eq!(receipt["unrecorded"], "store_unavailable", "{answer}");
    assert!(receipt["trace"].is_string() && receipt.get("hash").is_none(), "{answer}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 0));
}

#[test]
fn a_write_whose_result_could_not_be_recorded_is_settled_once_the_ledger_is_back() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\"]\nlate_ms = 1500\n");
    let mut stream = gateway.begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    let (file, away) = (place.path("amends.db"), place.path("away.db"));
    std::fs::rename(&file, &away).expect("the ledger's file was there");
    // The gateway looks for its ledger for some seconds, and then gives the session up.
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("\"certainty\":\"in_doubt\"") && answer.contains("store_unavailable"), "{answer}");
    std::fs::rename(&away, &file).expect("the ledger comes back");
    eventually("the call is settled", || place.open_calls() == 0 && !place.events_named("call_ended").is_empty());
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    let (_, again) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(again["replayed"], true, "{again}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_disk_that_takes_its_time_makes_answers_late_and_nothing_twice() {
    let place = Place::new();
    let gateway = slow(&place);
    place.write("slow", "700");
    let calls: Vec<_> = (0..3).map(|n| charge(&gateway, &format!("ord_{n}"))).collect();
    for call in calls {
        let answer = call.join().expect("a call");
        assert_eq!(answer["status"], "success", "{answer}");
    }
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (3, 3));
    place.write("slow", "0");
    place.settled();
}

#[test]
fn what_was_recorded_only_after_the_lease_is_not_sent_and_its_repeat_is() {
    let place = Place::new();
    let gateway = slow(&place);
    // Longer than a lease: when the intent is durable at last, another process may have the session.
    place.write("slow", "11000");
    let call = charge(&gateway, "ord_1");
    let answer = call.join().expect("a call");
    place.write("slow", "0");
    assert_ne!(answer["status"], "success", "{answer}");
    assert_eq!(answer["error"]["certainty"], "not_sent", "{answer}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 0), "{answer}");
    eventually("the repeat is sent", || charge(&gateway, "ord_1").join().expect("a call")["status"] == "success");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room_again() {
    let place = Place::new();
    // A process that may not make a file longer gets the error of a full disk, once it ignores the signal.
    let wanted = place.up_command("", &[]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(wanted.get_program()).args(wanted.get_args());
    command.current_dir(wanted.get_current_dir().expect("its folder"));
    let gateway = Gateway::start(command);
    assert_eq!(charge(&gateway, "ord_0").join().expect("a call")["status"], "success");

    room(&gateway, "1:unlimited");
    for _ in 0..2 {
        let (status, refused) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
        assert_eq!(status, 503, "{refused}");
        assert_eq!(refused["error"]["kind"], "store_unavailable", "{refused}");
        assert_eq!(refused["error"]["certainty"], "not_sent", "{refused}");
        assert!(refused["error"]["retry_after_ms"].is_u64(), "{refused}");
    }
    assert_eq!(place.requests_on("charge_card", "ord_1"), 0);

    room(&gateway, "unlimited:unlimited");
    eventually("there is room again", || charge(&gateway, "ord_1").join().expect("a call")["status"] == "success");
    assert_eq!((place.effects("charge_card"), place.requests_on("charge_card", "ord_1")), (2, 1));
    place.settled();
}

/// A gateway whose ledger takes as long for a commit as the file says.
fn slow(place: &Place) -> Gateway {
    let mut command = place.up_command("", &[]);
    command.env("AMENDS_SLOW_DISK_MS", place.path("slow"));
    Gateway::start(command)
}

fn charge(gateway: &Gateway, order: &str) -> std::thread::JoinHandle<serde_json::Value> {
    let (address, body) = (gateway.address.clone(), format!(r#"{{"order":"{order}","amount":5}}"#));
    std::thread::spawn(move || crate::support::http::post(&address, "/call/charge_card", &[], body.as_bytes()).1)
}

/// How long the gateway's files may become.
fn room(gateway: &Gateway, bytes: &str) {
    let set = Command::new("prlimit")
        .args(["--pid", &gateway.id().to_string(), &format!("--fsize={bytes}")])
        .status()
        .expect("`prlimit` is there");
    assert!(set.success());
}
