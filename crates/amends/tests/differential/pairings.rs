//! Each way from a client to a server of the same era.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::compare::{Front, answers, arrivals};
use crate::peer::{Peer, Said};
use crate::pipe::Pipe;
use crate::support::{AMENDS, Gateway, Place, eventually, http, root};
use crate::traffic::Era;

/// The server over HTTP. It is ended by its id when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(place: &Place, log: &str, era: Era) -> Self {
        let command = command(place, log, era, "--http");
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
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

pub(crate) fn command(place: &Place, log: &str, era: Era, how: &str) -> Vec<String> {
    let script = root().join("tests/differential/server.py").display().to_string();
    let log = place.path(log).display().to_string();
    vec!["python3".into(), script, log, era.name().into(), how.into()]
}

pub(crate) fn serve(place: &Place, upstream: &str) -> Gateway {
    let text = format!(
        "[ledger]\nurl = \"{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.raw]\nprefix = \"\"\n{upstream}\n",
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

pub(crate) fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// A wrapped server: the client speaks to `amends wrap` as to the server.
fn wrapped(era: Era) {
    let place = Place::new();
    let mut direct = Peer::stdio(Pipe::start(&words(&command(&place, "direct.log", era, "--stdio"))), era);
    let server = command(&place, "through.log", era, "--stdio");
    let mut through = Peer::stdio(Pipe::wrap(&place, &[], &words(&server)), era);
    let (expected, found) = (direct.greet(), through.greet());
    let read = |said: &[String]| said.iter().map(|message| Said::read(message)).collect::<Vec<_>>();
    assert_eq!(read(&found), read(&expected), "the greeting");
    answers(&mut direct, &mut through, era, Front::Wrap);
    arrivals(&place.path("direct.log"), &place.path("through.log"), Front::Wrap);
    place.assert_verified();
}

/// A served one: the client speaks HTTP to `amends serve`, which speaks HTTP to the server.
fn served_over_http(era: Era) {
    let place = Place::new();
    let (near, far) = (Server::start(&place, "direct.log", era), Server::start(&place, "through.log", era));
    let gateway = serve(&place, &format!("url = {:?}", far.url));
    let (mut direct, mut through) = (Peer::http(&near.url, era), Peer::http(&gateway.mcp(), era));
    direct.greet();
    through.greet();
    answers(&mut direct, &mut through, era, Front::Serve);
    arrivals(&place.path("direct.log"), &place.path("through.log"), Front::Serve);
    place.assert_verified();
}

/// The same with a server that Amends starts and speaks to in lines.
fn served_over_stdio(era: Era) {
    let place = Place::new();
    let near = Server::start(&place, "direct.log", era);
    let gateway = serve(&place, &format!("command = {:?}", command(&place, "through.log", era, "--stdio")));
    let (mut direct, mut through) = (Peer::http(&near.url, era), Peer::http(&gateway.mcp(), era));
    direct.greet();
    through.greet();
    answers(&mut direct, &mut through, era, Front::Serve);
    place.assert_verified();
}

#[test]
fn a_wrapped_stateful_server_keeps_every_byte() {
    wrapped(Era::Legacy);
}

#[test]
fn a_wrapped_stateless_server_keeps_every_byte() {
    wrapped(Era::Modern);
}

#[test]
fn a_stateful_server_over_http_keeps_every_byte() {
    served_over_http(Era::Legacy);
}

#[test]
fn a_stateless_server_over_http_keeps_every_byte() {
    served_over_http(Era::Modern);
}

#[test]
fn a_stateful_child_process_keeps_every_byte() {
    served_over_stdio(Era::Legacy);
}

#[test]
fn a_stateless_child_process_keeps_every_byte() {
    served_over_stdio(Era::Modern);
}
