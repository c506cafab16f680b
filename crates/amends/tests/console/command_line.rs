//! The command line at a gateway whose ledger nobody else can open.

use std::process::Command;

use serde_json::Value;

use crate::served::{TOKEN, serve};
use crate::support::authority::Authority;
use crate::support::{AMENDS, Gateway, Place, front};

fn amends(place: &Place, gateway: &Gateway, token: Option<&str>, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(AMENDS);
    command.args(arguments).env("AMENDS_URL", format!("http://{}", gateway.address)).current_dir(place.path("."));
    command.env_remove("AMENDS_TOKEN");
    if let Some(token) = token {
        command.env("AMENDS_TOKEN", token);
    }
    let output = command.output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_ledger_in_memory_is_looked_at_and_answered_through_the_gateway() {
    let place = Place::new();
    let gateway = serve(&place, "memory:");
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    let question = charge["error"]["interaction"].as_str().expect("a question").to_owned();
    let run = |arguments: &[&str]| amends(&place, &gateway, Some(TOKEN), arguments);

    let (code, said, _) = run(&["sessions", "--json"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let session = said["sessions"][0]["session"].as_str().expect("a session").to_owned();
    assert_eq!((code, said["sessions"][0]["door"].as_str()), (0, Some("http")), "{said}");
    let (code, said, _) = run(&["sessions"]);
    assert!(code == 0 && said.starts_with("SESSION") && said.contains(&session), "{said}");
    let (code, trace, _) = run(&["trace", &session]);
    assert!(code == 0 && trace.contains("session_opened") && trace.contains("receipt  "), "{trace}");
    let (code, said, _) = run(&["trace", &session, "--json"]);
    let trace: Value = serde_json::from_str(&said).expect("JSON");
    let received = trace["events"].as_array().expect("events").iter().find(|event| event["event"] == "call_received");
    let call = received.and_then(|event| event["call"].as_str()).expect("a call").to_owned();
    assert_eq!(code, 0);
    let (code, said, _) = run(&["trace", &call]);
    assert!(code == 0 && said.contains("call_received") && !said.contains("session_opened"), "{said}");
    assert_eq!(run(&["trace", "ses_nothing"]).0, 2);

    let (code, said, _) = run(&["queue"]);
    assert!(code == 0 && said.contains(&question) && said.contains("answers: happened"), "{said}");
    assert_eq!(run(&["answer", &question, "perhaps"]).0, 2);
    assert_eq!(run(&["answer", &question, "happened", "--by", "ada"]).0, 2, "the token says who answers");
    let (code, said, _) = run(&["answer", &question, "happened", "--note", "seen"]);
    assert!(code == 0 && said.contains("acted on"), "{said}");
    let (code, late, _) = run(&["answer", &question, "did_not_happen"]);
    assert!(code == 1 && late.contains("too late"), "{late}");
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).1["status"], "degraded");

    let (code, _, why) = amends(&place, &gateway, None, &["queue"]);
    assert!(code == 2 && why.contains("AMENDS_TOKEN"), "{why}");
    let (code, _, why) = amends(&place, &gateway, Some("wrong"), &["queue"]);
    assert!(code == 2 && why.contains("sign in"), "{why}");
    let (code, _, why) = run(&["queue", "--url", "ftp://x"]);
    assert!(code == 2 && why.contains("http://"), "{why}");
    let (code, _, why) = run(&["queue", "--url", "http://127.0.0.1:1"]);
    assert!(code == 2 && why.contains("no gateway answers"), "{why}");
}

#[test]
fn a_gateway_behind_tls_is_asked_if_it_is_the_one_and_otherwise_told_nothing() {
    let (place, authority) = (Place::new(), Authority::new("Ours"));
    let gateway = serve(&place, "memory:");
    let ours = place.write("ours.pem", &authority.pem());
    let another = place.write("another.pem", &Authority::new("Another").pem());
    let port = front::before(authority.server("localhost", 2999), gateway.address.clone());
    let run = |trusted: &std::path::Path, url: &str, arguments: &[&str]| {
        let output = Command::new(AMENDS)
            .args(arguments)
            .args(["--url", url])
            .env("AMENDS_TOKEN", TOKEN)
            .env("SSL_CERT_FILE", trusted)
            .current_dir(place.path("."))
            .output()
            .expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    };
    let url = format!("https://localhost:{port}");
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    let question = charge["error"]["interaction"].as_str().expect("a question").to_owned();
    let (code, said, why) = run(&ours, &url, &["queue"]);
    assert!(code == 0 && said.contains(&question), "{said}{why}");
    let (code, said, why) = run(&ours, &url, &["sessions", "--json"]);
    assert!(code == 0 && said.contains("\"door\""), "{said}{why}");
    for (trusted, url) in [(&another, &url), (&ours, &format!("https://127.0.0.1:{port}"))] {
        let (code, said, why) = run(trusted, url, &["answer", &question, "happened"]);
        assert!(code == 2 && why.contains("no gateway answers") && why.contains("ertificate"), "{url}: {said}{why}");
    }
    let (code, said, why) = run(&ours, &url, &["answer", &question, "happened"]);
    assert!(code == 0 && said.contains("acted on"), "{said}{why}");
}
