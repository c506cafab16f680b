//! Failures of our own house, made by the real binary and kept as goldens in `fixtures/registry/failures`, and configurations that
//! it refuses, in `fixtures/registry/configurations`. `UPDATE=1` writes them anew.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use amends_core::Code;
use amends_core::envelope::schema;
use serde_json::{Value, json};

use crate::envelopes::{assert_fits, compile};
use crate::goldens::root;
use crate::support::http::parse;
use crate::support::{AMENDS, Gateway, Place, eventually};

const ORDER: &str = r#"{"order":"ord_1","amount":5}"#;

/// A charge whose status is read by that tool, with those arguments, before it is sent.
fn charge_with(place: &Place, tool: &str, args: &str) -> (u16, Value) {
    let config = format!(
        "[tools.charge_card]\neffect = \"write\"\nsettles_within = \"1s\"\n\
         status = {{ tool = \"{tool}\", args = {{ {args} }}, happened = \"result.found\" }}\n"
    );
    let config = place.write("status.toml", &config).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let answer = gateway.call("charge_card", ORDER);
    assert_eq!(place.requests("charge_card"), 0, "nothing is sent whose status could not be read: {answer:?}");
    answer
}

#[test]
fn a_contract_that_cannot_be_applied_to_a_call_fails_as_its_golden_says() {
    let place = Place::new();
    golden("config_schema_violation", charge_with(&place, "get_refund", "order = \"args.card\""));
    let place = Place::new();
    let (_, outside) = charge_with(&place, "get_refund", "order = \"args.amount\"");
    assert_eq!(outside["error"]["code"], "ConfigSchemaViolation", "{outside:#}");
    assert_eq!(place.requests("get_refund"), 0, "what its reader does not take is not sent");
}

#[test]
fn a_contract_that_names_a_tool_nobody_serves_fails_as_its_golden_says() {
    let place = Place::new();
    golden("dependency_missing", charge_with(&place, "find_charge", "order = \"args.order\""));
}

#[test]
fn a_doubt_whose_reader_is_missing_is_not_read_again_and_again() {
    let place = Place::new();
    let config = "[tools.charge_card]\neffect = \"write\"\nsettles_within = \"1s\"\ntimeout = \"1s\"\n\
                  status = { tool = \"find_charge\", args = { key = \"key\" }, happened = \"result.found\" }\n";
    let config = place.write("status.toml", config).display().to_string();
    let fault = "[[fault]]\ntool = \"charge_card\"\nwhen = { order = \"ord_1\" }\nattempts = [\"lose_response\"]\n";
    let gateway = place.up_with(fault, &["--config", &config]);
    let (_, answer) = gateway.call("charge_card", ORDER);
    assert_eq!((&answer["outcome"], &answer["error"]["certainty"]), (&json!("unresolved"), &json!("in_doubt")));
    let codes: Vec<&Value> =
        answer["attempts"].as_array().expect("attempts").iter().map(|line| &line["code"]).collect();
    assert_eq!(codes, ["NetworkTimeout", "DependencyMissing"], "{answer:#}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn a_child_that_no_longer_starts_fails_as_its_golden_says() {
    let place = Place::new();
    let server = root().join("crates/amends/tests/running/servers/child.py").display().to_string();
    let folder = place.path("").display().to_string();
    let config = format!(
        "[listen]\nhttp = \"127.0.0.1:0\"\n[ledger]\nurl = {:?}\n[tools.a__echo]\neffect = \"read\"\n\
         [upstreams.a]\ncommand = [\"python3\", {server:?}, \"a\", {folder:?}, \"--fail\"]\n",
        place.ledger()
    );
    let mut command = Command::new(AMENDS);
    command.args(["serve", "--config"]).arg(place.write("serve.toml", &config));
    let gateway = Gateway::listening(command);
    eventually("its tools are served", || gateway.call("a__echo", "{}").1["status"] == "success");
    place.write("fail", "no licence\n");
    let (_, died) = gateway.call("a__die", "{}");
    assert_eq!(died["error"]["code"], "ConnectionLost", "{died}");
    let reason = || health(&gateway)["upstreams"]["a"]["reason"].as_str().unwrap_or_default().to_owned();
    eventually("it is seen that it does not start", || reason().contains("6 times"));
    golden("lifecycle_failure", gateway.call("a__echo", "{}"));
}

#[test]
fn a_node_that_lost_its_lease_answers_as_its_golden_says() {
    let place = Place::new();
    let fault =
        "[[fault]]\ntool = \"charge_card\"\nwhen = { order = \"ord_1\" }\nattempts = [\"late\"]\nlate_ms = 1000\n";
    let (stalls, other) = (place.up_patient(fault), place.up_patient(fault));
    let waiting = stalls.begin("charge_card", ORDER);
    eventually("the effect is there", || place.effects("charge_card") == 1);
    signal(&stalls, "-STOP");
    let (_, repeat) = other.call("charge_card", ORDER);
    signal(&stalls, "-CONT");
    assert_eq!(repeat["outcome"], "unresolved", "{repeat}");
    golden("lease_lost", answer(waiting));
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_gateway_whose_ledger_was_put_back_answers_as_its_golden_says() {
    let place = Place::new();
    let fault =
        "[[fault]]\ntool = \"charge_card\"\nwhen = { order = \"ord_1\" }\nattempts = [\"late\"]\nlate_ms = 3000\n";
    let gateway = place.up_patient(fault);
    let waiting = gateway.begin("charge_card", ORDER);
    eventually("the effect is there", || place.effects("charge_card") == 1);
    // As a ledger is that was restored from a time before this session.
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    ledger.busy_timeout(std::time::Duration::from_secs(10)).expect("a timeout");
    ledger
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM events; DELETE FROM sessions; DELETE FROM calls; COMMIT")
        .expect("it is emptied");
    golden("resume_mismatch", answer(waiting));
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    eventually("the gateway goes on", || gateway.call("get_order", r#"{"order":"ord_2"}"#).1["status"] == "success");
}

#[test]
fn a_driver_that_fails_answers_as_its_golden_says_and_its_repeat_finds_what_became_of_it() {
    let place = Place::new();
    let mut command = place.up_command("", &[]);
    command.env("AMENDS_PANIC_AT", "after_result");
    let gateway = Gateway::start(command);
    golden("internal_error", gateway.call("charge_card", ORDER));
    let (_, repeat) = gateway.call("charge_card", ORDER);
    assert_eq!((&repeat["outcome"], &repeat["replayed"]), (&json!("unresolved"), &json!(true)), "{repeat}");
    let (_, other) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(other["status"], "success", "the others go on: {other}");
    assert_eq!((place.effects_on("charge_card", "ord_1"), place.requests_on("charge_card", "ord_1")), (1, 1));
    place.settled();
}

#[test]
fn a_configuration_that_cannot_be_is_refused_as_its_golden_says() {
    let machine = |name: &str, runs: &str| {
        format!(
            "[machines.{name}]\ninitial = \"a\"\nterminal = [\"b\"]\n\
             [machines.{name}.actions.go]\nfrom = [\"a\"]\nto = \"b\"\nmachine = \"{runs}\"\n"
        )
    };
    let pay = "[tools.pay]\neffect = \"write\"\nstatus = { tool = \"find\", happened = \"result.found\" }\n\
               [tools.find]\nevidence = [{ tool = \"pay\" }]\n";
    for (name, code, config) in [
        ("tools_in_a_circle", Code::DependencyCycle, pay.to_owned()),
        ("machines_in_a_circle", Code::DependencyCycle, machine("one", "two") + &machine("two", "one")),
        ("machine_missing", Code::DependencyMissing, machine("one", "two")),
        ("unknown_key", Code::ConfigSchemaViolation, "[tools.pay]\nefect = \"write\"\n".to_owned()),
    ] {
        let place = Place::new();
        place.write("amends.toml", &config);
        let mut command = Command::new(AMENDS);
        command.args(["check", "--config", "amends.toml", "--json"]).current_dir(place.path(""));
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(said["code"], code.as_str(), "{said:#}");
        keep(&format!("configurations/{name}"), &said);
    }
}

/// A failure fits the schema, comes with the status that the registry names, and says what its golden says.
fn golden(kind: &str, (status, mut envelope): (u16, Value)) {
    assert_eq!(envelope["error"]["kind"], kind, "{envelope:#}");
    assert_fits(&compile(&schema::whole()), &envelope, kind);
    let code = envelope["error"]["code"].as_str().and_then(Code::parse).expect("a known code");
    assert_eq!(status, code.http_status(), "{kind}");
    // How long it took differs from run to run.
    for line in envelope.get_mut("attempts").and_then(Value::as_array_mut).into_iter().flatten() {
        line["ms"] = 0.into();
    }
    keep(&format!("failures/{kind}"), &envelope);
}

fn keep(name: &str, said: &Value) {
    let pretty = serde_json::to_string_pretty(said).expect("JSON can be written") + "\n";
    let path = root().join(format!("fixtures/registry/{name}.json"));
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder can be made");
        fs::write(&path, pretty).expect("it can be written");
    } else {
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), pretty, "{name}; rewrite with UPDATE=1");
    }
}

/// What arrives on a connection: the status and the envelope.
fn answer(mut stream: TcpStream) -> (u16, Value) {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    let (status, body) = parse(&text);
    (status, serde_json::from_slice(&body).expect("JSON"))
}

fn signal(gateway: &Gateway, signal: &str) {
    let sent = Command::new("kill").args([signal, &gateway.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{signal}");
}

fn health(gateway: &Gateway) -> Value {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    let head = format!("GET /health HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
    stream.write_all(head.as_bytes()).expect("a request");
    answer(stream).1
}
