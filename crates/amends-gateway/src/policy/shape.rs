//! What a tool takes, in the types of policies.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use super::number;

/// How deep a schema is followed. What is deeper is a text.
const DEPTH_MAX: usize = 12;
/// How many parts of a schema are read.
const PARTS_MAX: usize = 2_000;
/// How many fields of a record are known.
const FIELDS_MAX: usize = 256;

/// What a value is to a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is declared of it: it is whatever the value is.
    #[default]
    Unknown,
    /// `Bool`
    Bool,
    /// `Long`
    Long,
    /// `decimal`
    Decimal,
    /// `String`
    String,
    /// A set of what is in a list.
    Set(Box<Shape>),
    /// A record.
    Record(BTreeMap<String, Field>),
    /// What has no one type: the value as JSON, in a `String`. A text is itself.
    Text,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it holds.
    pub shape: Shape,
    /// Whether it is always there.
    pub required: bool,
}

impl Shape {
    /// What a tool with that input schema takes.
    pub fn of_schema(schema: &Value) -> Self {
        match (Reader { root: schema, left: PARTS_MAX }).of(schema, DEPTH_MAX) {
            (record @ Self::Record(_), _) => record,
            _ => Self::Unknown,
        }
    }

    /// Whether it is known what the tool takes.
    pub fn is_known(&self) -> bool {
        *self != Self::Unknown
    }

    /// A call's arguments as a record.
    pub(super) fn arguments(&self, arguments: &Value) -> Result<RestrictedExpression, String> {
        let none = Map::new();
        let members = arguments.as_object().unwrap_or(&none);
        match self {
            Self::Record(fields) => record(members, fields),
            _ => record(members, &BTreeMap::new()),
        }
    }

    /// The value as policies see it; nothing for `null`, which they see as a field that is not there.
    fn expression(&self, value: &Value) -> Result<Option<RestrictedExpression>, String> {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        Ok(Some(match (self, value) {
            (_, Value::Null) => return Ok(None),
            (Self::Text, Value::String(words)) => text(words),
            (Self::Text, value) => text(&value.to_string()),
            (Self::Long, Value::Number(it)) => RestrictedExpression::new_long(number::long(it)),
            (Self::Decimal, Value::Number(it)) => RestrictedExpression::new_decimal(number::decimal(it)),
            (Self::Set(of), Value::Array(items)) => set(items, of)?,
            (Self::Record(fields), Value::Object(members)) => record(members, fields)?,
            // What does not fit, and what nothing is declared of, is what it is.
            (_, Value::Bool(it)) => RestrictedExpression::new_bool(*it),
            (_, Value::Number(it)) if number::is_long(it) => RestrictedExpression::new_long(number::long(it)),
            (_, Value::Number(it)) => RestrictedExpression::new_decimal(number::decimal(it)),
            (_, Value::String(words)) => text(words),
            (_, Value::Array(items)) => set(items, &Self::Unknown)?,
            (_, Value::Object(members)) => record(members, &BTreeMap::new())?,
        }))
    }

    /// The type as Cedar's schemas write it.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Bool => "Bool".to_owned(),
            Self::Long => "Long".to_owned(),
            Self::Decimal => "decimal".to_owned(),
            Self::String | Self::Text => "String".to_owned(),
            Self::Set(of) => format!("Set<{}>", of.written()),
            Self::Unknown => "{}".to_owned(),
            Self::Record(fields) => {
                let field = |(name, field): (&String, &Field)| {
                    let optional = if field.required { "" } else { "?" };
                    format!("{}{optional}: {}", quoted(name), field.shape.written())
                };
                format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A name as Cedar writes texts.
pub(super) fn quoted(name: &str) -> String {
    let escaped: String = name
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if c.is_control() => format!("\\u{{{:x}}}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn set(items: &[Value], of: &Shape) -> Result<RestrictedExpression, String> {
    let items = items.iter().filter_map(|item| of.expression(item).transpose()).collect::<Result<Vec<_>, _>>()?;
    Ok(RestrictedExpression::new_set(items))
}

/// The members of an object as a record. Those that nothing is declared of are there as well: a policy may forbid them.
fn record(members: &Map<String, Value>, fields: &BTreeMap<String, Field>) -> Result<RestrictedExpression, String> {
    let mut known = Vec::with_capacity(members.len());
    for (name, value) in members {
        let shape = fields.get(name).map_or(&Shape::Unknown, |field| &field.shape);
        if let Some(value) = shape.expression(value)? {
            known.push((name.clone(), value));
        }
    }
    RestrictedExpression::new_record(known).map_err(|error| error.to_string())
}

/// A schema that is being read.
struct Reader<'a> {
    root: &'a Value,
    /// How many parts of it may still be read: one that holds itself often has more than could be.
    left: usize,
}

impl Reader<'_> {
    /// The shape that a part describes, and whether it may be `null`.
    fn of(&mut self, schema: &Value, depth: usize) -> (Shape, bool) {
        let (Some(depth), Some(left)) = (depth.checked_sub(1), self.left.checked_sub(1)) else {
            return (Shape::Text, true);
        };
        self.left = left;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return found.map_or((Shape::Text, true), |found| self.of(found, depth));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                return self.one_of(choices, depth);
            }
        }
        let (kinds, nullable) = kinds(schema);
        let shape = match kinds.as_slice() {
            ["boolean"] => Shape::Bool,
            ["integer"] => Shape::Long,
            ["number"] => Shape::Decimal,
            ["string"] => Shape::String,
            ["array"] => match schema.get("items").map(|items| self.of(items, depth).0) {
                Some(Shape::Set(_) | Shape::Unknown) | None => Shape::Set(Box::new(Shape::Text)),
                Some(shape) => Shape::Set(Box::new(shape)),
            },
            ["object"] => match schema.get("properties").and_then(Value::as_object) {
                Some(properties) if properties.len() <= FIELDS_MAX => self.fields(schema, properties, depth),
                _ => Shape::Text,
            },
            _ => Shape::Text,
        };
        (shape, nullable)
    }

    fn fields(&mut self, schema: &Value, properties: &Map<String, Value>, depth: usize) -> Shape {
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let required: BTreeSet<&str> = required.iter().filter_map(Value::as_str).collect();
        let mut fields = BTreeMap::new();
        for (name, schema) in properties {
            let (shape, nullable) = self.of(schema, depth);
            fields.insert(name.clone(), Field { shape, required: required.contains(name.as_str()) && !nullable });
        }
        Shape::Record(fields)
    }

    /// One of several: the one that is left without `null`, or else a text.
    fn one_of(&mut self, choices: &[Value], depth: usize) -> (Shape, bool) {
        let is_null = |choice: &Value| choice.get("type").and_then(Value::as_str) == Some("null");
        let nullable = choices.iter().any(is_null);
        let mut shapes: Vec<Shape> = Vec::new();
        for choice in choices.iter().filter(|choice| !is_null(choice)) {
            let (shape, _) = self.of(choice, depth);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        match shapes.pop() {
            Some(only) if shapes.is_empty() => (only, nullable),
            _ => (Shape::Text, nullable),
        }
    }
}

/// The types that a schema names, without `null`.
fn kinds(schema: &Value) -> (Vec<&str>, bool) {
    let named: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => match schema.get("enum").and_then(Value::as_array) {
            Some(values) if values.iter().all(Value::is_string) => vec!["string"],
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => Vec::new(),
        },
    };
    let nullable = named.contains(&"null");
    (named.into_iter().filter(|kind| *kind != "null").collect(), nullable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_a_type() {
        let schema = json!({
            "type": "object",
            "properties": {
                "order": { "type": "string" },
                "amount": { "type": "number" },
                "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } },
                "tags": { "type": "array" },
                "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "free": { "type": "object" },
                "how \"it\" is": { "enum": ["new", "old"] },
            },
            "required": ["order", "amount", "note"],
            "$defs": { "line": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } },
        });
        assert_eq!(
            Shape::of_schema(&schema).written(),
            "{ \"amount\": decimal, \"either\"?: String, \"free\"?: String, \"how \\\"it\\\" is\"?: String, \
             \"lines\"?: Set<{ \"n\": Long }>, \"note\"?: String, \"order\": String, \"tags\"?: Set<String> }"
        );
        assert_eq!(Shape::of_schema(&json!({ "type": "string" })), Shape::Unknown);
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let itself = json!({ "$ref": "#" });
        let schema = json!({ "type": "object", "properties": { "a": itself, "b": itself, "c": itself, "d": itself } });
        assert!(Shape::of_schema(&schema).written().len() < 100_000);
    }

    #[test]
    fn a_value_is_what_its_type_says_and_else_what_it_is() {
        let shape = Shape::of_schema(&json!({
            "type": "object",
            "properties": { "amount": { "type": "number" }, "count": { "type": "integer" }, "any": {} },
        }));
        let seen = |arguments: Value| shape.arguments(&arguments).map(|seen| format!("{seen:?}")).unwrap();
        assert_eq!(seen(json!({ "amount": 10 })), seen(json!({ "amount": 10.0 })));
        assert_eq!(seen(json!({ "count": 3 })), seen(json!({ "count": 3.0 })));
        assert_ne!(seen(json!({ "amount": 10 })), seen(json!({ "count": 10 })));
        assert_eq!(seen(json!({ "any": [1, "a"] })), seen(json!({ "any": "[1,\"a\"]" })));
        assert_eq!(seen(json!({ "any": null })), seen(json!({})));
        assert_ne!(seen(json!({ "unheard_of": 1 })), seen(json!({})));
    }
}
