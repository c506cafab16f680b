//! Runs that are stopped: by a word, or by a client that is gone.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::agent::{Agent, envelope, outcome, results, statuses};
use crate::support::{AMENDS, Gateway, Place, eventually, http, served};

/// A shop that listens. It is killed by its id when dropped.
struct Shop(Child);

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn report() -> Value {
    json!({ "tool": "slow_report", "args": { "steps": 1000, "step_ms": 60 } })
}

fn email() -> Value {
    json!({ "tool": "send_email", "args": { "to": "a@b.example", "subject": "s", "body": "b" } })
}

fn stop(gateway: &Gateway, body: &Value) -> (u16, Value) {
    http::post(&gateway.address, "/agui/stop", &[], body.to_string().as_bytes())
}

/// A gateway in front of a shop that is reached like that.
fn serve(place: &Place, http: bool) -> (Gateway, Option<Shop>) {
    let book = place.path("book.db").display().to_string();
    let words = [AMENDS, "shop", "--book", &book];
    let (upstream, shop) = if http {
        let mut command = Command::new(AMENDS);
        let mut child = command
            .args(&words[1..])
            .args(["--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shop starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines().map_while(Result::ok);
        let line = lines.next().expect("it says where it listens");
        let url = line.strip_prefix("shop listening on ").expect("an address").to_owned();
        // Whatever else it says must be read, or it would block one day.
        thread::spawn(move || lines.for_each(drop));
        (format!("url = \"{url}\""), Some(Shop(child)))
    } else {
        (format!("command = {words:?}"), None)
    };
    let upstream = format!("{upstream}\ntimeout = \"40s\"\ndeadline = \"55s\"");
    (served::serve_tools(place, &upstream, "[tools.slow_report]\neffect = \"read\"\n"), shop)
}

#[test]
fn a_run_that_is_stopped_says_so_and_the_upstream_hears_of_it() {
    let place = Place::new();
    let (gateway, _shop) = serve(&place, false);
    let mut agent = Agent::of(&gateway);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": [report(), email()] } }));
    eventually("the report is asked for", || place.requests("slow_report") == 1);
    let busy = http::post(&gateway.address, "/agui", &[], run_input("t").as_bytes());
    assert_eq!((busy.0, &busy.1["error"]["kind"]), (409, &json!("in_flight")), "{}", busy.1);
    assert_eq!(stop(&gateway, &json!({ "threadId": "u" })).0, 404);
    assert_eq!(stop(&gateway, &json!({ "threadId": "t", "runId": "another" })).0, 404);
    assert_eq!(stop(&gateway, &json!({ "thread": "t" })).0, 422);
    assert_eq!(stop(&gateway, &json!({ "threadId": "t" })).0, 202);
    let went = agent.finish(n);
    assert_eq!((outcome(&went), statuses(&went)), ("cancelled", vec!["cancelled", "pending"]), "{went:#}");
    assert_eq!(envelope(results(&went)[0])["error"]["code"], "ToolCancelled", "{went:#}");
    eventually("the shop hears of the cancel", || place.cancelled("slow_report") == 1);
    assert_eq!(place.requests("send_email"), 0);
    place.settled();
    // The thread is free again.
    assert_eq!(outcome(&agent.calls("t", json!([email()]))), "success");
}

#[test]
fn a_client_that_is_gone_stops_its_run_down_to_the_upstream_however_that_is_reached() {
    for http in [false, true] {
        let place = Place::new();
        let (gateway, _shop) = serve(&place, http);
        let mut agent = Agent::of(&gateway);
        let n = agent.begin(json!({ "thread": "t", "abort_after": "TOOL_CALL_END",
                                    "amends": { "calls": [report(), email()] } }));
        let _ = agent.finish(n);
        eventually("the cancel is recorded", || place.events_named("cancel_requested").len() == 1);
        assert_eq!(place.events_named("cancel_requested")[0]["reason"], "asked", "http {http}");
        eventually("what was asked for is cancelled", || {
            place.requests("slow_report") == place.cancelled("slow_report")
        });
        place.settled();
        assert_eq!(place.requests("send_email"), 0, "http {http}");
    }
}

#[test]
fn where_the_operator_says_so_a_client_that_is_gone_leaves_a_write_to_its_end() {
    let place = Place::new();
    let faults = "[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\"]\nrepeat = true\nlate_ms = 1500\n";
    let config = "[agui]\non_disconnect = \"detach\"\n[tools.charge_card]\neffect = \"write\"\ntimeout = \"20s\"\n";
    let config = place.write("agui.toml", config).display().to_string();
    let gateway = place.up_with(faults, &["--config", &config]);
    let mut agent = Agent::of(&gateway);
    let charge = json!({ "calls": [{ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } }] });
    let n = agent.begin(json!({ "thread": "t", "amends": charge, "abort_after": "TOOL_CALL_END" }));
    let _ = agent.finish(n);
    eventually("the charge is over", || {
        place.events_named("call_ended").iter().any(|event| event["outcome"] == "succeeded")
    });
    assert_eq!(place.cancelled("charge_card"), 0);
    // Its repeat finds the answer.
    let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": charge }));
    assert_eq!(envelope(results(&again)[0])["replayed"], true, "{again:#}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}

fn run_input(thread: &str) -> String {
    let props = json!({ "amends": { "calls": [email()] } });
    json!({ "threadId": thread, "runId": "r2", "messages": [], "forwardedProps": props }).to_string()
}
