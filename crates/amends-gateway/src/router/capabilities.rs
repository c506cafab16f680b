//! What all upstreams can do together, and what they say of themselves.

use amends_wire::mcp::tasks;
use serde_json::{Map, Value, json};

use crate::upstream::Upstream;

/// How much of what an upstream says of itself is passed on.
const INSTRUCTIONS_MAX: usize = 8 * 1024;

/// What we can do for a client: our tools, and whatever any upstream offers. One that was never greeted may offer anything.
pub fn capabilities<'a>(upstreams: impl IntoIterator<Item = &'a Upstream>) -> Value {
    let mut all = json!({ "tools": { "listChanged": true } });
    for upstream in upstreams {
        let offered = match upstream.news.greeting() {
            Some(greeting) => greeting.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default(),
            None => {
                let unknown = json!({ "prompts": {}, "resources": {}, "completions": {} });
                unknown.as_object().cloned().unwrap_or_default()
            }
        };
        add(&mut all, &offered);
    }
    all
}

fn add(all: &mut Value, offered: &Map<String, Value>) {
    if offered.contains_key("prompts") {
        all["prompts"] = json!({ "listChanged": true });
    }
    if let Some(resources) = offered.get("resources") {
        let known = all["resources"]["subscribe"] == true;
        let mut ours = json!({ "listChanged": true });
        if known || resources["subscribe"] == true {
            ours["subscribe"] = json!(true);
        }
        all["resources"] = ours;
    }
    // Everybody shares one session with an upstream, so a list of tasks would show everybody's.
    if let Some(calls) = offered.get("tasks").and_then(|tasks| tasks.get("requests")?.get("tools")) {
        all["tasks"] = json!({ "cancel": {}, "requests": { "tools": calls } });
        // What must be called as a task can be, in either era.
        if all["extensions"].get(tasks::EXTENSION).is_none() {
            all["extensions"][tasks::EXTENSION] = json!({});
        }
    }
    if let Some(settings) = offered.get("extensions").and_then(|extensions| extensions.get(tasks::EXTENSION)) {
        all["extensions"][tasks::EXTENSION] = settings.clone();
    }
    for plain in ["completions", "logging"] {
        if let Some(offer) = offered.get(plain) {
            all[plain] = offer.clone();
        }
    }
}

/// What the upstreams tell a model of themselves, each under its name, after what we say.
pub fn instructions<'a>(ours: &str, upstreams: impl IntoIterator<Item = &'a Upstream>) -> String {
    let mut all = ours.to_owned();
    for upstream in upstreams {
        let Some(greeting) = upstream.news.greeting() else { continue };
        let Some(theirs) = greeting.get("instructions").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
        else {
            continue;
        };
        let theirs = &theirs[..theirs.floor_char_boundary(INSTRUCTIONS_MAX)];
        let name = if upstream.config.prefix.is_empty() { upstream.name.as_str() } else { &upstream.config.prefix };
        all.push_str(&format!("\n\n[{name}] {theirs}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(offers: &[Value]) -> Value {
        let mut all = json!({ "tools": {} });
        for offer in offers {
            add(&mut all, offer.as_object().unwrap());
        }
        all
    }

    #[test]
    fn whatever_one_offers_all_offer() {
        let both = merged(&[
            json!({ "prompts": {}, "resources": { "subscribe": true } }),
            json!({ "resources": { "listChanged": false }, "completions": {}, "experimental": { "x": {} },
                "tasks": { "list": {}, "requests": { "tools": { "call": {} } } } }),
        ]);
        let all = json!({
            "tools": {}, "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true }, "completions": {},
            "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } },
            "extensions": { tasks::EXTENSION: {} },
        });
        assert_eq!(both, all);
        assert_eq!(merged(&[json!({})]), json!({ "tools": {} }));
    }
}
