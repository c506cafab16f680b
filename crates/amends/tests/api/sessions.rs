//! Upstreams with sessions that forget them: they are greeted again behind the agent's back.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::serve;
use crate::server::{Seen, request, write};
use crate::support::{Gateway, Place, eventually, root};

/// How a server says that it knows nothing of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// 404, as the specification says.
    NotFound,
    /// 400 and a sentence, as older servers do.
    BadRequest,
    /// 400 and a JSON-RPC error for nobody.
    InvalidRequest,
}

/// What a server is at the moment.
#[derive(Debug)]
struct State {
    forgets: Forgets,
    /// Which life of it this is; sessions end with it.
    life: u64,
    modern: bool,
    greetings: u64,
    charges: Vec<String>,
    seen: Vec<Seen>,
    tools: Vec<&'static str>,
}

/// An MCP server that can lose its memory, and come back in the other era.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start(forgets: Forgets) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let state = State {
            forgets,
            life: 1,
            modern: false,
            greetings: 0,
            charges: Vec::new(),
            seen: Vec::new(),
            tools: vec!["charge", "look"],
        };
        let server = Self { address: listener.local_addr().expect("an address"), state: Arc::new(Mutex::new(state)) };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.converse(stream));
            }
        });
        server
    }

    fn now<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().expect("the state"))
    }

    /// All requests there were.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.now(|state| state.seen.clone())
    }

    /// Everything that it knew of its sessions is gone.
    fn restart(&self) {
        self.now(|state| state.life += 1);
    }

    fn converse(&self, stream: TcpStream) {
        let mut writer = stream.try_clone().expect("a second handle");
        let mut reader = BufReader::new(stream);
        while let Some(seen) = request(&mut reader) {
            if !self.answer(&mut writer, &seen) {
                return;
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, seen: &Seen) -> bool {
        const JSON: &str = "content-type: application/json\r\n";
        let message: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or(""));
        let (modern, life, forgets) = self.now(|state| {
            state.seen.push(seen.clone());
            (state.modern, state.life, state.forgets)
        });
        let failed = |stream: &mut TcpStream, id: &Value, code: i64| {
            let text = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } }).to_string();
            write(stream, "400 Bad Request", JSON, text.as_bytes())
        };
        let result = |stream: &mut TcpStream, headers: &str, result: Value| {
            let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
            write(stream, "200 OK", &format!("{JSON}{headers}"), text.as_bytes())
        };
        if modern {
            let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            if seen.header("mcp-protocol-version") != Some("2026-07-28") {
                return failed(stream, id, -32022);
            }
            if version != "2026-07-28" || seen.header("mcp-method") != Some(method) {
                return failed(stream, id, -32602);
            }
        } else {
            let session = format!("s{life}");
            match (method, seen.header("mcp-session-id")) {
                ("initialize", _) => {
                    self.now(|state| state.greetings += 1);
                    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                                           "serverInfo": { "name": "s", "version": "1" } });
                    return result(stream, &format!("mcp-session-id: {session}\r\n"), greeting);
                }
                (_, Some(known)) if known == session => {}
                _ => match forgets {
                    Forgets::NotFound => return write(stream, "404 Not Found", "", b""),
                    Forgets::BadRequest => {
                        return write(stream, "400 Bad Request", "", b"No valid session ID provided");
                    }
                    Forgets::InvalidRequest => return failed(stream, &Value::Null, -32600),
                },
            }
        }
        match method {
            "server/discover" => {
                self.now(|state| state.greetings += 1);
                let greeting = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                                       "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "2" } });
                result(stream, "", greeting)
            }
            "tools/list" => {
                let entry = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
                let tools: Vec<Value> = self.now(|state| state.tools.iter().map(entry).collect());
                result(stream, "", json!({ "tools": tools, "resultType": "complete" }))
            }
            "tools/call" => {
                let tool = message["params"]["name"].as_str().unwrap_or("").to_owned();
                if tool == "charge" {
                    let order = message["params"]["arguments"]["order"].as_str().unwrap_or("").to_owned();
                    self.now(|state| state.charges.push(order));
                }
                result(
                    stream,
                    "",
                    json!({ "content": [], "structuredContent": { "done": tool }, "resultType": "complete" }),
                )
            }
            _ => write(stream, "202 Accepted", "", b""),
        }
    }
}

fn before(place: &Place, address: &str) -> Gateway {
    let config = format!(
        "[upstreams.shop]\nurl = \"http://{address}/mcp\"\nprefix = \"\"\ntimeout = \"5s\"\ndeadline = \"30s\"\n\n\
         [tools.look]\neffect = \"read\"\n\n[tools.charge]\neffect = \"write\"\n"
    );
    let gateway = serve(place, &config, &[]);
    eventually("the tools are served", || gateway.call("look", "{}").0 == 200);
    gateway
}

fn charge(gateway: &Gateway, order: &str) -> Value {
    let (status, done) = gateway.call("charge", &format!(r#"{{"order":"{order}"}}"#));
    assert_eq!(status, 200, "{order}: {done}");
    done
}

#[test]
fn a_write_that_met_a_forgotten_session_is_done_once_in_a_new_one() {
    let (place, server) = (Place::new(), Server::start(Forgets::NotFound));
    let gateway = before(&place, &server.address.to_string());
    assert_eq!(charge(&gateway, "one")["outcome"], "succeeded");
    server.restart();
    let done = charge(&gateway, "two");
    assert_eq!(done["outcome"], "succeeded_after_compensation", "{done}");
    assert_eq!(server.now(|state| (state.charges.clone(), state.greetings)), (vec!["one".into(), "two".into()], 2));
    place.settled();
}

#[test]
fn what_only_may_mean_a_forgotten_session_lets_a_read_go_on_and_sends_no_write_again() {
    for forgets in [Forgets::BadRequest, Forgets::InvalidRequest] {
        let (place, server) = (Place::new(), Server::start(forgets));
        let gateway = before(&place, &server.address.to_string());
        server.restart();
        let (status, read) = gateway.call("look", "{}");
        assert_eq!((status, &read["outcome"]), (200, &json!("succeeded_after_compensation")), "{forgets:?}: {read}");
        place.settled();

        let (place, server) = (Place::new(), Server::start(forgets));
        let gateway = before(&place, &server.address.to_string());
        server.restart();
        let (status, refused) = gateway.call("charge", r#"{"order":"one"}"#);
        assert!((400..500).contains(&status), "{forgets:?}: {refused}");
        assert_eq!(refused["error"]["certainty"], "not_processed", "{forgets:?}: {refused}");
        assert_eq!(refused["attempts"].as_array().map(Vec::len), Some(1), "{forgets:?}: {refused}");
        assert_eq!(charge(&gateway, "one")["outcome"], "succeeded", "the agent's own repeat finds a new session");
        assert_eq!(server.now(|state| (state.charges.clone(), state.greetings)), (vec!["one".into()], 2));
        place.settled();
    }
}

#[test]
fn a_burst_that_meets_a_forgotten_session_greets_once() {
    let (place, server) = (Place::new(), Server::start(Forgets::NotFound));
    let gateway = Arc::new(before(&place, &server.address.to_string()));
    server.restart();
    server.now(|state| state.tools.push("extra"));
    let calls = (0..16).map(|n| {
        let gateway = gateway.clone();
        std::thread::spawn(move || charge(&gateway, &format!("o{n}")))
    });
    for call in calls.collect::<Vec<_>>() {
        call.join().expect("it is done");
    }
    let (mut charges, greetings) = server.now(|state| (state.charges.clone(), state.greetings));
    charges.sort();
    charges.dedup();
    assert_eq!((charges.len(), server.now(|state| state.charges.len())), (16, 16), "each is done once");
    assert_eq!(greetings, 2, "one greeting at the start, and one for all of them");
    eventually("its tools were listed again", || gateway.call("extra", "{}").0 == 200);
    place.settled();
}

#[test]
fn a_server_that_comes_back_in_the_other_era_is_met_in_it() {
    let (place, server) = (Place::new(), Server::start(Forgets::InvalidRequest));
    let gateway = before(&place, &server.address.to_string());
    charge(&gateway, "one");
    server.now(|state| state.modern = true);
    assert_eq!(gateway.call("look", "{}").0, 200);
    charge(&gateway, "two");
    server.now(|state| state.modern = false);
    server.restart();
    assert_eq!(gateway.call("look", "{}").0, 200);
    charge(&gateway, "three");
    assert_eq!(server.now(|state| state.charges.clone()), ["one", "two", "three"]);
    place.settled();
}

/// A server of the Python SDK; it is killed by its id when dropped.
struct Python(Child);

impl Python {
    fn start(place: &Place, port: u16) -> Self {
        let script = root().join("crates/amends/tests/api/stateful.py");
        let child = Command::new(root().join("target/clients/venv/bin/python"))
            .arg(script)
            .arg(port.to_string())
            .arg(place.path("book"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts; tests/clients/setup.sh installs it");
        Self(child)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_of_the_sdk_that_is_killed_and_started_again_is_met_again() {
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let first = Python::start(&place, port);
    let gateway = before(&place, &format!("127.0.0.1:{port}"));
    charge(&gateway, "one");
    drop(first);
    let (_, failed) = gateway.call("charge", r#"{"order":"none"}"#);
    assert_eq!(failed["error"]["certainty"], "not_sent", "{failed}");
    let _second = Python::start(&place, port);
    eventually("it listens again", || TcpStream::connect(("127.0.0.1", port)).is_ok_and(|mut s| s.flush().is_ok()));
    charge(&gateway, "two");
    let book = std::fs::read_to_string(place.path("book")).expect("the book");
    assert_eq!(book, "one\ntwo\n");
    place.settled();
}
