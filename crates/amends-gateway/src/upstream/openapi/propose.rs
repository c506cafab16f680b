//! A configuration to begin with, from an API's document.

use std::fmt::Write;

use serde_json::Value;

use super::operation::Operation;
use super::parameter::KEY_HEADER;
use super::{Api, Scheme};

/// A configuration for an API, with a commented contract for each of its operations. `file` is the document as the
/// configuration names it, `name` the upstream's.
pub fn propose(api: &Api, file: &str, name: &str) -> String {
    let mut out = String::new();
    let title = one_line(if api.title.is_empty() { name } else { &api.title });
    // Writing into a text cannot fail.
    let _ = write!(
        out,
        "# {title}, from {}: what Amends may do about its failures.\n\
         # What is commented out is a guess, or a choice that only you can make.\n\n\
         [upstreams.{name}]\nopenapi = {}\n",
        one_line(file),
        quoted(file)
    );
    match &api.base_url {
        Some(url) => out.push_str(&format!("# base_url = {}\n", quoted(url))),
        None => out.push_str("base_url = \"https://\"    # the document names no server with an address\n"),
    }
    out.push_str("timeout = \"10s\"\n");
    out.push_str("rejects_before_effect = [429]    # a call it turns away for its rate was not begun\n");
    if !api.schemes.is_empty() {
        out.push_str("\n# What it wants to be shown is read from the environment, or from a file.\n");
        out.push_str(&format!("[upstreams.{name}.credentials]\n"));
    }
    for (scheme, place) in &api.schemes {
        let place = match place {
            Scheme::Header { name, .. } => format!("the header `{name}`"),
            Scheme::Query(name) => format!("`{}` in the query", one_line(name)),
            Scheme::Cookie(name) => format!("the cookie `{}`", one_line(name)),
        };
        let _ = writeln!(out, "# {} = {{ env = {} }}    # {place}", key(scheme), quoted(&variable(name, scheme)));
    }
    for operation in &api.operations {
        contract(&mut out, api, name, operation);
    }
    for (pointer, reason) in &api.unserved {
        let _ = write!(out, "\n# Not served: #{}\n#   {}\n", one_line(pointer), one_line(reason));
    }
    out
}

/// The contract of one operation. What is not commented out is what its method promises.
fn contract(out: &mut String, api: &Api, name: &str, operation: &Operation) {
    let tool = format!("{name}__{}", operation.name);
    let summary = operation.summary.lines().next().unwrap_or_default();
    let said = if summary.is_empty() { String::new() } else { format!(": {}", one_line(summary)) };
    let _ = writeln!(out, "\n# {} {}{said}", operation.method, one_line(&operation.path));
    if operation.elsewhere {
        let _ = writeln!(out, "# Not served without `base_url`: it has a server of its own.");
    }
    let _ = writeln!(out, "[tools.{}]", key(&tool));
    if operation.reads() {
        out.push_str("effect = \"read\"\n");
        return;
    }
    if operation.takes_key {
        out.push_str("effect = \"keyed\"    # the document takes an idempotency key\n");
        let _ = writeln!(out, "key = {{ header = \"{KEY_HEADER}\", window = \"24h\", durable = true }}");
    } else if operation.is_idempotent() {
        let _ = writeln!(out, "effect = \"idempotent\"    # by the meaning of {}", operation.method);
    } else {
        out.push_str("effect = \"write\"    # sent once; what is in doubt goes to a person\n");
        let _ = writeln!(out, "# effect = \"keyed\"    # if it honours a key, it can be sent again");
        let _ = writeln!(out, "# key = {{ header = \"{KEY_HEADER}\", window = \"24h\" }}");
    }
    let own = operation.parameters.iter().filter(|parameter| parameter.place == super::parameter::Place::Path);
    let own: Vec<&str> = own.map(|parameter| parameter.argument.as_str()).filter(|name| is_plain(name)).collect();
    if let Some(last) = own.last() {
        let _ = writeln!(out, "# object = \"args.{last}\"    # one write to it at a time");
    }
    // The read of the same path tells what a write to it is based on.
    if let Some(reader) = reader(api, operation) {
        let args: Vec<String> = own.iter().map(|name| format!("{name} = \"args.{name}\"")).collect();
        let args = args.join(", ");
        let reader = format!("{name}__{}", reader.name);
        let _ = writeln!(out, "# evidence = [{{ tool = {}, args = {{ {args} }} }}]", quoted(&reader));
        let _ = writeln!(out, "# if_match = true    # if it checks an `If-Match` against the `ETag` of that read");
    }
    out.push_str("# settles_within = \"30s\"    # after this, a request that was sent can no longer take effect\n");
}

/// The read of the path that an operation writes, where all that it takes is the path itself.
fn reader<'a>(api: &'a Api, operation: &Operation) -> Option<&'a Operation> {
    let same = |other: &&Operation| other.path == operation.path && other.method == hyper::Method::GET;
    let is_path = |name: &str| is_plain(name);
    let simple = |other: &&Operation| {
        !other.elsewhere
            && other.parameters.iter().all(|parameter| {
                !parameter.required
                    || (parameter.place == super::parameter::Place::Path && is_path(&parameter.argument))
            })
    };
    let has_path = operation.path.contains('{');
    api.operations.iter().find(same).filter(simple).filter(|_| has_path)
}

/// Whether a name can stand after a dot in an expression and as a bare key.
fn is_plain(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The variable of the environment that a credential is proposed to be read from.
fn variable(upstream: &str, scheme: &str) -> String {
    let word = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
    };
    format!("{}_{}", word(upstream), word(scheme))
}

/// A key of TOML, in quotes where it needs them.
fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// A text of TOML that stays on its line, whatever the document put into it. JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A text from the document that stays in its comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use amends_core::EffectKind;

    fn uncommented(text: &str) -> String {
        let settle = |line: &str| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).map(str::to_owned);
        let lines =
            text.lines().filter(|line| *line != "effect = \"write\"    # sent once; what is in doubt goes to a person");
        lines.map(|line| settle(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn a_text_stays_on_its_line_and_reads_back() {
        for text in ["plain", "a\"b\\c", "x\n[tools.pay]\neffect = \"read\"", "\r\u{0}\u{1b}\u{7f}\u{85}é"] {
            let line = quoted(text);
            assert!(!line.contains(|c: char| c.is_control() && c != '\u{85}'), "{line:?}");
            let read: toml::Table = toml::from_str(&format!("{line} = {line}")).unwrap();
            assert_eq!(read.get(text).and_then(|value| value.as_str()), Some(text));
        }
    }

    #[test]
    fn what_is_proposed_settles_as_it_is_and_with_every_choice_made() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shop.yaml"), include_str!("shop.yaml")).unwrap();
        let api = Api::parse(include_str!("shop.yaml").to_owned(), "shop.yaml").unwrap();
        let text = propose(&api, "shop.yaml", "shop");
        let load = |text: &str| {
            let file = folder.path().join("amends.toml");
            std::fs::write(&file, text).unwrap();
            Config::load(&file).map_err(|error| error.to_string())
        };
        let config = load(&text).unwrap();
        let effect = |tool: &str| config.tools[tool].spec().effect;
        assert_eq!(effect("shop__getOrder"), Some(EffectKind::Read));
        assert_eq!(effect("shop__create_order"), Some(EffectKind::Keyed));
        assert_eq!(effect("shop__replaceOrder"), Some(EffectKind::Idempotent));
        let all = load(&uncommented(&text)).unwrap();
        let replace = all.tools["shop__replaceOrder"].spec();
        assert!(replace.if_match);
        assert_eq!(replace.evidence[0].tool, "shop__getOrder");
    }

    #[test]
    fn a_hostile_title_stays_in_its_comment() {
        let text =
            "openapi: 3.1.0\ninfo: {title: \"x\\n[ledger]\\nurl = 1\"}\npaths:\n  /a: {get: {summary: \"y\\r[z]\"}}\n";
        let proposed = propose(&Api::parse(text.to_owned(), "d").unwrap(), "d", "d");
        assert!(!proposed.lines().any(|line| line.starts_with("[ledger]") || line.starts_with("[z]")), "{proposed}");
    }
}
