//! A tool call and its edits: what no edit names keeps its bytes, and the upstream reads what was meant.

use std::collections::BTreeMap;

use amends_core::contract::{KeyPlace, Place};
use amends_wire::Object;
use amends_wire::mcp::call::{DEADLINE, KEY, SESSION};
use amends_wire::mcp::{Edits, ProgressToken, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A call and what is to change in it.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    params: &'a RawValue,
    #[serde(default)]
    name: Option<String>,
    /// Where a key goes: `argument`, `meta` or `header`, and the name there.
    #[serde(default)]
    place: Option<Place>,
    #[serde(default)]
    progress: Option<Box<RawValue>>,
    #[serde(default)]
    without_progress: bool,
    #[serde(default)]
    deadline_ms: Option<u64>,
    #[serde(default)]
    meta: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    without_meta: Vec<String>,
}

const EFFECT_KEY: &str = "k\"1";

/// Reads the bytes as a call with edits, or as nothing but a call.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(params) = serde_json::from_str::<&RawValue>(&text) {
        unedited(params);
    }
    if let Ok(given) = serde_json::from_str::<Given<'_>>(&text) {
        unedited(given.params);
        edited(&given);
    }
}

/// A call without anything of ours goes out as it came.
fn unedited(params: &RawValue) {
    let Ok(call) = ToolCall::parse(Some(params)) else {
        return;
    };
    let _ = call.meta();
    let meta = call.raw_meta().and_then(|meta| Object::parse(meta.get()));
    let ours = meta.is_some_and(|meta| [KEY, SESSION, DEADLINE].iter().any(|name| meta.get(name).is_some()));
    let out = call.outgoing(&Edits::default());
    if !ours {
        assert_eq!(out, params.get());
    }
}

fn edited(given: &Given<'_>) {
    let Ok(call) = ToolCall::parse(Some(given.params)) else {
        return;
    };
    let place = given.place.clone().map(|place| KeyPlace { place, window_ms: 1, durable: false });
    let progress_token = match &given.progress {
        Some(token) => ProgressToken::Replace(token.get().to_owned()),
        None if given.without_progress => ProgressToken::Remove,
        None => ProgressToken::Keep,
    };
    let meta: Vec<(&str, &str)> = given.meta.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
    let without: Vec<&str> = given.without_meta.iter().map(String::as_str).collect();
    let edits = Edits {
        name: given.name.as_deref().filter(|name| is_name(name)),
        progress_token: progress_token.clone(),
        key: place.as_ref().map(|place| (place, EFFECT_KEY)),
        deadline_ms: given.deadline_ms,
        meta: &meta,
        without_meta: &without,
    };
    let out = call.outgoing(&edits);
    let raw: &RawValue = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let sent = ToolCall::parse(Some(raw)).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(sent.name(), edits.name.unwrap_or(call.name()));

    let key = serde_json::to_string(EFFECT_KEY).expect("a string is JSON");
    let mut arguments = BTreeMap::new();
    let mut changes: BTreeMap<String, Option<String>> =
        [KEY, SESSION, DEADLINE].into_iter().chain(without).map(|name| (name.to_owned(), None)).collect();
    if progress_token == ProgressToken::Remove {
        changes.insert("progressToken".into(), None);
    }
    changes.extend(meta.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))));
    match &given.place {
        Some(Place::Argument(name)) => drop(arguments.insert(name.clone(), Some(key))),
        Some(Place::Meta(name)) => drop(changes.insert(name.clone(), Some(key))),
        Some(Place::Header(_)) | None => {}
    }
    changes.extend(given.deadline_ms.map(|ms| (DEADLINE.to_owned(), Some(ms.to_string()))));
    if let ProgressToken::Replace(token) = progress_token {
        changes.insert("progressToken".into(), Some(token));
    }
    changed(call.arguments(), sent.arguments(), &arguments, &out);
    changed(call.raw_meta(), sent.raw_meta(), &changes, &out);
    others(given.params, raw, &out);
}

/// The object after the edits has what was set, not what was taken out, and all else byte for byte in its order.
fn changed(before: Option<&RawValue>, after: Option<&RawValue>, changes: &BTreeMap<String, Option<String>>, out: &str) {
    let members = |raw: Option<&RawValue>| -> Vec<(String, String, String)> {
        let object = raw.map(|raw| Object::parse(raw.get()).expect("`parse` found an object"));
        let all = object.iter().flat_map(|object| object.members().to_vec()).collect::<Vec<_>>();
        all.iter().map(|m| (m.name().into_owned(), m.key.get().to_owned(), m.value.get().to_owned())).collect()
    };
    let (before, after) = (members(before), members(after));
    let untouched = |all: &[(String, String, String)]| -> Vec<(String, String, String)> {
        all.iter().filter(|(name, ..)| !changes.contains_key(name)).cloned().collect()
    };
    assert_eq!(untouched(&before), untouched(&after), "{out}");
    for (name, value) in changes {
        let found: Vec<_> = after.iter().filter(|(known, ..)| known == name).map(|(.., value)| value).collect();
        let times = before.iter().filter(|(known, ..)| known == name).count().max(1);
        match value {
            Some(value) => assert!(found.len() <= times && found.iter().all(|found| *found == value), "{name}: {out}"),
            None => assert!(found.is_empty(), "{name} is still there: {out}"),
        }
        assert!(value.is_none() || !found.is_empty(), "{name} is missing: {out}");
    }
}

/// Whatever else stands in the params is as it was.
fn others(before: &RawValue, after: &RawValue, out: &str) {
    let members = |raw: &RawValue| -> Vec<(String, String)> {
        let object = Object::parse(raw.get()).expect("`parse` found an object");
        let other = |name: &str| !matches!(name, "name" | "arguments" | "_meta");
        let members = object.members().iter().filter(|member| other(&member.name()));
        members.map(|member| (member.key.get().to_owned(), member.value.get().to_owned())).collect()
    };
    assert_eq!(members(before), members(after), "{out}");
}

fn is_name(name: &str) -> bool {
    let params = serde_json::json!({ "name": name }).to_string();
    RawValue::from_string(params).is_ok_and(|params| ToolCall::parse(Some(&params)).is_ok())
}
