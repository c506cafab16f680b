//! The suite as a client: against a server, and against Amends in front of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::suite::{Findings, Verdict, serve};
use crate::support::{AMENDS, Gateway, Place, eventually, http, root};

/// The server under test, in one era. It is ended by its id when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(era: &str) -> Self {
        let home = root();
        let mut child = Command::new(home.join("target/clients/venv/bin/python"))
            .arg(home.join("tests/conformance/server.py"))
            .args(["--http", "0", era])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts; tests/clients/setup.sh installs it");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut said).expect("a line");
        let url = said.trim().strip_prefix("listens on ").unwrap_or_else(|| panic!("it said `{said}`")).to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server answers malformed input with an error of JSON-RPC, which the suite only warns about where it is missing. Through
/// Amends a call that failed is answered with an envelope: a result that says it is an error.
const OTHERWISE: &str = "input-required-result-validate-input: sep-2322-validate-input-responses/";

/// Several scenarios call this one with the same arguments, and some leave before it is answered. Were it a write, the next
/// equal call would be the repeat of the one that waits.
const READ: &str = "[tools.test_input_required_result_elicitation]\neffect = \"read\"\n";

/// Amends in front of one upstream, which lists its tools.
fn in_front_of(place: &Place, upstream: &str) -> Gateway {
    let text = format!(
        "[ledger]\nurl = \"{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.everything]\nprefix = \"\"\n{upstream}\n\n{READ}",
        place.ledger()
    );
    let config = place.write("serve.toml", &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    let gateway = Gateway::listening(command);
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    eventually("the tools are served", || {
        let (_, answer) = http::post(&gateway.address, "/mcp", &[], list);
        answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    });
    gateway
}

/// Runs the suite on both, and compares.
fn compare(revision: &str, era: &str, upstream: impl Fn(&Server) -> String) -> (Findings, Findings) {
    let server = Server::start(era);
    let (direct, conforms) = serve(&server.url, revision);
    assert!(conforms, "the server itself does not conform");
    let place = Place::new();
    let gateway = in_front_of(&place, &upstream(&server));
    let (through, conforms) = serve(&gateway.mcp(), revision);
    let mut worse = through.worse_than(&direct);
    worse.retain(|line| !line.starts_with(OTHERWISE));
    assert!(worse.is_empty(), "{} checks are worse through Amends:\n{}", worse.len(), worse.join("\n"));
    assert_eq!(through.scenarios(), direct.scenarios());
    assert!(conforms, "the suite says that what Amends serves does not conform");
    eprintln!("{revision}: {} passed, directly {}", through.count(Verdict::Passed), direct.count(Verdict::Passed));
    (through, direct)
}

fn over_http(server: &Server) -> String {
    format!("url = {:?}", server.url)
}

/// The same server as a child process of Amends.
fn over_stdio(era: &str) -> String {
    let home = root();
    let python = home.join("target/clients/venv/bin/python").display().to_string();
    let script = home.join("tests/conformance/server.py").display().to_string();
    format!("command = {:?}", [&python, &script, "--stdio", era])
}

#[test]
fn a_stateful_server_conforms_through_amends_as_it_does_directly() {
    compare("2025-11-25", "legacy", over_http);
}

#[test]
fn a_stateless_server_conforms_through_amends_as_it_does_directly() {
    compare("2026-07-28", "modern", over_http);
}

#[test]
fn a_stateful_server_over_stdio_conforms_through_amends_as_it_does_over_http() {
    compare("2025-11-25", "legacy", |_| over_stdio("legacy"));
}

#[test]
fn a_stateless_server_over_stdio_conforms_through_amends_as_it_does_over_http() {
    compare("2026-07-28", "modern", |_| over_stdio("modern"));
}
