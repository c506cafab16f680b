//! Envelopes for agents that were written for another server: the same facts in the words they expect.

use std::collections::BTreeMap;

use amends_core::{Code, Envelope, RefusalKind};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// How far alternatives within alternatives are followed.
const ALTERNATIVES_DEPTH_MAX: usize = 8;

/// The words in which our own answers are given. What an upstream answered is forwarded as it is in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The envelope as it is.
    #[default]
    Amends,
    /// `recovery` as `suggested_tool` and `suggested_args`; what is absent is null.
    Schemabrain,
    /// Flat answers of a machine, in which `error` is the kind's name.
    Theodosia,
}

/// What a move gave, as it stands on the wire.
#[derive(Deserialize)]
struct Move<'a> {
    action: Value,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    skipped: Option<&'a RawValue>,
    state: Value,
    session: Value,
    next_action_schemas: Value,
    next_hint: Value,
    #[serde(default)]
    waits: Value,
}

/// The parts of an envelope that dialects are made from, as they stand on the wire.
#[derive(Deserialize)]
struct Native<'a> {
    status: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    error: Option<Value>,
    #[serde(default)]
    confidence: Value,
    #[serde(default)]
    provenance: Value,
    #[serde(default)]
    follow_up_hints: Value,
    #[serde(default)]
    degradation_reason: Value,
    valid_next_actions: Option<Value>,
    #[serde(default)]
    next_action_schemas: Value,
    #[serde(default)]
    next_hint: Value,
    #[serde(default)]
    known_actions: Value,
    timeout_ms: Option<u64>,
    #[serde(default)]
    waits: Value,
    #[serde(default)]
    session: Value,
    #[serde(default)]
    attempts: Vec<Value>,
    charter_version: String,
}

impl Dialect {
    /// The dialect of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "amends" => Some(Self::Amends),
            "schemabrain" => Some(Self::Schemabrain),
            "theodosia" => Some(Self::Theodosia),
            _ => None,
        }
    }

    /// An envelope in these words, with its payload filled in.
    pub fn envelope(self, envelope: &Envelope, payload: Option<&RawValue>) -> Box<RawValue> {
        self.render(&envelope.to_json(payload))
    }

    /// An envelope that is JSON already, in these words.
    pub fn render(self, envelope: &RawValue) -> Box<RawValue> {
        // Most agents are told in our own words, and nothing is read for them.
        let words = match self {
            Self::Amends => return envelope.to_owned(),
            Self::Schemabrain => schemabrain,
            Self::Theodosia => theodosia,
        };
        let Ok(native) = serde_json::from_str::<Native<'_>>(envelope.get()) else { return envelope.to_owned() };
        let rendered = words(&native);
        to_raw_value(&rendered).unwrap_or_else(|_| envelope.to_owned())
    }

    /// Whether an answer that failed is marked as an error of the tool.
    pub(super) fn marks_error(self, rendered: &RawValue) -> bool {
        match self {
            Self::Amends | Self::Schemabrain => true,
            // There a refusal is an answer like any other; only what ran and failed is an error.
            Self::Theodosia => {
                let body: Value = serde_json::from_str(rendered.get()).unwrap_or_default();
                matches!(body["error"].as_str(), Some("action_timeout" | "action_error"))
            }
        }
    }
}

type Rendered<'a> = BTreeMap<&'static str, Part<'a>>;

/// A part of a rendered envelope: our own, or bytes that stay as they are.
#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Own(Value),
    Raw(&'a RawValue),
}

fn schemabrain<'a>(native: &Native<'a>) -> Rendered<'a> {
    let own = |value: &Value| Part::Own(value.clone());
    let error = native.error.as_ref().map(|error| {
        let recovery = &error["recovery"];
        let next = if recovery["call"].is_object() { &recovery["call"] } else { &recovery["template"] };
        // A call that must still be completed is suggested without arguments rather than with wrong ones.
        let args = &recovery["call"]["args"];
        let recovery = recovery.is_object().then(|| {
            json!({
                "suggested_tool": next["tool"],
                "suggested_args": args,
                "fuzzy_matches": recovery["fuzzy_matches"],
                "suggested_rewrite": recovery["suggested_rewrite"],
                "widening_hint": recovery["widening_hint"],
            })
        });
        json!({ "kind": error["kind"], "message": error["message"], "recovery": recovery })
    });
    let confidence = native.confidence.as_f64().map(|sure| match sure {
        0.8.. => "HIGH",
        0.5.. => "MEDIUM",
        _ => "LOW",
    });
    BTreeMap::from([
        ("status", Part::Own(json!(native.status))),
        ("data", native.data.map_or(Part::Own(Value::Null), Part::Raw)),
        ("error", Part::Own(json!(error))),
        ("confidence", Part::Own(json!(confidence))),
        ("provenance", own(&native.provenance)),
        ("follow_up_hints", own(&native.follow_up_hints)),
        ("degradation_reason", own(&native.degradation_reason)),
        ("charter_version", Part::Own(json!(native.charter_version))),
    ])
}

fn theodosia<'a>(native: &Native<'a>) -> Rendered<'a> {
    let mut body = Rendered::new();
    if let Some(moves) = &native.valid_next_actions {
        body.insert("valid_next_actions", Part::Own(moves.clone()));
    }
    let Some(error) = &native.error else {
        let moved = native.data.filter(|_| native.valid_next_actions.is_some());
        match moved.and_then(|data| serde_json::from_str::<Move<'a>>(data.get()).ok()) {
            Some(moved) => {
                body.insert("action", Part::Own(moved.action));
                body.insert("result", moved.result.map_or(Part::Own(Value::Null), Part::Raw));
                if let Some(skipped) = moved.skipped {
                    body.insert("skipped", Part::Raw(skipped));
                }
                // There a state is its fields.
                body.insert("state", Part::Own(moved.state["fields"].clone()));
                body.insert("session", Part::Own(moved.session));
                body.insert("next_hint", Part::Own(moved.next_hint));
                body.insert("next_action_schemas", Part::Own(parameters(&moved.next_action_schemas)));
                if let Some(waits) = later(&moved.waits) {
                    body.insert("waits", Part::Own(waits.clone()));
                }
            }
            None => {
                body.insert("result", native.data.map_or(Part::Own(Value::Null), Part::Raw));
                where_it_is(native, &mut body);
            }
        }
        return body;
    };
    let kind = kind(&native.status, error);
    where_it_is(native, &mut body);
    let mut own = |name, value: &Value| {
        if !value.is_null() {
            body.insert(name, Part::Own(value.clone()));
        }
    };
    own("error", &json!(kind));
    own("requested", &error["requested"]);
    match kind {
        "unknown_action" => {
            let known = &native.known_actions;
            own("known_actions", if known.is_null() { &error["recovery"]["fuzzy_matches"] } else { known });
            own("message", &error["message"]);
        }
        "validation_failed" => {
            own("reason", &error["message"]);
            let mut faults = error["details"].as_array().into_iter().flatten().map(fault);
            // There it is one object about one field; the other mistakes stand within it.
            if let Some(mut details) = faults.next() {
                let others: Vec<Value> = faults.collect();
                if !others.is_empty() {
                    details["others"] = others.into();
                }
                own("details", &details);
            }
        }
        "action_error" => {
            own("error_type", &error["code"]);
            // There it is what the action itself said. That something was done, or may have been, is said nowhere else.
            let ours = &error["message"];
            match error["upstream"]["text"].as_str() {
                Some(words) if error["safe_to_repeat"] == true => own("error_message", &json!(words)),
                Some(words) => {
                    own("error_message", &json!(format!("{}; it said: {words}", ours.as_str().unwrap_or_default())));
                }
                None => own("error_message", ours),
            }
        }
        "action_timeout" => {
            let waited = || native.attempts.last().and_then(|attempt| attempt["ms"].as_u64());
            let waited = native.timeout_ms.or_else(waited);
            own("timeout_seconds", &json!(waited.map(|ms| ms as f64 / 1000.0)));
            own("message", &error["message"]);
        }
        _ => own("message", &error["message"]),
    }
    body
}

/// What is said of the walk beside an error, and beside what was only looked at.
fn where_it_is<'a>(native: &Native<'a>, body: &mut Rendered<'a>) {
    let mut own = |name, value: &Value| {
        if !value.is_null() {
            body.insert(name, Part::Own(value.clone()));
        }
    };
    own("session", &native.session);
    own("next_hint", &native.next_hint);
    if native.next_action_schemas.is_object() {
        own("next_action_schemas", &parameters(&native.next_action_schemas));
    }
    own("waits", later(&native.waits).unwrap_or(&Value::Null));
}

/// A mistake as that server tells it: what was there is the value itself, where that is known.
fn fault(fault: &Value) -> Value {
    let got = fault["got"].as_str().and_then(|got| serde_json::from_str::<Value>(got).ok());
    json!({ "field": fault["field"], "expected": fault["expected"], "got": got.as_ref().unwrap_or(&fault["got"]) })
}

/// What is waited for, where that is a time: the hint speaks of it, and nothing else names it there.
fn later(waits: &Value) -> Option<&Value> {
    (waits["for"] == "later").then_some(waits)
}

/// The inputs of each action as that server shows them: by their names, each with its schema.
fn parameters(schemas: &Value) -> Value {
    let of = |schema: &Value| {
        let mut named = BTreeMap::new();
        inputs(schema, schema, ALTERNATIVES_DEPTH_MAX, &mut named);
        let one = |mut ways: Vec<Value>| if ways.len() == 1 { ways.swap_remove(0) } else { json!({ "anyOf": ways }) };
        Value::Object(named.into_iter().map(|(name, ways)| (name.to_owned(), one(ways))).collect())
    };
    schemas.as_object().into_iter().flatten().map(|(action, schema)| (action.clone(), of(schema))).collect()
}

/// Every input that a schema names, also in its alternatives, with each schema that it has there.
fn inputs<'a>(schema: &'a Value, root: &'a Value, depth: usize, named: &mut BTreeMap<&'a str, Vec<Value>>) {
    if depth == 0 {
        return;
    }
    for (name, way) in schema["properties"].as_object().into_iter().flatten() {
        let ways = named.entry(name).or_default();
        if !ways.contains(way) {
            ways.push(way.clone());
        }
    }
    let alternatives =
        ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten();
    let branches = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
    let target = schema["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
    for part in alternatives.chain(branches).chain(target) {
        inputs(part, root, depth - 1, named);
    }
}

/// The kind in the words of that server: what ran is an action's timeout or error, whatever it was exactly.
fn kind<'a>(status: &str, error: &'a Value) -> &'a str {
    let own = error["kind"].as_str().unwrap_or_default();
    let code = error["code"].as_str().and_then(Code::parse);
    match (status, code) {
        ("refused", _) if own == RefusalKind::InvalidArgument.as_str() => RefusalKind::ValidationFailed.as_str(),
        // A walk that there is not is a wrong argument there; its actions are not in question.
        ("refused", _) if own == RefusalKind::UnknownName.as_str() && error["details"][0]["field"] == "session" => {
            RefusalKind::ValidationFailed.as_str()
        }
        ("refused", _) if own == RefusalKind::UnknownName.as_str() => RefusalKind::UnknownAction.as_str(),
        ("refused", _) => own,
        _ if own == RefusalKind::ActionTimeout.as_str() || own == RefusalKind::ActionError.as_str() => own,
        // Nothing ran, and nothing failed: a person is asked first.
        _ if own == RefusalKind::AwaitingPerson.as_str() => own,
        (_, Some(Code::ExecutionTimeout | Code::NetworkTimeout)) => RefusalKind::ActionTimeout.as_str(),
        _ => RefusalKind::ActionError.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(native: &Value) -> Value {
        let raw = to_raw_value(native).unwrap();
        serde_json::from_str(Dialect::Theodosia.render(&raw).get()).unwrap()
    }

    fn refused(error: Value) -> Value {
        flat(&json!({ "status": "refused", "error": error, "valid_next_actions": [], "charter_version": "1.0" }))
    }

    #[test]
    fn every_mistake_is_listed_with_what_was_expected_and_what_was_there() {
        let fault = |field: &str, got: &str| json!({ "field": field, "expected": "e", "got": got, "nearest": ["x"] });
        let told = |field: &str, got: Value| json!({ "field": field, "expected": "e", "got": got });
        let error = |details: Value| json!({ "kind": "validation_failed", "message": "no", "details": details });
        let one = refused(error(json!([fault("modifier", "\"moon\"")])));
        assert_eq!(one["details"], told("modifier", json!("moon")), "it is an object, as there");
        let all = refused(error(json!([fault("a", "5"), fault("b", "text that ends too early"), fault("c", "{\"a…")])));
        let mut details = told("a", json!(5));
        details["others"] = json!([told("b", json!("text that ends too early")), told("c", json!("{\"a…"))]);
        assert_eq!(all["details"], details);
    }

    #[test]
    fn a_walk_that_there_is_not_is_a_wrong_argument() {
        let fault = json!({ "field": "session", "expected": "a walk of yours" });
        let no = refused(json!({ "kind": "unknown_name", "message": "there is no such walk", "details": [fault] }));
        assert_eq!(
            (&no["error"], &no["reason"]),
            (&json!("validation_failed"), &json!("there is no such walk")),
            "{no}"
        );
        assert_eq!(no["details"]["field"], "session", "{no}");
        let tool = refused(json!({ "kind": "unknown_name", "message": "there is no tool `x`" }));
        assert_eq!(tool["error"], "unknown_action");
    }

    #[test]
    fn what_an_action_said_itself_is_its_message() {
        let upstream = json!({ "text": "card declined", "trusted": false });
        let mut error =
            json!({ "kind": "action_error", "code": "ActionError", "message": "ours", "upstream": upstream });
        let failed = |error: &Value| flat(&json!({ "status": "error", "error": error, "charter_version": "1.0" }));
        error["safe_to_repeat"] = json!(true);
        assert_eq!(failed(&error)["error_message"], "card declined");
        error["safe_to_repeat"] = json!(false);
        assert_eq!(failed(&error)["error_message"], "ours; it said: card declined", "it may have been done");
        error["upstream"] = Value::Null;
        assert_eq!(failed(&error)["error_message"], "ours", "where nothing was said");
    }

    #[test]
    fn inputs_in_alternatives_are_shown_by_their_names() {
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        let card = json!({ "properties": { "card": text, "amount": number } });
        let schema = json!({
            "type": "object", "oneOf": [{ "$ref": "#/$defs/card" }, { "properties": { "iban": text, "amount": text } }],
            "$defs": { "card": card },
        });
        let amount = json!({ "anyOf": [number, text] });
        let shown = parameters(&json!({ "pay": schema, "drop": { "type": "object" } }));
        assert_eq!(shown, json!({ "pay": { "card": text, "iban": text, "amount": amount }, "drop": {} }));
    }
}
