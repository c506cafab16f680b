//! The servers of these tests, and what they wrote down.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::place::{declared, health};
use crate::process::signal;
use crate::support::{Gateway, Place, eventually};

/// A server whose life is watched, as a command.
pub(crate) fn child(place: &Place, name: &str, flags: &[&str]) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/running/servers/child.py");
    let folder = place.path("").display().to_string();
    let mut command = vec!["python3".to_owned(), script.display().to_string(), name.to_owned(), folder];
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    command
}

/// The same as an upstream declares it.
pub(crate) fn upstream(place: &Place, name: &str, flags: &[&str]) -> String {
    declared(&child(place, name, flags))
}

/// The text of a configuration over that place's ledger.
pub(crate) fn text(place: &Place, upstreams: &[(&str, String)], more: &str) -> String {
    let mut text = format!("[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n", place.ledger());
    for (name, declared) in upstreams {
        text.push_str(&format!("[upstreams.{name}]\n{declared}\n"));
    }
    format!("{text}\n{more}\n")
}

/// The lines of a file that the servers write to.
pub(crate) fn lines(place: &Place, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The process ids in such a file, once there is one.
pub(crate) fn ids(place: &Place, name: &str) -> Vec<u32> {
    eventually(name, || !lines(place, name).is_empty());
    lines(place, name).iter().filter_map(|line| line.parse().ok()).collect()
}

/// What a call of a tool gave, where it went well. No two of these calls are equal, so that none is taken for a repeat.
pub(crate) fn done(gateway: &Gateway, tool: &str) -> Option<Value> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let (_, answer) = gateway.call(tool, &json!({ "n": CALLS.fetch_add(1, Ordering::Relaxed) }).to_string());
    (answer["status"] == "success").then(|| answer["data"].clone())
}

/// Waits until a tool is served, and gives what it says of where it runs.
pub(crate) fn served(gateway: &Gateway, tool: &str) -> Value {
    let mut said = None;
    eventually(&format!("`{tool}` is served"), || {
        said = done(gateway, tool);
        said.is_some()
    });
    said.expect("it is served")
}

/// The process that a tool runs in.
pub(crate) fn id_of(said: &Value) -> u32 {
    said["pid"].as_u64().and_then(|id| id.try_into().ok()).unwrap_or_else(|| panic!("{said}"))
}

/// How often the configuration was read anew.
pub(crate) fn reloads(gateway: &Gateway) -> u64 {
    health(gateway)["config"]["reloads"].as_u64().expect("a number")
}

/// Writes the configuration, has it read anew, and waits for that.
pub(crate) fn reload(place: &Place, gateway: &Gateway, text: &str) {
    let before = reloads(gateway);
    replace(&place.path("serve.toml"), text);
    signal(gateway.id(), "HUP");
    eventually("the configuration is read anew", || reloads(gateway) > before);
}

/// Replaces a file as a whole.
pub(crate) fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    std::fs::write(&beside, text).expect("a file");
    std::fs::rename(beside, file).expect("a file");
}
