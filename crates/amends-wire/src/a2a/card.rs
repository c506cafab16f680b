//! The card: who is behind a door, and what can be done there.

use serde_json::{Value, json};

/// Where a card is found.
pub const PATH: &str = "/.well-known/agent-card.json";

/// Where clients of 0.3 begin that speak HTTP and JSON; their paths go on with `/v1/`.
pub const OLD_REST: &str = "/a2a/0.3";

/// What a card says of itself.
#[derive(Clone, Debug)]
pub struct Card<'a> {
    /// Who it is.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Where the doors are: scheme and host.
    pub base: &'a str,
    /// The program's own version.
    pub version: &'a str,
    /// Whether it calls back.
    pub push: bool,
    /// Whether callers must say who they are.
    pub bearer: bool,
    /// Whether clients of 0.3 are served as well.
    pub old: bool,
    /// The media types of files that are taken, beside texts and JSON.
    pub accepts: &'a [String],
    /// What it can do.
    pub skills: Vec<Skill>,
}

/// One thing that can be done.
#[derive(Clone, Debug)]
pub struct Skill {
    /// The tool's name.
    pub id: String,
    /// The same for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What kind of thing it is.
    pub tags: Vec<String>,
    /// A data part that calls it.
    pub example: Option<String>,
}

impl Card<'_> {
    /// The card in the words of 1.0, without signatures. What is empty is left out, as in its canonical form.
    pub fn json(&self) -> Value {
        let base = self.base;
        let interface = |path: &str, binding: &str, version: &str| json!({ "url": format!("{base}{path}"), "protocolBinding": binding, "protocolVersion": version });
        let skills: Vec<Value> = self.skills.iter().map(Skill::json).collect();
        let mut capabilities = json!({ "streaming": true, "extendedAgentCard": true });
        if self.push {
            capabilities["pushNotifications"] = true.into();
        }
        let mut interfaces = vec![interface("/a2a", "JSONRPC", "1.0"), interface("/a2a/v1", "HTTP+JSON", "1.0")];
        if self.old {
            interfaces.extend([interface("/a2a", "JSONRPC", "0.3"), interface(OLD_REST, "HTTP+JSON", "0.3")]);
        }
        let mut modes = vec!["application/json", "text/plain"];
        modes.extend(self.accepts.iter().map(String::as_str));
        let mut card = json!({
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "supportedInterfaces": interfaces,
            "capabilities": capabilities,
            "defaultInputModes": modes,
            "defaultOutputModes": ["application/json", "text/plain"],
        });
        if !skills.is_empty() {
            card["skills"] = skills.into();
        }
        if self.bearer {
            card["securitySchemes"] = json!({ "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } });
            card["securityRequirements"] = json!([{ "schemes": { "bearer": {} } }]);
        }
        card
    }

    /// What a client of 0.3 looks for beside that; nothing where there are none. The card of 1.0 has no such members.
    pub fn legacy(&self) -> Vec<(&'static str, Value)> {
        if !self.old {
            return Vec::new();
        }
        let at = |path: &str| format!("{}{path}", self.base);
        let others = json!([
            { "transport": "JSONRPC", "url": at("/a2a") },
            { "transport": "HTTP+JSON", "url": at(OLD_REST) },
        ]);
        vec![
            ("url", at("/a2a").into()),
            ("preferredTransport", "JSONRPC".into()),
            ("additionalInterfaces", others),
            ("protocolVersion", "0.3.0".into()),
        ]
    }
}

impl Skill {
    fn json(&self) -> Value {
        let mut skill = json!({ "id": self.id, "name": self.name, "description": self.description, "tags": self.tags });
        if let Some(example) = &self.example {
            skill["examples"] = json!([example]);
        }
        skill
    }
}

/// A card as it is signed: without signatures, and without what is empty.
pub fn signed(card: &Value) -> Value {
    let mut card = card.clone();
    if let Some(members) = card.as_object_mut() {
        members.remove("signatures");
    }
    full(card).unwrap_or_default()
}

/// A value without what is empty in it; nothing where nothing is left.
fn full(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let members: serde_json::Map<_, _> =
                members.into_iter().filter_map(|(name, value)| Some((name, full(value)?))).collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(full).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Null => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_has_no_signatures_and_nothing_empty() {
        let card = json!({"name": "a", "iconUrl": "", "skills": [], "x": {"y": [{}]}, "ok": false,
            "signatures": [{"protected": "p"}]});
        assert_eq!(signed(&card), json!({"name": "a", "ok": false}));
    }
}
