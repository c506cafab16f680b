//! An upstream that believes us by an account to which a person signs in: with a code, or at an address that leads back here.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::house::House;
use crate::support::{Place, eventually};

/// An issuer that gives codes and tokens, and an upstream that believes them: an API at `/echo`, and an MCP server at `/mcp`.
struct World {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// How many codes were given out, and whether the last one was entered.
    codes: usize,
    entered: bool,
    /// The tokens that count, and those that renew them.
    tokens: Vec<String>,
    refreshes: Vec<String>,
    made: usize,
    renewed: usize,
    /// What proves who began the way to a code, by the code.
    challenges: BTreeMap<String, String>,
    /// How often something was done for whoever showed a good token.
    done: usize,
}

const SECRET: &str = "t0p-s3cret-of-the-client";

impl World {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let (shared, here) = (state.clone(), address.clone());
        // It lives as long as the test: its thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, here) = (shared.clone(), here.clone());
                thread::spawn(move || while answer(&stream, &shared, &here).is_some() {});
            }
        });
        Self { address, state }
    }

    fn now<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().expect("the state"))
    }

    fn sign_in(&self, upstream: &str, more: &str) -> String {
        format!(
            "[upstreams.{upstream}.sign_in]\nissuer = \"http://{}\"\nclient_id = \"amends\"\n\
             secret = {{ file = \"client.secret\" }}\nscopes = [\"echo\"]\n{more}\n",
            self.address
        )
    }
}

fn field(form: &str, name: &str) -> String {
    let found = form.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    let mut text = Vec::new();
    let mut bytes = found.unwrap_or_default().bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let pair: String = [bytes.next(), bytes.next()].into_iter().flatten().map(char::from).collect();
                text.push(u8::from_str_radix(&pair, 16).expect("a byte"));
            }
            byte => text.push(byte),
        }
    }
    String::from_utf8(text).expect("a text")
}

fn token(state: &mut State) -> Value {
    state.made += 1;
    let (access, refresh) = (format!("acc3ss-{}-token", state.made), format!("r3fresh-{}-token", state.made));
    state.tokens.push(access.clone());
    state.refreshes = vec![refresh.clone()];
    json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 })
}

fn grant(state: &mut State, form: &str) -> (u16, Value) {
    let error = |error: &str| (400, json!({ "error": error }));
    match field(form, "grant_type").as_str() {
        "urn:ietf:params:oauth:grant-type:device_code" => match state.entered {
            _ if field(form, "device_code") != format!("device-{}", state.codes) => error("invalid_grant"),
            true => (200, token(state)),
            false => error("authorization_pending"),
        },
        "refresh_token" if state.refreshes.contains(&field(form, "refresh_token")) => {
            state.renewed += 1;
            (200, token(state))
        }
        "authorization_code" => match state.challenges.remove(&field(form, "code")) {
            Some(challenge) => {
                let verifier = field(form, "code_verifier");
                let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
                use base64::Engine as _;
                let proven = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest);
                if proven == challenge { (200, token(state)) } else { error("invalid_grant") }
            }
            None => error("invalid_grant"),
        },
        _ => error("invalid_grant"),
    }
}

/// Answers one request on a connection; nothing when there is none any more.
fn answer(mut stream: &TcpStream, state: &Mutex<State>, here: &str) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (named, value) = line.split_once(':')?;
            named.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let mut body = vec![0; header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let target = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut state = state.lock().expect("the state");
    let believed = header("authorization")
        .and_then(|shown| shown.strip_prefix("Bearer ").map(str::to_owned))
        .is_some_and(|token| state.tokens.contains(&token));
    let mut more = String::new();
    let (status, reply) = match path {
        "/.well-known/openid-configuration" => {
            let at = |path: &str| format!("http://{here}{path}");
            let said = json!({ "issuer": format!("http://{here}"), "authorization_endpoint": at("/authorize"),
                "token_endpoint": at("/token"), "device_authorization_endpoint": at("/device") });
            (200, said)
        }
        "/device" | "/token" if header("authorization").is_none() => (401, json!({ "error": "invalid_client" })),
        "/device" => {
            state.codes += 1;
            state.entered = false;
            let n = state.codes;
            let said = json!({ "device_code": format!("device-{n}"), "user_code": format!("USER-C0DE-{n}"),
                "verification_uri": format!("http://{here}/enter"), "expires_in": 600, "interval": 1 });
            (200, said)
        }
        "/token" => grant(&mut state, &body),
        "/authorize" => {
            let code = format!("code-{}", state.challenges.len() + 1);
            state.challenges.insert(code.clone(), field(query, "code_challenge"));
            more =
                format!("location: {}?code={code}&state={}\r\n", field(query, "redirect_uri"), field(query, "state"));
            (302, Value::Null)
        }
        _ if !believed => (401, json!({ "error": "invalid_token" })),
        "/mcp" if head.starts_with("GET") => (405, Value::Null),
        "/mcp" => match rpc(&body, &mut state) {
            Some(reply) => (200, reply),
            None => (202, Value::Null),
        },
        _ => {
            state.done += 1;
            (200, json!({ "done": state.done }))
        }
    };
    let text = if reply.is_null() { String::new() } else { reply.to_string() };
    drop(state);
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()?;
    (header("connection").as_deref() != Some("close")).then_some(())
}

fn rpc(body: &str, state: &mut State) -> Option<Value> {
    let asked: Value = serde_json::from_str(body).ok()?;
    let id = asked.get("id")?.clone();
    let result = match asked["method"].as_str()? {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "mcp", "version": "1" } }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            state.done += 1;
            json!({ "content": [{ "type": "text", "text": format!("done {}", state.done) }] })
        }
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

const DOCUMENT: &str = r#"{
  "openapi": "3.1.0", "info": { "title": "echo", "version": "1" },
  "paths": { "/echo": { "post": { "operationId": "echo",
    "requestBody": { "content": { "application/json": { "schema": { "type": "object", "properties": { "x": { "type": "integer" } } } } } },
    "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": { "type": "object" } } } } } } } }
}"#;

fn place(world: &World) -> (Place, String) {
    let place = Place::new();
    place.write("echo.json", DOCUMENT);
    place.write("client.secret", SECRET);
    let config = format!(
        "[people]\nhold = \"1s\"\n[upstreams.api]\nopenapi = \"echo.json\"\nbase_url = \"http://{}\"\n{}",
        world.address,
        world.sign_in("api", "")
    );
    (place, config)
}

/// A gateway that knows the API's tool.
fn serve(place: Place, config: &str) -> House {
    let house = House::serve(place, config);
    eventually("the tool is known", || house.alone("", "tools/list", "", json!({})).text.contains("api__echo"));
    house
}

fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

fn question(place: &Place) -> Value {
    eventually("a person is asked", || queue(place).len() == 1);
    queue(place).remove(0)
}

fn echo(house: &House, x: u64) -> Value {
    house.ask("POST", "/call/api__echo", &[], &json!({ "x": x }).to_string()).body
}

#[test]
fn a_call_waits_for_the_code_to_be_entered_and_the_token_is_kept_renewed_and_shown_to_nobody_else() {
    let world = World::start();
    let (place, config) = place(&world);
    let mut house = serve(place, &config);
    let told = echo(&house, 1);
    assert_eq!(told["error"]["kind"], "awaiting_person", "{told}");
    let asked = question(&house.place);
    assert_eq!(told["error"]["interaction"], asked["id"], "{told}");
    assert_eq!((&asked["kind"], &asked["queue"]), (&json!("auth_device_code"), &json!("default")), "{asked}");
    let at = &asked["grounds"]["sign_in"];
    assert_eq!(at["code"], "USER-C0DE-1", "{asked}");
    assert_eq!(at["url"], format!("http://{}/enter", world.address), "{asked}");
    let said = told.to_string();
    assert!(!said.contains("C0DE") && !said.contains("/enter"), "an agent is not sent there: {told}");
    // Equal calls wait together, and nobody can say for the issuer that it is done.
    let again = echo(&house, 1);
    assert_eq!(again["error"]["interaction"], asked["id"], "{again}");
    let (code, said) = house.place.amends(&["answer", asked["id"].as_str().expect("an id"), "done", "--by", "ada"]);
    assert!(code != 0 && said.is_empty(), "{said}");
    assert_eq!((world.now(|state| state.done), world.now(|state| state.codes)), (0, 1), "nothing was sent");
    // A call that is still waited for goes on by itself.
    let waiting = thread::spawn({
        let address = house.address.clone();
        move || crate::house::ask(&address, "POST", "/call/api__echo", &[], r#"{"x":1}"#).body
    });
    world.now(|state| state.entered = true);
    eventually("somebody signed in", || queue(&house.place).is_empty());
    drop(waiting.join());
    eventually("it is sent", || echo(&house, 1)["status"] == "success" || world.now(|state| state.done) > 0);
    assert_eq!(echo(&house, 2)["status"], "success");
    let before = world.now(|state| state.done);
    // A token that is taken back is renewed without a person.
    world.now(|state| state.tokens.clear());
    eventually("it is renewed", || echo(&house, 3)["status"] == "success");
    assert_eq!((world.now(|state| state.renewed), world.now(|state| state.codes)), (1, 1));
    assert!(world.now(|state| state.done) > before);
    house.place.settled();
    for secret in ["acc3ss-", "r3fresh-", SECRET, "device-1"] {
        assert_eq!(house.keeps(secret), None, "`{secret}` is kept");
    }
    let traced = serde_json::to_string(&house.place.events()).expect("JSON");
    assert!(!traced.contains("C0DE"), "the code is on no trace");
    // It is there after a restart.
    house.serve_again();
    eventually("it needs nobody", || echo(&house, 4)["status"] == "success");
    assert_eq!(world.now(|state| state.codes), 1);
}

#[test]
fn a_no_ends_the_call_and_the_next_one_asks_again() {
    let world = World::start();
    let (place, config) = place(&world);
    let house = serve(place, &config.replace("\"1s\"", "\"30s\""));
    let waiting = thread::spawn({
        let address = house.address.clone();
        move || crate::house::ask(&address, "POST", "/call/api__echo", &[], r#"{"x":1}"#).body
    });
    let asked = question(&house.place);
    let (code, said) = house.place.amends(&["answer", asked["id"].as_str().expect("an id"), "deny", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    let told = waiting.join().expect("it is answered");
    assert_eq!(told["error"]["kind"], "approval_denied", "{told}");
    assert_eq!(world.now(|state| state.done), 0);
    house.place.settled();
}

#[test]
fn somebody_signs_in_at_an_address_that_leads_back_here_and_the_tools_are_there() {
    let world = World::start();
    let place = Place::new();
    place.write("client.secret", SECRET);
    let config = format!(
        "[upstreams.mcp]\nurl = \"http://{}/mcp\"\n{}",
        world.address,
        world.sign_in("mcp", "by = \"url\"\nqueue = \"accounts\"")
    );
    let house = House::serve(place, &config);
    // Nobody called anything: the gateway asks by itself, since nothing is known of the upstream before.
    let asked = question(&house.place);
    assert_eq!((&asked["kind"], &asked["queue"]), (&json!("auth_url"), &json!("accounts")), "{asked}");
    let url = asked["grounds"]["sign_in"]["url"].as_str().expect("an address").to_owned();
    let (_, target) = url.split_once(&world.address).unwrap_or_else(|| panic!("{url}"));
    for forged in ["/callback/sign-in?state=x&code=y", "/callback/sign-in", "/callback/sign-in?state=x&error=no"] {
        let refused = house.ask("GET", forged, &[], "");
        assert_eq!(refused.status, 400, "{forged}: {refused:?}");
    }
    // What a browser does.
    let sent = crate::house::ask(&world.address, "GET", target, &[], "");
    let back = sent.header("location").unwrap_or_else(|| panic!("{sent:?}")).to_owned();
    let back = back.strip_prefix(&format!("http://{}", house.address)).unwrap_or_else(|| panic!("{back}")).to_owned();
    let page = house.ask("GET", &back, &[], "");
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.text.contains("Signed in"), "{page:?}");
    let twice = house.ask("GET", &back, &[], "");
    assert_eq!(twice.status, 400, "a code counts once: {twice:?}");
    eventually("its tools are served", || house.ask("POST", "/call/mcp__echo", &[], "{}").body["status"] == "success");
    eventually("nobody is asked any more", || queue(&house.place).is_empty());
    house.place.settled();
    for secret in ["acc3ss-", "r3fresh-", SECRET] {
        assert_eq!(house.keeps(secret), None, "`{secret}` is kept");
    }
}
