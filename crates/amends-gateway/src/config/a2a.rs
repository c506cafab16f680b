//! `[a2a]`: what is served to agents that speak A2A.

use std::collections::BTreeMap;

use amends_core::expression::Expression;
use serde::Deserialize;

use super::ConfigError;
use super::settle::{expression, invalid};

/// How many rules for texts there may be.
const RULES_MAX: usize = 64;

/// `[a2a]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSpec {
    /// Whether there is a card, and a door behind it. The default is `true`.
    pub enabled: Option<bool>,
    /// The name on the card. The default is `amends`.
    pub name: Option<String>,
    /// What the card says is done here.
    pub description: Option<String>,
    /// The address by which agents reach us, without a path: `https://agents.example.com`. The default is the `Host` that was asked
    /// for the card, over plain HTTP.
    pub url: Option<String>,
    /// What becomes of messages that name no tool: the first rule that holds counts. Without one, such a message is rejected.
    pub text: Vec<TextSpec>,
    /// What the addresses must begin with at which agents may have their tasks' changes posted. The default is none.
    pub push: Vec<String>,
}

/// `[[a2a.text]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSpec {
    /// When it holds: an expression over `text` and `message`. Without one it always does.
    #[serde(default)]
    pub when: Option<String>,
    /// The tool that is called.
    pub tool: String,
    /// Its arguments: expressions over the same. The default is `{ text = "text" }`.
    #[serde(default)]
    pub args: Option<BTreeMap<String, String>>,
}

/// What is served to agents that speak A2A.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct A2aConfig {
    /// Whether there is a door.
    pub enabled: bool,
    /// The name on the card.
    pub name: String,
    /// What it says is done here.
    pub description: String,
    /// The address by which agents reach us.
    pub url: Option<String>,
    /// What becomes of messages that name no tool.
    pub text: Vec<TextRule>,
    /// What the addresses must begin with at which agents may be called back.
    pub push: Vec<String>,
}

/// What becomes of a message that names no tool.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRule {
    /// When it holds.
    pub when: Option<Expression>,
    /// The tool that is called.
    pub tool: String,
    /// Its arguments.
    pub args: BTreeMap<String, Expression>,
}

impl A2aConfig {
    pub(super) fn settle(spec: A2aSpec) -> Result<Self, ConfigError> {
        if let Some(url) = &spec.url
            && !is_address(url)
        {
            return Err(invalid("a2a.url", format!("`{url}` is not an `http://` or `https://` address")));
        }
        if let Some(odd) = spec.push.iter().find(|prefix| !is_address(prefix)) {
            return Err(invalid("a2a.push", format!("`{odd}` does not begin like an address")));
        }
        if spec.text.len() > RULES_MAX {
            return Err(invalid("a2a.text", format!("there may be {RULES_MAX} rules at most")));
        }
        let text: Result<Vec<_>, _> = spec.text.into_iter().map(rule).collect();
        let words = "calls tools, judges what goes wrong with them, and asks people where the rules say so";
        Ok(Self {
            enabled: spec.enabled.unwrap_or(true),
            name: spec.name.unwrap_or_else(|| "amends".into()),
            description: spec.description.unwrap_or_else(|| words.into()),
            url: spec.url.map(|url| url.trim_end_matches('/').to_owned()),
            text: text?,
            push: spec.push,
        })
    }
}

fn rule(spec: TextSpec) -> Result<TextRule, ConfigError> {
    let when = spec.when.as_deref().map(|text| expression("a2a.text.when", text)).transpose()?;
    let args = spec.args.unwrap_or_else(|| BTreeMap::from([("text".into(), "text".into())]));
    let args: Result<BTreeMap<_, _>, ConfigError> =
        args.into_iter().map(|(name, text)| Ok((name, expression("a2a.text.args", &text)?))).collect();
    Ok(TextRule { when, tool: spec.tool, args: args? })
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}
