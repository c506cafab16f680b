//! One upstream of a configuration, explained.

use std::fmt::Write;

use amends_gateway::config::{Reach, UpstreamConfig};
use amends_gateway::rulebook::span;
use serde_json::{Value, json};

use super::origin::{Keys, Origin};
use crate::cli::clients::looks_secret;

/// One upstream, explained.
pub(super) struct CheckedUpstream {
    name: String,
    reach: String,
    values: Vec<(&'static str, String, Origin)>,
    /// What is worth a second look.
    pub(super) warnings: Vec<String>,
}

impl CheckedUpstream {
    /// Its warnings, with its section.
    pub(super) fn named_warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|words| format!("`upstreams.{}`: {words}", self.name))
    }

    pub(super) fn of(name: &str, upstream: &UpstreamConfig, keys: &Keys) -> Self {
        let ms = |time: std::time::Duration| span(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let listed = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
        let statuses: Vec<String> = upstream.rejects_before_effect.iter().map(u16::to_string).collect();
        let mut shown = vec![
            ("prefix", format!("{:?}", upstream.prefix)),
            ("trust_hints", upstream.trust_hints.to_string()),
            ("timeout", ms(upstream.timeout)),
            ("deadline", ms(upstream.deadline)),
            ("rejects_before_effect", listed(&statuses)),
            ("concurrency", upstream.concurrency.to_string()),
            ("queue", upstream.queue.to_string()),
        ];
        let patterns = [("expose", &upstream.patterns.expose), ("hide", &upstream.patterns.hide)];
        shown.extend(patterns.into_iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| (key, listed(list))));
        let mut warnings = Vec::new();
        if let Reach::Stdio { env, env_pass, .. } = &upstream.reach {
            if !env.is_empty() {
                shown.push(("env", listed(&env.keys().cloned().collect::<Vec<_>>())));
            }
            if !env_pass.is_empty() {
                shown.push(("env_pass", listed(env_pass)));
            }
            let secret = |(name, value): &(&String, &String)| looks_secret(name, value);
            for (name, _) in env.iter().filter(secret) {
                warnings.push(format!(
                    "`env.{name}` looks like a secret: take it out of the file and name it in `env_pass`"
                ));
            }
        }
        if upstream.trust_hints {
            warnings.push(
                "its own hints count for tools that are not declared: what it calls a read is sent again".to_owned(),
            );
        }
        let values = shown.into_iter().map(|(key, value)| (key, value, keys.of_upstream(name, key))).collect();
        Self { name: name.to_owned(), reach: reach(name, &upstream.reach), values, warnings }
    }

    pub(super) fn write(&self, text: &mut String) {
        // Writing into a text cannot fail.
        let _ = writeln!(text, "upstream {}  {}", self.name, self.reach);
        let values: Vec<String> =
            self.values.iter().map(|(key, value, origin)| format!("{key} {value} {}", origin.words())).collect();
        let _ = writeln!(text, "  settings  {}", values.join("; "));
        for warning in &self.warnings {
            let _ = writeln!(text, "  warning   {warning}");
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let values: serde_json::Map<String, Value> = self
            .values
            .iter()
            .map(|(key, value, origin)| {
                let mut shown = origin.to_json();
                shown["value"] = json!(value);
                ((*key).to_owned(), shown)
            })
            .collect();
        json!({ "upstream": self.name, "reach": self.reach, "settings": values, "warnings": self.warnings })
    }
}

/// How it is reached, in a few words. A command's words may be secret, and so only its program is shown.
fn reach(name: &str, reach: &Reach) -> String {
    match reach {
        _ if name == "wrapped" => "the server that `amends wrap` starts".to_owned(),
        Reach::Stdio { command, .. } => {
            let program = command.first().map_or("", String::as_str);
            match command.len() {
                0 | 1 => format!("starts `{program}`"),
                n => format!("starts `{program}` with {} arguments", n - 1),
            }
        }
        Reach::Http { url, .. } => format!("is at {}", url.split('?').next().unwrap_or(url)),
        Reach::OpenApi(api) => format!("is the API at {}", api.base_url),
        Reach::A2a { url, .. } => format!("is the agent at {}", url.split('?').next().unwrap_or(url)),
        Reach::Functions(_) => "is functions of this program".to_owned(),
    }
}
