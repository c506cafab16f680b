//! The first minutes with Amends, through the real binary: a configuration is written, checked, and looked after.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod clients;
mod doctor;
mod init;
mod machine;

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use support::{AMENDS, Place};

/// Runs the binary in a place, whose folder is also the home.
fn run(place: &Place, arguments: &[&str]) -> Output {
    run_with(place, arguments, &[])
}

/// The same with variables.
fn run_with(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(AMENDS)
        .args(arguments)
        .current_dir(place.path(""))
        .env("HOME", place.path(""))
        .env_remove("XDG_DATA_HOME")
        .envs(variables.iter().copied())
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The command of a server whose tools are those.
fn listed(place: &Place, name: &str, tools: &Value, flags: &[&str]) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/start/servers/listed.py");
    let file = place.write(name, &tools.to_string());
    let mut command = vec!["python3".to_owned(), script.display().to_string(), file.display().to_string()];
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    command
}

/// The words of a command.
fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}
