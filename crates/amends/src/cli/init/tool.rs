//! What a server says of a tool, as far as a proposal can be made from it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words::Words;
use crate::cli::live::LiveTool;

/// How many fields of a schema are looked at.
const FIELDS_MAX: usize = 512;

/// A tool as its server lists it.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    /// The name under which it is served.
    pub(super) served: String,
    /// Its name taken apart.
    pub(super) words: Words,
    /// What it says of itself.
    pub(super) description: String,
    /// Its arguments.
    pub(super) input: Fields,
    /// What its answer holds, where it says so.
    pub(super) output: Fields,
    /// What it says of its effect.
    pub(super) read_only: Option<bool>,
    /// The same call twice ends like once.
    pub(super) idempotent: Option<bool>,
    /// It can destroy something.
    pub(super) destructive: Option<bool>,
}

/// The fields of an object, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(BTreeMap<String, Field>);

/// One field.
#[derive(Clone, Debug, Default)]
pub(super) struct Field {
    /// Its type, where there is one.
    pub(super) kind: String,
    /// Whether it must be there.
    pub(super) required: bool,
}

impl Tool {
    pub(super) fn of(tool: &LiveTool) -> Self {
        let said = |key: &str| tool.entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let hint = |key: &str| tool.entry.get("annotations")?.get(key)?.as_bool();
        Self {
            served: tool.served.clone(),
            words: Words::of(&tool.local),
            description: if said("description").is_empty() { said("title") } else { said("description") }.to_owned(),
            input: Fields::of(tool.entry.get("inputSchema")),
            output: Fields::of(tool.entry.get("outputSchema")),
            read_only: hint("readOnlyHint"),
            idempotent: hint("idempotentHint"),
            destructive: hint("destructiveHint"),
        }
    }

    /// The argument that looks like an idempotency key.
    pub(super) fn key_argument(&self) -> Option<&str> {
        self.input.0.iter().find(|(name, field)| is_key(name) && is_text(field)).map(|(name, _)| name.as_str())
    }
}

impl Fields {
    fn of(schema: Option<&Value>) -> Self {
        let Some(schema) = schema else { return Self::default() };
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = schema["properties"].as_object().into_iter().flatten().take(FIELDS_MAX).map(|(name, field)| {
            let kind = match &field["type"] {
                Value::String(kind) => kind.clone(),
                Value::Array(kinds) => {
                    kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("").into()
                }
                _ => String::new(),
            };
            (name.clone(), Field { kind, required: required.contains(&name.as_str()) })
        });
        Self(fields.collect())
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is such a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The fields that must be there.
    pub(super) fn required(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.all().filter(|(_, field)| field.required)
    }

    /// All fields.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, field)| (name.as_str(), field))
    }
}

/// Whether a field's name is one that idempotency keys go by.
pub(super) fn is_key(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    [
        "idempotencykey",
        "idempotencytoken",
        "idempotentkey",
        "clienttoken",
        "clientrequesttoken",
        "clientrequestid",
        "dedupekey",
        "deduplicationid",
    ]
    .contains(&plain.as_str())
}

fn is_text(field: &Field) -> bool {
    field.kind == "string" || field.kind.is_empty()
}
