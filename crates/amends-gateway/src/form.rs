//! What a person is asked for, where that is more than a yes: read and checked where the answer is given.

use std::collections::BTreeMap;

use amends_core::interaction::{Form, Subject, choice};
use amends_core::{Interaction, PersonAnswer};
use amends_wire::Schema;
use serde_json::{Map, Value, json};

/// How long an answer may be.
const CONTENT_BYTES_MAX: usize = 16 << 10;

/// Fills in what an answer gives, or says in words why it is none.
pub fn fill(interaction: &Interaction, answer: &mut PersonAnswer, content: Option<Value>) -> Result<(), String> {
    let Some(form) = interaction.form() else {
        let Some(given) = content else { return Ok(()) };
        if interaction.subject != Subject::Doubt {
            return Err("this question takes one of its answers, and nothing with it".to_owned());
        }
        if answer.choice != choice::HAPPENED {
            return Err(format!("only what happened gave something: say `{}` with it", choice::HAPPENED));
        }
        check(interaction.gives.as_deref().unwrap_or("{}"), &given)?;
        answer.content = Some(given);
        return Ok(());
    };
    if answer.choice == choice::DENY {
        return Ok(());
    }
    if form.choices.is_empty() {
        let given = content.ok_or_else(|| format!("what is asked for is missing: {}", form.schema))?;
        check(&form.schema, &given)?;
        answer.content = Some(given);
    } else if let Some(field) = field(form)
        && form.choices.contains(&answer.choice)
    {
        // Whatever else was answered, whoever keeps the question refuses.
        answer.content = Some(Value::Object(Map::from_iter([(field, Value::String(answer.choice.clone()))])));
    }
    Ok(())
}

fn check(schema: &str, given: &Value) -> Result<(), String> {
    if given.to_string().len() > CONTENT_BYTES_MAX {
        return Err(format!("it is longer than {CONTENT_BYTES_MAX} bytes"));
    }
    let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let schema = Schema::from_value(schema).map_err(|error| error.to_string())?;
    let faults: Vec<String> = schema
        .check(given)
        .iter()
        .map(|fault| match fault.field.as_str() {
            "" => format!("expected {}", fault.expected),
            field => format!("`{field}`: expected {}", fault.expected),
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// The one field of a choice.
pub(crate) fn field(form: &Form) -> Option<String> {
    fields(form).into_iter().next().map(|(name, ..)| name)
}

/// The fields of a form: their names, what is said of each, and whether they must be there.
pub(crate) fn fields(form: &Form) -> Vec<(String, Value, bool)> {
    let schema: Value = serde_json::from_str(&form.schema).unwrap_or_default();
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties.into_iter().map(|(name, of)| (name.clone(), of, required(&name))).collect()
}

/// The form as an MCP client can show it to its user: only plain fields.
pub(crate) fn elicitable(form: &Form) -> Option<Value> {
    let schema: Value = serde_json::from_str(&form.schema).ok()?;
    let plain = |of: &Value| {
        let listed = of["enum"].as_array().is_some_and(|all| all.iter().all(Value::is_string));
        let typed = matches!(of["type"].as_str(), Some("string" | "number" | "integer" | "boolean"));
        typed && (of.get("enum").is_none() || listed) && of.get("$ref").is_none()
    };
    let properties = schema["properties"].as_object()?;
    if !properties.values().all(plain) {
        return None;
    }
    let mut shown = json!({ "type": "object", "properties": properties });
    if let Some(required) = schema.get("required") {
        shown["required"] = required.clone();
    }
    Some(shown)
}

/// What was written into the fields of a page, as the form's types have it. What is empty and not needed is left out.
pub(crate) fn written(form: &Form, texts: &BTreeMap<String, String>) -> Value {
    let mut content = Map::new();
    for (name, of, required) in fields(form) {
        let text = texts.get(&name).cloned().unwrap_or_default();
        let value = match of["type"].as_str() {
            Some("boolean") => Value::Bool(matches!(text.as_str(), "true" | "on")),
            _ if text.is_empty() && !required => continue,
            Some("string") => Value::String(text),
            // What is no JSON is refused by the schema, as the text it is.
            _ => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        };
        content.insert(name, value);
    }
    Value::Object(content)
}
