//! A stream that ends before its answer is read on; the request is not sent again.

use crate::pairings::listening;
use crate::support::Place;
use crate::support::served::serve_tools;
use crate::traffic::Era;

#[test]
fn the_answer_to_a_write_whose_stream_was_cut_is_asked_for_by_its_last_event() {
    let place = Place::new();
    let server = listening(&place, "through.log", Era::Legacy);
    let gateway = serve_tools(&place, &format!("url = {:?}\n[tools.cut]\neffect = \"write\"\n", server.url), "");
    let (status, envelope) = gateway.call("cut", r#"{"n":1}"#);
    assert_eq!((status, &envelope["outcome"]), (200, &"succeeded".into()), "{envelope}");
    let log = std::fs::read_to_string(place.path("through.log")).expect("the server's log");
    assert_eq!(log.matches(r#""method":"tools/call""#).count(), 1, "{log}");
    place.settled();
}

#[test]
fn a_stateless_stream_that_was_cut_is_lost_and_a_write_in_doubt_is_not_repeated() {
    let place = Place::new();
    let server = listening(&place, "through.log", Era::Modern);
    let gateway = serve_tools(&place, &format!("url = {:?}\n[tools.cut]\neffect = \"write\"\n", server.url), "");
    let (_, envelope) = gateway.call("cut", r#"{"n":1}"#);
    assert_eq!(envelope["error"]["certainty"], "in_doubt", "{envelope}");
    let log = std::fs::read_to_string(place.path("through.log")).expect("the server's log");
    assert_eq!(log.matches(r#""method":"tools/call""#).count(), 1, "{log}");
}
