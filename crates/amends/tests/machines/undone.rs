//! Walks of which something was undone: they say so, and so do their forks.

use serde_json::{Value, json};

use crate::support::{Place, eventually};
use crate::till::{self, forbidden, holds, lets_go, look, queue, serve, serve_at_once, serve_with, step, take, tools};

/// Something is put into the till, and then something is taken that may fail.
const PUT: &str = r#"
[machines.deposit]
initial = "open"
terminal = ["over"]

[machines.deposit.actions.put]
from = ["open"]
to = "full"
tool = "put"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.deposit.actions.take]
from = ["full"]
to = "over"
tool = "take"
args = { order = "state.order" }
resolution = "abort_workflow"

[machines.deposit.actions.leave]
from = ["full"]
to = "over"
"#;

fn put(gateway: &crate::support::Gateway, place: &Place, order: &str) -> Value {
    till::says(place, "put", order, &json!({ "result": { "id": "p_1" } }));
    let put = step(gateway, json!({ "action": "put", "inputs": { "order": order } }));
    assert_eq!(put["data"]["state"]["name"], "full", "{put}");
    put["data"]["session"].clone()
}

#[test]
fn a_walk_that_an_operator_unwound_says_so_and_so_does_its_fork() {
    let place = Place::new();
    let gateway = serve(&place, PUT);
    let walk = put(&gateway, &place, "o1");
    let fork = gateway.call("fork", &json!({ "session": walk }).to_string()).1;
    assert_eq!(fork["data"]["result"].get("warning"), None, "{fork}");
    let (code, said) = place.amends(&["unwind", walk.as_str().expect("a handle"), "--json"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(till::tools(&place), ["put", "undo"], "{said}");
    let next = look(&gateway, &walk, "next");
    assert_eq!(next["waits"], json!({ "for": "undone", "undone": 1 }), "{next}");
    assert!(next["next_hint"].as_str().is_some_and(|hint| hint.contains("was undone since")), "{next}");
    let (_, outside) = place.amends(&["walk", walk.as_str().expect("a handle")]);
    assert!(outside.contains("was undone since"), "{outside}");
    let fork = gateway.call("fork", &json!({ "session": walk }).to_string()).1;
    assert_eq!(fork["data"]["result"]["undone"], 1, "{fork}");
    let warning = fork["data"]["result"]["warning"].as_str().unwrap_or_else(|| panic!("{fork}"));
    assert!(warning.contains("what the fields tell of that is not so any more"), "{warning}");
    let left = take(&gateway, &walk, "leave");
    assert_eq!(left["data"]["waits"]["for"], "undone", "{left}");
    let (_, reset) = gateway.call("reset", &json!({ "session": walk }).to_string());
    assert_eq!(reset["data"].get("waits"), None, "it begins anew: {reset}");
}

#[test]
fn the_fork_of_a_walk_that_was_given_up_says_what_was_undone() {
    let place = Place::new();
    let gateway = serve(&place, PUT);
    let walk = put(&gateway, &place, "o2");
    till::says(&place, "take", "o2", &forbidden());
    let failed = take(&gateway, &walk, "take");
    assert_eq!(failed["error"]["kind"], "action_error", "{failed}");
    // A fork goes by what is recorded.
    eventually("it is undone", || place.events_named("walk_unwound").len() == 1);
    let fork = gateway.call("fork", &json!({ "session": walk, "seq": 1 }).to_string()).1;
    let told = &fork["data"]["result"];
    assert_eq!((&told["given_up"], &told["undone"]), (&json!("1 undone"), &json!(1)), "{fork}");
    assert!(told["warning"].as_str().is_some_and(|words| words.contains("was undone since")), "{fork}");
    let before = gateway.call("fork", &json!({ "session": walk, "seq": 0 }).to_string()).1;
    assert_eq!(before["data"]["result"].get("undone"), None, "nothing had been done by then: {before}");
}

/// Something is lent, and brought back where the payment fails; whether it was brought back is not to be guessed.
const LENT: &str = r#"
[machines.deposit]
initial = "open"
terminal = ["over"]

[machines.deposit.actions.put]
from = ["open"]
to = "full"
tool = "put"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.deposit.actions.lend]
from = ["full"]
to = "lent"
tool = "lend"

[machines.deposit.actions.take]
from = ["lent"]
to = "over"
tool = "take"
args = { order = "state.order" }
resolution = "abort_workflow"
"#;

#[test]
fn what_is_undone_late_corrects_what_the_walk_says_of_it() {
    for by_person in [false, true] {
        let place = Place::new();
        let mut gateway = serve_with(&place, "timeout = \"1500ms\"\ndeadline = \"3s\"", LENT);
        let walk = put(&gateway, &place, "o1");
        assert_eq!(take(&gateway, &walk, "lend")["data"]["state"]["name"], "lent");
        till::says(&place, "take", "o1", &forbidden());
        holds(&place, "bring");
        take(&gateway, &walk, "take");
        eventually("what can be undone is", || place.events_named("walk_unwound").len() == 1);
        let waits = || json!({ "for": "given_up", "undone": 1, "not_undone": 0, "left": [], "in_doubt": ["lend"] });
        assert_eq!(look(&gateway, &walk, "next")["waits"], waits());
        let asks = |words: &str| {
            let asked = queue(&place).into_iter();
            asked.filter(|asked| asked["question"].as_str().is_some_and(|question| question.contains(words))).collect()
        };
        let told: Vec<Value> = asks("of 1 nobody knows whether it was undone: `lend`");
        assert_eq!(told.len(), 1, "a person hears of it");
        let doubt: Vec<Value> = asks("did `bring` happen?");
        let doubt = doubt[0]["id"].as_str().expect("a question has an id").to_owned();

        if by_person {
            gateway.kill();
            gateway = serve(&place, LENT);
            assert_eq!(look(&gateway, &walk, "next")["waits"], waits());
            let (code, said) = place.amends(&["answer", &doubt, "happened", "--by", "ada"]);
            assert_eq!(code, 0, "{said}");
        } else {
            lets_go(&place, "bring");
        }
        eventually("its token is spent", || place.events_named("reversal_redeemed").len() == 2);
        eventually("the walk says so", || look(&gateway, &walk, "next")["waits"]["undone"] == 2);
        let waits = json!({ "for": "given_up", "undone": 2, "not_undone": 0, "left": [] });
        assert_eq!(look(&gateway, &walk, "next")["waits"], waits);
        let stays = |asked: &Value| asked["question"].to_string().contains("nobody knows whether it was undone");
        eventually("nobody is told any more that it stays", || !queue(&place).iter().any(stays));
        let unwound = place.events_named("walk_unwound");
        assert_eq!((unwound.len(), &unwound[1]["undone"], &unwound[1]["failed"]), (2, &json!(2), &Value::Null));
        let over = take(&gateway, &walk, "take");
        let message = over["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("given up: 2 undone; reset"), "{over}");
        assert_eq!(tools(&place).iter().filter(|tool| *tool == "bring").count(), 1, "it is brought back once");
        let (code, shown) = place.amends(&["walk", walk.as_str().expect("a handle")]);
        assert!(code == 0 && shown.contains("2 undone"), "{shown}");
        place.settled();
    }
}

#[test]
fn an_undoing_that_may_be_sent_again_and_was_done_late_is_told_as_done() {
    let place = Place::new();
    let gateway = serve_with(&place, "timeout = \"1500ms\"\ndeadline = \"3s\"", PUT);
    let walk = put(&gateway, &place, "o1");
    till::says(&place, "take", "o1", &forbidden());
    holds(&place, "undo");
    take(&gateway, &walk, "take");
    eventually("it is not known to be undone", || place.events_named("walk_unwound").len() == 1);
    let waits = json!({ "for": "given_up", "undone": 0, "not_undone": 0, "left": [], "in_doubt": ["put"] });
    assert_eq!(look(&gateway, &walk, "next")["waits"], waits);
    lets_go(&place, "undo");
    eventually("the walk says so", || look(&gateway, &walk, "next")["waits"]["undone"] == 1);
    assert_eq!(place.events_named("reversal_redeemed").len(), 1);
    assert!(queue(&place).iter().all(|asked| !asked["question"].to_string().contains("nobody knows whether it was")));
    place.settled();
}

#[test]
fn an_undoing_in_doubt_that_a_person_says_did_not_happen_is_told_as_not_undone() {
    let place = Place::new();
    let gateway = serve_with(&place, "timeout = \"1500ms\"\ndeadline = \"3s\"", LENT);
    let walk = put(&gateway, &place, "o1");
    assert_eq!(take(&gateway, &walk, "lend")["data"]["state"]["name"], "lent");
    till::says(&place, "take", "o1", &forbidden());
    holds(&place, "bring");
    take(&gateway, &walk, "take");
    eventually("what can be undone is", || place.events_named("walk_unwound").len() == 1);
    let hint = look(&gateway, &walk, "next")["next_hint"].clone();
    let words = "1 undone, 1 in doubt, about which a person is asked (`lend`)";
    assert!(hint.as_str().is_some_and(|hint| hint.contains(words)), "{hint}");
    let asked = queue(&place).into_iter().find(|asked| asked["question"].to_string().contains("did `bring` happen?"));
    let doubt = asked.expect("a person is asked")["id"].as_str().expect("a question has an id").to_owned();
    let (code, said) = place.amends(&["answer", &doubt, "did_not_happen", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 1, "left": ["lend"] });
    eventually("the walk says so", || look(&gateway, &walk, "next")["waits"] == waits);
    assert!(queue(&place).iter().any(|asked| asked["question"].to_string().contains("1 could not be undone: `lend`")));
}

#[test]
fn what_was_done_late_is_undone_as_well_when_its_walk_is_given_up() {
    let machine = PUT.replacen("tool = \"put\"", "tool = \"put\"\ntimeout = \"1500ms\"", 1);
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve_with(&place, BOUNDS, &machine);
        holds(&place, "put");
        let late = step(&gateway, json!({ "action": "put", "inputs": { "order": "o1" } }));
        assert_eq!(late["error"]["certainty"], "in_doubt", "{late}");
        let walk = late["session"].clone();
        assert!(place.events_named("reversal_armed").is_empty(), "nobody knows whether there is anything to undo");
        till::says(&place, "put", "o1", &json!({ "result": { "id": "p_1" } }));
        lets_go(&place, "put");
        eventually("its result settles it", || place.events_named("doubt_resolved").len() == 1);
        assert_eq!(place.events_named("reversal_armed").len(), 1);
        if crash {
            gateway.kill();
            gateway = serve_with(&place, BOUNDS, &machine);
        }
        let put = step(&gateway, json!({ "action": "put", "inputs": { "order": "o1" }, "session": walk }));
        assert_eq!(put["data"]["state"]["name"], "full", "{put}");
        till::says(&place, "take", "o1", &forbidden());
        let failed = take(&gateway, &walk, "take");
        assert_eq!(failed["error"]["kind"], "action_error", "{failed}");
        let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 0, "left": [] });
        eventually("it is undone", || look(&gateway, &walk, "next")["waits"] == waits);
        assert_eq!(tools(&place), ["put", "take", "undo"]);
        assert_eq!(till::done(&place)[2]["id"], "p_1", "by what it gave late");
        let stays = |asked: &Value| asked["question"].to_string().contains("given up");
        assert!(!queue(&place).iter().any(stays), "nobody has to look after what stays");
        place.settled();
    }
}

const BOUNDS: &str = "timeout = \"1500ms\"\ndeadline = \"3s\"";

#[test]
fn a_walk_is_not_given_up_because_its_tools_are_not_known_yet() {
    let place = Place::new();
    let mut gateway = serve_with(&place, BOUNDS, LENT);
    let walk = put(&gateway, &place, "o1");
    assert_eq!(take(&gateway, &walk, "lend")["data"]["state"]["name"], "lent");
    till::says(&place, "take", "o1", &forbidden());
    gateway.kill();
    holds(&place, "list");
    gateway = serve_at_once(&place, BOUNDS, LENT);
    let no = take(&gateway, &walk, "take");
    assert_eq!((&no["status"], &no["error"]["kind"]), (&json!("refused"), &json!("index_not_ready")), "{no}");
    assert_eq!((&no["valid_next_actions"], &no["error"]["retryable"]), (&json!(["take"]), &json!(true)), "{no}");
    assert_eq!(look(&gateway, &walk, "state")["state"]["name"], "lent");
    assert_eq!(tools(&place), ["put", "lend"]);
    lets_go(&place, "list");
    eventually("it is taken", || take(&gateway, &walk, "take")["error"]["kind"] != "index_not_ready");
    eventually("all is undone", || look(&gateway, &walk, "next")["waits"]["undone"] == 2);
    assert_eq!(tools(&place), ["put", "lend", "take", "bring", "undo"]);
    place.settled();
}

#[test]
fn an_undoing_that_a_crash_cut_short_waits_until_the_tools_are_known() {
    let place = Place::new();
    let mut gateway = serve_with(&place, BOUNDS, LENT);
    let walk = put(&gateway, &place, "o1");
    assert_eq!(take(&gateway, &walk, "lend")["data"]["state"]["name"], "lent");
    till::says(&place, "take", "o1", &forbidden());
    holds(&place, "bring");
    take(&gateway, &walk, "take");
    eventually("it is brought back", || tools(&place).contains(&"bring".to_owned()));
    gateway.kill();
    lets_go(&place, "bring");
    holds(&place, "list");
    gateway = serve_at_once(&place, BOUNDS, LENT);
    let no = take(&gateway, &walk, "take");
    assert_eq!(no["status"], "refused", "{no}");
    lets_go(&place, "list");
    eventually("the rest is undone", || place.events_named("walk_unwound").len() == 1);
    let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 0, "left": [], "in_doubt": ["lend"] });
    assert_eq!(look(&gateway, &walk, "next")["waits"], waits);
    assert_eq!(tools(&place), ["put", "lend", "take", "bring", "undo"]);
}

/// Something is given away twice, and the same call takes either back.
const GIVEN: &str = r#"
[tools.give]
effect = "write"
reverse = { tool = "bring", args = { order = "args.order" }, within = "24h" }

[machines.gift]
initial = "open"
terminal = ["over"]

[machines.gift.actions.give]
from = ["open", "given"]
to = "given"
tool = "give"
times = 2
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }

[machines.gift.actions.take]
from = ["given"]
to = "over"
tool = "take"
args = { order = "'o1'" }
resolution = "abort_workflow"
"#;

/// How often something was brought back.
fn brought(place: &Place) -> usize {
    tools(place).iter().filter(|tool| *tool == "bring").count()
}

#[test]
fn equal_undoings_of_one_walk_are_each_made_and_each_told_of() {
    let place = Place::new();
    let gateway = serve_with(&place, BOUNDS, GIVEN);
    till::says(&place, "take", "o1", &forbidden());
    let given = json!({ "order": "o1" });
    let walk = step(&gateway, json!({ "action": "give", "inputs": given }))["data"]["session"].clone();
    let again = step(&gateway, json!({ "action": "give", "inputs": given, "session": walk, "expect_seq": 1 }));
    assert_eq!((&again["status"], tools(&place).len()), (&json!("success"), 2), "{again}");
    till::says(&place, "bring", "o1", &json!([{ "after": "let-go", "result": {} }, { "result": {} }]));
    take(&gateway, &walk, "take");
    eventually("what can be undone is", || place.events_named("walk_unwound").len() == 1);
    let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 0, "left": [], "in_doubt": ["give"] });
    assert_eq!((look(&gateway, &walk, "next")["waits"].clone(), brought(&place)), (waits, 2));
    let asked = queue(&place).into_iter().find(|asked| asked["question"].to_string().contains("did `bring` happen?"));
    let doubt = asked.expect("a person is asked")["id"].as_str().expect("a question has an id").to_owned();
    let (code, said) = place.amends(&["answer", &doubt, "happened", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    let waits = json!({ "for": "given_up", "undone": 2, "not_undone": 0, "left": [] });
    eventually("the walk says so", || look(&gateway, &walk, "next")["waits"] == waits);
    let (code, said) = place.amends(&["unwind", walk.as_str().expect("a handle")]);
    assert_eq!((code, brought(&place)), (0, 2), "nothing is left: {said}");
}

#[test]
fn equal_undoings_of_two_walks_at_once_are_both_made() {
    let place = Place::new();
    let gateway = serve(&place, GIVEN);
    till::says(&place, "take", "o1", &forbidden());
    holds(&place, "bring");
    let walks = ["one", "two"].map(|key| {
        let args = json!({ "action": "give", "inputs": { "order": "o1" } }).to_string();
        let begun = gateway.call_with("step", &[("idempotency-key", key)], &args).1;
        assert_eq!(begun["status"], "success", "{begun}");
        begun["data"]["session"].clone()
    });
    assert_ne!(walks[0], walks[1]);
    walks.iter().for_each(|walk| drop(take(&gateway, walk, "take")));
    eventually("both are being undone", || brought(&place) == 2);
    lets_go(&place, "bring");
    let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 0, "left": [] });
    for walk in &walks {
        eventually("it is undone", || look(&gateway, walk, "next")["waits"] == waits);
    }
    assert_eq!((brought(&place), place.events_named("reversal_redeemed").len()), (2, 2));
}
