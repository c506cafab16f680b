//! Documents that are wrong, and configurations that are made from those that are right.

use std::process::Command;

use crate::server::{Api, DOCUMENT};
use crate::support::{AMENDS, Gateway, Place, eventually};

fn amends(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    let folder = place.path("");
    let output = Command::new(AMENDS).args(arguments).current_dir(folder).output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_document_that_is_wrong_is_refused_with_its_line_and_pointer() {
    let place = Place::new();
    place.write("amends.toml", "[upstreams.shop]\nopenapi = \"shop.yaml\"\nbase_url = \"http://127.0.0.1:1\"\n");
    for (text, says) in [
        ("openapi: 3.0.0\npaths: {a: [}\n", "shop.yaml:2: it is not YAML"),
        ("{\"openapi\": \"3.0.0\",\n\"paths\": {]}\n", "shop.yaml:2: it is not JSON"),
        (
            "openapi: 3.0.0\npaths:\n  /a/{b}:\n    get: {}\n",
            "shop.yaml:4: `#/paths/~1a~1{b}/get`: the path names `{b}`",
        ),
        ("swagger: \"2.0\"\n", "Swagger 2.0"),
    ] {
        place.write("shop.yaml", text);
        let (code, _, said) = amends(&place, &["check", "--config", "amends.toml"]);
        assert!(code == 1 && said.contains(says), "{code} {said}");
        let (code, _, said) = amends(&place, &["init", "--openapi", "shop.yaml", "--out", "-"]);
        assert!(code != 0 && said.contains(says), "{code} {said}");
    }
    std::fs::write(place.path("shop.yaml"), [0x6f, 0xff, 0xfe]).expect("a file");
    let (code, _, said) = amends(&place, &["check", "--config", "amends.toml"]);
    assert!(code == 1 && said.contains("it is not UTF-8"), "{said}");
}

#[test]
fn a_configuration_is_made_from_a_document_and_serves_it() {
    let (place, api) = (Place::new(), Api::start());
    let document = DOCUMENT.replace("{url: /v1}", &format!("{{url: \"http://{}/v1\"}}", api.address));
    place.write("my shop.yaml", &document);
    let (code, printed, said) = amends(&place, &["init", "--openapi", "my shop.yaml", "--out", "-"]);
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains("[tools.my-shop__refund]\neffect = \"keyed\""), "{printed}");
    let made = ["init", "--openapi", "my shop.yaml", "--name", "shop", "--out", "amends.toml"];
    assert_eq!(amends(&place, &made).0, 0);
    let (code, _, said) = amends(&place, &made);
    assert!(code != 0 && said.contains("amends.toml"), "it is not written over: {said}");
    let (code, checked, said) = amends(&place, &["check", "--config", "amends.toml"]);
    assert!(code == 0 && checked.contains("shop__charge  write of `shop`"), "{checked}{said}");
    assert!(checked.contains("shop__* by GET or HEAD  read of `shop`"), "{checked}");
    let mut command = Command::new(AMENDS);
    command.args(["up", "--config", "amends.toml", "--listen", "127.0.0.1:0", "--ledger", &place.ledger()]);
    command.current_dir(place.path(""));
    let gateway = Gateway::listening(command);
    eventually("the tools are served", || gateway.call("shop__getOrder", r#"{"order":"ord"}"#).0 == 200);
    let (status, done) = gateway.call("shop__refund", r#"{"order":"ord","amount":5}"#);
    assert_eq!(status, 200, "{done}");
    assert!(api.seen("POST", "ord")[0].header("idempotency-key").is_some());
    place.settled();
}
