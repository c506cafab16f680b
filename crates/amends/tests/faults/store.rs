//! A ledger that cannot record: nothing with an effect is sent.

use crate::support::Place;

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
