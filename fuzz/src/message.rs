//! JSON-RPC messages: what is read can be written again, and reads the same.

use amends_wire::mcp::era::Era;
use amends_wire::mcp::http;
use amends_wire::{Message, Object, message};
use serde_json::value::RawValue;

/// Reads the bytes as a message, writes it again from its parts, and reads that.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let encoded = http::encode(&text);
    assert!(encoded.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{encoded}");
    assert_eq!(http::decode(&encoded).as_deref(), Some(&*text), "{encoded}");
    let _ = http::decode(text.trim());
    let read = match Message::parse(&text) {
        Ok(read) => read,
        Err(why) => {
            assert!(matches!(why.code(), message::PARSE_ERROR | message::INVALID_REQUEST));
            let valid = serde_json::from_str::<&RawValue>(&text).is_ok();
            assert!(valid || why == amends_wire::Malformed::NotJson, "{why}");
            return;
        }
    };
    assert!(Object::parse(&text).is_some());
    let line = message::one_line(&text);
    assert!(!line.contains(['\n', '\r']));
    let [shape, id, name, content] = parts(&read);
    let content = content.map(|content| message::one_line(&content).into_owned());
    assert_eq!(parts(&Message::parse(&line).expect("one line of it is it")), [shape, id, name, content]);

    let written = match &read {
        Message::Request { id, method, params } => {
            let _ = (Era::detect(method, *params), http::body_name(method, *params));
            message::request(id.get(), method, params.map(RawValue::get))
        }
        Message::Notification { method, params } => message::notification(method, params.map(RawValue::get)),
        Message::Success { id, result } => message::success(id.get(), result.get()),
        Message::Failure { id, error } => {
            message::failure(id.map(RawValue::get), error.code, &error.message, error.data.map(RawValue::get))
        }
    };
    let again = Message::parse(&written).expect("what we write can be read");
    assert_eq!(parts(&again), parts(&read));
}

/// The parts of a message, as they are written: its shape, id, name and content.
fn parts(message: &Message<'_>) -> [Option<String>; 4] {
    let raw = |raw: &RawValue| raw.get().to_owned();
    match message {
        Message::Request { id, method, params } => {
            [Some("request".into()), Some(raw(id)), Some(method.to_string()), params.map(raw)]
        }
        Message::Notification { method, params } => {
            [Some("notification".into()), None, Some(method.to_string()), params.map(raw)]
        }
        Message::Success { id, result } => [Some("success".into()), Some(raw(id)), None, Some(raw(result))],
        Message::Failure { id, error } => {
            let name = format!("{} {}", error.code, error.message);
            [Some("failure".into()), id.map(raw), Some(name), error.data.map(raw)]
        }
    }
}
