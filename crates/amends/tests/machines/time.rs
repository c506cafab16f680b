//! How long a walk may go on, and what is left of its moves by crashes and by long waits.

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::{Place, eventually};
use crate::till::{done, forbidden, holds, lets_go, look, named, queue, says, serve, step, take, tools};

/// A sale that is over after two seconds, whatever its payment may take.
const HASTY: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid", "left"]
limits = { time = "2s" }

[machines.sale.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.sale.actions.pay]
from = ["named"]
to = "paid"
tool = "take"
args = { order = "state.order" }
timeout = "70s"
writes = { charge = "result == null ? 'unknown' : result.id" }

[machines.sale.actions.leave]
from = ["named"]
to = "left"
"#;

#[test]
fn an_action_that_runs_when_the_time_of_its_walk_is_over_comes_to_its_end_with_it() {
    let place = Place::new();
    let gateway = serve(&place, HASTY);
    let session = named(&gateway, "o1");
    let late = take(&gateway, &session, "pay");
    assert_eq!(
        (&late["error"]["kind"], &late["error"]["certainty"]),
        (&json!("action_timeout"), &json!("in_doubt")),
        "{late}"
    );
    let budget_ms = late["timeout_ms"].as_u64().expect("the budget is told");
    assert!(budget_ms <= 2_000, "{late}");
    let words = format!("not done within {budget_ms} ms, all that was left of the 2000 ms that `sale` may take");
    assert!(late["error"]["message"].as_str().is_some_and(|message| message.contains(&words)), "{late}");
    assert_legal(&late, &[]);
    let held = take(&gateway, &session, "leave");
    assert_refused(&held, "in_flight", &[]);

    says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
    eventually("its result settles it", || look(&gateway, &session, "next")["waits"]["done"] == true);
    let paid = take(&gateway, &session, "pay");
    assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
    assert_eq!(paid["data"]["state"]["fields"]["charge"], "t_7", "{paid}");
    assert_eq!(done(&place).len(), 1, "it was taken once");
    place.settled();
}

#[test]
fn the_time_that_a_person_takes_is_not_the_walks() {
    let place = Place::new();
    let asked = HASTY.replace("timeout = \"70s\"", "timeout = \"70s\"\nqueue = \"till\"");
    let gateway = serve(&place, &asked);
    says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
    let session = named(&gateway, "o1");
    let waits = take(&gateway, &session, "pay");
    assert_eq!(waits["error"]["kind"], "awaiting_person", "the agent is told when the walk would be over: {waits}");
    let id = queue(&place)[0]["id"].as_str().expect("a question has an id").to_owned();
    let (code, said) = place.amends(&["answer", &id, "approve", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    eventually("it is heard", || look(&gateway, &session, "next")["waits"].is_null());
    let paid = take(&gateway, &session, "pay");
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    place.settled();
}

/// A payment after which something is called, whatever became of it.
const CLEARED: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid"]

[machines.sale.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.sale.actions.pay]
from = ["named"]
to = "paid"
tool = "put"
args = { order = "state.order" }
assert = "result.id == 'put_1' ? 'ok' : 'skip'"
writes = { charge = "result == null ? 'none' : result.id" }
exit = [{ tool = "burn", as = "clear" }]
"#;

#[test]
fn what_a_move_writes_is_not_lost_with_the_process_that_weighed_it() {
    for (gives, charge) in [("put_1", "put_1"), ("put_x", "none")] {
        let place = Place::new();
        let mut gateway = serve(&place, CLEARED);
        says(&place, "put", "o1", &json!({ "result": { "id": gives } }));
        holds(&place, "burn");
        let session = named(&gateway, "o1");
        let connection = gateway.begin("step", &json!({ "action": "pay", "session": session }).to_string());
        eventually("it is cleared up", || tools(&place).last().is_some_and(|tool| tool == "burn"));
        gateway.kill();
        drop(connection);
        lets_go(&place, "burn");
        let gateway = serve(&place, CLEARED);
        eventually("the move is made", || place.events_named("move_made").len() == 2);
        let seen = look(&gateway, &session, "state");
        assert_eq!(seen["state"]["name"], "paid", "{seen}");
        assert_eq!(seen["state"]["fields"], json!({ "order": "o1", "charge": charge }), "{seen}");
        let again = step(&gateway, json!({ "action": "pay", "session": session }));
        assert_eq!((&again["status"], &again["replayed"]), (&json!("success"), &json!(true)), "{again}");
        let told: &Value = &again["data"];
        assert_eq!(
            (&told["state"]["fields"]["charge"], &told["result"]["id"]),
            (&json!(charge), &json!(gives)),
            "{again}"
        );
        assert_eq!(tools(&place).iter().filter(|tool| *tool == "put").count(), 1);
    }
}

/// Two calls at once, of which the payment may fail.
const BOTH: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid"]

[machines.sale.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.sale.actions.pay]
from = ["named"]
to = "paid"
parallel = { put = { tool = "put", args = { order = "state.order" } }, take = { tool = "take", args = { order = "state.order" } } }
writes = { put = "result.put.id", charge = "result.take.id" }
"#;

#[test]
fn what_was_done_of_several_calls_is_not_done_again_a_week_later() {
    let place = Place::new();
    let mut gateway = serve(&place, BOTH);
    says(&place, "take", "o1", &forbidden());
    let session = named(&gateway, "o1");
    let half = take(&gateway, &session, "pay");
    let message = half["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`put` was done, and is not done again"), "{half}");
    gateway.kill();
    a_week_passes(&place);
    says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
    gateway = serve(&place, BOTH);
    let paid = take(&gateway, &session, "pay");
    assert_eq!(paid["data"]["state"]["fields"], json!({ "order": "o1", "put": "put_1", "charge": "t_7" }), "{paid}");
    assert_eq!(tools(&place).iter().filter(|tool| *tool == "put").count(), 1, "{:?}", tools(&place));
}

/// Makes a week pass for what a ledger keeps for a time. No gateway runs on it.
fn a_week_passes(place: &Place) {
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    let week_ms = 7 * 24 * 60 * 60 * 1000_i64;
    for table in ["claims", "answers"] {
        let passes = format!("UPDATE {table} SET until = until - ?1 WHERE until IS NOT NULL");
        ledger.execute(&passes, [week_ms]).expect("the time passes");
    }
}

#[test]
fn what_may_have_been_done_by_a_tool_of_which_nothing_is_declared_is_not_done_again_a_week_later() {
    let place = Place::new();
    let given = HASTY.replace("tool = \"take\"", "tool = \"give\"").replace("limits = { time = \"2s\" }", "");
    let given = given.replace("timeout = \"70s\"", "timeout = \"1500ms\"");
    let mut gateway = serve(&place, &given);
    holds(&place, "give");
    let session = named(&gateway, "o1");
    let late = take(&gateway, &session, "pay");
    assert_eq!((&late["error"]["certainty"], &late["waits"]["for"]), (&json!("in_doubt"), &json!("unknown")), "{late}");
    gateway.kill();
    a_week_passes(&place);
    lets_go(&place, "give");
    gateway = serve(&place, &given);
    let again = take(&gateway, &session, "pay");
    assert_eq!(
        (&again["error"]["certainty"], &again["waits"]["for"]),
        (&json!("in_doubt"), &json!("unknown")),
        "{again}"
    );
    assert_eq!(done(&place).len(), 1, "it is not sent again");
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["name"], "open", "{reset}");
}

/// Two calls at once, of which a person has to allow one.
const ALLOWED: &str = r#"
[people]
hold = "1s"

[tools.give]
effect = "write"
approval = { queue = "till" }

[machines.sale]
initial = "open"
terminal = ["paid"]

[machines.sale.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.sale.actions.pay]
from = ["named"]
to = "paid"
parallel = { put = { tool = "put", args = { order = "state.order" } }, give = { tool = "give" } }
writes = { put = "result.put.id", given = "result.give.id" }
"#;

#[test]
fn who_is_told_to_wait_for_a_person_is_told_what_was_done_meanwhile() {
    let place = Place::new();
    let gateway = serve(&place, ALLOWED);
    let session = named(&gateway, "o1");
    let waits = take(&gateway, &session, "pay");
    let told = (&waits["error"]["kind"], &waits["error"]["certainty"]);
    assert_eq!(told, (&json!("awaiting_person"), &json!("processed")), "{waits}");
    let message = waits["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("`put` was done, and is not done again"), "{waits}");
    let id = queue(&place)[0]["id"].as_str().expect("a question has an id").to_owned();
    assert_eq!(place.amends(&["answer", &id, "approve", "--by", "ada"]).0, 0);
    eventually("it is heard", || look(&gateway, &session, "next")["waits"].is_null());
    let paid = take(&gateway, &session, "pay");
    let fields = json!({ "order": "o1", "put": "put_1", "given": "give_1" });
    assert_eq!(paid["data"]["state"]["fields"], fields, "{paid}");
    assert_eq!(tools(&place), ["put", "give"]);
    place.settled();
}
