//! `[a2a]`: what is served to agents that speak A2A.

use std::collections::BTreeMap;

use amends_core::expression::Expression;
use amends_wire::a2a::version::CURRENT;
use serde::Deserialize;

use super::ConfigError;
use super::settle::{expression, invalid};

/// How many rules for texts there may be.
const RULES_MAX: usize = 64;
/// The older version that is spoken.
const OLD: &str = "0.3";

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
    /// The versions that are spoken, of `1.0` and `0.3`. The default is both; `1.0` is always among them.
    pub versions: Option<Vec<String>>,
    /// The media types of files that messages may have, such as `image/*`, beside texts and JSON. A rule for texts can give them to
    /// a tool. The default is none.
    pub accepts: Vec<String>,
    /// Whether a task that was done gives the envelope beside what the tool gave. The default is `true`.
    pub envelope: Option<bool>,
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
    /// What is answered once it was done: its `task`, or a `message` with what it gave. The default is the task.
    #[serde(default)]
    pub reply: TextReply,
}

/// What is answered to a message that names no tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextReply {
    /// The task.
    #[default]
    Task,
    /// A message, where it was done; else the task.
    Message,
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
    /// Whether 0.3 is spoken as well.
    pub old: bool,
    /// The media types of files that messages may have.
    pub accepts: Vec<String>,
    /// Whether tasks that were done give the envelope.
    pub envelope: bool,
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
    /// What is answered once it was done.
    pub reply: TextReply,
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
        let versions = spec.versions.unwrap_or_else(|| vec![CURRENT.into(), OLD.into()]);
        if let Some(odd) = versions.iter().find(|version| ![CURRENT, OLD].contains(&version.as_str())) {
            return Err(invalid("a2a.versions", format!("`{odd}` is neither `{CURRENT}` nor `{OLD}`")));
        }
        if !versions.iter().any(|version| version == CURRENT) {
            return Err(invalid("a2a.versions", format!("`{CURRENT}` is always spoken: name it as well")));
        }
        let media = |text: &String| text.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
        if let Some(odd) = spec.accepts.iter().find(|text| !media(text)) {
            return Err(invalid("a2a.accepts", format!("`{odd}` is no media type, such as `image/png` or `image/*`")));
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
            old: versions.iter().any(|version| version == OLD),
            accepts: spec.accepts.iter().map(|media| media.to_lowercase()).collect(),
            envelope: spec.envelope.unwrap_or(true),
        })
    }
}

fn rule(spec: TextSpec) -> Result<TextRule, ConfigError> {
    let when = spec.when.as_deref().map(|text| expression("a2a.text.when", text)).transpose()?;
    let args = spec.args.unwrap_or_else(|| BTreeMap::from([("text".into(), "text".into())]));
    let args: Result<BTreeMap<_, _>, ConfigError> =
        args.into_iter().map(|(name, text)| Ok((name, expression("a2a.text.args", &text)?))).collect();
    Ok(TextRule { when, tool: spec.tool, args: args?, reply: spec.reply })
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}
