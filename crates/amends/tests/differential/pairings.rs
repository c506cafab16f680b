//! Each way from a client to a server of the same era.

use crate::compare::{Front, answers, arrivals};
use crate::peer::{Peer, Said};
use crate::pipe::Pipe;
use crate::support::served::{Listening, serve_tools};
use crate::support::{Place, root};
use crate::traffic::Era;

/// The server over HTTP.
pub(crate) fn listening(place: &Place, log: &str, era: Era) -> Listening {
    Listening::start(&command(place, log, era, "--http"))
}

pub(crate) fn command(place: &Place, log: &str, era: Era, how: &str) -> Vec<String> {
    let script = root().join("tests/differential/server.py").display().to_string();
    let log = place.path(log).display().to_string();
    vec!["python3".into(), script, log, era.name().into(), how.into()]
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
    let (near, far) = (listening(&place, "direct.log", era), listening(&place, "through.log", era));
    let gateway = serve_tools(&place, &format!("url = {:?}", far.url), "");
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
    let near = listening(&place, "direct.log", era);
    let gateway = serve_tools(&place, &format!("command = {:?}", command(&place, "through.log", era, "--stdio")), "");
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
