//! A body of several parts: each argument one of them, bytes as bytes.

use std::collections::{BTreeMap, BTreeSet};

use amends_ledger::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::document::{Document, DocumentError, Node};
use super::encode;

/// What the parts of a body are, where they are not what their values show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// The ones that are bytes; their arguments hold them in base64.
    binary: BTreeSet<String>,
    /// Their media types, where the document names one.
    types: BTreeMap<String, String>,
}

impl Parts {
    /// What a document says of the parts of a body with that schema.
    pub(super) fn read<'a>(
        document: &'a Document,
        media: &Node<'a>,
        schema: Option<&Node<'a>>,
    ) -> Result<Self, DocumentError> {
        let mut parts = Self::default();
        for (name, node) in schema.and_then(|schema| schema.get("properties")).iter().flat_map(Node::members) {
            let mut node = document.follow(node)?;
            if let Some(items) = node.get("items").filter(|_| node.text("type") == Some("array")) {
                node = document.follow(items)?;
            }
            let raw = node.text("contentMediaType").is_some() && node.text("contentEncoding").is_none();
            if node.text("format") == Some("binary") || raw {
                parts.binary.insert(name.to_owned());
            }
            if let Some(media) = node.text("contentMediaType").filter(|media| is_type(media)) {
                parts.types.insert(name.to_owned(), media.to_owned());
            }
        }
        for (name, encoding) in media.get("encoding").iter().flat_map(Node::members) {
            if let Some(media) = encoding.text("contentType").filter(|media| is_type(media)) {
                parts.types.insert(name.to_owned(), media.to_owned());
            }
        }
        Ok(parts)
    }

    /// Says in the schemas of the arguments which of them hold bytes, and how.
    pub(super) fn describe(&self, schema: &mut Value) {
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for name in &self.binary {
            if let Some(property) = properties.get_mut(name) {
                let said = property.get("description").and_then(Value::as_str).unwrap_or("bytes");
                let bytes = json!({
                    "type": "string", "contentEncoding": "base64", "description": format!("{said} (in base64)"),
                });
                *property = match property.get("type").and_then(Value::as_str) {
                    Some("array") => json!({ "type": "array", "items": bytes }),
                    _ => bytes,
                };
            }
        }
    }

    /// The body and its media type. The same arguments make the same bytes.
    pub(super) fn write(&self, members: &[(String, &RawValue)]) -> Result<(String, Bytes), String> {
        let mut parts = Vec::new();
        for (name, value) in members {
            match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
                Ok(items) => {
                    for item in items {
                        parts.push(self.part(name, item)?);
                    }
                }
                Err(_) => parts.push(self.part(name, value)?),
            }
        }
        let whole: Vec<u8> =
            parts.iter().flat_map(|(head, body)| [head.as_bytes(), body.as_slice()]).flatten().copied().collect();
        // A digest of all that is between the lines stands in none of it, as far as anybody can bring about.
        let boundary = format!("amends-{}", &digest(&whole).as_str()[..32]);
        let mut out = Vec::with_capacity(whole.len() + (parts.len() + 1) * (boundary.len() + 8));
        for (head, body) in &parts {
            out.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            out.extend_from_slice(body);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok((format!("multipart/form-data; boundary={boundary}"), out.into()))
    }

    /// One part: its head and its body.
    fn part(&self, name: &str, value: &RawValue) -> Result<(String, Vec<u8>), String> {
        let (media, body, is_file) = match encode::scalar(value) {
            Some(text) if self.binary.contains(name) => {
                let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| format!("`{name}` is not in base64"))?;
                (Some("application/octet-stream"), bytes, true)
            }
            Some(text) => (None, text.into_bytes(), false),
            None => (Some("application/json"), value.get().as_bytes().to_vec(), false),
        };
        let named = quoted(name);
        let mut head = format!("content-disposition: form-data; name=\"{named}\"");
        if is_file {
            head.push_str(&format!("; filename=\"{named}\""));
        }
        if let Some(media) = self.types.get(name).map(String::as_str).or(media) {
            head.push_str(&format!("\r\ncontent-type: {media}"));
        }
        Ok((head, body))
    }
}

/// Whether a text is one media type that can be said.
fn is_type(text: &str) -> bool {
    text.contains('/') && !text.contains(['*', ',']) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// A name between quotes, as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// The members of an argument that holds a whole body.
pub(super) fn members(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    let object = amends_wire::object::Object::parse(value.get())?;
    Some(object.members().iter().map(|member| (member.name().into_owned(), member.value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(parts: &Parts, text: &str) -> Result<(String, String), String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let (media, bytes) = parts.write(&members(raw).unwrap())?;
        Ok((media, String::from_utf8_lossy(&bytes).into_owned()))
    }

    #[test]
    fn each_value_is_a_part_and_bytes_are_bytes() {
        let types = [("scan".to_owned(), "image/png".to_owned())].into();
        let parts = Parts { binary: ["scan".to_owned()].into(), types };
        let text = r#"{"n":1.50,"scan":["AP8=","AA=="],"more":{"a" : 1},"q\"\r\nx: y":"v"}"#;
        let (media, body) = write(&parts, text).unwrap();
        let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
        let said: Vec<&str> = body.split(&format!("--{boundary}")).collect();
        assert_eq!(said.len(), 7, "{body}");
        assert_eq!(said[1], "\r\ncontent-disposition: form-data; name=\"n\"\r\n\r\n1.50\r\n");
        assert!(said[2].contains("filename=\"scan\"\r\ncontent-type: image/png\r\n\r\n\u{0}"), "{body}");
        assert!(said[4].ends_with("content-type: application/json\r\n\r\n{\"a\" : 1}\r\n"), "{body}");
        assert!(said[5].contains("name=\"q%22%0D%0Ax: y\"\r\n\r\nv"), "no name ends a head: {body}");
        assert_eq!((said[0], said[6]), ("", "--\r\n"));
        assert_eq!(write(&parts, text).unwrap(), (media.clone(), body), "the same again");
        assert_eq!(write(&parts, r#"{"scan":"no base64!"}"#).unwrap_err(), "`scan` is not in base64");
    }
}
