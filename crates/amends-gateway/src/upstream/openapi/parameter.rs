//! A parameter of an operation: an argument that goes into the path, the query, a header or a cookie.

use amends_wire::object::Object;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::body::Media;
use super::document::{Document, Node};
use super::encode;
use super::limits::NAME_MAX;
use super::operation::Unserved;
use super::schema::Schemas;

/// Where a parameter goes, in the order in which names are given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// How a list or an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// With commas; in a query one by one where it explodes.
    Plain,
    /// With blanks, in a query.
    Blanks,
    /// With pipes, in a query.
    Pipes,
    /// `name[key]=value`, in a query.
    Deep,
    /// After a dot, in a path.
    Label,
    /// As `;name=value`, in a path.
    Matrix,
    /// As JSON.
    Json,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// The argument's name in the tool.
    pub(super) argument: String,
    /// Its name in the API.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) required: bool,
    style: Style,
    explodes: bool,
}

/// The headers that are no parameters: by the specification the first three, and those that say where a request ends or goes,
/// which are no agent's to write.
const NOT_PARAMETERS: [&str; 13] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
];
/// The header in which APIs take an idempotency key.
pub(super) const KEY_HEADER: &str = "Idempotency-Key";

impl Parameter {
    /// The parameters of an operation with their schemas; its own outrank those of its path.
    pub(super) fn all<'a>(
        document: &'a Document,
        schemas: &mut Schemas<'a>,
        item: &Node<'a>,
        operation: &Node<'a>,
    ) -> Result<Vec<(Self, Value)>, Unserved> {
        let mut found: Vec<(Self, Value)> = Vec::new();
        for list in [item.get("parameters"), operation.get("parameters")].into_iter().flatten() {
            if !list.value.is_array() {
                return Err(document.refused(&list.pointer, "`parameters` is a list").into());
            }
            for node in list.items() {
                let node = document.follow(node)?;
                let Some((parameter, schema)) = Self::read(document, schemas, &node)? else { continue };
                found.retain(|(known, _)| (&known.name, known.place) != (&parameter.name, parameter.place));
                found.push((parameter, schema));
            }
        }
        found.sort_by_key(|(parameter, _)| parameter.place);
        name_arguments(&mut found);
        Ok(found)
    }

    fn read<'a>(
        document: &'a Document,
        schemas: &mut Schemas<'a>,
        node: &Node<'a>,
    ) -> Result<Option<(Self, Value)>, Unserved> {
        let wrong = |reason: &str| Unserved::from(document.refused(&node.pointer, reason));
        let name =
            node.text("name").filter(|name| !name.is_empty()).ok_or_else(|| wrong("a parameter has a `name`"))?;
        let place = match node.text("in") {
            Some("path") => Place::Path,
            Some("query") => Place::Query,
            Some("header") if NOT_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) => return Ok(None),
            Some("header") => Place::Header,
            Some("cookie") => Place::Cookie,
            _ => return Err(wrong("a parameter is `in` one of `path`, `query`, `header` and `cookie`")),
        };
        let content = node.get("content").and_then(|content| content.members().next());
        let (mut schema, json) = match (node.get("schema"), content) {
            (Some(schema), _) => (schemas.take(&schema)?, false),
            (None, Some((media, content))) if Media::of(media) == Some(Media::Json) => {
                (content.get("schema").map_or_else(|| Ok(json!({})), |schema| schemas.take(&schema))?, true)
            }
            (None, Some((media, _))) => {
                return Err(Unserved::Because(format!("its parameter `{name}` is in the form `{media}`")));
            }
            (None, None) => (json!({}), false),
        };
        let style = match (node.text("style"), place) {
            _ if json => Style::Json,
            (None | Some("form"), Place::Query | Place::Cookie)
            | (None | Some("simple"), Place::Path | Place::Header) => Style::Plain,
            (Some("label"), Place::Path) => Style::Label,
            (Some("matrix"), Place::Path) => Style::Matrix,
            (Some("spaceDelimited"), Place::Query) => Style::Blanks,
            (Some("pipeDelimited"), Place::Query) => Style::Pipes,
            (Some("deepObject"), Place::Query) => Style::Deep,
            (Some(style), _) => {
                return Err(Unserved::Because(format!("its parameter `{name}` is in the style `{style}`")));
            }
        };
        let by_default = style == Style::Plain && matches!(place, Place::Query | Place::Cookie);
        let explodes = node.value.get("explode").and_then(Value::as_bool).unwrap_or(by_default);
        if let (Some(text), Some(schema)) = (node.text("description"), schema.as_object_mut()) {
            schema.entry("description").or_insert_with(|| json!(text.chars().take(512).collect::<String>()));
        }
        if let (Place::Path, Some(schema)) = (place, schema.as_object_mut())
            && schema.get("type") == Some(&json!("string"))
        {
            schema.entry("minLength").or_insert_with(|| json!(1));
        }
        let mut parameter = Self {
            argument: String::new(),
            name: name.to_owned(),
            place,
            required: place == Place::Path || node.value.get("required") == Some(&Value::Bool(true)),
            style,
            explodes,
        };
        // The gateway writes the key where the contract says so; an agent need not.
        parameter.required &= !parameter.is_key();
        Ok(Some((parameter, schema)))
    }

    /// Whether it is the idempotency key.
    pub(super) fn is_key(&self) -> bool {
        self.place == Place::Header && self.name.eq_ignore_ascii_case(KEY_HEADER)
    }

    /// An argument as it stands in a path, a header or a cookie.
    pub(super) fn text(&self, value: &RawValue) -> Result<String, String> {
        if self.style == Style::Json {
            return Ok(self.part(value.get()));
        }
        // An exploded word brings its own name along, where it has one.
        let mut is_named = false;
        let words = if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            let items: Result<Vec<_>, _> = items.into_iter().map(|item| self.scalar(item)).collect();
            items?
        } else if let Some(object) = Object::parse(value.get()) {
            let mut words = Vec::new();
            is_named = self.explodes;
            for member in object.members() {
                let (name, value) = (self.part(&member.name()), self.scalar(member.value)?);
                if self.explodes {
                    words.push(self.pair(&name, &value));
                } else {
                    words.extend([name, value]);
                }
            }
            words
        } else {
            vec![self.scalar(value)?]
        };
        let name = self.part(&self.name);
        Ok(match self.style {
            Style::Label => format!(".{}", words.join(if self.explodes { "." } else { "," })),
            Style::Matrix if is_named => format!(";{}", words.join(";")),
            Style::Matrix if self.explodes => words.iter().map(|word| format!(";{}", self.pair(&name, word))).collect(),
            Style::Matrix => format!(";{}", self.pair(&name, &words.join(","))),
            Style::Plain | Style::Blanks | Style::Pipes | Style::Deep | Style::Json => words.join(","),
        })
    }

    /// A name and its value; in the style `matrix` a name alone where there is no value.
    fn pair(&self, name: &str, value: &str) -> String {
        match (self.style, value) {
            (Style::Matrix, "") => name.to_owned(),
            _ => format!("{name}={value}"),
        }
    }

    /// An argument as it stands in a query, as names and values that are already encoded.
    pub(super) fn pairs(&self, value: &RawValue) -> Result<Vec<(String, String)>, String> {
        let name = encode::query(&self.name);
        if self.style == Style::Json {
            return Ok(vec![(name, encode::query(value.get()))]);
        }
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            let items: Result<Vec<_>, _> = items.into_iter().map(|item| self.scalar(item)).collect();
            let separator = match self.style {
                _ if self.explodes => return Ok(items?.into_iter().map(|item| (name.clone(), item)).collect()),
                Style::Blanks => "%20",
                Style::Pipes => "%7C",
                Style::Plain | Style::Deep | Style::Label | Style::Matrix | Style::Json => ",",
            };
            return Ok(vec![(name, items?.join(separator))]);
        }
        if let Some(object) = Object::parse(value.get()) {
            let members =
                object.members().iter().map(|member| Ok((self.part(&member.name()), self.scalar(member.value)?)));
            let members: Result<Vec<(String, String)>, String> = members.collect();
            return Ok(match self.style {
                Style::Deep => members?.into_iter().map(|(key, value)| (format!("{name}%5B{key}%5D"), value)).collect(),
                _ if self.explodes => members?,
                _ => {
                    let words: Vec<_> = members?.into_iter().flat_map(|(key, value)| [key, value]).collect();
                    vec![(name, words.join(","))]
                }
            });
        }
        Ok(vec![(name, self.scalar(value)?)])
    }

    /// One value that is neither a list nor an object, encoded for where it goes.
    fn scalar(&self, value: &RawValue) -> Result<String, String> {
        let text = encode::scalar(value)
            .ok_or_else(|| format!("`{}` holds a list or an object where the API takes none", self.argument))?;
        Ok(self.part(&text))
    }

    fn part(&self, text: &str) -> String {
        match self.place {
            Place::Path | Place::Cookie => encode::path(text),
            Place::Query => encode::query(text),
            Place::Header => text.to_owned(),
        }
    }
}

/// Gives every parameter an argument of its own: by its name, as far as it can be an argument's.
fn name_arguments(parameters: &mut [(Parameter, Value)]) {
    let mut taken: Vec<String> = Vec::new();
    for (parameter, _) in parameters {
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let plain: String = parameter.name.chars().map(|c| if sound(c) { c } else { '_' }).take(NAME_MAX - 8).collect();
        let place = match parameter.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
            Place::Cookie => "cookie",
        };
        let candidates = [plain.clone(), format!("{place}_{plain}")].into_iter();
        let mut candidates = candidates.chain((2..).map(|n: u32| format!("{plain}_{n}")));
        let name = candidates.find(|name| !taken.contains(name)).expect("there are more numbers than names");
        taken.push(name.clone());
        parameter.argument = name;
    }
}
