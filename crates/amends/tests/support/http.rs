//! A bare HTTP client that shows exactly what came back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Posts a body on a connection of its own and reads to its end: the status and the JSON.
pub fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
    let (status, text) = post_raw(address, path, headers, body);
    (status, serde_json::from_slice(&text).unwrap_or(Value::Null))
}

/// The same with the body as it came.
pub fn post_raw(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = send(address, path, headers, body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parse(&answer)
}

/// Sends a request and gives the connection, for tests that break it.
pub fn send(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let mut head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    let own = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !own("content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    if !own("accept") {
        head.push_str("accept: application/json, text/event-stream\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // A server may answer before it has read everything.
    let _ = stream.write_all(body);
    stream
}

/// A connection that is kept: requests go out on it one after the other.
#[derive(Debug)]
pub struct Kept {
    stream: TcpStream,
    address: String,
}

impl Kept {
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        Self { stream, address: address.to_owned() }
    }

    /// Posts a body without reading the answer.
    pub fn send(&mut self, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("the request is sent");
    }

    /// Reads one answer that says its length: the status and the JSON.
    pub fn receive(&mut self) -> (u16, Value) {
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte).expect("an answer");
            answer.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&answer).to_lowercase();
        let length = head.split("content-length:").nth(1).and_then(|rest| rest.split_whitespace().next());
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).expect("a length")];
        self.stream.read_exact(&mut body).expect("a body");
        (parse(&answer).0, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Waits until the first byte of an answer is there, and leaves it unread.
    pub fn await_answer(&self) {
        self.stream.peek(&mut [0]).expect("an answer");
    }

    /// A call through the plain HTTP door, answered.
    pub fn call(&mut self, tool: &str, arguments: &str) -> (u16, Value) {
        self.send(&format!("/call/{tool}"), &[], arguments);
        self.receive()
    }
}

/// The status and body of an answer; chunks are joined.
pub fn parse(answer: &[u8]) -> (u16, Vec<u8>) {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = &answer[end..];
    if !head.contains("transfer-encoding: chunked") {
        return (status, body.to_vec());
    }
    let mut joined = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&rest[..at]).trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < at + 2 + size {
            break;
        }
        joined.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = rest.get(at + 4 + size..).unwrap_or_default();
    }
    (status, joined)
}
