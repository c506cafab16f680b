//! An HTTP API with a book of its own, that fails on cue: the order it is asked about says how.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What its document says.
pub(crate) const DOCUMENT: &str = include_str!("shop.yaml");

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    /// The value of that header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.split_once(':').is_some_and(|(known, _)| known.eq_ignore_ascii_case(name)))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

/// All that arrived, and all that was done.
#[derive(Debug, Default)]
struct Book {
    seen: Vec<Seen>,
    /// What was done: the method and the order, and the key it came with.
    effects: Vec<(String, String, Option<String>)>,
    /// The version of every order.
    version: u64,
}

/// The API; it lives as long as the test's process.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

impl Api {
    pub(crate) fn start() -> Self {
        Self::start_at(0)
    }

    /// The same at that port.
    pub(crate) fn start_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let api = Self { address, book: Arc::default() };
        let serving = api.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.converse(stream));
            }
        });
        api
    }

    /// The requests with that method about that order, in their order.
    pub(crate) fn seen(&self, method: &str, order: &str) -> Vec<Seen> {
        let book = self.book.lock().expect("the book");
        book.seen.iter().filter(|seen| seen.method == method && order_of(seen) == order).cloned().collect()
    }

    /// All requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.book.lock().expect("the book").seen.len()
    }

    /// How often something was done to that order.
    pub(crate) fn effects(&self, order: &str) -> usize {
        self.book.lock().expect("the book").effects.iter().filter(|(_, done, _)| done == order).count()
    }

    /// Somebody else changes every order.
    pub(crate) fn change(&self) {
        self.book.lock().expect("the book").version += 1;
    }

    fn converse(&self, stream: TcpStream) {
        let mut writer = stream.try_clone().expect("a second handle");
        let mut reader = BufReader::new(stream);
        while let Some(seen) = request(&mut reader) {
            self.book.lock().expect("the book").seen.push(seen.clone());
            if !self.answer(&mut writer, &seen) {
                return;
            }
        }
    }

    /// Does what is asked for, unless it was done under the same key, and says how often this order was asked about.
    fn work(&self, seen: &Seen) -> usize {
        let mut book = self.book.lock().expect("the book");
        let (order, key) = (order_of(seen), seen.header("idempotency-key").map(str::to_owned));
        let effect = (seen.method.clone(), order.clone(), key.clone());
        if seen.method != "GET" && (key.is_none() || !book.effects.contains(&effect)) {
            book.effects.push(effect);
        }
        book.seen.iter().filter(|other| other.method == seen.method && order_of(other) == order).count()
    }

    /// Answers, and says whether the connection goes on.
    fn answer(&self, stream: &mut TcpStream, seen: &Seen) -> bool {
        let order = order_of(seen);
        let reset = |stream: &TcpStream| {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            false
        };
        let problem = |status: u16| json!({"title": "No", "detail": "not today", "status": status}).to_string();
        let refuse = |stream: &mut TcpStream, status: &str, headers: &str| {
            let number = status[..3].parse().expect("a status");
            let headers = format!("content-type: application/problem+json\r\n{headers}");
            write(stream, status, &headers, problem(number).as_bytes())
        };
        match order.as_str() {
            "409" => return refuse(stream, "409 Conflict", ""),
            "409_done" => {
                let words = json!({"status": 409, "code": "already_processed"}).to_string();
                return write(stream, "409 Conflict", "content-type: application/json\r\n", words.as_bytes());
            }
            "422" => {
                let words = json!({"title": "Bad amount", "detail": "too much", "status": 422, "field": "amount"});
                return write(
                    stream,
                    "422 Unprocessable",
                    "content-type: application/json\r\n",
                    words.to_string().as_bytes(),
                );
            }
            "429" => return refuse(stream, "429 Too Many Requests", "retry-after: 7\r\n"),
            "429_limits" => return refuse(stream, "429 Too Many Requests", "ratelimit: \"d\";r=0;t=9\r\n"),
            "503" => return refuse(stream, "503 Service Unavailable", ""),
            "307" => return refuse(stream, "307 Temporary Redirect", "location: /charges\r\n"),
            "404" => return refuse(stream, "404 Not Found", ""),
            _ => {}
        }
        let if_match = seen.header("if-match");
        let tag = format!("\"v{}\"", self.book.lock().expect("the book").version);
        if if_match.is_some_and(|wanted| wanted != tag) {
            return refuse(stream, "412 Precondition Failed", "");
        }
        let times = self.work(seen);
        match (order.as_str(), times) {
            ("hang", _) | ("hang_once", 1) => {
                // Until the other side gives up.
                let _ = stream.read(&mut [0]);
                false
            }
            ("reset", _) | ("reset_once", 1) => reset(stream),
            ("503_once", 1) => refuse(stream, "503 Service Unavailable", ""),
            ("cut", _) => {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{\"order\"",
                );
                reset(stream)
            }
            ("huge", _) => {
                let _ = stream.write_all(
                    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
                );
                let part = format!("{:x}\r\n{}\r\n", 64 * 1024, "x".repeat(64 * 1024));
                while stream.write_all(part.as_bytes()).is_ok() {}
                false
            }
            ("broken", _) => write(stream, "201 Created", "content-type: application/json\r\n", b"{\"order\": \xff"),
            ("none", _) => write(stream, "204 No Content", "", b""),
            _ => {
                let version = self.book.lock().expect("the book").version;
                let body = json!({"order": order, "version": version, "times": times}).to_string();
                let headers = match order.as_str() {
                    "untagged" => "content-type: application/json\r\n".to_owned(),
                    _ => format!("content-type: application/json\r\netag: {tag}\r\n"),
                };
                if order == "changing" {
                    self.change();
                }
                let status = if seen.method == "POST" { "201 Created" } else { "200 OK" };
                write(stream, status, &headers, body.as_bytes())
            }
        }
    }
}

/// The order a request is about: in its path, or in its body.
fn order_of(seen: &Seen) -> String {
    let path = seen.target.split('?').next().unwrap_or("");
    match path.strip_prefix("/v1/orders/") {
        Some(order) => order.to_owned(),
        None => {
            let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
            body["order"].as_str().unwrap_or_default().to_owned()
        }
    }
}

/// Reads one request; nothing once the other side is gone.
pub(crate) fn request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
        if &head[before..] == "\r\n" {
            break;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    reader.read_exact(&mut body).ok()?;
    let mut words = head.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Seen { method, target, head, body: String::from_utf8_lossy(&body).into_owned() })
}

pub(crate) fn write(stream: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    let head = if status.starts_with("204") { format!("HTTP/1.1 {status}\r\n{headers}\r\n") } else { head };
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_ok()
}
