//! Upstreams that die: in the middle of a call, at once, or before they begin.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pipe::{GREETING, Pipe, envelope, head};
use crate::process::{children, cpu_ticks, kill};
use crate::servers::{contracts, python, serve, shop, words};
use crate::support::http::post;
use crate::support::{Place, eventually};

/// Nothing times out by itself here: what ends early ends because the child died.
fn patient(place: &Place) -> String {
    let text = format!("[upstreams.wrapped]\ntimeout = \"50s\"\ndeadline = \"55s\"\n\n{}", contracts());
    place.write("wrap.toml", &text).display().to_string()
}

fn child_of(id: u32) -> u32 {
    let mut found = Vec::new();
    eventually("the upstream runs", || {
        found = children(id);
        found.len() == 1
    });
    found[0]
}

#[test]
fn a_write_whose_server_is_killed_is_in_doubt_within_a_second_and_the_next_call_works() {
    let place = Place::new();
    let faults =
        place.write("faults.toml", "[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\"]\nlate_ms = 60000\n");
    let server = shop(&place, &["--faults", &faults.display().to_string()]);
    let mut pipe = Pipe::wrap(&place, &["--config", &patient(&place)], &words(&server));
    pipe.greet();
    let id = pipe.begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    kill(child_of(pipe.id()));
    let killed = Instant::now();
    let answer: Value = serde_json::from_str(&pipe.answer(id)).expect("JSON");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    let failed = envelope(&answer);
    assert_eq!(failed["error"]["certainty"], "in_doubt", "{answer}");
    assert_eq!(failed["error"]["code"], "ConnectionLost");
    assert_eq!(failed["error"]["safe_to_repeat"], false);
    assert_eq!(answer["result"]["isError"], true);
    let next = pipe.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(next["result"]["structuredContent"]["order"], "ord_2", "{next}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (2, 2));
    place.settled();
}

#[test]
fn a_read_whose_server_is_killed_is_sent_again_and_succeeds() {
    let place = Place::new();
    let server = shop(&place, &[]);
    let mut pipe = Pipe::wrap(&place, &["--config", &patient(&place)], &words(&server));
    pipe.greet();
    let id = pipe.begin("slow_report", r#"{"steps":20,"step_ms":60}"#);
    eventually("the report is asked for", || place.requests("slow_report") == 1);
    kill(child_of(pipe.id()));
    let answer: Value = serde_json::from_str(&pipe.answer(id)).expect("JSON");
    assert_eq!(answer["result"]["structuredContent"]["steps"], 20, "{answer}");
    assert_eq!(answer["result"]["_meta"]["amends/envelope"]["outcome"], "succeeded_after_compensation");
    assert_eq!(place.requests("slow_report"), 2);
    place.settled();
}

#[test]
fn a_killed_upstream_of_the_gateway_comes_back_by_itself() {
    let place = Place::new();
    let gateway = place.up_patient("[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\"]\nlate_ms = 60000\n");
    let address = gateway.address.clone();
    let charge =
        std::thread::spawn(move || post(&address, "/call/charge_card", &[], br#"{"order":"ord_1","amount":5}"#));
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    kill(child_of(gateway.id()));
    let killed = Instant::now();
    let (_, failed) = charge.join().expect("an answer");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert_eq!(failed["error"]["certainty"], "in_doubt", "{failed}");
    let (status, order) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!((status, &order["data"]["order"]), (200, &"ord_1".into()), "{order}");
    assert_eq!(place.requests("charge_card"), 1);
    place.settled();
}

#[test]
fn after_a_crash_the_clients_greeting_is_said_again_before_anything_else() {
    let place = Place::new();
    // This server takes nothing before it is greeted, and its greeting takes a while.
    let server = python(&place, "hand.py", &["--strict"]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    assert_eq!(pipe.call("echo", "{}")["result"]["_meta"]["amends/envelope"]["status"], "success");
    for life in 2..=3 {
        let child = child_of(pipe.id());
        kill(child);
        eventually("it is started again", || children(pipe.id()).iter().any(|id| *id != child));
        let next = pipe.call("echo", "{}");
        assert_eq!(next["result"]["_meta"]["amends/envelope"]["status"], "success", "life {life}: {next}");
    }
    let log = std::fs::read_to_string(place.path("server.log")).expect("the server's log");
    let lives: Vec<&str> = log.split("started\n").skip(1).collect();
    assert_eq!(lives.len(), 3, "{log}");
    for life in lives {
        let mut lines = life.lines();
        let greeting = head(lines.next().expect("a greeting"));
        assert_eq!(greeting.method.as_deref(), Some("initialize"), "{life}");
        assert_eq!(greeting.params.expect("params").get(), GREETING);
        assert_eq!(head(lines.next().expect("more")).method.as_deref(), Some("notifications/initialized"), "{life}");
        assert_eq!(life.matches("\"initialize\"").count(), 1, "it is greeted once in each life: {life}");
    }
}

#[test]
fn a_call_to_a_server_that_was_killed_before_it_is_not_in_doubt() {
    let place = Place::new();
    let server = shop(&place, &[]);
    let mut pipe = Pipe::wrap(&place, &["--config", &patient(&place)], &words(&server));
    pipe.greet();
    pipe.call("get_order", r#"{"order":"ord_1"}"#);
    for n in 1..=3 {
        kill(child_of(pipe.id()));
        let charged = pipe.call("charge_card", &format!(r#"{{"order":"ord_{n}","amount":{n}}}"#));
        let failed = envelope(&charged);
        // Either it was noticed in time and sent to the next life, or it may have gone into the dying one: never both.
        match failed["status"].as_str() {
            Some("success") => assert_eq!(place.effects("charge_card"), n - lost(&place, n), "{charged}"),
            _ => assert_eq!(failed["error"]["certainty"], "in_doubt", "{charged}"),
        }
        assert!(place.requests("charge_card") <= n);
        pipe.call("get_order", r#"{"order":"ord_1"}"#);
    }
    place.settled();
}

/// How many of `n` calls never reached the shop.
fn lost(place: &Place, n: u64) -> u64 {
    n - place.requests("charge_card")
}

#[test]
fn a_server_that_ends_at_once_gives_typed_answers_and_no_spinning() {
    let place = Place::new();
    let server = python(&place, "bad.py", &["--die"]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    let began = Instant::now();
    answers_although_nothing_runs(&mut pipe);
    let log = std::fs::read_to_string(place.path("server.log")).expect("the server's log");
    // 50 ms, doubled each time up to 5 s.
    let most = 8 + began.elapsed().as_secs() as usize / 5;
    assert!((2..=most).contains(&log.lines().count()), "{} starts in {:?}", log.lines().count(), began.elapsed());
}

#[test]
fn a_command_that_does_not_exist_gives_typed_answers_and_no_spinning() {
    let place = Place::new();
    let mut pipe = Pipe::wrap(&place, &[], &["/no/such/command"]);
    answers_although_nothing_runs(&mut pipe);
}

fn answers_although_nothing_runs(pipe: &mut Pipe) {
    let began = Instant::now();
    let id = pipe.ask("initialize", GREETING);
    let greeting: Value = serde_json::from_str(&pipe.answer(id)).expect("JSON");
    assert_eq!(greeting["error"]["code"], -32603, "{greeting}");
    let id = pipe.ask("tools/list", "{}");
    let list: Value = serde_json::from_str(&pipe.answer(id)).expect("JSON");
    assert_eq!(list["error"]["code"], -32603, "{list}");
    let called = pipe.call("anything", "{}");
    assert_eq!(envelope(&called)["error"]["kind"], "index_not_ready", "{called}");
    assert_eq!(envelope(&called)["error"]["certainty"], "not_sent", "{called}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let busy = Duration::from_millis(cpu_ticks(pipe.id()) * 10);
    assert!(busy < began.elapsed() / 2, "{busy:?} of {:?}", began.elapsed());
}

#[test]
fn a_gateway_whose_upstream_does_not_start_still_serves() {
    for command in [r#"["/no/such/command"]"#.to_owned(), format!("{:?}", python(&Place::new(), "bad.py", &["--die"]))]
    {
        let place = Place::new();
        let gateway = serve(&place, &format!("command = {command}"), contracts());
        let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
        let (status, answer) = post(&gateway.address, "/mcp", &[], list);
        assert_eq!((status, &answer["result"]["tools"]), (200, &serde_json::json!([])), "{answer}");
        let (status, refused) = gateway.call("charge_card", "{}");
        assert_eq!(refused["error"]["kind"], "index_not_ready", "{status} {refused}");
        assert_eq!(refused["error"]["certainty"], "not_sent");
        let prompts = br#"{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{}}"#;
        assert_eq!(post(&gateway.address, "/mcp", &[], prompts).1["error"]["code"], -32603);
    }
}
