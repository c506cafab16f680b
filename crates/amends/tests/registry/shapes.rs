//! The envelope's schema as shapes that a language can spell.

use amends_core::envelope::schema;
use serde_json::Value;

/// A definition of the schema.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) body: Body,
}

/// What a definition is.
#[derive(Debug)]
pub(crate) enum Body {
    /// A closed list of words.
    Words { about: String, words: Vec<String> },
    /// An object, perhaps with all that another one has.
    Object { extends: Option<String>, fields: Vec<Field> },
    /// One of those.
    OneOf(Vec<String>),
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) about: Option<String>,
    pub(crate) kind: Kind,
}

/// What a field holds.
#[derive(Debug)]
pub(crate) enum Kind {
    Anything,
    /// It must not be there.
    Nothing,
    Text,
    Integer,
    Number,
    IntegerOrText,
    Boolean,
    /// An object of which nothing more is known.
    Object,
    Exactly(Value),
    Words(Vec<String>),
    List(Box<Self>),
    Named(String),
}

/// All definitions, in an order in which each comes after those it extends.
pub(crate) fn shapes() -> Vec<Shape> {
    let schema = schema::whole();
    let definitions = schema["$defs"].as_object().expect("there are definitions");
    let mut shapes: Vec<Shape> =
        definitions.iter().map(|(name, body)| Shape { name: name.clone(), body: self::body(body) }).collect();
    shapes.sort_by(|one, other| one.name.cmp(&other.name));
    let depths: Vec<usize> = shapes.iter().map(|shape| depth(shape, &shapes)).collect();
    let mut ordered: Vec<(usize, Shape)> = depths.into_iter().zip(shapes).collect();
    ordered.sort_by_key(|(depth, _)| *depth);
    ordered.into_iter().map(|(_, shape)| shape).collect()
}

fn depth(shape: &Shape, all: &[Shape]) -> usize {
    match &shape.body {
        Body::Words { .. } => 0,
        Body::Object { extends: None, .. } => 1,
        Body::Object { extends: Some(base), .. } => {
            let base = all.iter().find(|shape| shape.name == *base).expect("the base is defined");
            depth(base, all) + 1
        }
        Body::OneOf(_) => usize::MAX,
    }
}

fn body(schema: &Value) -> Body {
    if let Some(words) = schema.get("enum") {
        return Body::Words { about: about(schema).expect("a list says what it is of"), words: strings(words) };
    }
    if let Some(bodies) = schema.get("oneOf").and_then(Value::as_array) {
        return Body::OneOf(bodies.iter().map(|body| name(body).expect("each is defined")).collect());
    }
    let required = strings(&schema["required"]);
    let properties = schema["properties"].as_object().expect("an object has fields");
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(name, schema)| Field {
            name: name.clone(),
            required: required.contains(name),
            about: about(schema),
            kind: kind(schema),
        })
        .collect();
    fields.sort_by(|one, other| (!one.required, &one.name).cmp(&(!other.required, &other.name)));
    Body::Object { extends: schema.pointer("/allOf/0").and_then(name), fields }
}

fn kind(schema: &Value) -> Kind {
    if *schema == Value::Bool(false) {
        return Kind::Nothing;
    }
    if let Some(name) = name(schema) {
        return Kind::Named(name);
    }
    if let Some(exactly) = schema.get("const") {
        return Kind::Exactly(exactly.clone());
    }
    if let Some(words) = schema.get("enum") {
        return Kind::Words(strings(words));
    }
    match schema.get("type") {
        None => Kind::Anything,
        Some(Value::Array(_)) => Kind::IntegerOrText,
        Some(kind) => match kind.as_str() {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("object") => Kind::Object,
            Some("array") => Kind::List(Box::new(self::kind(&schema["items"]))),
            other => panic!("no language has a type for {other:?}"),
        },
    }
}

fn name(schema: &Value) -> Option<String> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/").map(str::to_owned)
}

fn about(schema: &Value) -> Option<String> {
    schema.get("description")?.as_str().map(str::to_owned)
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
