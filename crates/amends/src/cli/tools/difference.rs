//! What a tool became, shown to somebody who has to judge it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use amends_ledger::PinnedTool;
use serde_json::Value;

/// The lines in which a tool differs from what it was pinned to.
pub(super) fn difference(pin: &PinnedTool) -> String {
    let mut told = format!("`{}` of `{}`", shown(&pin.served), shown(&pin.upstream));
    let Some(seen) = &pin.seen else { return told };
    let _ = write!(told, "\n  pinned {}\n  seen   {}", pin.pinned.digest, seen.digest);
    let (Some(was), Some(is)) = (leaves(pin.pinned.text.as_deref()), leaves(seen.text.as_deref())) else {
        told.push_str("\n  too long, or too odd, to be compared here; list the upstream's tools to see it");
        return told;
    };
    for (path, value) in &was {
        if is.get(path) != Some(value) {
            let _ = write!(told, "\n- {path}: {value}");
        }
        if let Some(now) = is.get(path).filter(|now| *now != value) {
            let _ = write!(told, "\n+ {path}: {now}");
        }
    }
    for (path, value) in is.iter().filter(|(path, _)| !was.contains_key(*path)) {
        let _ = write!(told, "\n+ {path}: {value}");
    }
    told
}

/// Every value of a definition by its path.
fn leaves(text: Option<&str>) -> Option<BTreeMap<String, String>> {
    let value: Value = serde_json::from_str(text?).ok()?;
    let mut leaves = BTreeMap::new();
    gather("", &value, &mut leaves);
    Some(leaves)
}

fn gather(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { shown(name) } else { format!("{path}.{}", shown(name)) };
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, member)| gather(&below(name), member, leaves));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(n, item)| gather(&below(&n.to_string()), item, leaves));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            leaves.insert(path.to_owned(), shown(&value.to_string()));
        }
    }
}

/// A text in which nothing hides: what cannot be seen, or would change what else is seen, is written out.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = c.is_control()
            || matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
                | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E01EF}');
        if hides {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_core::{Digest, Timestamp};
    use amends_ledger::Definition;

    #[test]
    fn what_is_new_is_told_with_its_path_and_nothing_in_it_hides() {
        let of =
            |text: &str| Definition { digest: Digest::new("d"), text: Some(text.to_owned()), at: Timestamp::default() };
        let pin = PinnedTool {
            place: Digest::new("p"),
            upstream: "shop".into(),
            tool: "pay".into(),
            served: "shop__pay".into(),
            version: 2,
            pinned: of(r#"{"description":"Pays.","inputSchema":{"properties":{"a":{"type":"string"}}}}"#),
            seen: Some(of(
                "{\"description\":\"Pays.\u{202E}\\u001b[2J\",\"inputSchema\":{\"properties\":{\"b\":{\"type\":\"string\"}}}}",
            )),
        };
        let told = difference(&pin);
        let lines: Vec<&str> = told.lines().skip(3).collect();
        assert!(!told.contains('\u{1b}') && !told.contains('\u{202E}'), "{told}");
        assert_eq!(lines[0], r#"- description: "Pays.""#);
        assert_eq!(lines[1], r#"+ description: "Pays.\u{202e}\u001b[2J""#);
        assert_eq!(
            lines[2..],
            [r#"- inputSchema.properties.a.type: "string""#, r#"+ inputSchema.properties.b.type: "string""#]
        );
    }
}
