//! What may not pass between agents and tools.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::privacy::{Category, Field, Sieve};
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ConfigError;
use super::privacy::{PrivacySpec, category, fields};
use super::settle::invalid;
use super::spec::ToolSpec;

/// `[pii]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PiiSpec {
    /// What becomes of a call whose arguments hold something, by category: `refuse` or `pass`. Credentials, payment cards and
    /// government ids are refused, unless the tool `takes` them; the default for the others is `pass`.
    pub arguments: BTreeMap<String, ArgumentsRule>,
    /// What becomes of it in results, by category: `mask` or `pass`. Credentials, payment cards and government ids are masked, unless
    /// the tool `gives` them; the default for the others is `pass`.
    pub results: BTreeMap<String, ResultsRule>,
}

/// What becomes of a call whose arguments hold something of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentsRule {
    /// It is refused.
    Refuse,
    /// It is masked, and the call is made with what is left.
    Mask,
    /// It is sent.
    Pass,
}

/// What becomes of something of a category in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultsRule {
    /// It is masked.
    Mask,
    /// The agent gets nothing of the result. What was done is done.
    Refuse,
    /// The agent gets it.
    Pass,
}

/// What may not pass, in both directions.
#[derive(Clone, Debug, Default)]
pub struct Sieves {
    /// Towards a tool: what is refused.
    pub arguments: Sieve,
    /// Towards a tool: what is masked.
    pub masks: Sieve,
    /// Towards an agent: what is masked.
    pub results: Sieve,
    /// Towards an agent: what is withheld, with all that it is in.
    pub withheld: Sieve,
}

/// What may not pass, for every tool.
#[derive(Clone, Debug, Default)]
pub struct PiiConfig {
    shared: Sieves,
    /// For tools that take or give what others do not, or have private fields of their own.
    tools: BTreeMap<String, Sieves>,
}

impl Sieves {
    /// What an agent gets in the place of something that is no tool's result; nothing where it may have all of it.
    pub fn shown(&self, text: &str) -> Option<String> {
        match self.withheld.masked(text, || None) {
            // A list of none is what there is to say of a resource or a prompt.
            Some(_) => Some(json!({ "contents": [], "messages": [] }).to_string()),
            None => self.results.masked(text, || None).map(|(masked, _)| masked),
        }
    }

    /// What an agent gets in the place of what is said of a task, whose result is a tool's; nothing where it may have all of it.
    pub fn task(&self, text: &str) -> Option<String> {
        let Some((masked, found)) = self.withheld.masked(text, || None) else {
            return self.results.masked(text, || None).map(|(masked, _)| masked);
        };
        // A task says itself what came of it, or this is what came of it.
        let task = Object::parse(&masked).filter(|task| task.get("taskId").is_some());
        let Some(task) = task else { return Some(withheld(&found)) };
        let mut splice = Splice::new(&masked);
        if let Some(result) = task.get("result") {
            let _ = splice.replace(result.get(), withheld(&found));
        }
        let told = splice.finish();
        Some(self.results.masked(&told, || None).map_or(told, |(masked, _)| masked))
    }

    /// Masks what an agent must not see of a walk's fields.
    pub fn hide(&self, fields: &mut Map<String, Value>) {
        for sieve in [&self.withheld, &self.results] {
            if sieve.lets_all_pass() {
                continue;
            }
            let text = Value::Object(fields.clone()).to_string();
            if let Some((masked, _)) = sieve.masked(&text, || None)
                && let Ok(Value::Object(masked)) = serde_json::from_str(&masked)
            {
                *fields = masked;
            }
        }
    }
}

/// What stands in the place of a whole result.
pub(crate) fn withheld(found: &BTreeSet<Category>) -> String {
    let kinds: Vec<&str> = found.iter().map(|category| category.as_str()).collect();
    let text = format!("[withheld:{}]", kinds.join(","));
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

impl PiiConfig {
    pub(super) fn settle(
        spec: &PiiSpec,
        privacy: &PrivacySpec,
        tools: &BTreeMap<String, ToolSpec>,
    ) -> Result<Self, ConfigError> {
        let refused = stopped("pii.arguments", "takes", &spec.arguments, ArgumentsRule::Refuse, ArgumentsRule::Pass)?;
        let masks = chosen("pii.arguments", &spec.arguments, ArgumentsRule::Mask)?;
        let masked = stopped("pii.results", "gives", &spec.results, ResultsRule::Mask, ResultsRule::Pass)?;
        let withheld = chosen("pii.results", &spec.results, ResultsRule::Refuse)?;
        let shared = fields("privacy.fields", &privacy.fields)?;
        let sieves = |takes: &BTreeSet<Category>, gives: &BTreeSet<Category>, own: &[Field]| {
            let declared = |sent: bool| shared.iter().filter(move |field| field.is_sent() == sent).cloned();
            let own = own.iter().filter(|field| !field.is_sent()).cloned();
            Sieves {
                arguments: Sieve::new(refused.difference(takes).copied(), declared(true)),
                masks: Sieve::new(masks.difference(takes).copied(), declared(true)),
                results: Sieve::new(masked.difference(gives).copied(), declared(false).chain(own.clone())),
                withheld: Sieve::new(withheld.difference(gives).copied(), declared(false).chain(own)),
            }
        };
        let mut of = BTreeMap::new();
        for (name, tool) in tools {
            if tool.takes.is_empty() && tool.gives.is_empty() && tool.private.is_empty() {
                continue;
            }
            let key = |part: &str| format!("tools.{name}.{part}");
            let named = |part: &str, names: &[String]| -> Result<BTreeSet<Category>, ConfigError> {
                names.iter().map(|name| category(&key(part), name)).collect()
            };
            let own = fields(&key("private"), &tool.private)?;
            // A field of the arguments that is declared to hold something says that the tool takes it.
            let mut takes = named("takes", &tool.takes)?;
            takes.extend(own.iter().filter(|field| field.is_sent()).filter_map(Field::category));
            of.insert(name.clone(), sieves(&takes, &named("gives", &tool.gives)?, &own));
        }
        Ok(Self { shared: sieves(&BTreeSet::new(), &BTreeSet::new(), &[]), tools: of })
    }

    /// What may not pass to or from that tool.
    pub fn of(&self, tool: &str) -> &Sieves {
        self.tools.get(tool).unwrap_or(&self.shared)
    }

    /// What may not pass where no tool is known.
    pub fn shared(&self) -> &Sieves {
        &self.shared
    }
}

/// The categories that are stopped in the usual way: the floor, unless something else is done about it, and what is named.
fn stopped<R: Copy + PartialEq>(
    key: &str,
    exception: &str,
    rules: &BTreeMap<String, R>,
    usual: R,
    pass: R,
) -> Result<BTreeSet<Category>, ConfigError> {
    let mut stopped: BTreeSet<Category> = Category::FLOOR.into_iter().collect();
    for (name, rule) in rules {
        let category = category(key, name)?;
        if *rule == pass && Category::FLOOR.contains(&category) {
            let words =
                format!("`{name}` passes nowhere by itself; a tool that may have it says so with `{exception}`");
            return Err(invalid(key, words));
        }
        match *rule == usual {
            true => stopped.insert(category),
            false => stopped.remove(&category),
        };
    }
    Ok(stopped)
}

/// The categories about which that is done.
fn chosen<R: Copy + PartialEq>(
    key: &str,
    rules: &BTreeMap<String, R>,
    chosen: R,
) -> Result<BTreeSet<Category>, ConfigError> {
    rules.iter().filter(|(_, rule)| **rule == chosen).map(|(name, _)| category(key, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};

    const CARD: &str = r#"{"card":"4111 1111 1111 1111"}"#;

    #[test]
    fn the_floor_is_there_unless_a_tool_says_otherwise() {
        let text = r#"
            [pii]
            arguments = { contact = "refuse" }
            [tools.pay]
            takes = ["payment_card"]
            [tools.book]
            private = [{ path = "args.card", category = "payment_card" }]
            [tools.vault]
            gives = ["credential"]
        "#;
        let config = settle(Spec::parse(text, "test").unwrap()).unwrap().pii;
        let refused = |tool: &str, arguments: &str| !config.of(tool).arguments.finds(arguments).is_empty();
        assert!(refused("other", CARD) && refused("vault", CARD));
        assert!(!refused("pay", CARD) && !refused("book", CARD));
        let mail = r#"{"to":"ada@example.org"}"#;
        assert!(refused("pay", mail) && refused("other", mail));
        let key = r#"{"key":"AKIAIOSFODNN7EXAMPLE"}"#;
        let masked = |tool: &str| config.of(tool).results.masked(key, || None).is_some();
        assert!(masked("other") && masked("pay") && !masked("vault"));
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (text, says) in [
            (
                "[pii]\narguments = { credential = \"pass\" }",
                "`pii.arguments`: `credential` passes nowhere by itself; a tool",
            ),
            (
                "[pii]\nresults = { contcat = \"mask\" }",
                "`pii.results`: `contcat` is not a category; did you mean `contact`?",
            ),
            ("[tools.a]\ntakes = [\"cards\"]", "`tools.a.takes`: `cards` is not a category"),
        ] {
            let refused = settle(Spec::parse(text, "test").unwrap()).unwrap_err().to_string();
            assert!(refused.starts_with(says), "{refused}");
        }
    }
}
