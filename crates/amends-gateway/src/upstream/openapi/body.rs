//! The body of an operation: JSON, a form or several parts, made of the arguments that are no parameters.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::document::{Document, Node};
use super::encode;
use super::multipart::{Parts, members};
use super::operation::Unserved;
use super::schema::Schemas;

/// What a body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Form,
    Multipart,
}

impl Media {
    /// The kind of a media type, where it is one we write.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "application/json" | "*/*" | "application/*" => Some(Self::Json),
            "application/x-www-form-urlencoded" => Some(Self::Form),
            "multipart/form-data" => Some(Self::Multipart),
            name if name.ends_with("+json") => Some(Self::Json),
            _ => None,
        }
    }
}

/// The body of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    media: Media,
    /// Its media type, as the document writes it.
    content_type: String,
    /// The argument that holds all of it, where its members are no arguments of their own.
    whole: Option<String>,
    /// Whether it is sent even if no argument is for it.
    required: bool,
    /// What is known of its parts, where it has several.
    parts: Parts,
}

/// A body as it is sent.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) content_type: String,
    pub(super) bytes: Bytes,
}

/// What keeps the members of a body from being arguments of their own: rules over all of them together.
const TOGETHER: [&str; 13] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "$ref",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
];

impl Body {
    /// Reads what an operation takes as its body, and puts it among the arguments: each member on its own where no name
    /// is there already and no rule binds them together, else all of it as one argument.
    pub(super) fn read<'a>(
        document: &'a Document,
        schemas: &mut Schemas<'a>,
        node: &Node<'a>,
        properties: &mut Map<String, Value>,
        required: &mut Vec<String>,
    ) -> Result<Option<Self>, Unserved> {
        let node = document.follow(node.clone())?;
        let content = node.get("content").filter(|content| content.value.is_object());
        let content = content.ok_or_else(|| document.refused(&node.pointer, "a request body has a `content`"))?;
        let known = |wanted: Media| content.members().find(|(name, _)| Media::of(name) == Some(wanted));
        let Some((content_type, media_node)) =
            known(Media::Json).or_else(|| known(Media::Form)).or_else(|| known(Media::Multipart))
        else {
            let Some((name, _)) = content.members().next() else { return Ok(None) };
            return Err(Unserved::Because(format!("its body is in the form `{name}`")));
        };
        let media = Media::of(content_type).unwrap_or(Media::Json);
        let said = node.value.get("required").and_then(Value::as_bool);
        let schema = media_node.get("schema").map(|schema| document.follow(schema)).transpose()?;
        let parts = match media {
            Media::Multipart => Parts::read(document, &media_node, schema.as_ref())?,
            Media::Json | Media::Form => Parts::default(),
        };
        let Some(schema) = schema else {
            let whole = free_name(properties);
            properties.insert(whole.clone(), Value::Object(Map::new()));
            return Ok(Some(Self::new(media, content_type, Some(whole), said == Some(true), parts)));
        };
        let mut taken = schemas.take(&schema)?;
        parts.describe(&mut taken);
        let members = taken.get("properties").and_then(Value::as_object);
        let needs: Vec<String> = taken
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let flat = members.filter(|members| {
            let bound = TOGETHER.iter().any(|word| taken.get(word).is_some());
            let open = taken.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
            let sound = |name: &String| !name.is_empty() && !properties.contains_key(name) && is_argument(name);
            !bound && !open && taken.get("type") == Some(&Value::from("object")) && members.keys().all(sound)
        });
        // Many documents leave `required` out where they mean it: a body whose members are required is.
        let is_required = said.unwrap_or(!needs.is_empty());
        let whole = match flat {
            Some(members) => {
                properties.extend(members.clone());
                if is_required {
                    required.extend(needs.into_iter().filter(|name| properties.contains_key(name)));
                }
                None
            }
            None => {
                let whole = free_name(properties);
                properties.insert(whole.clone(), taken);
                if is_required {
                    required.push(whole.clone());
                }
                Some(whole)
            }
        };
        Ok(Some(Self::new(media, content_type, whole, is_required, parts)))
    }

    fn new(media: Media, content_type: &str, whole: Option<String>, required: bool, parts: Parts) -> Self {
        let content_type = if content_type.contains('*') { "application/json" } else { content_type };
        Self { media, content_type: content_type.to_owned(), whole, required, parts }
    }

    /// The body made of the arguments that are no parameters, their values as they were written; nothing where there are
    /// none and none is needed.
    pub(super) fn write(&self, arguments: &[(String, &RawValue)]) -> Result<Option<Written>, String> {
        let own: Vec<(String, &RawValue)> = match &self.whole {
            Some(whole) => match (arguments.iter().find(|(name, _)| name == whole), self.media) {
                (None, _) => return Ok(None),
                (Some((_, value)), Media::Json) => return Ok(Some(self.written(value.get().to_owned()))),
                (Some((_, value)), Media::Form | Media::Multipart) => {
                    members(value).ok_or_else(|| format!("`{whole}` is not an object"))?
                }
            },
            None if arguments.is_empty() && !self.required => return Ok(None),
            None => arguments.to_vec(),
        };
        Ok(Some(match self.media {
            Media::Json => {
                let member = |(name, value): &(String, &RawValue)| format!("{}:{}", Value::from(&**name), value.get());
                self.written(format!("{{{}}}", own.iter().map(member).collect::<Vec<_>>().join(",")))
            }
            Media::Form => self.written(encode::form(own)),
            Media::Multipart => {
                let (content_type, bytes) = self.parts.write(&own)?;
                Written { content_type, bytes }
            }
        }))
    }

    fn written(&self, text: String) -> Written {
        Written { content_type: self.content_type.clone(), bytes: text.into() }
    }
}

/// Whether models' providers take a text as the name of an argument.
fn is_argument(name: &str) -> bool {
    name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn free_name(properties: &Map<String, Value>) -> String {
    let candidates = ["body".to_owned(), "request_body".to_owned()].into_iter();
    let mut candidates = candidates.chain((2..).map(|n: u32| format!("body_{n}")));
    candidates.find(|name| !properties.contains_key(name)).expect("there are more numbers than names")
}
