//! `[questions.NAME]`: what people are asked for, as tools that give what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use amends_core::interaction::{Form, choice};
use amends_core::{Approval, EffectKind, UpstreamName};
use amends_wire::Schema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settle::{anywhere, invalid};
use super::spec::ToolSpec;
use super::{ConfigError, Reach, Span, UpstreamConfig};
use crate::upstream::functions::{Failed, Function, Functions};

/// The name of the upstream that questions are the tools of.
pub const PEOPLE: &str = "people";
/// What the names of the tools begin with that have somebody sign in for an upstream.
pub const SIGN_IN: &str = "sign_in_";
/// How long a question and its schema may be.
const MESSAGE_MAX: usize = 1000;
const SCHEMA_BYTES_MAX: usize = 8 << 10;
/// How many answers there may be to choose from, and how long one may be.
const OPTIONS_MAX: usize = 32;
const OPTION_MAX: usize = 200;

/// `[questions.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionSpec {
    /// The question, in a sentence.
    pub message: String,
    /// The queue that it is put on. The default is `default`.
    pub queue: Option<String>,
    /// The JSON Schema of the answer: an object, whose properties are the fields of the form.
    pub schema: Option<Value>,
    /// The answers to choose from, in the place of a schema.
    #[serde(default)]
    pub options: Vec<String>,
    /// The member of the answer that holds what was chosen. The default is the question's name.
    pub field: Option<String>,
    /// Whether whoever called may answer as well, and is asked through its own client. The default is `true`.
    pub requester: Option<bool>,
    /// How long a person has for an answer. The default is `24h`.
    pub answer_within: Option<Span>,
}

/// What the operator wants people to be asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    /// Each as a tool.
    pub(super) tools: BTreeMap<String, ToolSpec>,
    /// Where these tools are.
    pub(super) upstream: Option<(UpstreamName, UpstreamConfig)>,
}

impl Questions {
    pub(super) fn settle(
        specs: BTreeMap<String, QuestionSpec>,
        tools: &BTreeMap<String, ToolSpec>,
        upstreams: &BTreeMap<UpstreamName, UpstreamConfig>,
    ) -> Result<Self, ConfigError> {
        for (tool, spec) in tools {
            if let Some(unknown) = spec.ask.iter().find(|name| !specs.contains_key(*name)) {
                return Err(invalid(&format!("tools.{tool}.ask"), format!("there is no `[questions.{unknown}]`")));
            }
        }
        let accounts: Vec<&UpstreamName> =
            upstreams.iter().filter(|(_, of)| signs_in(of)).map(|(name, _)| name).collect();
        if specs.is_empty() && accounts.is_empty() {
            return Ok(Self::default());
        }
        let people = UpstreamName::new(PEOPLE);
        if upstreams.contains_key(&people) {
            return Err(invalid("upstreams.people", "is the name under which people are asked; choose another".into()));
        }
        let mut functions = Vec::new();
        let mut settled = BTreeMap::new();
        let mark = format!("{specs:?}{accounts:?}");
        for (name, spec) in specs {
            let key = format!("questions.{name}");
            if tools.contains_key(&name) {
                return Err(invalid(&key, format!("`[tools.{name}]` has the same name")));
            }
            let form = form(&key, &name, &spec)?;
            functions.push(function(&name, &form));
            let approval = Approval {
                queue: spec.queue.unwrap_or_else(|| "default".into()),
                persons: 1,
                policy: String::new(),
                requester_may: spec.requester.unwrap_or(true),
                form: Some(Box::new(form)),
            };
            let tool = ToolSpec {
                effect: Some(EffectKind::Read),
                answer_within: spec.answer_within,
                question: Some(Box::new(approval)),
                ..ToolSpec::default()
            };
            settled.insert(name, tool);
        }
        for upstream in accounts {
            let name = format!("{SIGN_IN}{upstream}");
            if tools.contains_key(&name) || settled.contains_key(&name) {
                let key = format!("upstreams.{upstream}.sign_in");
                return Err(invalid(&key, format!("there is something else with the name `{name}`")));
            }
            functions.push(sign_in(&name, upstream));
            settled.insert(name, ToolSpec { effect: Some(EffectKind::Read), ..ToolSpec::default() });
        }
        let reach = Reach::Functions(Functions::from_iter(functions).marked(&mark));
        let upstream = UpstreamConfig { reach, timeout: Duration::from_secs(10), ..anywhere() };
        Ok(Self { tools: settled, upstream: Some((people, upstream)) })
    }
}

/// Whether a person signs in for it, and nothing is known of its tools before.
fn signs_in(upstream: &UpstreamConfig) -> bool {
    match &upstream.reach {
        Reach::Http { access, .. } | Reach::A2a { access, .. } => access.sign_in.is_some(),
        Reach::Stdio { .. } | Reach::OpenApi(_) | Reach::Functions(_) => false,
    }
}

/// A tool that ends once somebody has signed in for an upstream. The driver sees to that before it is called.
fn sign_in(name: &str, upstream: &UpstreamName) -> Function {
    let signed_in = |_: Value| async move { Ok::<_, Failed>(json!({ "signed_in": true })) };
    Function::new(name, signed_in)
        .described(&format!(
            "Has a person sign in for `{upstream}`, unless somebody has. Its tools are known afterwards."
        ))
        .input(json!({ "type": "object", "additionalProperties": false }))
        .output(json!({ "type": "object", "properties": { "signed_in": { "type": "boolean" } } }))
        .reads()
}

/// A tool that gives what it is given: the driver gives it what the person answered.
fn function(name: &str, form: &Form) -> Function {
    let answered = |content: Value| async move { Ok::<_, Failed>(content) };
    let output = serde_json::from_str(&form.schema).unwrap_or_else(|_| json!({ "type": "object" }));
    Function::new(name, answered)
        .described(&format!("Asks a person: {}", form.message))
        .input(json!({ "type": "object", "description": "What the person should know; it is shown to them." }))
        .output(output)
        .reads()
}

fn form(key: &str, name: &str, spec: &QuestionSpec) -> Result<Form, ConfigError> {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
        return Err(invalid(key, "a name is made of `A-Za-z0-9_-`".into()));
    }
    if spec.message.trim().is_empty() || spec.message.len() > MESSAGE_MAX {
        return Err(invalid(&format!("{key}.message"), format!("is a sentence of at most {MESSAGE_MAX} bytes")));
    }
    let schema = match (&spec.schema, spec.options.is_empty()) {
        (Some(schema), true) => schema.clone(),
        (None, false) => {
            let field = spec.field.as_deref().unwrap_or(name);
            let properties = Map::from_iter([(field.to_owned(), json!({ "type": "string", "enum": spec.options }))]);
            json!({ "type": "object", "properties": properties, "required": [field] })
        }
        _ => return Err(invalid(key, "needs one of `schema` and `options`".into())),
    };
    let distinct: BTreeSet<&String> = spec.options.iter().collect();
    let wrong = |option: &String| option.is_empty() || option.len() > OPTION_MAX || option == choice::DENY;
    if distinct.len() != spec.options.len() || spec.options.len() > OPTIONS_MAX || spec.options.iter().any(wrong) {
        let why = format!("are at most {OPTIONS_MAX} different texts, and none of them is `{}`", choice::DENY);
        return Err(invalid(&format!("{key}.options"), why));
    }
    let key = format!("{key}.schema");
    let has_fields = schema["type"] == "object" && schema["properties"].as_object().is_some_and(|all| !all.is_empty());
    if !has_fields {
        return Err(invalid(&key, "is that of an object with `properties`".into()));
    }
    let text = schema.to_string();
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(invalid(&key, format!("has at most {SCHEMA_BYTES_MAX} bytes")));
    }
    Schema::from_value(schema).map_err(|error| invalid(&key, error.to_string()))?;
    Ok(Form { message: spec.message.clone(), schema: text, choices: spec.options.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Spec, settle};
    use super::*;

    fn settled(text: &str) -> Result<Config, ConfigError> {
        settle(Spec::parse(text, "test")?)
    }

    const ACCOUNT: &str = "[questions.account]\nmessage = \"Which account?\"\n";

    #[test]
    fn a_question_is_a_tool_that_waits_for_a_person() {
        let text = format!("{ACCOUNT}options = [\"giro\", \"savings\"]\n[tools.pay]\nask = [\"account\"]\n");
        let config = settled(&text).unwrap();
        assert_eq!(config.asks("pay"), ["account"]);
        assert!(config.asks("account").is_empty());
        let people = &config.upstreams[&UpstreamName::new(PEOPLE)];
        let approval = config.rules("account", people, EffectKind::Write).unwrap().contract.approval.unwrap();
        assert_eq!((approval.queue.as_str(), approval.requester_may), ("default", true));
        let form = approval.form.unwrap();
        assert_eq!(form.choices, ["giro", "savings"]);
        assert!(form.schema.contains("\"required\":[\"account\"]"), "{}", form.schema);
        let again = settled(&text).unwrap();
        assert_eq!(again.upstreams, config.upstreams, "the same questions are the same tools");
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        let properties = "schema = { type = \"object\", properties = { a = { type = \"string\" } } }";
        for (text, says) in [
            (ACCOUNT.to_owned(), "questions.account"),
            (format!("{ACCOUNT}{properties}\noptions = [\"a\"]"), "questions.account"),
            (format!("{ACCOUNT}options = [\"a\", \"a\"]"), "questions.account.options"),
            (format!("{ACCOUNT}options = [\"deny\"]"), "questions.account.options"),
            (format!("{ACCOUNT}schema = {{ type = \"string\" }}"), "questions.account.schema"),
            (
                format!("{ACCOUNT}schema = {{ type = \"object\", properties = {{ a = {{ type = 7 }} }} }}"),
                "questions.account.schema",
            ),
            (format!("{ACCOUNT}{properties}\n[upstreams.people]\ncommand = [\"x\"]"), "upstreams.people"),
            (format!("{ACCOUNT}{properties}\n[tools.account]\neffect = \"read\""), "questions.account"),
            ("[tools.pay]\nask = [\"account\"]".to_owned(), "tools.pay.ask"),
            ("[questions.\"a b\"]\nmessage = \"x\"\noptions = [\"a\"]".to_owned(), "A-Za-z0-9_-"),
        ] {
            let refused = settled(&text).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
