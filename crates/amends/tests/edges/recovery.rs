//! The next call that an answer names can be made as it stands, and works.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Gateway, Place, root};

fn follow(gateway: &Gateway, call: &Value) -> Value {
    let tool = call["tool"].as_str().expect("a tool");
    let (status, envelope) = gateway.call(tool, &call["args"].to_string());
    assert_eq!(status, 200, "{call}: {envelope}");
    envelope
}

/// Every `recovery.call` in a value.
fn calls(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("recovery").and_then(|recovery| recovery.get("call")).cloned());
            fields.values().for_each(|inner| calls(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| calls(inner, found)),
        _ => {}
    }
}

fn goldens(folder: &Path, found: &mut Vec<Value>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            // What those name is a walk that exists only there; tests of machines follow what real ones name.
            if !path.ends_with("mcp/steps") {
                goldens(&path, found);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(value) = serde_json::from_str(&text) {
            calls(&value, found);
        }
        // A story's trace holds its envelopes as indented JSON.
        for (at, _) in text.match_indices("\"recovery\": {") {
            let object = &text[at + "\"recovery\": ".len()..];
            let recovery = serde_json::Deserializer::from_str(object).into_iter::<Value>().next();
            found.extend(recovery.and_then(Result::ok).and_then(|recovery| recovery.get("call").cloned()));
        }
    }
}

#[test]
fn every_call_that_a_golden_names_can_be_made_and_works() {
    let mut found = Vec::new();
    goldens(&root().join("fixtures"), &mut found);
    assert!(!found.is_empty(), "no golden names a call");
    let place = Place::new();
    let gateway = place.up("");
    for call in found {
        follow(&gateway, &call);
    }
}

#[test]
fn a_misspelt_argument_is_answered_with_the_call_that_was_meant() {
    let place = Place::new();
    let gateway = place.up("");
    for (tool, given, meant) in [
        ("get_order", json!({ "ordr": "ord_1" }), json!({ "order": "ord_1" })),
        ("charge_card", json!({ "order": "ord_1", "ammount": 5 }), json!({ "order": "ord_1", "amount": 5 })),
    ] {
        let (status, envelope) = gateway.call(tool, &given.to_string());
        assert_eq!((status, &envelope["status"]), (422, &json!("refused")));
        let recovery = &envelope["error"]["recovery"];
        assert_eq!(recovery["call"], json!({ "tool": tool, "args": meant }), "{envelope}");
        assert!(recovery.get("template").is_none());
        assert_eq!(follow(&gateway, &recovery["call"])["status"], "success");
    }
    assert_eq!(place.effects("charge_card"), 1, "what was refused was not sent");
    let (_, envelope) = gateway.call("charge_card", r#"{"ordr":"ord_1"}"#);
    let recovery = &envelope["error"]["recovery"];
    assert!(recovery.get("call").is_none() && recovery["template"]["missing"].is_array(), "{envelope}");
}
