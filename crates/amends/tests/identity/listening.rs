//! Where the doors may listen, and what is said of who may come in.

use std::process::Command;

use serde_json::Value;

use crate::house::two_tokens;
use crate::support::{AMENDS, Place};

fn run(arguments: &[&str], place: &Place) -> (i32, String, String) {
    let output = Command::new(AMENDS).args(arguments).current_dir(place.path("")).output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn beyond_this_machine_nobody_is_let_in_by_accident() {
    let place = Place::new();
    place.write("amends.toml", "[ledger]\nurl = \"memory:\"\n[listen]\nhttp = \"0.0.0.0:0\"\n");
    for arguments in [
        &["serve", "--config", "amends.toml"][..],
        &["up", "--config", "amends.toml"],
        &["up", "--ledger", "memory:", "--listen", "0.0.0.0:0"],
        &["up", "--ledger", "memory:", "--listen", "[::]:0"],
    ] {
        let (code, _, said) = run(arguments, &place);
        assert_ne!(code, 0, "{arguments:?}: {said}");
        assert!(said.contains("listen.http") && said.contains("open = true"), "{said}");
    }
}

#[test]
fn a_token_that_cannot_be_read_is_named_at_the_start() {
    let place = Place::new();
    let config = "[ledger]\nurl = \"memory:\"\n[listen]\nhttp = \"127.0.0.1:0\"\n\
                  [auth.tokens.ci]\nsecret = { file = \"none.token\" }\n";
    place.write("amends.toml", config);
    let (code, _, said) = run(&["serve", "--config", "amends.toml"], &place);
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("auth.tokens.ci") && said.contains("none.token"), "{said}");
}

#[test]
fn check_and_doctor_say_who_may_come_in() {
    let place = Place::new();
    let auth = format!(
        "{}tenant = \"acme\"\nrole = \"operator\"\n\
         [auth.oauth]\nissuer = \"http://127.0.0.1:1/realm\"\naudience = \"https://amends.example/mcp\"\n",
        two_tokens(&place)
    );
    place.write("bob.token", "short");
    place.write("amends.toml", &format!("[ledger]\nurl = \"memory:\"\n[listen]\nhttp = \"127.0.0.1:0\"\n{auth}"));
    let (code, said, _) = run(&["check", "--config", "amends.toml"], &place);
    assert_eq!(code, 0, "{said}");
    for word in ["token ada", "`acme/bob`", "operator", "http://127.0.0.1:1/realm", "oauth-protected-resource/mcp"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("t0ken"), "a token is no setting: {said}");
    let (_, said, _) = run(&["check", "--config", "amends.toml", "--json"], &place);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["auth"]["tokens"][1]["tenant"], "acme", "{said}");
    assert_eq!(said["auth"]["oauth"]["issuer"], "http://127.0.0.1:1/realm", "{said}");

    let (code, said, _) = run(&["doctor", "--config", "amends.toml", "--no-start", "--json"], &place);
    assert_eq!(code, 1, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let found: Vec<&Value> =
        said["findings"].as_array().expect("a list").iter().filter(|finding| finding["about"] == "auth").collect();
    let text = format!("{found:?}");
    assert!(text.contains("`auth.tokens.ada` can be read"), "{text}");
    assert!(text.contains("5 bytes long"), "{text}");
    assert!(text.contains("keys of the issuer `http://127.0.0.1:1/realm` cannot be read"), "{text}");
    assert!(!text.contains("t0ken"), "{text}");
}

#[test]
fn a_wrapped_server_asks_nobody_who_they_are() {
    let place = Place::new();
    let config = "[auth.tokens.ci]\nsecret = { env = \"AMENDS_NO_SUCH_TOKEN\" }\n";
    let command = place.wrap("", Some(config));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut client = crate::support::client::Client::stdio(crate::support::client::Sdk::Python, None, &command);
    let done = client.call("get_order", serde_json::json!({ "order": "ord_1" }));
    assert_ne!(done["result"]["isError"], true, "{done}");
}
