//! The headers of a modern request over HTTP, which must say what its body says.

use std::borrow::Cow;

use serde_json::value::RawValue;
use thiserror::Error;

use super::era::HEADER_MISMATCH;
use crate::object::Object;

/// The header with the version of the protocol.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// The header with the method.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header with the name of the tool, prompt, resource or task.
pub const NAME_HEADER: &str = "mcp-name";
/// The header with the session, before 2026-07-28.
pub const SESSION_HEADER: &str = "mcp-session-id";

/// What a request's headers say about its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routing<'a> {
    /// The header `MCP-Protocol-Version`.
    pub version: Option<&'a str>,
    /// The header `Mcp-Method`.
    pub method: Option<&'a str>,
    /// The header `Mcp-Name`.
    pub name: Option<&'a str>,
}

/// A header that does not say what the body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderMismatch {
    /// The version.
    #[error("the header `MCP-Protocol-Version` does not say what the request's `_meta` says")]
    Version,
    /// The method.
    #[error("the header `Mcp-Method` does not say what the request's `method` says")]
    Method,
    /// The name.
    #[error("the header `Mcp-Name` does not say what the request's params say")]
    Name,
}

impl HeaderMismatch {
    /// The JSON-RPC code for it; over HTTP it goes with the status 400.
    pub const fn code(self) -> i64 {
        HEADER_MISMATCH
    }
}

/// Whether the headers of a modern request say what its body says.
pub fn check(
    headers: Routing<'_>,
    version: &str,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), HeaderMismatch> {
    if headers.version.map(str::trim) != Some(version) {
        return Err(HeaderMismatch::Version);
    }
    if headers.method.map(str::trim) != Some(method) {
        return Err(HeaderMismatch::Method);
    }
    match body_name(method, params) {
        Some(name) if headers.name.and_then(decode).as_deref() != Some(&*name) => Err(HeaderMismatch::Name),
        Some(_) | None => Ok(()),
    }
}

/// The HTTP status that a JSON-RPC error goes with in the modern era.
pub const fn status_of(code: i64) -> u16 {
    match code {
        -32700 | -32600 | -32602 | -32020 | -32021 | -32022 => 400,
        -32601 => 404,
        _ => 200,
    }
}

/// What the header `Mcp-Name` has to say for a request.
pub fn body_name(method: &str, params: Option<&RawValue>) -> Option<String> {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    Object::parse(params?.get())?.string(field).map(Cow::into_owned)
}

/// A header's value, read back from base64 where it was written so; nothing if that cannot be read.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim();
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(base64_decode(inner)?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

/// A value as a header can carry it: as it is where that is safe, else in base64.
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    if plain { Cow::Borrowed(value) } else { Cow::Owned(format!("=?base64?{}?=", base64_encode(value.as_bytes()))) }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for n in 0..4 {
            let six = (word >> (18 - 6 * n)) as usize & 63;
            out.push(if n <= group.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    out
}

fn base64_decode(text: &str) -> Option<Vec<u8>> {
    // Without its padding it is not what was meant, or not all of it.
    if !text.len().is_multiple_of(4) || text.trim_end_matches('=').len() + 2 < text.len() {
        return None;
    }
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.as_bytes().chunks(4) {
        if group.len() == 1 {
            return None;
        }
        let mut word = 0_u32;
        for byte in group {
            word = word << 6 | u32::try_from(ALPHABET.iter().position(|known| known == byte)?).ok()?;
        }
        word <<= 6 * (4 - group.len());
        out.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_must_say_what_the_body_says() {
        let params = RawValue::from_string(r#"{"name":"zahlen_ä"}"#.into()).unwrap();
        let headers =
            Routing { version: Some("2026-07-28"), method: Some("tools/call"), name: Some("=?base64?emFobGVuX8Ok?=") };
        let check = |headers| super::check(headers, "2026-07-28", "tools/call", Some(&params));
        assert_eq!(check(headers), Ok(()));
        assert_eq!(check(Routing { name: Some("pay"), ..headers }), Err(HeaderMismatch::Name));
        assert_eq!(check(Routing { name: None, ..headers }), Err(HeaderMismatch::Name));
        assert_eq!(check(Routing { method: None, ..headers }), Err(HeaderMismatch::Method));
        assert_eq!(check(Routing { version: Some("2025-11-25"), ..headers }), Err(HeaderMismatch::Version));
        assert_eq!(super::check(Routing { name: None, ..headers }, "2026-07-28", "tools/call", None), Ok(()));
    }

    #[test]
    fn what_a_header_cannot_carry_goes_in_base64_and_comes_back() {
        for text in ["pay", "zahlen_ä", " x", "", "a\nb", "=?base64?eA==?=", "ab", "abc", "abcd"] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            assert_eq!(decode(&encoded).unwrap(), text);
        }
        assert_eq!(decode("=?base64?!!!?="), None);
        assert_eq!(decode("=?base64?a?="), None);
        assert_eq!(decode("=?base64?eA?="), None, "the padding is missing");
        assert_eq!(decode("=?base64?gICA?="), None);
    }
}
