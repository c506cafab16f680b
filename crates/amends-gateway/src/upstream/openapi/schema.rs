//! An API's schemas as a tool's: complete in themselves, in the words of JSON Schema 2020-12.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::document::{Document, DocumentError, Node};
use super::limits::{DEPTH_MAX, GIVEN_SCHEMAS_MAX, TAKEN_SCHEMAS_MAX};

/// Which way what is described goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the API: what only it may write is left out.
    There,
    /// From the API: what only we may write is left out.
    Back,
}

/// The schemas of one tool's input or output: what is referred to is gathered and put beside it.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    document: &'a Document,
    way: Way,
    /// The names under which pointers are gathered.
    names: BTreeMap<String, String>,
    /// The pointers whose schemas are still to be taken over.
    waiting: VecDeque<String>,
    /// Whether there are more of them than we take.
    too_many: bool,
}

/// The keywords that hold one schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// The keywords that hold a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// The keywords that hold schemas by name.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// What says nothing about values, or is put in other words.
const DROPPED: [&str; 13] = [
    "$ref",
    "$defs",
    "$schema",
    "$id",
    "$anchor",
    "nullable",
    "example",
    "examples",
    "discriminator",
    "xml",
    "externalDocs",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

impl<'a> Schemas<'a> {
    pub(super) fn new(document: &'a Document, way: Way) -> Self {
        Self { document, way, names: BTreeMap::new(), waiting: VecDeque::new(), too_many: false }
    }

    /// A schema with its references led to what will be beside it.
    pub(super) fn take(&mut self, node: &Node<'a>) -> Result<Value, DocumentError> {
        self.schema(node, 0)
    }

    /// Everything that was referred to, by its name; nothing where that is more than we take.
    pub(super) fn gathered(mut self) -> Result<Option<Map<String, Value>>, DocumentError> {
        let mut gathered = Map::new();
        // Ends: a pointer waits once, and there are at most so many.
        while let Some(pointer) = self.waiting.pop_front() {
            let name = self.names[&pointer].clone();
            let value = self.document.root().value.pointer(&pointer);
            let value =
                value.ok_or_else(|| self.document.refused(&pointer, "it is referred to, and there is nothing"))?;
            let schema = self.schema(&Node { value, pointer }, 0)?;
            gathered.insert(name, schema);
            if self.too_many {
                return Ok(None);
            }
        }
        Ok(Some(gathered).filter(|_| !self.too_many))
    }

    fn schema(&mut self, node: &Node<'a>, depth: usize) -> Result<Value, DocumentError> {
        if depth > DEPTH_MAX {
            return Err(self.document.refused(&node.pointer, "the schema nests too deep"));
        }
        let members = match node.value {
            Value::Bool(_) => return Ok(node.value.clone()),
            Value::Object(members) => members,
            _ => return Err(self.document.refused(&node.pointer, "a schema is an object")),
        };
        if members.contains_key("$dynamicRef") {
            return Err(self.document.refused(&node.pointer, "`$dynamicRef` is not understood"));
        }
        let older = self.document.is_older();
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref") {
            let pointer = self.document.local(reference, &node.pointer)?;
            out.insert("$ref".into(), json!(format!("#/$defs/{}", self.name(pointer))));
            if older {
                return Ok(Value::Object(out));
            }
        }
        for (name, value) in members {
            let here = || Node { value, pointer: format!("{}/{}", node.pointer, super::document::escaped(name)) };
            let name = name.as_str();
            if DROPPED.contains(&name) || name.starts_with("x-") {
                continue;
            }
            let taken = if ONE.contains(&name) && (value.is_object() || value.is_boolean()) {
                self.schema(&here(), depth + 1)?
            } else if LISTS.contains(&name) {
                let items: Result<Vec<_>, _> = here().items().map(|item| self.schema(&item, depth + 1)).collect();
                Value::Array(items?)
            } else if NAMED.contains(&name) {
                let mut named = Map::new();
                for (name, schema) in here().members() {
                    named.insert(name.to_owned(), self.schema(&schema, depth + 1)?);
                }
                Value::Object(named)
            } else {
                value.clone()
            };
            out.insert(name.to_owned(), taken);
        }
        bounds(members, &mut out);
        self.leave_out(&mut out);
        Ok(if older && members.get("nullable") == Some(&Value::Bool(true)) { or_null(out) } else { Value::Object(out) })
    }

    /// The name under which a pointer's schema is gathered.
    fn name(&mut self, pointer: String) -> String {
        if let Some(name) = self.names.get(&pointer) {
            return name.clone();
        }
        let max = match self.way {
            Way::There => TAKEN_SCHEMAS_MAX,
            Way::Back => GIVEN_SCHEMAS_MAX,
        };
        if self.names.len() >= max {
            self.too_many = true;
            return String::new();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(48).collect();
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let name = (1..)
            .map(|n: u32| if n == 1 { plain.clone() } else { format!("{plain}_{n}") })
            .find(|name| !name.is_empty() && !taken(name))
            .expect("there are more numbers than names");
        self.names.insert(pointer.clone(), name.clone());
        self.waiting.push_back(pointer);
        name
    }

    /// Leaves out the properties that do not go this way.
    fn leave_out(&self, schema: &mut Map<String, Value>) {
        let word = match self.way {
            Way::There => "readOnly",
            Way::Back => "writeOnly",
        };
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let gone: Vec<String> = properties
            .iter()
            .filter(|(_, property)| property.get(word) == Some(&Value::Bool(true)))
            .map(|(name, _)| name.clone())
            .collect();
        properties.retain(|name, _| !gone.contains(name));
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(|name| !gone.iter().any(|gone| gone == name)));
        }
    }
}

/// Bounds that are not part of what they bound: in 3.0 a flag beside the bound, in JSON Schema the bound itself.
fn bounds(from: &Map<String, Value>, into: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match from.get(flag) {
            Some(Value::Bool(true)) => {
                if let Some(value) = into.remove(bound) {
                    into.insert(flag.into(), value);
                }
            }
            Some(value @ Value::Number(_)) => {
                into.insert(flag.into(), value.clone());
            }
            _ => {}
        }
    }
}

/// The same, or null.
fn or_null(mut schema: Map<String, Value>) -> Value {
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match schema.get("type").and_then(Value::as_str).map(str::to_owned) {
        Some(kind) => {
            schema.insert("type".into(), json!([kind, "null"]));
            Value::Object(schema)
        }
        None => json!({ "anyOf": [schema, { "type": "null" }] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, way: Way) -> (Value, Map<String, Value>) {
        let document = Document::parse(text.to_owned(), "d.yaml").unwrap();
        let mut schemas = Schemas::new(&document, way);
        let schema = schemas.take(&document.root().get("s").unwrap()).unwrap();
        (schema, schemas.gathered().unwrap().unwrap())
    }

    #[test]
    fn what_refers_to_itself_is_gathered_once() {
        let text = "openapi: 3.1.0\ns: {$ref: '#/defs/Tree'}\ndefs:\n  Tree:\n    type: object\n    properties:\n      \
                    left: {$ref: '#/defs/Tree'}\n      size: {$ref: '#/other/Tree'}\nother:\n  Tree: {type: integer}\n";
        let (schema, gathered) = taken(text, Way::There);
        assert_eq!(schema, json!({"$ref": "#/$defs/Tree"}));
        let tree = json!({"left": {"$ref": "#/$defs/Tree"}, "size": {"$ref": "#/$defs/Tree_2"}});
        assert_eq!(gathered["Tree"]["properties"], tree);
        assert_eq!(gathered["Tree_2"], json!({"type": "integer"}));
    }

    #[test]
    fn the_words_of_3_0_are_put_into_those_of_json_schema() {
        let text = "openapi: 3.0.3\ns:\n  type: object\n  required: [id, n]\n  properties:\n    id: {type: string, readOnly: true}\n    \
                    n: {type: number, minimum: 0, exclusiveMinimum: true, nullable: true, example: 3}\n    \
                    p: {type: string, writeOnly: true, x-note: hm}\n";
        let n = json!({"type": ["number", "null"], "exclusiveMinimum": 0});
        let (there, _) = taken(text, Way::There);
        assert_eq!(there["properties"], json!({"n": n, "p": {"type": "string", "writeOnly": true}}));
        assert_eq!(there["required"], json!(["n"]));
        let (back, _) = taken(text, Way::Back);
        assert_eq!(back["properties"], json!({"n": n, "id": {"type": "string", "readOnly": true}}));
    }

    #[test]
    fn data_that_looks_like_a_schema_is_left_alone() {
        let text = "openapi: 3.1.0\ns: {const: {$ref: nowhere}, default: {nullable: true}, enum: [{x-a: 1}]}\n";
        let (schema, _) = taken(text, Way::Back);
        let same = json!({"const": {"$ref": "nowhere"}, "default": {"nullable": true}, "enum": [{"x-a": 1}]});
        assert_eq!(schema, same);
    }
}
