//! What becomes of an action that is more than one call: tried again, taken later, passed over, given up.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::{Place, eventually};
use crate::till::{SALE, done, forbidden, look, named, queue, says, serve, step, take, tools};

/// The sale whose payment is a stage.
fn staged(stage: &str) -> String {
    SALE.replace("timeout = \"1500ms\"\n", &format!("timeout = \"20s\"\n{stage}\n"))
}

fn charged(place: &Place, oks: &[bool]) {
    let each: Vec<Value> =
        oks.iter().enumerate().map(|(n, ok)| json!({ "result": { "id": format!("t_{}", n + 1), "ok": ok } })).collect();
    says(place, "take", "o1", &json!(each));
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[test]
fn what_failed_for_now_is_taken_when_its_time_has_come_though_the_gateway_was_killed() {
    let machine = staged("resolution = \"retry_later\"\nlater = \"2s\"");
    let place = Place::new();
    let mut gateway = serve(&place, &machine);
    says(&place, "take", "o1", &forbidden());
    let session = named(&gateway, "o1");
    let failed = take(&gateway, &session, "pay");
    assert_eq!((&failed["status"], &failed["error"]["kind"]), (&json!("error"), &json!("retry_later")), "{failed}");
    assert_eq!(
        (&failed["error"]["code"], &failed["state"]["name"]),
        (&json!("Forbidden"), &json!("named")),
        "{failed}"
    );
    assert_legal(&failed, &["leave"]);
    let until = failed["error"]["recovery"]["not_before"].as_u64().unwrap_or_else(|| panic!("{failed}"));
    gateway.kill();
    charged(&place, &[true]);
    let gateway = serve(&place, &machine);
    let mut paid = Value::Null;
    eventually("it may be taken again", || {
        paid = take(&gateway, &session, "pay");
        if paid["status"] != "success" {
            assert_refused(&paid, "retry_later", &["leave"]);
            assert_eq!(paid["error"]["recovery"]["not_before"], until, "the crash changed nothing: {paid}");
        }
        paid["status"] == "success"
    });
    assert!(now_ms() >= until, "not before its time");
    assert_eq!((&paid["data"]["state"]["name"], &paid["data"]["waits"]), (&json!("paid"), &Value::Null), "{paid}");
    assert_eq!(done(&place).len(), 2, "each try once");
    place.settled();
}

#[test]
fn what_was_not_well_done_is_told_and_done_again_only_when_it_is_taken_again() {
    let place = Place::new();
    let gateway = serve(&place, &staged("assert = \"result.ok ? 'ok' : 'fail'\""));
    charged(&place, &[false, true]);
    let session = named(&gateway, "o1");
    let failed = take(&gateway, &session, "pay");
    assert_eq!((&failed["status"], &failed["error"]["kind"]), (&json!("error"), &json!("action_error")), "{failed}");
    assert_eq!(failed["error"]["certainty"], "processed", "it was done, though not well: {failed}");
    assert_eq!(failed["error"]["safe_to_repeat"], false, "{failed}");
    let words = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("`pay` did not do what it should; it was done"), "{words}");
    assert_legal(&failed, &["leave", "pay"]);
    assert_eq!((&failed["state"]["name"], done(&place).len()), (&json!("named"), 1), "{failed}");
    // Whoever may not have heard of it gets the same answer once more.
    let ended = place.events_named("move_ended").remove(1);
    eventually("its agent is known to be told", || {
        place.events_named("answer_delivered").iter().any(|event| event["call"] == ended["move"])
    });
    let paid = take(&gateway, &session, "pay");
    assert_eq!(paid["data"]["state"]["fields"]["charge"], "t_2", "{paid}");
    assert_eq!(done(&place).len(), 2);
    place.settled();
}

#[test]
fn what_was_not_well_done_is_tried_again_as_often_as_its_stage_says() {
    let stage = "assert = \"result.ok ? 'ok' : 'retry'\"\nretry = { max_attempts = 3, backoff = \"exponential\", initial = \"10ms\" }";
    for (oks, well) in [([false, true, true], true), ([false, false, false], false)] {
        let place = Place::new();
        let gateway = serve(&place, &staged(stage));
        charged(&place, &oks);
        let session = named(&gateway, "o1");
        let told = take(&gateway, &session, "pay");
        if well {
            assert_eq!(told["outcome"], "succeeded_after_compensation", "{told}");
            assert_eq!(told["data"]["state"]["fields"]["charge"], "t_2", "{told}");
            assert_eq!(done(&place).len(), 2);
        } else {
            let failure = (&told["error"]["kind"], &told["error"]["certainty"], &told["state"]["name"]);
            assert_eq!(failure, (&json!("action_error"), &json!("processed"), &json!("named")), "{told}");
            assert_legal(&told, &["leave", "pay"]);
            assert_eq!(done(&place).len(), 3, "and no more");
        }
        place.settled();
    }
}

#[test]
fn what_may_be_passed_over_leads_on_with_nothing_to_show() {
    for stage in [
        "assert = \"result.ok ? 'ok' : 'skip'\"",
        "assert = \"result.ok ? 'ok' : 'fail'\"\nresolution = \"skip\"",
        "resolution = \"skip\"",
    ] {
        let place = Place::new();
        let gateway = serve(&place, &staged(stage));
        if stage.contains("assert") {
            charged(&place, &[false]);
        } else {
            says(&place, "take", "o1", &forbidden());
        }
        let session = named(&gateway, "o1");
        let paid = take(&gateway, &session, "pay");
        assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
        assert_eq!(paid["data"]["state"]["fields"]["charge"], "unknown", "{stage}: {paid}");
        let words = paid["data"]["skipped"]["message"].as_str().unwrap_or_default();
        let expected = if stage.contains("assert") { "by its `assert`" } else { "it failed and was passed over" };
        assert!(words.contains(expected), "{stage}: {paid}");
        assert_eq!(done(&place).len(), 1, "{stage}");
        place.settled();
    }
}

#[test]
fn what_is_in_doubt_is_neither_passed_over_nor_tried_again() {
    for resolution in ["skip", "retry_later", "abort_workflow"] {
        let stage = format!(
            "timeout = \"1500ms\"\nresolution = \"{resolution}\"\nretry = {{ max_attempts = 3, initial = \"10ms\" }}\n"
        );
        let place = Place::new();
        let gateway = serve(&place, &SALE.replace("timeout = \"1500ms\"\n", &stage));
        let session = named(&gateway, "o1");
        let lost = take(&gateway, &session, "pay");
        let told = (&lost["error"]["kind"], &lost["error"]["certainty"], &lost["state"]["name"]);
        assert_eq!(told, (&json!("action_timeout"), &json!("in_doubt"), &json!("named")), "{resolution}: {lost}");
        assert_legal(&lost, &[]);
        assert_refused(&take(&gateway, &session, "leave"), "in_flight", &[]);
        assert_eq!(done(&place).len(), 1, "{resolution}");
    }
}

/// Things that are put one after the other, of which one cannot be undone, and a last one that fails.
const PUTS: &str = r#"
[machines.puts]
initial = "a"
terminal = ["z"]

[machines.puts.actions.one]
from = ["a"]
to = "b"
tool = "put"
args = { order = "'p1'" }

[machines.puts.actions.two]
from = ["b"]
to = "c"
tool = "put"
args = { order = "'p2'" }

[machines.puts.actions.burn]
from = ["c"]
to = "d"
tool = "burn"
reversible = false

[machines.puts.actions.three]
from = ["d"]
to = "e"
tool = "put"
args = { order = "'p3'" }

[machines.puts.actions.last]
from = ["e"]
to = "z"
tool = "take"
args = { order = "'last'" }
resolution = "abort_workflow"
"#;

#[test]
fn what_is_given_up_is_undone_newest_first_and_what_cannot_be_is_told_as_staying() {
    let place = Place::new();
    let gateway = serve(&place, PUTS);
    says(&place, "take", "last", &forbidden());
    place.write("hold-undo", "");
    let mut session = Value::Null;
    for action in ["one", "two", "burn", "three"] {
        let mut args = json!({ "action": action });
        if !session.is_null() {
            args["session"] = session.clone();
        }
        let made = step(&gateway, args);
        assert_eq!(made["status"], "success", "{made}");
        session = made["data"]["session"].clone();
    }
    let failed = take(&gateway, &session, "last");
    let words = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(words.ends_with("the walk is given up: 3 being undone, 1 cannot be undone (`burn`)"), "{failed}");
    let waits = json!({ "for": "given_up", "undoing": 3, "not_undone": 1, "left": ["burn"] });
    assert_eq!(failed["waits"], waits, "{failed}");
    assert_legal(&failed, &[]);
    eventually("the newest is being undone", || tools(&place).last().is_some_and(|tool| tool == "undo"));
    assert_refused(&take(&gateway, &session, "one"), "in_flight", &[]);
    std::fs::remove_file(place.path("hold-undo")).expect("it was there");

    eventually("what can be undone is", || place.events_named("walk_unwound").len() == 1);
    let undone: Vec<Value> =
        done(&place).iter().filter(|call| call["tool"] == "undo").map(|call| call["id"].clone()).collect();
    assert_eq!(undone, ["put_3", "put_2", "put_1"], "newest first");
    let unwound = &place.events_named("walk_unwound")[0];
    assert_eq!((&unwound["undone"], &unwound["left"][0]["tool"]), (&json!(3), &json!("burn")), "{unwound}");
    let asked = queue(&place);
    let heard = asked.iter().any(|one| one["question"].as_str().is_some_and(|words| words.contains("`burn`")));
    assert!(heard, "a person hears of what stays: {asked:?}");
    let seen = look(&gateway, &session, "next");
    let waits = json!({ "for": "given_up", "undone": 3, "not_undone": 1, "left": ["burn"] });
    assert_eq!(seen["waits"], waits, "{seen}");
    assert_refused(&take(&gateway, &session, "one"), "invalid_transition", &[]);
    place.settled();
}
