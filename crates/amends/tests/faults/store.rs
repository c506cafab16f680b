//! A ledger that cannot record: nothing with an effect is sent.

use std::io::Read;

use crate::support::{Place, eventually};

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
