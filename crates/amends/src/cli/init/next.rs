//! What to do once the file is written.

use std::path::Path;

use serde_json::json;

use super::api::Described;
use super::page::{Part, Tally};
use crate::cli::clients::ServerReach;
use crate::cli::live::Seen;

/// What was written, and what is to be done next.
pub(super) fn words(out: Option<&Path>, parts: &[Part], apis: &[Described], tally: Tally) -> String {
    let file = out.map_or_else(|| "amends.toml".to_owned(), |path| path.display().to_string());
    let mut text = String::new();
    let Tally { reads, writes, questions } = tally;
    text.push_str(&format!(
        "{file}: {}, {writes} that may write, {reads} that seem to read; {}\n",
        counted(parts.len() + apis.len(), "upstream"),
        counted(questions, "question")
    ));
    for part in parts {
        let name = &part.source.name;
        match (&part.unfit, &part.seen) {
            (Some(reason), _) => text.push_str(&format!("`{name}` is commented out: {reason}\n")),
            (None, Some(Seen::Down(absence))) => {
                text.push_str(&format!("`{name}` did not answer: {}\n", absence.reason));
            }
            (None, _) => {}
        }
        for lost in &part.written.lost {
            text.push_str(&format!("`{name}`: {lost}\n"));
        }
    }
    for api in apis {
        text.push_str(&format!("`{}` is an HTTP API: a contract for each of its operations is at the end\n", api.name));
    }
    text.push_str("\nNext:\n");
    let mut steps = vec![format!("read {file} and answer its questions: take the `#` off where the answer is yes")];
    for (variable, origin) in parts.iter().flat_map(|part| &part.written.wants) {
        steps.push(format!("set {variable} in the environment of `amends`; its value was in {origin}"));
    }
    steps.push(format!("amends check --config {file} --live    whether it fits what the servers offer"));
    steps.push(format!("amends drill --config {file}           what each tool would do about every fault"));
    steps.push(format!("amends serve --config {file}"));
    for (n, step) in steps.iter().enumerate() {
        text.push_str(&format!("  {}. {step}\n", n + 1));
    }
    text.push_str("\nThen point the client to it:\n");
    text.push_str(&indented(&json!({ "mcpServers": { "amends": { "url": "http://127.0.0.1:7070/mcp" } } })));
    if let Some(wrap) = wrap(out, parts).filter(|_| apis.is_empty()) {
        text.push_str("\nor let the client start it, one server and its own names:\n");
        text.push_str(&indented(&wrap));
    }
    text
}

/// The client's configuration that starts the only server through `amends wrap`.
fn wrap(out: Option<&Path>, parts: &[Part]) -> Option<serde_json::Value> {
    let [part] = parts else { return None };
    let ServerReach::Command { .. } = &part.source.reach else { return None };
    let config = std::path::absolute(out?).ok()?;
    // As it was written to the file, and so without what looked like a secret.
    let line = part.written.lines.iter().find_map(|line| line.strip_prefix("command = "))?;
    let command: toml::Table = toml::from_str(&format!("command = {line}")).ok()?;
    let command = command.get("command")?.as_array()?.iter().filter_map(|word| word.as_str().map(str::to_owned));
    let mut args = vec!["wrap".to_owned(), "--config".into(), config.display().to_string(), "--".into()];
    args.extend(command);
    Some(json!({ "mcpServers": { &part.source.name: { "command": "amends", "args": args } } }))
}

fn indented(value: &serde_json::Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    pretty.lines().map(|line| format!("  {line}\n")).collect()
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
