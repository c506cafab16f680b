//! Moves that wait: for a person, for their own agent, for what nobody knows; and walks that rest meanwhile.

use serde_json::{Value, json};

use crate::asking::{Server, again, by_url, call_alone, done, only_key, params, params_of};
use crate::order::{ORDER, assert_legal, assert_refused, serve};
use crate::support::{Gateway, Place, eventually, served};
use crate::till;

fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

/// Takes an order, and gives the walk's handle.
fn ordered(gateway: &Gateway, order: &str) -> Value {
    let inputs = json!({ "item": "latte", "order": order });
    let ordered = step(gateway, json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(ordered["status"], "success", "{ordered}");
    ordered["data"]["session"].clone()
}

fn pay(gateway: &Gateway, session: &Value) -> Value {
    step(gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }))
}

fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

fn says(place: &Place, question: &Value, choice: &str) {
    let id = question["id"].as_str().expect("a question has an id");
    let (code, said) = place.amends(&["answer", id, choice, "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
}

/// The order whose payment a person must allow.
fn approved() -> String {
    let asks = "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n";
    format!("[people]\nhold = \"1s\"\n{}", ORDER.replace("[tools.charge_card]\neffect = \"write\"\n", asks))
}

#[test]
fn an_agent_is_told_that_a_person_is_asked_about_a_call_and_its_next_equal_wish_is_made() {
    let place = Place::new();
    let gateway = serve(&place, &approved());
    let session = ordered(&gateway, "ord_1");
    let waits = pay(&gateway, &session);
    assert_eq!((&waits["status"], &waits["error"]["kind"]), (&json!("error"), &json!("awaiting_person")), "{waits}");
    let hint = waits["next_hint"].as_str().unwrap_or_default();
    assert!(hint.contains("A person is asked") && !hint.contains("being made"), "{waits}");
    assert_eq!((&waits["state"]["name"], &waits["error"]["certainty"]), (&json!("ordered"), &json!("not_sent")));
    let asked = queue(&place);
    assert_eq!((asked.len(), &asked[0]["id"]), (1, &waits["error"]["interaction"]), "{asked:?}");
    let again = pay(&gateway, &session);
    assert_eq!(again["error"]["kind"], "awaiting_person", "{again}");
    let other = step(&gateway, json!({ "action": "drop_order", "session": session }));
    assert_refused(&other, "in_flight", &[]);
    says(&place, &asked[0], "approve");
    assert_eq!(place.requests("charge_card"), 0, "nobody waits for it any more");
    let paid = pay(&gateway, &session);
    assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
    assert_eq!(place.requests("charge_card"), 1);
    assert!(queue(&place).is_empty(), "one yes is enough");
    place.settled();
}

#[test]
fn a_no_to_a_call_of_a_move_leaves_the_walk_where_it_is() {
    let place = Place::new();
    let mut gateway = serve(&place, &approved());
    let session = ordered(&gateway, "ord_1");
    assert_eq!(pay(&gateway, &session)["error"]["kind"], "awaiting_person");
    // Whoever is asked is still asked after a crash.
    gateway.kill();
    let gateway = serve(&place, &approved());
    eventually("the walk is taken up", || !place.events_named("resumed").is_empty());
    says(&place, &queue(&place)[0], "deny");
    eventually("the move is over", || place.events_named("move_ended").len() == 2);
    let seen = gateway.call("walk", &json!({ "session": session, "what": "state" }).to_string()).1;
    assert_eq!(seen["data"]["state"]["name"], "ordered", "{seen}");
    let again = pay(&gateway, &session);
    assert_eq!((&again["error"]["kind"], &again["error"]["code"]), (&json!("action_error"), &json!("Forbidden")));
    let words = again["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("`pay` failed: A person said no"), "{again}");
    let dropped = step(&gateway, json!({ "action": "drop_order", "session": session }));
    assert_eq!(dropped["status"], "success", "{dropped}");
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

/// A reservation of which the server asks something.
const RESERVATION: &str = r#"
[tools.book]
effect = "write"

[machines.trip]
initial = "open"
terminal = ["booked"]

[machines.trip.actions.reserve]
from = ["open"]
to = "booked"
tool = "book"
input = { type = "object", properties = { seat = { type = "string" } }, required = ["seat"] }
args = { seat = "inputs.seat" }
writes = { given = "result.inputs" }
"#;

/// A gateway with that machine before a server of that era that asks.
fn reserving(place: &Place, era: &str) -> (Server, Gateway) {
    let server = Server::http(place, era);
    let gateway = served::serve(place, &by_url(&server), RESERVATION);
    eventually("the server's tools are served", || gateway.call("plain", "{}").1["status"] == "success");
    std::fs::remove_file(place.path("done.jsonl")).expect("it was called to see whether it is there");
    (server, gateway)
}

fn reserve(capabilities: Option<&Value>) -> Value {
    let args = json!({ "action": "reserve", "inputs": { "seat": "7a" } });
    match capabilities {
        Some(capabilities) => params_of("step", &args, capabilities),
        None => params("step", &args),
    }
}

#[test]
fn what_a_call_of_a_move_asks_reaches_an_agent_that_has_to_come_back() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let (_server, gateway) = reserving(&place, era);
        let call = reserve(None);
        let (_, asked) = call_alone(&gateway, &call);
        assert_eq!(asked["result"]["resultType"], "input_required", "{era}: {asked}");
        assert!(done(&place).is_empty());
        let answers = json!({ only_key(&asked): { "action": "accept", "content": { "n": 1 } } });
        let back = again(&call, &asked, &answers);
        let (_, reserved) = call_alone(&gateway, &back);
        let data = &reserved["result"]["structuredContent"]["data"];
        assert_eq!(data["state"]["name"], "booked", "{era}: {reserved}");
        assert_eq!(data["state"]["fields"]["given"][0]["action"], "accept", "{era}: {reserved}");
        assert_eq!(done(&place)[0]["arguments"], json!({ "seat": "7a" }), "{era}");
        // A state that was used finds what became of its move, and nothing is done again.
        let (_, twice) = call_alone(&gateway, &back);
        let found = &twice["result"]["structuredContent"];
        assert_eq!((&found["replayed"], &found["data"]["state"]["name"]), (&json!(true), &json!("booked")), "{twice}");
        assert_eq!((done(&place).len(), place.events_named("walk_began").len()), (1, 1), "{era}");
    }
}

#[test]
fn an_agent_that_comes_back_to_another_process_goes_on_with_its_move() {
    let place = Place::new();
    let (server, mut gateway) = reserving(&place, "modern");
    let call = reserve(None);
    let (_, asked) = call_alone(&gateway, &call);
    gateway.kill();
    let gateway = served::serve(&place, &by_url(&server), RESERVATION);
    eventually("the walk is taken up", || !place.events_named("resumed").is_empty());
    let answers = json!({ only_key(&asked): { "action": "accept", "content": { "n": 1 } } });
    let (_, reserved) = call_alone(&gateway, &again(&call, &asked, &answers));
    assert_eq!(reserved["result"]["structuredContent"]["data"]["state"]["name"], "booked", "{reserved}");
    assert_eq!(done(&place).len(), 1);
}

#[test]
fn an_agent_that_did_not_say_that_it_can_be_asked_is_told_so() {
    let place = Place::new();
    let (_server, gateway) = reserving(&place, "modern");
    let (_, refused) = call_alone(&gateway, &reserve(Some(&json!({ "sampling": {} }))));
    let envelope = &refused["result"]["structuredContent"];
    assert_eq!(envelope["error"]["kind"], "action_error", "{refused}");
    assert_eq!(envelope["error"]["upstream"]["field"], "elicitation", "{refused}");
    assert_eq!(envelope["state"]["name"], "open", "{refused}");
    assert!(done(&place).is_empty());
}

#[test]
fn a_doubt_that_nobody_settled_in_time_is_settled_by_a_person_or_left_behind() {
    let hasty = "[tools.charge_card]\neffect = \"write\"\nanswer_within = \"1s\"\n";
    let machine = ORDER.replace("[tools.charge_card]\neffect = \"write\"\n", hasty);
    // A person's word has no result.
    let machine = machine.replace("result.id", "result == null ? 'unknown' : result.id");
    for person in [true, false] {
        let place = Place::new();
        let gateway = serve(&place, &machine);
        let session = ordered(&gateway, "ord_lost");
        let lost = pay(&gateway, &session);
        assert_eq!(lost["error"]["certainty"], "in_doubt", "{lost}");
        let next = || gateway.call("walk", &json!({ "session": session, "what": "next" }).to_string()).1;
        eventually("nobody settles it any more", || next()["data"]["waits"]["for"] == "unknown");
        assert_legal(&next()["data"], &["pay"]);
        let other = step(&gateway, json!({ "action": "drop_order", "session": session }));
        assert_refused(&other, "in_flight", &["pay"]);
        if person {
            says(&place, &place_question(&lost), "happened");
            let paid = pay(&gateway, &session);
            assert_eq!((&paid["status"], &paid["data"]["seq"]), (&json!("success"), &json!(2)), "{paid}");
        } else {
            let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
            assert_eq!((&reset["status"], &reset["data"]["state"]["name"]), (&json!("success"), &json!("created")));
        }
        assert_eq!(place.requests_on("charge_card", "ord_lost"), 1);
    }
}

/// The question that an answer speaks of.
fn place_question(answer: &Value) -> Value {
    json!({ "id": answer["error"]["interaction"] })
}

#[test]
fn a_walk_that_rests_forgets_nothing() {
    let place = Place::new();
    let gateway = serve(&place, &format!("[limits]\nwalk_idle = \"1ms\"\n{ORDER}"));
    let session = ordered(&gateway, "ord_1");
    let id = session.as_str().expect("a handle").to_owned();
    eventually("it was left to the ledger and taken up again", || {
        let early = step(&gateway, json!({ "action": "hand_over", "session": session }));
        assert_refused(&early, "invalid_transition", &["drop_order", "pay"]);
        taken(&place, &id) > 2
    });
    let again = step(
        &gateway,
        json!({ "action": "take_order", "inputs": { "item": "latte", "order": "ord_1" }, "session": session, "expect_seq": 0 }),
    );
    assert_refused(&again, "stale_state", &["drop_order", "pay"]);
    let paid = pay(&gateway, &session);
    assert_eq!((&paid["status"], &paid["data"]["seq"]), (&json!("success"), &json!(2)), "{paid}");
    assert_eq!(paid["data"]["state"]["fields"]["item"], "latte", "{paid}");
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1);
    place.settled();
}

/// How often a session was taken up.
fn taken(place: &Place, session: &str) -> i64 {
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger is there");
    ledger.busy_timeout(std::time::Duration::from_secs(10)).expect("it can be set");
    ledger.query_row("SELECT epoch FROM sessions WHERE id = ?1", [session], |row| row.get(0)).expect("it is there")
}

#[test]
fn what_is_called_last_is_called_though_the_time_is_over() {
    let exit = "tool = \"charge_card\"\nexit = [{ tool = \"send_email\", args = { to = \"'ops'\", subject = \"state.order\" } }]\n";
    let machine = ORDER.replace("tool = \"charge_card\"\n", exit).replace("timeout = \"3s\"", "timeout = \"1s\"");
    let place = Place::new();
    let gateway = serve(&place, &format!("[tools.send_email]\neffect = \"write\"\n{machine}"));
    let session = ordered(&gateway, "ord_slow");
    let late = pay(&gateway, &session);
    assert_eq!(late["error"]["kind"], "action_timeout", "{late}");
    assert_eq!(late["error"]["certainty"], "in_doubt", "{late}");
    assert_eq!((place.requests("charge_card"), place.effects("send_email")), (1, 1), "{late}");
    let parts: Vec<Value> =
        place.events_named("call_received").iter().map(|event| event["leg"]["part"].clone()).collect();
    assert!(parts.contains(&json!("exit")), "{parts:?}");
}

/// A refund whose answer comes after its time, and is written into the fields.
const LATE: &str = r#"
[tools.get_order]
effect = "read"

[tools.get_refund]
effect = "read"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
status = { tool = "get_refund", args = { key = "key" }, happened = "result.found" }
settles_within = "20s"

[machines.refund]
initial = "asked"
terminal = ["paid", "left"]

[machines.refund.actions.pay_back]
from = ["asked"]
to = "paid"
tool = "issue_refund"
args = { order = "inputs.order", amount = "5" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
timeout = "1s"
writes = { refund = "result.id" }

[machines.refund.actions.leave]
from = ["asked"]
to = "left"
"#;

#[test]
fn what_was_done_after_its_time_is_gone_on_with_and_what_it_gave_is_not_lost() {
    let place = Place::new();
    let gateway = serve(&place, LATE);
    let refund = json!({ "action": "pay_back", "inputs": { "order": "ord_slow" } });
    let late = step(&gateway, refund.clone());
    assert_eq!((&late["error"]["kind"], &late["state"]["name"]), (&json!("action_timeout"), &json!("asked")), "{late}");
    assert_eq!(late["timeout_ms"], 1_000, "{late}");
    let session = late["session"].clone();
    let look = &late["error"]["recovery"]["call"];
    assert_eq!(look["tool"], "walk", "what may have happened is looked at, never offered again: {late}");
    let next = || gateway.call("walk", &look["args"].to_string()).1["data"].clone();
    eventually("what came late is settled", || next()["waits"]["done"] == true);
    assert_eq!(
        (&next()["state"], &next()["seq"]),
        (&json!("asked"), &json!(0)),
        "nothing moves behind the agent's back"
    );
    let other = step(&gateway, json!({ "action": "leave", "session": session }));
    assert_refused(&other, "in_flight", &["pay_back"]);
    let mut again = refund;
    again["session"] = session;
    let paid = step(&gateway, again);
    assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
    let id = paid["data"]["state"]["fields"]["refund"].as_str().unwrap_or_else(|| panic!("{paid}"));
    assert!(id.starts_with("re_"), "{paid}");
    assert_eq!(paid["data"]["result"]["id"], id, "{paid}");
    assert_eq!(place.effects_on("issue_refund", "ord_slow"), 1, "paid once");
    place.settled();
}

#[test]
fn whoever_says_that_it_happened_may_say_what_it_gave() {
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve(&place, ORDER);
        let session = ordered(&gateway, "ord_lost");
        let lost = pay(&gateway, &session);
        assert_eq!(lost["error"]["certainty"], "in_doubt", "{lost}");
        eventually("a person is asked", || queue(&place).len() == 1);
        let asked = queue(&place).remove(0);
        let id = asked["id"].as_str().expect("a question has an id").to_owned();
        let answer = |words: &[&str]| place.amends(&[&["answer", &id], words, &["--by", "ada"]].concat());
        let (code, said) = answer(&["did_not_happen", "--content", r#"{"id":"ch_7"}"#]);
        assert_ne!(code, 0, "{said}");
        if asked.get("gives").is_some() {
            let (code, said) = answer(&["happened", "--content", r#"{"id":7}"#]);
            assert_ne!(code, 0, "it does not fit what the tool gives: {said}");
        }
        let (code, said) = answer(&["happened", "--content", r#"{"id":"ch_7","order":"ord_lost","amount":5}"#]);
        assert_eq!(code, 0, "{said}");
        let next = |gateway: &Gateway| gateway.call("walk", &json!({ "session": session }).to_string()).1;
        eventually("it is settled", || next(&gateway)["data"]["waits"]["done"] == true);
        if crash {
            gateway.kill();
            gateway = serve(&place, ORDER);
        }
        let paid = pay(&gateway, &session);
        assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
        assert_eq!(paid["data"]["state"]["fields"]["charge"], "ch_7", "{paid}");
        assert_eq!(place.requests_on("charge_card", "ord_lost"), 1, "and nothing is sent again");
        assert!(!place.events().iter().any(|event| event.to_string().contains("ch_7")), "no trace has it");
        place.settled();
    }
}

/// What a charge writes is a member that no charge has.
fn unclear() -> String {
    ORDER.replace("writes = { charge = \"result.id\" }", "writes = { charge = \"result.no_such_member\" }")
}

#[test]
fn what_was_done_and_cannot_be_judged_is_told_and_holds_nobody_for_good() {
    let place = Place::new();
    let gateway = serve(&place, &unclear());
    let session = ordered(&gateway, "ord_1");
    let told = pay(&gateway, &session);
    assert_eq!(
        (&told["error"]["kind"], &told["error"]["certainty"]),
        (&json!("action_error"), &json!("processed")),
        "{told}"
    );
    let words = told["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("`pay` was done") && words.contains("no_such_member"), "{words}");
    assert_eq!(told["waits"], json!({ "for": "unclear", "action": "pay" }), "{told}");
    assert!(told["next_hint"].as_str().is_some_and(|hint| hint.contains("`reset`")), "{told}");
    let asked = queue(&place);
    assert!(asked[0]["question"].as_str().is_some_and(|words| words.contains("no_such_member")), "{asked:?}");
    let other = step(&gateway, json!({ "action": "drop_order", "session": session }));
    assert_refused(&other, "in_flight", &[]);
    assert_eq!((&other["error"]["retryable"], other["error"].get("retry_after_ms")), (&json!(false), None), "{other}");
    pay(&gateway, &session);
    assert_eq!((place.requests_on("charge_card", "ord_1"), queue(&place).len()), (1, 1));
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["name"], "created", "{reset}");
    assert_eq!(reset["data"].get("result"), None, "nothing was made: {reset}");
    assert_legal(&reset["data"], &["drop_order", "take_order"]);
    place.settled();
}

/// Two calls at once, and a way out.
const PAIR: &str = r#"
[machines.pair]
initial = "open"
terminal = ["shut"]

[machines.pair.actions.both]
from = ["open"]
to = "shut"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
parallel = { p = { tool = "burn", args = { order = "inputs.order" } }, q = { tool = "take", args = { order = "inputs.order" } } }

[machines.pair.actions.leave]
from = ["open"]
to = "shut"
"#;

#[test]
fn a_doubt_that_a_person_settles_is_their_move_and_what_was_done_beside_it_is_told_to_the_end() {
    let place = Place::new();
    let gateway = till::serve(&place, PAIR);
    till::says(&place, "take", "ord_1", &json!({ "error": { "why": "no such card" } }));
    let doubt = step(&gateway, json!({ "action": "both", "inputs": { "order": "ord_1" } }));
    let error = &doubt["error"];
    assert_eq!((&error["certainty"], &error["who_must_act"]), (&json!("in_doubt"), &json!("person")), "{doubt}");
    assert_eq!(error["verdict"], "in_doubt", "{doubt}");
    assert!(error["upstream"]["text"].as_str().is_some_and(|said| said.contains("no such card")), "{doubt}");
    let asked = queue(&place);
    assert_eq!((asked.len(), &asked[0]["id"]), (1, &error["interaction"]), "{asked:?}");
    let waits = json!({ "for": "unsettled", "action": "both", "done": false, "asked": true, "was_done": ["p"] });
    assert_eq!(doubt["waits"], waits, "{doubt}");
    let says = |told: &Value, what: &str| told.as_str().is_some_and(|told| told.contains(what));
    let not_again = "`p` was done, and is not done again";
    assert!(says(&error["message"], not_again) && says(&doubt["next_hint"], not_again), "{doubt}");
    let other = step(&gateway, json!({ "action": "leave", "session": doubt["session"] }));
    assert_refused(&other, "in_flight", &[]);
    assert_eq!(other["error"]["who_must_act"], "person", "{other}");
    assert!(says(&other["error"]["message"], "a person is asked"), "{other}");
    let look = &other["error"]["recovery"]["call"];
    assert_eq!(gateway.call("walk", &look["args"].to_string()).1["data"]["waits"], waits, "{look}");

    self::says(&place, &asked[0], "did_not_happen");
    let session = &doubt["session"];
    eventually("it is settled", || till::look(&gateway, session, "next")["waits"]["for"] == "later");
    let next = till::look(&gateway, session, "next");
    assert!(next["waits"]["was_done"] == json!(["p"]) && says(&next["next_hint"], not_again), "{next}");
    let early = step(&gateway, json!({ "action": "both", "inputs": { "order": "ord_1" }, "session": session }));
    assert_refused(&early, "retry_later", &["leave"]);
    assert!(says(&early["error"]["message"], not_again), "{early}");
    let left = step(&gateway, json!({ "action": "leave", "session": session }));
    assert!(says(&left["data"]["next_hint"], "Of `both`, which was not made, `p` was done."), "{left}");
    let history = till::look(&gateway, session, "history");
    let calls = history["moves"][0]["calls"].as_array().unwrap_or_else(|| panic!("{history}"));
    let told: Vec<_> = calls.iter().map(|call| (&call["as"], &call["certainty"])).collect();
    let known = [(json!("p"), json!("processed")), (json!("q"), json!("not_processed"))];
    assert_eq!(told, known.iter().map(|(name, known)| (name, known)).collect::<Vec<_>>(), "{history}");
}

#[test]
fn a_look_at_a_walk_opens_with_where_it_is_and_not_with_something_done() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_lost");
    pay(&gateway, &session);
    for what in ["next", "state", "history", "graph.mmd", "trace"] {
        let call = params("walk", &json!({ "session": session, "what": what }));
        let (_, shown) = call_alone(&gateway, &call);
        let text = shown["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{shown}"));
        assert!(text.starts_with("Whether `pay` happened is not known, and a person is asked"), "{what}: {text}");
    }
}
