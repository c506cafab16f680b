//! What is masked before it is recorded.

use std::collections::BTreeMap;

use amends_core::nearest::nearest;
use amends_core::privacy::{Category, Field, Mask};
use serde::Deserialize;

use super::ConfigError;
use super::settle::invalid;
use super::spec::ToolSpec;

/// `[privacy]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacySpec {
    /// What is masked beside credentials, payment cards and government ids, which always are: `contact`, `financial`,
    /// `online_identifier`, `location`.
    pub redact: Vec<String>,
    /// Private fields of every tool: `args.card`, or `{ path = "args.diagnosis", category = "health" }`.
    pub fields: Vec<FieldSpec>,
    /// Whether a masked view of a call's arguments is recorded with it. The default is `true`.
    pub views: Option<bool>,
}

/// A private field: a path, or a path with what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FieldSpec {
    /// `"args.card"`
    Path(String),
    /// `{ path = "args.diagnosis", category = "health" }`
    Of {
        /// Where it is.
        path: String,
        /// What it holds.
        category: String,
    },
}

/// What is masked before it is recorded, for every tool.
#[derive(Clone, Debug, Default)]
pub struct PrivacyConfig {
    shared: Mask,
    /// For tools with private fields of their own.
    tools: BTreeMap<String, Mask>,
}

impl PrivacyConfig {
    pub(super) fn settle(spec: &PrivacySpec, tools: &BTreeMap<String, ToolSpec>) -> Result<Self, ConfigError> {
        let redact: Vec<Category> =
            spec.redact.iter().map(|name| category("privacy.redact", name)).collect::<Result<_, _>>()?;
        let shared = Mask::new(redact, fields("privacy.fields", &spec.fields)?, spec.views.unwrap_or(true))
            .map_err(|error| invalid("privacy.redact", error.to_string()))?;
        let mut own = BTreeMap::new();
        for (name, tool) in tools.iter().filter(|(_, tool)| !tool.private.is_empty()) {
            let fields = fields(&format!("tools.{name}.private"), &tool.private)?;
            own.insert(name.clone(), shared.with_fields(&fields));
        }
        Ok(Self { shared, tools: own })
    }

    /// What is masked of that tool's calls.
    pub fn of(&self, tool: &str) -> &Mask {
        self.tools.get(tool).unwrap_or(&self.shared)
    }

    /// What is masked of what no tool is known for.
    pub fn shared(&self) -> &Mask {
        &self.shared
    }
}

pub(super) fn fields(key: &str, specs: &[FieldSpec]) -> Result<Vec<Field>, ConfigError> {
    let field = |spec: &FieldSpec| {
        let (path, category) = match spec {
            FieldSpec::Path(path) => (path, None),
            FieldSpec::Of { path, category } => (path, Some(self::category(key, category)?)),
        };
        Field::parse(path, category).map_err(|error| invalid(key, error.to_string()))
    };
    specs.iter().map(field).collect()
}

pub(super) fn category(key: &str, name: &str) -> Result<Category, ConfigError> {
    Category::parse(name).ok_or_else(|| {
        let near = nearest(name, Category::ALL.map(Category::as_str));
        let hint = near.first().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        invalid(key, format!("`{name}` is not a category{hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};

    fn refused(text: &str) -> String {
        settle(Spec::parse(text, "test").unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_tools_private_fields_come_beside_those_of_all() {
        let text = r#"
            [privacy]
            redact = ["contact"]
            fields = ["args.card"]
            [tools.book]
            private = [{ path = "args.diagnosis", category = "health" }]
        "#;
        let config = settle(Spec::parse(text, "test").unwrap()).unwrap();
        let arguments = serde_json::json!({ "card": "x", "diagnosis": "flu", "to": "ada@example.org" });
        assert_eq!(
            config.privacy.of("book").view(&arguments),
            r#"{"card":"[redacted:private]","diagnosis":"[redacted:health]","to":"[redacted:contact]"}"#
        );
        assert!(config.privacy.of("other").view(&arguments).contains("flu"));
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (text, says) in [
            (
                "[privacy]\nredact = [\"contacts\"]",
                "`privacy.redact`: `contacts` is not a category; did you mean `contact`?",
            ),
            ("[privacy]\nredact = [\"health\"]", "`privacy.redact`: `health` has no shape"),
            ("[privacy]\nfields = [\"card\"]", "`privacy.fields`: `card` begins with neither"),
            ("[tools.a]\nprivate = [\"args..x\"]", "`tools.a.private`: `args..x` is not a path"),
            (
                "[tools.a]\nprivate = [{ path = \"args.x\", category = \"y\" }]",
                "`tools.a.private`: `y` is not a category",
            ),
        ] {
            assert!(refused(text).starts_with(says), "{}", refused(text));
        }
    }
}
