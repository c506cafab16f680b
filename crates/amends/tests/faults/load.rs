//! Killed at any moment, under load: nothing happens twice, and nothing that was asked for again is missing.

use std::io::Read;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::{Gateway, Place, eventually, http};

const CALLS: usize = 20;

/// How often the gateway is killed. `AMENDS_CRASH_ROUNDS` makes it more often.
fn rounds() -> usize {
    std::env::var("AMENDS_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5)
}

#[test]
fn refunds_by_key_happen_once_however_often_the_gateway_is_killed() {
    let place = Place::new();
    let mut asked = Vec::new();
    for round in 0..rounds() {
        let mut gateway = place.up("");
        let orders: Vec<String> = (0..CALLS).map(|n| format!("ord_{round}_{n}")).collect();
        let calls: Vec<_> = orders.iter().map(|order| begin(&gateway, "issue_refund", order, Some(order))).collect();
        die(&mut gateway, round);
        calls.into_iter().for_each(|call| drop(call.join()));
        asked.extend(orders);
    }
    let gateway = place.up("");
    for (order, answer) in repeat(&gateway, "issue_refund", &asked, true) {
        assert_eq!(answer["status"], "success", "{order}: {answer}");
        assert_eq!(answer["data"]["order"], *order, "{answer}");
        assert_eq!(place.effects_on("issue_refund", &order), 1, "{order}");
    }
    assert_eq!(place.effects("issue_refund"), (rounds() * CALLS) as u64);
    place.settled();
}

#[test]
fn charges_happen_at_most_once_and_the_repeat_tells_the_truth_however_often_the_gateway_is_killed() {
    let place = Place::new();
    let mut unanswered = Vec::new();
    for round in 0..rounds() {
        let mut gateway = place.up("");
        let orders: Vec<String> = (0..CALLS).map(|n| format!("ord_{round}_{n}")).collect();
        let calls: Vec<_> = orders.iter().map(|order| begin(&gateway, "charge_card", order, None)).collect();
        die(&mut gateway, round);
        for (order, call) in orders.into_iter().zip(calls) {
            match call.join().expect("a call") {
                Some(answer) if was_not_sent(&answer) => unanswered.push(order),
                Some(answer) => {
                    assert_eq!(answer["status"], "success", "{order}: {answer}");
                    assert_eq!(place.effects_on("charge_card", &order), 1, "{order}");
                }
                None => unanswered.push(order),
            }
        }
    }
    let gateway = place.up("");
    for (order, answer) in repeat(&gateway, "charge_card", &unanswered, false) {
        let effects = place.effects_on("charge_card", &order);
        assert!(effects <= 1, "{order}: {effects} effects");
        assert!(place.requests_on("charge_card", &order) <= 1, "{order}");
        match answer["status"].as_str() {
            Some("success") => assert_eq!(effects, 1, "{order}: {answer}"),
            _ => assert_eq!(answer["outcome"], "unresolved", "{order}: {answer}"),
        }
    }
    place.settled();
}

#[test]
fn twenty_equal_charges_at_the_same_moment_are_one() {
    let place = Place::new();
    let gateway = place.up_patient(&crate::more_faults("charge_card", "ord_1", &["late"], "late_ms = 4000"));
    let calls: Vec<_> = (0..CALLS).map(|_| begin(&gateway, "charge_card", "ord_1", None)).collect();
    let answers: Vec<Value> = calls.into_iter().map(|call| call.join().expect("a call").expect("an answer")).collect();
    for answer in &answers {
        assert_eq!(answer["data"], answers[0]["data"], "{answer}");
        assert!(answer["data"]["id"].is_string(), "{answer}");
    }
    assert_eq!(answers.iter().filter(|answer| answer["replayed"] == true).count(), CALLS - 1);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

/// One call in a thread of its own; it gives the whole envelope, or nothing where the gateway died of it.
fn begin(gateway: &Gateway, tool: &str, order: &str, key: Option<&str>) -> thread::JoinHandle<Option<Value>> {
    let (address, path) = (gateway.address.clone(), format!("/call/{tool}"));
    let body = format!(r#"{{"order":"{order}","amount":5}}"#);
    let key = key.map(str::to_owned);
    thread::spawn(move || {
        let headers: Vec<(&str, &str)> = key.iter().map(|key| ("idempotency-key", key.as_str())).collect();
        let mut stream = std::panic::catch_unwind(|| http::send(&address, &path, &headers, body.as_bytes())).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        serde_json::from_slice(&http::parse(&answer).1).ok()
    })
}

/// Asks for all of it again, a few at a time, as an agent would that was told to wait: what was not sent is asked for once more.
fn repeat(gateway: &Gateway, tool: &str, orders: &[String], by_key: bool) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    for orders in orders.chunks(CALLS) {
        let mut left = orders.to_vec();
        eventually("each repeat has its answer", || {
            let calls: Vec<_> =
                left.iter().map(|order| begin(gateway, tool, order, by_key.then_some(order.as_str()))).collect();
            let mut not_sent = Vec::new();
            for (order, call) in left.drain(..).zip(calls) {
                match call.join().expect("a call").expect("an answer") {
                    answer if was_not_sent(&answer) => not_sent.push(order),
                    answer => answers.push((order, answer)),
                }
            }
            left = not_sent;
            left.is_empty()
        });
    }
    answers
}

/// Whether the answer is our word that nothing was sent, such as that of an open breaker: nothing changed, and asking again is safe.
fn was_not_sent(answer: &Value) -> bool {
    answer["error"]["certainty"] == "not_sent"
}

/// Kills the gateway at some moment of the next fraction of a second. The moment is chance on purpose: what must hold holds
/// at any.
fn die(gateway: &mut Gateway, round: usize) {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::from(since.subsec_nanos()));
    let moment = Duration::from_micros(nanos / 1000 % 250_000);
    eprintln!("round {round}: killed after {moment:?}");
    thread::sleep(moment);
    gateway.kill();
}
