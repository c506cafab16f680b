//! What a tool says it takes and gives: JSON Schema, and its complaints in plain words.

mod cost;
mod fault;
mod repair;

use amends_core::recovery::{NextCall, Template};
use amends_core::refusal::ArgumentFault;
use amends_core::{Recovery, Refusal, RefusalKind};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use cost::Costs;
use fault::Complaint;
pub use repair::Mended;

/// How large a schema may be.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
/// How many faults of one call are listed.
pub const FAULTS_MAX: usize = 16;

/// What is expected of a field that is missing.
pub const PRESENT: &str = "present";
/// What is there where a field is missing.
pub const NOTHING: &str = "nothing";
/// What is expected where a field stands that the schema does not know.
pub const NO_SUCH_FIELD: &str = "no such field";

/// A JSON Schema that was read, that refers to nothing outside itself, and whose cost is known.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: jsonschema::Validator,
    costs: Costs,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is not JSON.
    #[error("the schema is not JSON")]
    Unreadable,
    /// It is larger than we take.
    #[error("the schema is too large")]
    TooLarge,
    /// It refers to itself without ever coming to an end.
    #[error("the schema refers to itself without an end")]
    Endless,
    /// Checking anything against it would take too long.
    #[error("the schema multiplies itself beyond what can be checked")]
    TooCostly,
    /// It is not a schema, or refers to what is not in it.
    #[error("the schema cannot be used: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

impl Schema {
    /// Reads a schema. Without `$schema` it is draft 2020-12; nothing is ever fetched.
    pub fn compile(raw: &RawValue) -> Result<Self, SchemaError> {
        if raw.get().len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLarge);
        }
        let source: Value = serde_json::from_str(raw.get()).map_err(|_| SchemaError::Unreadable)?;
        Self::from_value(source)
    }

    /// Takes a schema that was read already.
    ///
    /// ```
    /// use amends_wire::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_value(json!({"properties": {"amount": {"exclusiveMinimum": 0}}, "required": ["order"]}))?;
    /// let faults = schema.check(&json!({"amount": -1}));
    /// assert_eq!((faults[0].field.as_str(), faults[0].expected.as_str()), ("order", "present"));
    /// assert_eq!((faults[1].field.as_str(), faults[1].expected.as_str()), ("amount", "a number > 0"));
    /// # Ok::<(), amends_wire::SchemaError>(())
    /// ```
    pub fn from_value(source: Value) -> Result<Self, SchemaError> {
        let costs = Costs::of(&source)?;
        let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(&source)
            .map_err(|error| SchemaError::Invalid { reason: amends_core::failure::bounded(&error.to_string()) })?;
        Ok(Self { source, validator, costs })
    }

    /// The schema as it was written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Whether a value fits; nothing where finding out would take too long.
    pub fn fits(&self, value: &Value) -> Option<bool> {
        self.costs.affords(value).then(|| self.validator.is_valid(value))
    }

    /// Whether a value is known to fit.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.fits(value) == Some(true)
    }

    /// What is wrong with a value; nothing if it fits, or if finding out would take too long.
    pub fn check(&self, value: &Value) -> Vec<ArgumentFault> {
        self.complaints(value).into_iter().map(|complaint| complaint.said).collect()
    }

    fn complaints(&self, value: &Value) -> Vec<Complaint> {
        if self.fits(value) != Some(false) {
            return Vec::new();
        }
        let mut complaints = Vec::new();
        for error in self.validator.iter_errors(value) {
            fault::describe(&error, &self.source, 0, &mut complaints);
            if complaints.len() >= FAULTS_MAX {
                break;
            }
        }
        complaints.truncate(FAULTS_MAX);
        complaints
    }

    /// The way on from arguments that do not fit.
    pub fn mended(&self, value: &Value) -> Mended {
        repair::mended(self, value)
    }

    /// The names at the top of what it describes, as far as it says them there.
    pub fn known(&self) -> Vec<&str> {
        let known = self.source.get("properties").and_then(Value::as_object);
        known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect()
    }

    /// The names without which nothing fits, as far as it says them at its top.
    pub fn required(&self) -> Vec<&str> {
        let required = self.source.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The refusal of a call of that tool with arguments that do not fit; nothing where they do.
    pub fn refusal(&self, tool: &str, value: &Value) -> Option<Refusal> {
        let details = self.check(value);
        let fault = details.first()?;
        let field = if fault.field.is_empty() { "the arguments".to_owned() } else { format!("`{}`", fault.field) };
        let more = if details.len() > 1 { format!(" (and {} more)", details.len() - 1) } else { String::new() };
        let message = format!("`{tool}` does not take these arguments: {field}: expected {}{more}", fault.expected);
        let recovery = Some(self.recovery(tool, value));
        Some(Refusal { details, recovery, ..Refusal::of(RefusalKind::InvalidArgument, message) })
    }

    /// The next call of that tool: complete where only names were nearly right, else with the arguments that are right and
    /// the names of those that must still be filled in.
    pub fn recovery(&self, tool: &str, value: &Value) -> Recovery {
        let Mended { complete, args, mut missing, whole, fuzzy_matches } = self.mended(value);
        let tool = tool.to_owned();
        if complete {
            return Recovery { call: Some(NextCall { tool, args }), ..Recovery::default() };
        }
        if whole {
            missing = self.to_be_said();
        }
        let template = Template { tool, args, missing };
        Recovery { template: Some(template), fuzzy_matches, ..Recovery::default() }
    }

    /// What is to be said where everything is: what must be there, or else what can be.
    pub fn to_be_said(&self) -> Vec<String> {
        let required = self.required();
        let named = if required.is_empty() { self.known() } else { required };
        named.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(value: Value) -> Schema {
        Schema::from_value(value).unwrap()
    }

    #[test]
    fn a_template_keeps_what_is_right_and_names_what_is_missing() {
        let schema = schema(json!({
            "type": "object", "additionalProperties": false, "required": ["order", "amount", "card"],
            "properties": {
                "order": {"type": "string"}, "amount": {"type": "number", "exclusiveMinimum": 0},
                "card": {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}},
                "items": {"type": "array", "items": {"type": "integer"}},
            },
        }));
        let given = json!({"order": "o1", "ammount": 5, "card": {"name": "x"}, "items": [1, "two"]});
        let recovery = schema.recovery("pay", &given);
        let template = recovery.template.unwrap();
        assert_eq!(Value::Object(template.args), json!({"order": "o1", "card": {"name": "x"}}));
        let mut missing = template.missing;
        missing.sort();
        assert_eq!(missing, ["amount", "card.number", "items"]);
        assert_eq!(recovery.fuzzy_matches, ["amount"]);
    }

    #[test]
    fn arguments_that_are_no_object_leave_an_empty_template() {
        let schema = schema(json!({"type": "object", "required": ["a"]}));
        let template = schema.recovery("t", &json!([1])).template.unwrap();
        assert!(template.args.is_empty());
    }

    #[test]
    fn nothing_is_fetched_and_nonsense_is_refused() {
        let remote = Schema::from_value(json!({"$ref": "https://example.com/schema.json"}));
        assert!(matches!(remote, Err(SchemaError::Invalid { .. })), "{remote:?}");
        assert!(matches!(Schema::from_value(json!({"type": "strnig"})), Err(SchemaError::Invalid { .. })));
        assert!(matches!(Schema::from_value(json!([])), Err(SchemaError::Invalid { .. })));
        let raw = RawValue::from_string(format!("\"{}\"", "x".repeat(SCHEMA_BYTES_MAX))).unwrap();
        assert_eq!(Schema::compile(&raw).unwrap_err(), SchemaError::TooLarge);
    }

    #[test]
    fn a_schema_that_refers_to_itself_checks_what_nests() {
        let tree = schema(json!({
            "$defs": {"node": {"type": "object", "required": ["v"], "properties": {
                "v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}},
            "$ref": "#/$defs/node",
        }));
        assert!(tree.is_valid(&json!({"v": 1, "kids": [{"v": 2, "kids": []}]})));
        let faults = tree.check(&json!({"v": 1, "kids": [{"v": 2}, {"v": "x"}]}));
        assert_eq!(faults[0].field, "kids.1.v");
    }
}
