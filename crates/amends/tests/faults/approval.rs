//! Calls that need a person's yes before they are sent: nothing is sent before it, and what was approved runs once.

use std::io::{Read as _, Write as _};
use std::thread;

use serde_json::{Value, json};

use crate::support::client::{Client, Sdk, envelope};
use crate::support::{Gateway, Place, eventually, http};

const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;
const OTHER: &str = r#"{"order":"ord_1","amount":6}"#;

/// A gateway whose charges need a yes, with whatever else.
fn asking(place: &Place, approval: &str, more: &str) -> Gateway {
    let text = format!("[tools.charge_card]\neffect = \"write\"\napproval = {approval}\n{more}\n");
    let config = place.write("approval.toml", &text).display().to_string();
    place.up_with("", &["--config", &config])
}

/// The same, in which an agent is told at once that a person is asked.
fn hasty(place: &Place, approval: &str, more: &str) -> Gateway {
    asking(place, approval, &format!("{more}\n[people]\nhold = \"0s\"\n"))
}

fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

/// The one question that is open, once it is.
fn question(place: &Place) -> Value {
    eventually("a person is asked", || queue(place).len() == 1);
    queue(place).remove(0)
}

fn id_of(question: &Value) -> String {
    question["id"].as_str().expect("an id").to_owned()
}

fn say(place: &Place, id: &str, choice: &str, by: &str) -> (i32, String) {
    place.amends(&["answer", id, choice, "--by", by])
}

/// A call through the plain door, answered in its own time.
fn begin(gateway: &Gateway, arguments: &str) -> thread::JoinHandle<(u16, Value)> {
    let (address, body) = (gateway.address.clone(), arguments.to_owned());
    thread::spawn(move || http::post(&address, "/call/charge_card", &[], body.as_bytes()))
}

/// How many events of that name say that.
fn seen(place: &Place, name: &str, field: &str, value: &str) -> usize {
    place.events_named(name).iter().filter(|event| event[field] == value).count()
}

fn told(gateway: &Gateway, arguments: &str) -> Value {
    gateway.call("charge_card", arguments).1
}

#[test]
fn nothing_is_sent_before_the_yes_and_the_call_runs_once_after_it() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let call = begin(&gateway, CHARGE);
    let asked = question(&place);
    assert_eq!(
        (&asked["queue"], &asked["subject"], &asked["kind"]),
        (&json!("finance"), &json!("call"), &json!("approve"))
    );
    assert_eq!(place.requests("charge_card"), 0);
    let (code, said) = say(&place, &id_of(&asked), "approve", "ada");
    assert_eq!(code, 0, "{said}");
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    assert_eq!(place.events_named("call_approved").len(), 1);
    place.settled();
}

#[test]
fn a_no_is_final_and_the_agent_hears_it() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let call = begin(&gateway, CHARGE);
    let (code, said) = say(&place, &id_of(&question(&place)), "deny", "ada");
    assert_eq!(code, 0, "{said}");
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(
        (&answer["status"], &answer["error"]["kind"]),
        (&json!("refused"), &json!("approval_denied")),
        "{answer}"
    );
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

#[test]
fn nobody_answers_and_it_counts_as_a_no() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "answer_within = \"1s\"");
    let answer = told(&gateway, CHARGE);
    assert_eq!(
        (&answer["status"], &answer["error"]["kind"]),
        (&json!("refused"), &json!("approval_expired")),
        "{answer}"
    );
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

#[test]
fn who_called_and_who_said_yes_before_cannot_say_yes() {
    let place = Place::new();
    let gateway = asking(&place, "{ queue = \"finance\", persons = 2 }", "");
    let call = begin(&gateway, CHARGE);
    let first = question(&place);
    let requester = first["principal"].as_str().expect("who called").to_owned();
    let (code, said) = say(&place, &id_of(&first), "approve", &requester);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("does not count"), "{said}");
    assert_eq!(say(&place, &id_of(&first), "approve", "ada").0, 0);
    eventually("the second person is asked", || queue(&place).iter().any(|asked| asked["id"] != first["id"]));
    let second = question(&place);
    assert_eq!(second["grounds"]["said_yes"], 1, "{second}");
    assert_eq!(place.requests("charge_card"), 0);
    assert_eq!(say(&place, &id_of(&second), "approve", "ada").0, 1);
    assert_eq!(say(&place, &id_of(&second), "approve", "bob").0, 0);
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn of_two_approvers_who_race_the_first_counts_and_the_other_is_told() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let call = begin(&gateway, CHARGE);
    let id = id_of(&question(&place));
    let codes: Vec<i32> = thread::scope(|scope| {
        let racers = ["ada", "bob", "cleo"].map(|by| {
            let (place, id) = (&place, &id);
            scope.spawn(move || say(place, id, "approve", by).0)
        });
        racers.into_iter().map(|racer| racer.join().expect("it answers")).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!((place.requests("charge_card"), place.events_named("interaction_answered").len()), (1, 1));
    place.settled();
}

#[test]
fn a_yes_after_the_agent_was_told_is_good_for_one_equal_call_and_no_other() {
    let place = Place::new();
    let gateway = hasty(&place, "\"finance\"", "");
    let waits = told(&gateway, CHARGE);
    assert_eq!((&waits["status"], &waits["error"]["kind"]), (&json!("error"), &json!("awaiting_person")), "{waits}");
    assert!(waits["error"]["recovery"]["not_before"].is_u64(), "{waits}");
    assert_eq!(waits["error"]["recovery"].get("call"), None, "{waits}");
    let asked = question(&place);
    assert_eq!(waits["error"]["interaction"], asked["id"], "{waits}");

    // An equal call waits with it, and another asks for itself.
    let again = told(&gateway, CHARGE);
    assert_eq!((&again["error"]["kind"], &again["error"]["interaction"]), (&json!("awaiting_person"), &asked["id"]));
    assert_eq!(told(&gateway, OTHER)["error"]["kind"], "awaiting_person");
    assert_eq!(queue(&place).len(), 2);

    assert_eq!(say(&place, &id_of(&asked), "approve", "ada").0, 0);
    let (_, said) = place.amends(&["grants", "--json"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (said["grants"][0]["tool"].as_str(), said["grants"][0]["by"][0].as_str()),
        (Some("charge_card"), Some("ada"))
    );
    assert_eq!(place.requests("charge_card"), 0);
    let sent = told(&gateway, CHARGE);
    assert_eq!(sent["status"], "success", "{sent}");
    let third = told(&gateway, CHARGE);
    assert_eq!(third["error"]["kind"], "awaiting_person", "{third}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
}

#[test]
fn a_no_after_the_agent_was_told_is_what_its_next_equal_call_hears() {
    let place = Place::new();
    let gateway = hasty(&place, "\"finance\"", "");
    assert_eq!(told(&gateway, CHARGE)["error"]["kind"], "awaiting_person");
    assert_eq!(say(&place, &id_of(&question(&place)), "deny", "ada").0, 0);
    let heard = told(&gateway, CHARGE);
    assert_eq!((&heard["error"]["kind"], &heard["replayed"]), (&json!("approval_denied"), &json!(true)), "{heard}");
    assert!(queue(&place).is_empty());
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

#[test]
fn the_wait_goes_on_after_a_kill_and_the_yes_is_good_at_the_next_gateway() {
    let place = Place::new();
    let mut gateway = asking(&place, "\"finance\"", "");
    let mut call = gateway.begin("charge_card", CHARGE);
    let asked = question(&place);
    gateway.kill();
    let mut rest = Vec::new();
    let _ = call.read_to_end(&mut rest);
    assert!(rest.is_empty(), "nothing was answered");
    assert_eq!(queue(&place).len(), 1);

    let gateway = asking(&place, "\"finance\"", "");
    eventually("the session is taken up", || place.events_named("resumed").len() == 1);
    assert_eq!(queue(&place).len(), 1);
    let (code, said) = say(&place, &id_of(&asked), "approve", "ada");
    assert_eq!(code, 0, "{said}");
    eventually("the yes is kept", || place.events_named("call_approved").len() == 1);
    assert_eq!(place.requests("charge_card"), 0);
    let sent = told(&gateway, CHARGE);
    assert_eq!(sent["status"], "success", "{sent}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn an_equal_call_that_waits_with_the_first_runs_in_its_place() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let mut first = gateway.begin("charge_card", CHARGE);
    let asked = question(&place);
    let second = begin(&gateway, CHARGE);
    eventually("the second has joined the first", || seen(&place, "attempt_started", "purpose", "join") == 1);
    // The first agent goes away; whoever waits with it gets what was approved.
    let _ = first.flush();
    first.shutdown(std::net::Shutdown::Both).expect("it was open");
    eventually("its going is seen", || seen(&place, "cancel_requested", "reason", "disconnected") == 1);
    assert_eq!(say(&place, &id_of(&asked), "approve", "ada").0, 0);
    let (_, answer) = second.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_yes_for_the_arguments_stands_until_it_is_taken_back() {
    let place = Place::new();
    let gateway = hasty(&place, "\"finance\"", "");
    assert_eq!(told(&gateway, CHARGE)["error"]["kind"], "awaiting_person");
    let id = id_of(&question(&place));
    let (code, said) = place.amends(&["answer", &id, "approve", "--for", "arguments", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    for sends in 1..=3 {
        let sent = told(&gateway, CHARGE);
        assert_eq!(sent["status"], "success", "{sent}");
        assert_eq!(place.requests("charge_card"), sends);
    }
    assert_eq!(told(&gateway, OTHER)["error"]["kind"], "awaiting_person");
    let (_, listed) = place.amends(&["grants", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let name = listed["grants"][0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(place.amends(&["grants", "--revoke", "nothing"]).0, 2);
    assert_eq!(place.amends(&["grants", "--revoke", &name[..12]]).0, 0);
    assert_eq!(told(&gateway, CHARGE)["error"]["kind"], "awaiting_person");
    assert_eq!(place.requests("charge_card"), 3);
}

#[test]
fn a_yes_is_for_every_digit_of_what_was_asked() {
    let place = Place::new();
    let gateway = hasty(&place, "\"finance\"", "");
    let charge = |amount: &str| format!(r#"{{"order":"ord_1","amount":{amount}}}"#);
    for (n, (one, other)) in (0_u64..)
        .zip([("9007199254740992", "9007199254740993"), ("100000000000000000000001", "100000000000000000000002")])
    {
        assert_eq!(told(&gateway, &charge(one))["error"]["kind"], "awaiting_person");
        let id = id_of(&question(&place));
        let (code, said) = place.amends(&["answer", &id, "approve", "--for", "arguments", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        let waits = told(&gateway, &charge(other));
        assert_eq!(waits["error"]["kind"], "awaiting_person", "nobody said yes to this one: {waits}");
        assert_eq!(place.requests("charge_card"), n);
        assert_eq!(told(&gateway, &charge(one))["status"], "success");
        assert_eq!(say(&place, &id_of(&question(&place)), "deny", "ada").0, 0);
        assert_eq!(place.requests("charge_card"), n + 1);
    }
}

#[test]
fn where_nobody_is_there_to_be_asked_the_stated_default_counts() {
    for (headless, status, sends) in [("approve", "success", 1), ("deny", "refused", 0)] {
        let place = Place::new();
        let gateway = asking(&place, "\"finance\"", &format!("[people]\nheadless = \"{headless}\"\n"));
        let answer = told(&gateway, CHARGE);
        assert_eq!(answer["status"], status, "{answer}");
        assert_eq!(place.requests("charge_card"), sends);
        assert!(queue(&place).is_empty());
        place.settled();
    }
}

#[test]
fn a_user_who_may_says_yes_in_its_own_client() {
    let may = "[queues.own]\nrequester = true\n";
    for era in ["legacy", "modern"] {
        for (approve, status) in [(true, "success"), (false, "refused")] {
            let place = Place::new();
            let gateway = asking(&place, "\"own\"", may);
            let said = json!({ "elicitation/create": { "action": "accept", "content": { "approve": approve } } });
            let mut client = Client::http_with_inputs(Sdk::Python, era, &said, &gateway.mcp());
            let answer = client.call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
            let envelope = envelope(&answer);
            match approve {
                true => assert_ne!(answer["result"]["isError"], true, "{era}: {answer}"),
                false => assert_eq!(envelope["error"]["kind"], "approval_denied", "{era}: {answer}"),
            }
            assert_eq!(place.requests("charge_card"), u64::from(approve), "{era} {status}");
            place.settled();
        }
    }
}

#[test]
fn a_client_that_comes_back_by_itself_gets_the_answer_without_a_turn_of_its_model() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let mut client = Client::http(Sdk::Python, Some("modern"), &gateway.mcp());
    let call = client.begin_call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    let asked = question(&place);
    eventually("it came back", || seen(&place, "call_received", "tool", "charge_card") >= 2);
    assert_eq!(say(&place, &id_of(&asked), "approve", "ada").0, 0);
    let answer = client.finish(call);
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn what_changed_since_it_was_asked_before_is_shown_with_what_was_read() {
    let place = Place::new();
    let more = "evidence = [{ tool = \"get_refund\", args = { order = \"args.order\" } }]";
    let gateway = hasty(&place, "\"finance\"", more);
    assert_eq!(told(&gateway, CHARGE)["error"]["kind"], "awaiting_person");
    let first = id_of(&question(&place));
    let (_, shown) = place.amends(&["queue"]);
    assert!(!shown.contains("changed since"), "{shown}");
    // Somebody refunds the order before the yes.
    let (_, refund) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refund["status"], "success", "{refund}");
    assert_eq!(say(&place, &first, "approve", "ada").0, 0);
    assert_ne!(told(&gateway, CHARGE)["status"], "success");
    eventually("it is asked anew", || queue(&place).first().is_some_and(|asked| id_of(asked) != first));
    let asked = question(&place);
    let views = |asked: &Value| asked["grounds"]["evidence"][0]["view"].as_str().map(str::to_owned);
    let is = views(&asked).unwrap_or_else(|| panic!("{asked}"));
    let (_, shown) = place.amends(&["queue"]);
    assert!(shown.contains("changed since it was asked before: `get_refund`"), "{shown}");
    let lines = |sign: &str| shown.lines().filter(|line| line.starts_with(&format!("    {sign} "))).count();
    assert!(lines("-") > 0 || lines("+") > 0, "{shown}");
    let refunded = refund["data"]["id"].as_str().or(refund["data"]["refund"].as_str()).unwrap_or("5");
    assert!(is.contains(refunded), "{is} {refund}");
    assert_eq!(place.requests("charge_card"), 0);
}

#[test]
fn a_yes_for_the_session_is_good_for_its_tool_in_that_session_and_in_no_other() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "");
    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let first = client.begin_call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    let asked = id_of(&question(&place));
    let (code, said) = place.amends(&["answer", &asked, "approve", "--for", "session", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    assert_ne!(client.finish(first)["result"]["isError"], true);
    // Other arguments, the same tool and session: nobody is asked.
    let second = client.call("charge_card", json!({ "order": "ord_2", "amount": 6 }));
    assert_ne!(second["result"]["isError"], true, "{second}");
    assert_eq!(queue(&place), Vec::<Value>::new());
    let mut another = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let third = another.begin_call("charge_card", json!({ "order": "ord_3", "amount": 7 }));
    let (code, said) = say(&place, &id_of(&question(&place)), "deny", "ada");
    assert_eq!(code, 0, "{said}");
    assert_eq!(envelope(&another.finish(third))["error"]["kind"], "approval_denied");
    assert_eq!((place.requests("charge_card"), seen(&place, "call_approved", "yes", "session")), (2, 1));
    place.settled();
}

#[test]
fn approvals_in_parallel_do_not_wait_for_each_other() {
    let place = Place::new();
    let gateway = asking(&place, "\"finance\"", "object = \"args.order\"");
    let (first, second) = (begin(&gateway, CHARGE), begin(&gateway, OTHER));
    eventually("both are asked, though they write to the same", || queue(&place).len() == 2);
    let of = |amount: &str| {
        let asked =
            queue(&place).into_iter().find(|asked| asked["view"].as_str().is_some_and(|view| view.contains(amount)));
        id_of(&asked.unwrap_or_else(|| panic!("{amount}")))
    };
    // The one that was asked last is answered first, and runs while the other still waits.
    let (newer, older) = (of("\"amount\":6"), of("\"amount\":5"));
    assert_eq!(say(&place, &newer, "approve", "ada").0, 0);
    let (_, answer) = second.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(queue(&place).len(), 1);
    assert_eq!(say(&place, &older, "approve", "ada").0, 0);
    let (_, answer) = first.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(place.effects("charge_card"), 2);
    place.settled();
}
