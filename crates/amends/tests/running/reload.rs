//! Configurations that change while the gateway runs.

use std::fs::File;
use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::place::{Bare, health, listening};
use crate::process::{runs, signal};
use crate::servers::{done, id_of, lines, reload, reloads, replace, served, text, upstream};
use crate::support::http::parse;
use crate::support::{AMENDS, Gateway, PATIENCE, Place, eventually};

/// What came back on a connection.
fn answer(mut connection: TcpStream) -> Value {
    connection.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).expect("an answer");
    serde_json::from_slice(&parse(&bytes).1).expect("JSON")
}

/// Begins a payment that takes that long, and waits until its server has begun with it.
fn pay_slowly(place: &Place, gateway: &Gateway, tool: &str, order: &str, seconds: u32) -> TcpStream {
    let connection = gateway.begin(tool, &json!({ "order": order, "seconds": seconds }).to_string());
    eventually("the payment is on its way", || lines(place, "begun").iter().any(|begun| begun == order));
    connection
}

fn is_unknown(gateway: &Gateway, tool: &str) -> bool {
    gateway.call(tool, "{}").1["error"]["kind"] == "unknown_name"
}

#[test]
fn a_file_that_changes_is_read_anew_and_what_is_declared_as_before_goes_on() {
    let place = Place::new();
    let (a, b) = (upstream(&place, "a", &[]), upstream(&place, "b", &[]));
    let gateway = listening(&place, &[("a", a.clone()), ("b", b.clone())], "");
    let first = id_of(&served(&gateway, "a__echo"));
    let gone = id_of(&served(&gateway, "b__echo"));
    let client = Bare::stateful(&gateway);
    let mut heard = client.hears(None);
    // Nobody says anything: the file is looked at.
    let more = [("a", a), ("c", upstream(&place, "c", &[]))];
    replace(&place.path("serve.toml"), &text(&place, &more, ""));
    heard.until("notifications/tools/list_changed");
    served(&gateway, "c__echo");
    assert!(is_unknown(&gateway, "b__echo"));
    assert_eq!(id_of(&served(&gateway, "a__echo")), first, "it is the same process");
    eventually("the one that is gone has ended", || !runs(gone));
    let names = client.list("tools/list", "tools", "name");
    assert_eq!(names, ["a__die", "a__echo", "a__pay", "c__die", "c__echo", "c__pay"]);
    assert_eq!(lines(&place, "starts").len(), 3, "nothing was started twice");
}

#[test]
fn a_machine_that_is_declared_or_changed_is_taken_up_and_a_broken_one_is_not() {
    let place = Place::new();
    let a = upstream(&place, "a", &[]);
    let machine = |to: &str| {
        format!(
            "[machines.order]\ninitial = \"new\"\nterminal = [\"{to}\"]\n[machines.order.actions.go]\nfrom = [\"new\"]\nto = \"{to}\"\n"
        )
    };
    let gateway = listening(&place, &[("a", a.clone())], "");
    let first = id_of(&served(&gateway, "a__echo"));
    assert!(is_unknown(&gateway, "step"));
    for state in ["done", "over"] {
        reload(&place, &gateway, &text(&place, &[("a", a.clone())], &machine(state)));
        let (_, moved) = gateway.call("step", r#"{"action":"go","inputs":{}}"#);
        assert_eq!(moved["data"]["state"]["name"], state, "{moved}");
    }
    replace(
        &place.path("serve.toml"),
        &text(&place, &[("a", a)], &machine("x").replace("from = [\"new\"]", "from = []")),
    );
    signal(gateway.id(), "HUP");
    eventually("it is refused", || health(&gateway)["config"]["refused"] == true);
    let (_, moved) = gateway.call("step", r#"{"action":"go","inputs":{}}"#);
    assert_eq!(moved["data"]["state"]["name"], "over", "what was there goes on: {moved}");
    assert_eq!(id_of(&served(&gateway, "a__echo")), first, "it is the same process");
}

#[test]
fn rules_that_change_leave_the_process_alone_and_open_calls_with_theirs() {
    let place = Place::new();
    let a = upstream(&place, "a", &[]);
    let patient = "[tools.a__pay]\neffect = \"write\"\ntimeout = \"40s\"\n";
    let gateway = listening(&place, &[("a", a.clone())], patient);
    let first = id_of(&served(&gateway, "a__echo"));
    let open = pay_slowly(&place, &gateway, "a__pay", "one", 4);
    // Shorter patience, another prefix's worth of tools hidden, another crowd: none of it needs another process.
    let hasty = "[tools.a__pay]\neffect = \"write\"\ntimeout = \"300ms\"\n";
    let declared = format!("{a}\nhide = [\"die\"]\nconcurrency = 7\ntimeout = \"9s\"");
    reload(&place, &gateway, &text(&place, &[("a", declared)], hasty));
    assert!(is_unknown(&gateway, "a__die"), "it is hidden");
    let (_, failed) = gateway.call("a__pay", r#"{"order":"two","seconds":3}"#);
    assert_eq!(failed["error"]["code"], "NetworkTimeout", "the new rules are hasty: {failed}");
    let paid = answer(open);
    assert_eq!(paid["status"], "success", "the old rules were patient: {paid}");
    assert_eq!(id_of(&served(&gateway, "a__echo")), first, "it is the same process");
    reload(&place, &gateway, &text(&place, &[("a", a)], patient));
    let names = Bare::stateful(&gateway).list("tools/list", "tools", "name");
    assert_eq!(names, ["a__die", "a__echo", "a__pay"], "it is shown again");
    assert_eq!(lines(&place, "starts").len(), 1);
    eventually("both are paid once", || {
        let mut book = lines(&place, "book");
        book.sort();
        book == ["one", "two"]
    });
}

#[test]
fn a_write_in_flight_ends_at_the_process_it_began_at_when_its_upstream_changes() {
    let place = Place::new();
    let declared = |n: u32| format!("{}\nenv = {{ N = \"{n}\" }}", upstream(&place, "a", &[]));
    let gateway = listening(&place, &[("a", declared(1))], "[tools.a__pay]\neffect = \"write\"\ntimeout = \"40s\"\n");
    let first = id_of(&served(&gateway, "a__echo"));
    let open = pay_slowly(&place, &gateway, "a__pay", "one", 5);
    reload(&place, &gateway, &text(&place, &[("a", declared(2))], ""));
    let mut second = Value::Null;
    eventually("another process takes over", || {
        // At no time is there nobody: the one before answers until the other can.
        second = done(&gateway, "a__echo").expect("an answer");
        id_of(&second) != first
    });
    assert_eq!(second["env"]["N"], "2", "{second}");
    let paid = answer(open);
    assert_eq!(paid["status"], "success", "{paid}");
    assert_eq!(id_of(&paid["data"]), first, "{paid}");
    eventually("the first process has ended", || !runs(first));
    assert_eq!(lines(&place, "book"), ["one"]);
    place.settled();
}

#[test]
fn a_write_in_flight_is_answered_once_when_its_upstream_is_removed() {
    let place = Place::new();
    let (a, b) = (upstream(&place, "a", &[]), upstream(&place, "b", &[]));
    let more = "[tools.a__pay]\neffect = \"write\"\ntimeout = \"40s\"\n";
    let gateway = listening(&place, &[("a", a), ("b", b.clone())], more);
    let first = id_of(&served(&gateway, "a__echo"));
    let open = pay_slowly(&place, &gateway, "a__pay", "one", 4);
    reload(&place, &gateway, &text(&place, &[("b", b)], ""));
    assert!(is_unknown(&gateway, "a__pay"), "it is not served any more");
    let paid = answer(open);
    assert_eq!(paid["status"], "success", "{paid}");
    eventually("its process has ended", || !runs(first));
    assert_eq!(lines(&place, "book"), ["one"]);
    place.settled();
}

#[test]
fn an_upstream_that_cannot_be_started_takes_over_in_the_end_and_says_why() {
    let place = Place::new();
    let gateway = listening(&place, &[("a", upstream(&place, "a", &[]))], "");
    let first = id_of(&served(&gateway, "a__echo"));
    reload(&place, &gateway, &text(&place, &[("a", "command = [\"/nonexistent/server\"]".into())], ""));
    eventually("the new one is down", || health(&gateway)["upstreams"]["a"]["state"] == "down");
    eventually("the old one has ended", || !runs(first));
    let (_, refused) = gateway.call("a__echo", "{}");
    assert_ne!(refused["status"], "success", "{refused}");
}

#[test]
fn how_many_calls_may_be_open_and_how_often_they_come_changes_without_a_restart() {
    let place = Place::new();
    let a = upstream(&place, "a", &[]);
    let limited = |limits: &str| format!("[limits]\n{limits}\n[tools.a__pay]\neffect = \"write\"\ntimeout = \"40s\"\n");
    let gateway = listening(&place, &[("a", a.clone())], &limited("calls = 1"));
    let first = id_of(&served(&gateway, "a__echo"));
    let open = pay_slowly(&place, &gateway, "a__pay", "one", 10);
    let kind = || gateway.call("a__echo", "{}").1["error"]["kind"].clone();
    assert_eq!(kind(), "rate_limited", "one is open");
    reload(&place, &gateway, &text(&place, &[("a", a.clone())], &limited("calls = 2")));
    assert!(done(&gateway, "a__echo").is_some(), "two may be open");
    reload(&place, &gateway, &text(&place, &[("a", a.clone())], &limited("calls = 1")));
    assert_eq!(kind(), "rate_limited", "one is open still");
    assert_eq!(answer(open)["status"], "success");
    let slow = limited("rate = { per_second = 0.001, burst = 1 }");
    reload(&place, &gateway, &text(&place, &[("a", a.clone())], &slow));
    eventually("the burst is used up", || kind() == "rate_limited");
    reload(&place, &gateway, &text(&place, &[("a", a)], ""));
    assert!(done(&gateway, "a__echo").is_some(), "there is no rate any more");
    assert_eq!(id_of(&served(&gateway, "a__echo")), first, "it is the same process");
}

#[test]
fn a_bad_file_is_refused_and_the_configuration_goes_on() {
    let place = Place::new();
    let good = text(&place, &[("a", upstream(&place, "a", &[]))], "");
    let file = place.write("serve.toml", &good);
    let said = place.path("said.log");
    let mut process = Command::new(AMENDS)
        .args(["serve", "--no-watch", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(File::create(&said).expect("a file")))
        .spawn()
        .expect("it starts");
    let said = || std::fs::read_to_string(&said).unwrap_or_default();
    eventually("it listens", || said().contains("amends listens on"));
    eventually("its child runs", || lines(&place, "starts").len() == 1);
    let bad = [
        (format!("{good}\n[tools.x]\nefect = \"read\"\n"), "unknown key `efect`; did you mean `effect`?"),
        ("[ledger\n".to_owned(), "serve.toml:1"),
        (format!("{good}\n[upstreams.b]\nurl = \"ftp://x\"\n"), "is not an `http://` or `https://` address"),
        ("\0\u{1}".to_owned(), "serve.toml"),
    ];
    for (n, (text, words)) in bad.iter().enumerate() {
        replace(&file, text);
        signal(process.id(), "HUP");
        eventually(words, || said().matches("the configuration stays as it was").count() == n + 1);
        assert!(said().contains(words), "{}", said());
    }
    std::fs::remove_file(&file).expect("the file");
    signal(process.id(), "HUP");
    eventually("it is said that it cannot be read", || said().contains("cannot read"));
    let other = good.replace("[ledger]", "[ledger]\nreads = \"sync\"").replace("127.0.0.1:0", "127.0.0.2:0");
    replace(&file, &format!("{other}\n[limits]\nanswer_bytes = 9000\n"));
    signal(process.id(), "HUP");
    let stays = "only a restart changes `ledger`, `listen.http`, `limits.answer_bytes`";
    eventually("it is said what stays", || said().contains(stays));
    assert!(process.try_wait().expect("a state").is_none(), "it runs");
    signal(process.id(), "TERM");
    process.wait().expect("it ends");
    assert_eq!(lines(&place, "starts").len(), 1, "the child went on through all of it");
}

#[test]
fn a_file_that_is_refused_is_shown_in_health_until_it_is_better() {
    let place = Place::new();
    let good = text(&place, &[("a", upstream(&place, "a", &[]))], "");
    let gateway = listening(&place, &[("a", upstream(&place, "a", &[]))], "");
    served(&gateway, "a__echo");
    replace(&place.path("serve.toml"), "nonsense");
    eventually("it is refused", || health(&gateway)["config"]["refused"] == true);
    assert!(done(&gateway, "a__echo").is_some());
    assert_eq!(reloads(&gateway), 0);
    replace(&place.path("serve.toml"), &format!("{good}\n[tools.a__echo]\neffect = \"read\"\n"));
    eventually("it is taken", || health(&gateway)["config"]["refused"] == false);
    assert_eq!(reloads(&gateway), 1);
}
