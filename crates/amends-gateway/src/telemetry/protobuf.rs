//! Spans in the bytes of OTLP: `ExportTraceServiceRequest` of `opentelemetry/proto/collector/trace/v1`.

use super::span::{Kind, Said, Span, SpanEvent};

/// The flags of a span: only what is sampled is exported, and whether its parent is another process's is known.
const SAMPLED: u32 = 0x001;
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_ELSEWHERE: u32 = 0x200;

/// A request that exports those spans of a service.
pub(super) fn request(service: &str, spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = Message::default();
    out.message(1, |resource_spans| {
        resource_spans.message(1, |resource| {
            attribute(resource, 1, "service.name", &Said::Text(service.to_owned()));
            attribute(resource, 1, "service.version", &Said::Word(version));
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, b"amends");
                scope.bytes(2, version.as_bytes());
            });
            for one in spans {
                scope_spans.message(2, |message| span(message, one));
            }
        });
    });
    out.0
}

fn span(out: &mut Message, span: &Span) {
    out.bytes(1, &span.trace);
    out.bytes(2, &span.id);
    out.bytes(3, span.state.as_bytes());
    if let Some(parent) = &span.parent {
        out.bytes(4, parent);
    }
    out.bytes(5, span.name.as_bytes());
    out.varint(6, span.kind as u64);
    out.fixed64(7, nanos(span.start_ms));
    out.fixed64(8, nanos(span.end_ms));
    for (name, said) in &span.attributes {
        attribute(out, 9, name, said);
    }
    for happened in &span.events {
        out.message(11, |message| event(message, happened));
    }
    out.varint(12, u64::from(span.events_left_out));
    if span.failed {
        out.message(15, |status| status.varint(3, 2));
    }
    let elsewhere = if span.kind == Kind::Server && span.parent.is_some() { PARENT_IS_ELSEWHERE } else { 0 };
    out.fixed32(16, SAMPLED | PARENT_IS_KNOWN | elsewhere);
}

fn event(out: &mut Message, event: &SpanEvent) {
    out.fixed64(1, nanos(event.at_ms));
    out.bytes(2, event.name.as_bytes());
    for (name, said) in &event.attributes {
        attribute(out, 3, name, said);
    }
}

fn attribute(out: &mut Message, field: u32, name: &str, said: &Said) {
    out.message(field, |pair| {
        pair.bytes(1, name.as_bytes());
        pair.message(2, |value| match said {
            Said::Word(word) => value.text(1, word),
            Said::Text(text) => value.text(1, text),
            Said::Yes => value.varint(2, 1),
            // Negative numbers are written in full; zero must be written too, or the value would be none at all.
            Said::Number(number) => value.number(3, *number as u64),
        });
    });
}

const fn nanos(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// A message under way. What is empty or zero is left out, as the format has it.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.text_bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.text_bytes(field, bytes);
        }
    }

    /// A text that is there even where it is empty: one of several kinds of value.
    fn text(&mut self, field: u32, text: &str) {
        self.text_bytes(field, text.as_bytes());
    }

    fn text_bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.number(field, value);
        }
    }

    fn number(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.raw(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.raw(u64::from(field << 3 | wire_type));
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
