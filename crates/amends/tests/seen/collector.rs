//! A collector of spans: a real HTTP server that reads OTLP with OpenTelemetry's own types.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// A collector that takes whatever comes, for as long as the test runs.
pub(crate) struct Collector {
    pub(crate) address: String,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    /// With the name of the service that sent it.
    spans: Vec<(String, Span)>,
    raw: Vec<u8>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let held = Arc::<Mutex<Held>>::default();
        let taken = held.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = taken.clone();
                thread::spawn(move || while take(&stream, &taken).is_some() {});
            }
        });
        Self { address, held }
    }

    /// Every span so far, with the name of the service that sent it.
    pub(crate) fn spans(&self) -> Vec<(String, Span)> {
        self.held.lock().expect("nobody panicked with it").spans.clone()
    }

    /// Every byte so far.
    pub(crate) fn raw(&self) -> Vec<u8> {
        self.held.lock().expect("nobody panicked with it").raw.clone()
    }
}

/// Takes one request and answers it; nothing at the end of the connection.
fn take(stream: &TcpStream, held: &Mutex<Held>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    assert!(head.starts_with("POST /v1/traces ") && head.contains("application/x-protobuf"), "{head}");
    let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("OTLP");
    let mut held = held.lock().expect("nobody panicked with it");
    held.raw.extend(body);
    for resource in request.resource_spans {
        let said = attributes(&resource.resource.expect("a resource").attributes);
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        held.spans.extend(spans.map(|span| (said["service.name"].clone(), span)));
    }
    drop(held);
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

/// The attributes as texts, by their names.
pub(crate) fn attributes(said: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::BoolValue(yes)) => yes.to_string(),
        other => panic!("an attribute of ours is a word, a number or a yes: {other:?}"),
    };
    said.iter().map(|pair| (pair.key.clone(), text(&pair.value))).collect()
}
