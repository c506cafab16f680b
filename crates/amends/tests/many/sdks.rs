//! The tour of real clients: the Python and the TypeScript SDK, in both eras.

use std::process::Command;

use serde_json::{Value, json};

use crate::place::{HttpServer, declared, raw, serve};
use crate::support::{Gateway, Place, root};

fn gateway(place: &Place) -> (Gateway, HttpServer) {
    let old = HttpServer::start(place, "old", "legacy", 0);
    let upstreams = [
        ("alone", declared(&raw("alone", &["--era", "modern"]))),
        ("old", old.declared()),
        ("piped", declared(&raw("piped", &[]))),
    ];
    (serve(place, &upstreams, ""), old)
}

fn tour(mut command: Command, era: &str, gateway: &Gateway) -> Value {
    let output = command.args(["--era", era, &gateway.mcp()]).output().expect("tests/clients/setup.sh installs it");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(said.lines().last().unwrap_or("")).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn toured(seen: &Value, protocol: &str) {
    assert_eq!(seen["protocol"], protocol, "{seen}");
    assert_eq!(seen["tools"].as_array().map(Vec::len), Some(15), "{seen}");
    assert_eq!(seen["prompts"], json!(["alone__greet", "old__greet", "piped__greet"]));
    assert_eq!(seen["resources"], json!(["alone://one", "shared://doc", "old://one", "piped://one"]));
    assert_eq!(seen["templates"], json!(["alone://items/{id}", "old://items/{id}", "piped://items/{id}"]));
    for name in ["alone", "old", "piped"] {
        let found = json!([
            format!("greet of {name}"),
            format!("{name}://items/1 of {name}"),
            format!("v for greet of {name}"),
            format!("w for {name}://items/{{id}} of {name}"),
            name,
        ]);
        assert_eq!(seen["reads"][name], found, "{seen}");
    }
}

fn python() -> Command {
    let mut command = Command::new(root().join("target/clients/venv/bin/python"));
    command.arg(root().join("tests/clients/python/many.py"));
    command
}

fn typescript() -> Command {
    let mut command = Command::new("node");
    command.arg(root().join("tests/clients/typescript/many.mjs"));
    command
}

#[test]
fn the_python_sdk_finds_everything_and_hears_of_changes_with_a_session() {
    let place = Place::new();
    let (gateway, _old) = gateway(&place);
    let seen = tour(python(), "legacy", &gateway);
    toured(&seen, "2025-11-25");
    assert!(seen["heard"].to_string().contains("tools/list_changed"), "{seen}");
    assert!(seen["after"].to_string().contains("alone__added"), "{seen}");
}

#[test]
fn the_python_sdk_finds_everything_and_hears_of_changes_without_one() {
    let place = Place::new();
    let (gateway, _old) = gateway(&place);
    let seen = tour(python(), "modern", &gateway);
    toured(&seen, "2026-07-28");
    assert_eq!(seen["heard"], json!(["ResourceUpdated", "ToolsListChanged"]));
    assert!(seen["after"].to_string().contains("alone__added"), "{seen}");
}

#[test]
fn the_typescript_sdk_finds_everything_in_both_eras() {
    for (era, protocol) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let place = Place::new();
        let (gateway, _old) = gateway(&place);
        let seen = tour(typescript(), era, &gateway);
        toured(&seen, protocol);
        if era == "legacy" {
            assert_eq!(seen["heard"], true, "{seen}");
            assert!(seen["after"].to_string().contains("alone__added"), "{seen}");
        }
    }
}
