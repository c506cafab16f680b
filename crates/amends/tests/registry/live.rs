//! Refusals of a running gateway, kept as goldens in `fixtures/registry/refusals`. `UPDATE=1` writes them anew.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use amends_core::envelope::schema;
use serde_json::Value;

use crate::envelopes::{assert_fits, compile};
use crate::goldens::root;
use crate::support::http::{post, send};
use crate::support::{AMENDS, Gateway, Place, eventually};

const ORDER: &str = r#"{"order":"ord_1","amount":5}"#;

#[test]
fn a_running_gateway_refuses_as_its_goldens_say() {
    let place = Place::new();
    let config = place.write("limits.toml", "[limits]\nbody_bytes = 2000\ndepth = 8\n").display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let call = |tool: &str, body: &str| post(&gateway.address, &format!("/call/{tool}"), &[], body.as_bytes());
    golden("unknown_name", &call("isue_refund", "{}"));
    golden("invalid_argument", &call("charge_card", r#"{"order":5}"#));
    golden("malformed_name", &call(&"n".repeat(300), "{}"));
    golden("reversal_refused", &call("amends_reverse", r#"{"token":"rev_unknown"}"#));
    golden("too_large", &call("charge_card", &format!(r#"{{"order":"{}"}}"#, "o".repeat(3000))));

    let keyed =
        |body: &str| post(&gateway.address, "/call/charge_card", &[("idempotency-key", "key-1")], body.as_bytes());
    let (_, charged) = keyed(ORDER);
    assert_eq!(charged["status"], "success", "{charged:#}");
    assert_fits(&compile(&schema::whole()), &charged, "a success");
    golden("duplicate", &keyed(r#"{"order":"ord_1","amount":6}"#));
}

#[test]
fn a_gateway_that_does_not_know_its_tools_yet_refuses_as_its_golden_says() {
    let place = Place::new();
    // A port that was free a moment ago, and that nobody listens on.
    let away = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let (ledger, away) = (place.ledger(), format!("http://{away}/mcp"));
    let config =
        format!("[listen]\nhttp = \"127.0.0.1:0\"\n[ledger]\nurl = {ledger:?}\n[upstreams.away]\nurl = {away:?}\n");
    let mut command = Command::new(AMENDS);
    command.args(["serve", "--config"]).arg(place.write("away.toml", &config));
    let gateway = Gateway::listening(command);
    golden("index_not_ready", &post(&gateway.address, "/call/away__pay", &[], b"{}"));
}

#[test]
fn a_gateway_that_cannot_record_refuses_as_its_golden_says() {
    let place = Place::new();
    let gateway = place.up("");
    fs::remove_file(place.path("amends.db")).expect("the ledger's file was there");
    golden("store_unavailable", &gateway.call("charge_card", ORDER));
}

#[test]
fn a_gateway_with_too_many_open_calls_refuses_as_its_golden_says() {
    let place = Place::new();
    let config =
        place.write("calls.toml", "[limits]\ncalls = 1\n[tools.slow_report]\ntimeout = \"5m\"\ndeadline = \"5m\"\n");
    let gateway = place.up_with("", &["--config", &config.display().to_string()]);
    let (mut open, mut answer) = (Vec::new(), (0, Value::Null));
    eventually("an open call takes the only place", || {
        // The call before this one may still have the place, and then this one is refused.
        open.push(send(&gateway.address, "/call/slow_report", &[], br#"{"steps":100,"step_ms":1000}"#));
        answer = gateway.call("get_order", r#"{"order":"ord_1"}"#);
        answer.1["status"] == "refused"
    });
    golden("rate_limited", &answer);
    drop(open);
}

#[test]
fn a_gateway_refuses_what_its_operator_does_not_allow_as_its_goldens_say() {
    let place = Place::new();
    let config = "[policy]\ntext = 'permit (principal, action, resource) unless { resource.name == \"send_email\" };'\n\
                  [principals.local]\ntools = [\"get_*\", \"charge_card\", \"send_email\"]\n\
                  [limits]\ncost = { per_principal_day = 4 }\n\
                  [tools.get_order]\neffect = \"read\"\n[tools.charge_card]\neffect = \"write\"\ncost = \"args.amount\"\n";
    let gateway = place.up_with("", &["--config", &place.write("rules.toml", config).display().to_string()]);
    golden("policy_blocked", &gateway.call("send_email", r#"{"to":"ada@example.org","subject":"s","body":"b"}"#));
    golden("allowlist_violation", &gateway.call("issue_refund", ORDER));
    golden("cost_cap_exceeded", &gateway.call("charge_card", ORDER));
    let card = r#"{"order":"ord_1","amount":1,"card":"4111 1111 1111 1111"}"#;
    golden("pii_blocked", &gateway.call("charge_card", card));
    assert_eq!(place.requests("send_email") + place.requests("charge_card") + place.requests("issue_refund"), 0);
}

#[test]
fn a_gateway_whose_upstream_failed_too_often_refuses_as_its_golden_says() {
    let place = Place::new();
    let fault = "[[fault]]\ntool = \"get_order\"\nwhen = { order = \"ord_1\" }\n";
    let faults = format!("{fault}attempts = {:?}\n", ["status_500"; 40]);
    let gateway = place.up(&faults);
    let mut answer = (0, Value::Null);
    eventually("the breaker opens", || {
        answer = gateway.call("get_order", r#"{"order":"ord_1"}"#);
        answer.1["status"] == "refused"
    });
    // How much of the rest is left differs from run to run.
    let left = answer.1["error"]["retry_after_ms"].as_u64();
    assert!(left.is_some_and(|left| (1..=60_000).contains(&left)), "{answer:?}");
    answer.1["error"]["retry_after_ms"] = 5000.into();
    golden("breaker_open", &answer);
}

#[test]
fn a_gateway_whose_tool_is_no_longer_what_it_was_refuses_as_its_golden_says() {
    let place = Place::new();
    let server = root().join("crates/amends/tests/seen/servers/chameleon.py").display().to_string();
    let [tools, log] = ["tools.json", "calls.log"].map(|name| place.path(name).display().to_string());
    let config = format!(
        "[listen]\nhttp = \"127.0.0.1:0\"\n[ledger]\nurl = {:?}\n\
         [upstreams.pet]\npin = \"refuse\"\ncommand = [\"python3\", {server:?}, {tools:?}, {log:?}]\n",
        place.ledger()
    );
    let start = |says: &str| {
        place.write(
            "tools.json",
            &format!(r#"[{{"name":"look","description":"{says}","inputSchema":{{"type":"object"}}}}]"#),
        );
        let mut command = Command::new(AMENDS);
        command.args(["serve", "--config"]).arg(place.write("pet.toml", &config));
        Gateway::listening(command)
    };
    let look = |gateway: &Gateway| post(&gateway.address, "/call/pet__look", &[], b"{}");
    let gateway = start("Looks.");
    eventually("the tool is served", || look(&gateway).1["status"] == "success");
    drop(gateway);
    let gateway = start("Looks, and more.");
    let mut answer = (0, Value::Null);
    eventually("the tools are known", || {
        answer = look(&gateway);
        answer.1["error"]["kind"] != "index_not_ready"
    });
    golden("schema_drift", &answer);
}

#[test]
fn a_gateway_whose_credential_is_gone_refuses_as_its_golden_says() {
    let place = Place::new();
    let away = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let document = r#"{"openapi":"3.1.0","info":{"title":"shop","version":"1"},"paths":{"/pay":{"post":{"operationId":"pay",
        "responses":{"200":{"description":"ok"}}}}}}"#;
    place.write("shop.json", document);
    place.write("shop.token", "s3cret");
    let config = format!(
        "[listen]\nhttp = \"127.0.0.1:0\"\n[ledger]\nurl = {:?}\n[upstreams.shop]\nopenapi = \"shop.json\"\n\
         base_url = \"http://{away}\"\ndeadline = \"1s\"\nheaders = {{ authorization = {{ file = \"shop.token\" }} }}\n",
        place.ledger()
    );
    let mut command = Command::new(AMENDS);
    command.args(["serve", "--config"]).arg(place.write("shop.toml", &config));
    let gateway = Gateway::listening(command);
    place.write("shop.token", "");
    let mut answer = (0, Value::Null);
    eventually("it is seen that the credential is gone", || {
        answer = post(&gateway.address, "/call/shop__pay", &[], b"{}");
        answer.1["error"]["kind"] == "missing_credential"
    });
    golden("missing_credential", &answer);
}

/// A refusal fits the schema, has that kind, comes with the status that the registry names, and says what its golden says.
fn golden(kind: &str, (status, envelope): &(u16, Value)) {
    assert_eq!(envelope["error"]["kind"], kind, "{envelope:#}");
    assert_fits(&compile(&schema::whole()), envelope, kind);
    let refusal = amends_core::RefusalKind::ALL.into_iter().find(|known| known.as_str() == kind).expect("a known kind");
    assert_eq!(*status, refusal.http_status(), "{kind}");
    let pretty = serde_json::to_string_pretty(envelope).expect("JSON can be written") + "\n";
    let path = root().join(format!("fixtures/registry/refusals/{kind}.json"));
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder can be made");
        fs::write(&path, pretty).expect("it can be written");
    } else {
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), pretty, "{kind}; rewrite with UPDATE=1");
    }
}
