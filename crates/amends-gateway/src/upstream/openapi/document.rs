//! A document that describes an API: read, and followed along its references.

use std::fmt;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::limits::{DOCUMENT_BYTES_MAX, REFERENCES_MAX};
use super::yaml;

/// Why a document was not taken, with the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The file.
    origin: String,
    /// The line, where it is known.
    line: Option<usize>,
    /// The JSON pointer, where it is about one value.
    pointer: Option<String>,
    /// What is wrong there.
    reason: String,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(pointer) = &self.pointer {
            write!(f, "`#{pointer}`: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for DocumentError {}

/// A document's text and what it says.
#[derive(Debug)]
pub(super) struct Document {
    origin: String,
    text: String,
    root: Value,
}

/// A value of a document and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: String,
}

impl Document {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, DocumentError> {
        let origin = path.display().to_string();
        let refused = |reason: String| DocumentError { origin: origin.clone(), line: None, pointer: None, reason };
        let file = std::fs::File::open(path).map_err(|error| refused(format!("it cannot be read: {error}")))?;
        let mut bytes = Vec::new();
        file.take(DOCUMENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(format!("it cannot be read: {error}")))?;
        if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
            return Err(refused("it is larger than we take".into()));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8".into()))?;
        Self::parse(text, &origin)
    }

    /// Reads a text: JSON where it begins as an object does, else YAML.
    pub(super) fn parse(text: String, origin: &str) -> Result<Self, DocumentError> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let refused =
            |line, reason| DocumentError { origin: origin.to_owned(), line: Some(line), pointer: None, reason };
        let root = if text.trim_start().starts_with('{') {
            serde_json::from_str(&text).map_err(|error| refused(error.line(), format!("it is not JSON: {error}")))?
        } else {
            yaml::read(&text).map_err(|wrong| refused(wrong.line, wrong.reason))?
        };
        let document = Self { origin: origin.to_owned(), text, root };
        document.check_version()?;
        Ok(document)
    }

    fn check_version(&self) -> Result<(), DocumentError> {
        let version = self.root.get("openapi").and_then(Value::as_str);
        match version {
            Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
            Some(version) => Err(self.refused("/openapi", &format!("`{version}` is none of the versions 3.0 and 3.1"))),
            None if self.root.get("swagger").is_some() => {
                Err(self.refused("/swagger", "this is Swagger 2.0; only OpenAPI 3.0 and 3.1 are understood"))
            }
            None => Err(self.refused("", "there is no `openapi` that says the version as a text, such as \"3.1.0\"")),
        }
    }

    /// Whether its schemas are in the words of 3.0, which differ from JSON Schema.
    pub(super) fn is_older(&self) -> bool {
        self.root.get("openapi").and_then(Value::as_str).is_some_and(|version| version.starts_with("3.0"))
    }

    /// All of it.
    pub(super) fn root(&self) -> Node<'_> {
        Node { value: &self.root, pointer: String::new() }
    }

    /// A complaint about the value that a pointer leads to.
    pub(super) fn refused(&self, pointer: &str, reason: &str) -> DocumentError {
        let line = yaml::line(&self.text, pointer);
        DocumentError {
            origin: self.origin.clone(),
            line,
            pointer: Some(pointer.to_owned()),
            reason: reason.to_owned(),
        }
    }

    /// The same value, or what its `$ref` leads to. References lead to places inside the document only.
    pub(super) fn follow<'a>(&'a self, node: Node<'a>) -> Result<Node<'a>, DocumentError> {
        let mut node = node;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = node.value.get("$ref") else { return Ok(node) };
            let pointer = self.local(reference, &node.pointer)?;
            let value = self.root.pointer(&pointer).ok_or_else(|| {
                self.refused(&node.pointer, &format!("it refers to `#{pointer}`, and there is nothing"))
            })?;
            node = Node { value, pointer };
        }
        Err(self.refused(&node.pointer, "its references lead on and on"))
    }

    /// The pointer of a reference inside the document.
    pub(super) fn local(&self, reference: &Value, at: &str) -> Result<String, DocumentError> {
        let Some(reference) = reference.as_str() else {
            return Err(self.refused(at, "`$ref` is not a text"));
        };
        match reference.strip_prefix('#') {
            Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => Ok(percent_decoded(pointer)),
            Some(_) => Err(self.refused(at, &format!("`{reference}` is not a JSON pointer"))),
            None if reference.contains("://") => {
                Err(self.refused(at, &format!("`{reference}` is elsewhere; nothing is ever fetched")))
            }
            None => Err(self.refused(at, &format!("`{reference}` is in another file; put it into this one"))),
        }
    }
}

impl<'a> Node<'a> {
    /// The member of that name.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name)?;
        Some(Self { value, pointer: format!("{}/{}", self.pointer, escaped(name)) })
    }

    /// The member of that name, if it is a text.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// The members of an object; none where it is no object.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let pointer = self.pointer.clone();
        let members = self.value.as_object().into_iter().flatten();
        members
            .map(move |(name, value)| (name.as_str(), Self { value, pointer: format!("{pointer}/{}", escaped(name)) }))
    }

    /// The items of a list; none where it is no list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let pointer = self.pointer.clone();
        let items = self.value.as_array().into_iter().flatten();
        items.enumerate().map(move |(n, value)| Self { value, pointer: format!("{pointer}/{n}") })
    }
}

/// One part of a JSON pointer as it is written.
pub(super) fn escaped(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(pointer: &str) -> String {
    if !pointer.contains('%') {
        return pointer.to_owned();
    }
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(others.get(..2)?).ok()?, 16).ok();
        match hex().filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| pointer.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Document::parse(text.to_owned(), "shop.yaml").unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        assert!(refused("openapi: 3.0.0\npaths: {a: [}\n").starts_with("shop.yaml:2: it is not YAML"), "a broken flow");
        assert!(refused("{\"openapi\": \"3.0.0\",\n \"paths\": }").starts_with("shop.yaml:2: it is not JSON"));
        assert_eq!(
            refused("info: {}\nswagger: '2.0'\n"),
            "shop.yaml:2: `#/swagger`: this is Swagger 2.0; only OpenAPI 3.0 and 3.1 are understood"
        );
        assert_eq!(
            refused("info: {}\nopenapi: 4.0.0\n"),
            "shop.yaml:2: `#/openapi`: `4.0.0` is none of the versions 3.0 and 3.1"
        );
        assert!(refused("openapi: 3.1\n").contains("says the version as a text"));
        assert!(refused("[]").contains("says the version"));
    }

    #[test]
    fn references_lead_inside_the_document_and_end() {
        let text = "openapi: 3.0.0\na: {$ref: '#/b'}\nb: {$ref: '#/c~1d'}\nc/d: 7\nx: {$ref: '#/x'}\n\
                    far: {$ref: 'https://example.com/a.json'}\nfile: {$ref: 'b.yaml#/x'}\nnone: {$ref: '#/none/here'}\n";
        let document = Document::parse(text.to_owned(), "d.yaml").unwrap();
        let follow = |name: &str| document.follow(document.root().get(name).unwrap());
        assert_eq!(follow("a").unwrap().value, 7);
        let said = |name: &str| follow(name).unwrap_err().to_string();
        assert_eq!(said("x"), "d.yaml:5: `#/x`: its references lead on and on");
        assert!(said("far").starts_with("d.yaml:6: ") && said("far").ends_with("nothing is ever fetched"));
        assert!(said("file").ends_with("put it into this one"));
        assert!(said("none").ends_with("and there is nothing"));
    }
}
