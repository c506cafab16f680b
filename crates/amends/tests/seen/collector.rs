//! A collector of spans: a real HTTP server that reads OTLP with OpenTelemetry's own types.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

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
        Self::over(Some)
    }

    /// The same over TLS.
    pub(crate) fn start_tls(config: Arc<ServerConfig>) -> Self {
        Self::over(move |stream| {
            let connection = ServerConnection::new(config.clone()).ok()?;
            Some(StreamOwned::new(connection, stream))
        })
    }

    fn over<S: Read + Write>(open: impl Fn(TcpStream) -> Option<S> + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let held = Arc::<Mutex<Held>>::default();
        let taken = held.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, open) = (taken.clone(), open.clone());
                thread::spawn(move || {
                    let Some(mut stream) = open(stream) else { return };
                    while take(&mut stream, &taken).is_some() {}
                });
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
fn take(stream: &mut (impl Read + Write), held: &Mutex<Held>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
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
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").and_then(|()| stream.flush()).ok()
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
