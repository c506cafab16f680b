//! An API's answer as a tool's result.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, LOCATION};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::body::Media;
use super::refused;
use crate::upstream::exchange::{Fault, Reply};
use crate::upstream::http::pool::{Pool, Sent};

/// The member of a result's `_meta` that says what HTTP said beside the body.
pub(crate) const HTTP_META: &str = "amends/http";
/// How much of a body that is no result is kept.
const WORDS_BYTES_MAX: usize = 16 * 1024;

/// Reads an answer. A success becomes a result; any other status is handed on with what it says.
pub(super) async fn read(mut sent: Sent, bytes_max: usize, pool: &Pool) -> Reply {
    let status = sent.response.status();
    let headers = sent.response.headers().clone();
    let mut body: Vec<u8> = Vec::new();
    let keep = if status.is_success() { bytes_max } else { bytes_max.min(4 * WORDS_BYTES_MAX) };
    while let Some(frame) = sent.response.body_mut().frame().await {
        let Ok(frame) = frame else { return Reply::Fault(Fault::Lost) };
        let Some(data) = frame.data_ref() else { continue };
        if body.len() + data.len() > keep {
            // The status has come, and says what became of the request; of the rest its start is enough.
            body.truncate(WORDS_BYTES_MAX);
            return refused(status.as_u16(), &headers, String::from_utf8_lossy(&body).into_owned());
        }
        body.extend_from_slice(data);
    }
    pool.keep(sent.connection);
    if status.is_success() {
        return Reply::Result(result(status.as_u16(), &headers, body.into()));
    }
    body.truncate(4 * WORDS_BYTES_MAX);
    refused(status.as_u16(), &headers, String::from_utf8_lossy(&body).into_owned())
}

/// A success as a tool's result: its JSON as it was written, its text, or its bytes.
fn result(status: u16, headers: &HeaderMap, body: Bytes) -> Bytes {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let media = header(CONTENT_TYPE).unwrap_or_default();
    let text = std::str::from_utf8(&body).ok();
    let is_json = Media::of(media) == Some(Media::Json) || media.is_empty();
    let json = text.filter(|_| is_json).and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let block = match text {
        Some("") => json!([]),
        Some(text) => json!([{ "type": "text", "text": text }]),
        None => {
            let blob = STANDARD.encode(&body);
            json!([{ "type": "resource", "resource": { "uri": "amends:body", "mimeType": media, "blob": blob } }])
        }
    };
    let mut said = Map::from_iter([("status".to_owned(), json!(status))]);
    for (name, value) in [("etag", header(ETAG)), ("location", header(LOCATION))] {
        said.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    }
    let meta = json!({ HTTP_META: said });
    // Only objects are structured content for every client; the text says the rest.
    let structured = json.filter(|json| json.get().starts_with('{'));
    let structured = structured.map(|json| format!(r#","structuredContent":{}"#, json.get())).unwrap_or_default();
    format!(r#"{{"content":{block}{structured},"_meta":{meta}}}"#).into()
}

/// The tag of what a result holds, where its upstream gave one.
pub(crate) fn etag(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    result["_meta"][HTTP_META]["etag"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(media: &str, body: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, media.parse().unwrap());
        headers.insert(ETAG, "\"v1\"".parse().unwrap());
        String::from_utf8(result(201, &headers, Bytes::copy_from_slice(body)).to_vec()).unwrap()
    }

    #[test]
    fn an_object_is_structured_content_as_it_was_written() {
        let result = of("application/json", br#"{"b": 1.0, "a":12345678901234567890123}"#);
        assert!(result.contains(r#""structuredContent":{"b": 1.0, "a":12345678901234567890123}"#), "{result}");
        assert_eq!(etag(&result).as_deref(), Some("\"v1\""));
    }

    #[test]
    fn what_is_no_object_is_text_or_bytes() {
        for (media, body) in [("application/json", "[1]"), ("application/json", "{broken"), ("text/plain", "{}")] {
            let read: Value = serde_json::from_str(&of(media, body.as_bytes())).unwrap();
            assert_eq!((read["content"][0]["text"].as_str(), read.get("structuredContent")), (Some(body), None));
        }
        let bytes: Value = serde_json::from_str(&of("image/png", &[0xff, 0])).unwrap();
        assert_eq!(bytes["content"][0]["resource"]["blob"], "/wA=");
        let none: Value = serde_json::from_str(&of("application/json", b"")).unwrap();
        assert_eq!(none["content"], json!([]));
    }
}
