//! One operation of an API as a tool: what it takes, what it gives, and where each argument goes.

use hyper::Method;
use serde_json::{Map, Value, json};

use super::body::{Body, Media};
use super::document::{Document, DocumentError, Node};
use super::limits::{DESCRIPTION_CHARS_MAX, GIVEN_BYTES_MAX};
use super::parameter::{Parameter, Place};
use super::schema::{Schemas, Way};

/// One operation of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The tool's name.
    pub(crate) name: String,
    /// How it is asked for.
    pub(crate) method: Method,
    /// Its path as the document writes it, with the names of parameters in braces.
    pub(crate) path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The alternatives of schemes whose credentials it wants; nothing of them is an alternative too.
    pub(super) security: Vec<Vec<String>>,
    /// What the document says it does.
    pub(super) summary: String,
    /// Whether the API honours a key in the header `Idempotency-Key`, by the document.
    pub(super) takes_key: bool,
    /// Whether it is asked for at a server of its own.
    pub(super) elsewhere: bool,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
}

/// Why an operation is not served, though nothing is wrong with the document.
#[derive(Debug)]
pub(super) enum Unserved {
    /// It needs what we do not do.
    Because(String),
    /// Something is wrong with the document after all.
    Wrong(DocumentError),
}

impl From<DocumentError> for Unserved {
    fn from(error: DocumentError) -> Self {
        Self::Wrong(error)
    }
}

/// The methods that are served.
const METHODS: [(&str, Method); 6] = [
    ("get", Method::GET),
    ("head", Method::HEAD),
    ("put", Method::PUT),
    ("delete", Method::DELETE),
    ("post", Method::POST),
    ("patch", Method::PATCH),
];

impl Operation {
    /// The operations of a path, each under its method.
    pub(super) fn at<'a>(path: &Node<'a>) -> impl Iterator<Item = (Method, Node<'a>)> {
        METHODS.into_iter().filter_map(|(word, method)| Some((method, path.get(word)?)))
    }

    /// Reads an operation of the path of that name.
    pub(super) fn read<'a>(
        document: &'a Document,
        name: String,
        method: Method,
        (path, item): (&str, &Node<'a>),
        node: &Node<'a>,
    ) -> Result<Self, Unserved> {
        if !node.value.is_object() {
            return Err(document.refused(&node.pointer, "an operation is an object").into());
        }
        let mut schemas = Schemas::new(document, Way::There);
        let mut parameters = Parameter::all(document, &mut schemas, item, node)?;
        let mut properties = Map::new();
        let mut required = Vec::new();
        for named in braces(path) {
            if !parameters.iter().any(|known| known.0.place == Place::Path && known.0.name == named) {
                let words =
                    format!("the path names `{{{named}}}`, and no parameter `in: path` of that name is declared");
                return Err(document.refused(&node.pointer, &words).into());
            }
        }
        parameters.retain(|(known, _)| known.place != Place::Path || braces(path).any(|named| named == known.name));
        for (parameter, schema) in &parameters {
            properties.insert(parameter.argument.clone(), schema.clone());
            if parameter.required {
                required.push(parameter.argument.clone());
            }
        }
        let takes_key = parameters.iter().any(|(parameter, _)| parameter.is_key());
        let body = match node.get("requestBody") {
            Some(body) => Body::read(document, &mut schemas, &body, &mut properties, &mut required)?,
            None => None,
        };
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        let gathered = schemas.gathered()?;
        put_beside(
            &mut input,
            gathered.ok_or_else(|| Unserved::Because("what it takes refers to too many schemas".into()))?,
        );
        // The answer to a `HEAD` has no body, whatever is said of it.
        let is_head = method == Method::HEAD;
        let own_servers = |node: &Node<'_>| node.get("servers").is_some();
        Ok(Self {
            name,
            method,
            path: path.to_owned(),
            parameters: parameters.into_iter().map(|(parameter, _)| parameter).collect(),
            body,
            security: security(node.get("security").or_else(|| document.root().get("security"))),
            summary: words(node),
            takes_key,
            elsewhere: own_servers(item) || own_servers(node),
            input,
            output: if is_head { None } else { output(document, node)? },
        })
    }

    /// Its entry in a list of tools. What it does to the world is hinted by its method.
    pub(super) fn entry(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.summary,
            "inputSchema": self.input,
            "annotations": { "readOnlyHint": self.reads(), "idempotentHint": self.is_idempotent() },
        });
        if let Some(output) = &self.output {
            entry["outputSchema"] = output.clone();
        }
        entry
    }

    /// Whether its method changes nothing.
    pub(super) fn reads(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// Whether its method leads to the same end state however often it is used.
    pub(super) fn is_idempotent(&self) -> bool {
        self.reads() || self.method == Method::PUT || self.method == Method::DELETE
    }
}

/// The names in the braces of a path.
pub(super) fn braces(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// What an operation does, in the document's words, bounded.
fn words(node: &Node<'_>) -> String {
    let (summary, description) =
        (node.text("summary").unwrap_or("").trim(), node.text("description").unwrap_or("").trim());
    let whole = match (summary, description) {
        (summary, "") => summary.to_owned(),
        ("", description) => description.to_owned(),
        (summary, description) if description.starts_with(summary) => description.to_owned(),
        (summary, description) => format!("{summary}\n\n{description}"),
    };
    whole.chars().take(DESCRIPTION_CHARS_MAX).collect()
}

/// The alternatives of a security requirement, each a set of schemes.
fn security(node: Option<Node<'_>>) -> Vec<Vec<String>> {
    let schemes = |item: Node<'_>| item.members().map(|(name, _)| name.to_owned()).collect();
    node.map(|node| node.items().map(schemes).collect()).unwrap_or_default()
}

/// What an operation gives: the one schema of all its successes. Where they differ, or one has no JSON, nobody can say.
fn output(document: &Document, node: &Node<'_>) -> Result<Option<Value>, Unserved> {
    let mut found: Option<Value> = None;
    let responses = node.get("responses");
    for (status, response) in responses.iter().flat_map(Node::members).filter(|(status, _)| status.starts_with('2')) {
        let response = document.follow(response)?;
        let content = response.get("content");
        let json = content.iter().flat_map(Node::members).find(|(media, _)| Media::of(media) == Some(Media::Json));
        let Some(schema) = json.and_then(|(_, media)| media.get("schema")) else { return Ok(None) };
        // Only objects are structured content for every client.
        let mut schemas = Schemas::new(document, Way::Back);
        if status.len() != 3 || document.follow(schema.clone())?.text("type") != Some("object") {
            return Ok(None);
        }
        let mut whole = schemas.take(&document.follow(schema)?)?;
        let Some(gathered) = schemas.gathered()? else { return Ok(None) };
        put_beside(&mut whole, gathered);
        if whole.to_string().len() > GIVEN_BYTES_MAX {
            return Ok(None);
        }
        match &found {
            Some(other) if *other != whole => return Ok(None),
            Some(_) => {}
            None => found = Some(whole),
        }
    }
    Ok(found)
}

fn put_beside(schema: &mut Value, gathered: Map<String, Value>) {
    if gathered.is_empty() {
        return;
    }
    if let Some(schema) = schema.as_object_mut() {
        let own = schema.entry("$defs").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.extend(gathered);
        }
    }
}
