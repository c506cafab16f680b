//! The schema holds for every golden envelope, and for nothing that breaks a rule.

use amends_core::envelope::schema;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::goldens;

/// A change that makes an envelope wrong, and the name of the rule it breaks.
type Wrong = (&'static str, &'static str, fn(&mut Value));

#[test]
fn every_golden_envelope_fits_the_schema() {
    let (whole, beside) = (compile(&schema::whole()), compile(&schema::beside()));
    let found = goldens::envelopes();
    assert!(found.iter().any(|found| found.beside) && found.iter().any(|found| !found.beside));
    for found in found {
        let validator = if found.beside { &beside } else { &whole };
        assert_fits(validator, &found.envelope, &found.at);
    }
}

#[test]
fn each_status_has_an_envelope_that_fits() {
    let whole = compile(&schema::whole());
    for name in ["success", "empty", "partial", "degraded", "error", "refused"] {
        assert_fits(&whole, &right(name), name);
    }
}

#[test]
fn an_envelope_that_breaks_a_rule_does_not_fit() {
    let whole = compile(&schema::whole());
    for (rule, name, spoil) in WRONG {
        let mut envelope = right(name);
        spoil(&mut envelope);
        assert_ne!(envelope, right(name), "{rule}: nothing was changed");
        assert!(!whole.is_valid(&envelope), "{rule}: {envelope:#}");
    }
}

#[test]
fn an_absent_field_is_left_out_and_never_null() {
    let whole = compile(&schema::whole());
    for name in ["success", "empty", "partial", "degraded", "error", "refused"] {
        for path in paths(&right(name)) {
            let mut envelope = right(name);
            *envelope.pointer_mut(&path).expect("the path leads somewhere") = Value::Null;
            // What a tool or a machine gave may be anything, null as well.
            let free = ["data", "state", "result", "upstream_result", "suggested_rewrite"];
            let fits = path.split('/').any(|part| free.contains(&part)) || path.contains("/args/");
            assert_eq!(whole.is_valid(&envelope), fits, "{name}: null at {path}");
        }
    }
}

#[test]
fn a_field_that_nobody_knows_yet_does_no_harm() {
    let whole = compile(&schema::whole());
    let mut envelope = right("error");
    envelope["invented_later"] = json!({"a": 1});
    envelope["error"]["invented_later"] = json!(true);
    assert_fits(&whole, &envelope, "an envelope of a later minor version");
}

const WRONG: &[Wrong] = &[
    ("a status of the list", "success", |e| e["status"] = json!("fine")),
    ("a status at all", "success", |e| remove(e, "", "status")),
    ("a charter version at all", "success", |e| remove(e, "", "charter_version")),
    ("a charter version of this major", "success", |e| e["charter_version"] = json!("2.0")),
    ("data in a success", "success", |e| remove(e, "", "data")),
    ("an outcome in a success", "success", |e| remove(e, "", "outcome")),
    ("a good outcome in a success", "success", |e| e["outcome"] = json!("exhausted")),
    ("no error in a success", "success", |e| e["error"] = right("error")["error"].clone()),
    ("no errors in a success", "success", |e| e["errors"] = right("partial")["errors"].clone()),
    ("no caveat in a success", "success", |e| e["degradation_reason"] = json!("answer_not_kept")),
    ("no error in an empty one", "empty", |e| e["error"] = right("error")["error"].clone()),
    ("data in a partial one", "partial", |e| remove(e, "", "data")),
    ("errors in a partial one", "partial", |e| remove(e, "", "errors")),
    ("an error at least in a partial one", "partial", |e| e["errors"] = json!([])),
    ("which item failed in a partial one", "partial", |e| remove(e, "/errors/0", "item")),
    ("a caveat in a degraded one", "degraded", |e| remove(e, "", "degradation_reason")),
    ("a caveat of the list", "degraded", |e| e["degradation_reason"] = json!("tired")),
    ("no error in a degraded one", "degraded", |e| e["error"] = right("error")["error"].clone()),
    ("an error in an error", "error", |e| remove(e, "", "error")),
    ("no data beside an error", "error", |e| e["data"] = json!({})),
    ("no caveat beside an error", "error", |e| e["degradation_reason"] = json!("answer_not_kept")),
    ("a code of the list", "error", |e| e["error"]["code"] = json!("Oops")),
    ("a class of the list", "error", |e| e["error"]["class"] = json!("Oops")),
    ("the class of the code", "error", |e| e["error"]["class"] = json!("Session")),
    ("a verdict of the list", "error", |e| e["error"]["verdict"] = json!("guilty")),
    ("a certainty of the list", "error", |e| e["error"]["certainty"] = json!("maybe")),
    ("a kind of the list", "error", |e| e["error"]["kind"] = json!("NetworkTimeout")),
    ("somebody of the list who must act", "error", |e| e["error"]["who_must_act"] = json!("us")),
    ("whether it is safe to repeat", "error", |e| remove(e, "/error", "safe_to_repeat")),
    ("what is known of the effect", "error", |e| remove(e, "/error", "certainty")),
    ("words of an upstream that nobody vouches for", "error", |e| e["error"]["upstream"]["trusted"] = json!(true)),
    ("an id of an interaction", "error", |e| e["error"]["interaction"] = json!("call_1")),
    ("no rewrite of what was tried", "error", |e| e["error"]["recovery"]["suggested_rewrite"] = json!({})),
    ("no wider scope for what was tried", "error", |e| e["error"]["recovery"]["widening_hint"] = json!("all")),
    ("an outcome of the list", "error", |e| e["outcome"] = json!("done")),
    ("an attempt's number", "error", |e| remove(e, "/attempts/0", "n")),
    ("no attempts where nothing was sent, rather than an empty list", "error", |e| e["attempts"] = json!([])),
    ("an error in a refusal", "refused", |e| remove(e, "", "error")),
    ("no data beside a refusal", "refused", |e| e["data"] = json!(1)),
    ("a refusal's own kind", "refused", |e| e["error"]["kind"] = json!("network_timeout")),
    ("no verdict of what was never tried", "refused", |e| e["error"]["verdict"] = json!("in_doubt")),
    ("a template that says what is missing", "refused", |e| remove(e, "/error/recovery/template", "missing")),
    ("a call with arguments", "refused", |e| remove(e, "/error/recovery/call", "args")),
    ("three hints at most", "success", |e| e["follow_up_hints"] = json!(["a", "b", "c", "d"])),
    ("one hint at least", "success", |e| e["follow_up_hints"] = json!([])),
    ("confidence up to one", "success", |e| e["confidence"] = json!(1.1)),
    ("confidence from nought", "success", |e| e["confidence"] = json!(-0.1)),
    ("a source in the provenance", "success", |e| remove(e, "/provenance/0", "source")),
    ("a reversal with its token", "success", |e| remove(e, "/reversal", "token")),
    ("a reversal's end as a number", "success", |e| e["reversal"]["until"] = json!("tomorrow")),
    ("replayed only where it is true", "success", |e| e["replayed"] = json!(false)),
];

/// An envelope of that status with everything it can have.
fn right(status: &str) -> Value {
    let mut envelope = json!({
        "status": status,
        "charter_version": "1.0",
        "attempts": [{"n": 1, "code": "NetworkTimeout", "certainty": "in_doubt", "ms": 5000},
                     {"n": 2, "purpose": "status", "happened": true, "ms": 100}],
    });
    let failure = json!({
        "kind": "network_timeout", "class": "ProviderTransient", "code": "NetworkTimeout", "verdict": "in_doubt",
        "requested": "issue_refund", "message": "no answer; it may have happened", "certainty": "in_doubt",
        "retryable": false, "safe_to_repeat": false, "who_must_act": "person", "retry_after_ms": 1000,
        "interaction": "int_1", "upstream": {"status": 504, "code": "x", "text": "no", "trusted": false},
        "recovery": {"not_before": 1, "to_mean_another": "take a fresh key"}, "upstream_result": {"id": "re_1"},
    });
    let more = match status {
        "success" => json!({
            "outcome": "succeeded_after_compensation", "data": {"id": "re_1"}, "confidence": 0.5,
            "provenance": [{"source": "orders", "hash": "ab12", "read_at": 1}], "follow_up_hints": ["get_refund"],
            "reversal": {"token": "rev_1", "tool": "reverse", "until": 1}, "replayed": true,
            "valid_next_actions": ["pay"], "state": "ordered", "result": {"order": 1},
        }),
        "empty" => json!({"outcome": "succeeded"}),
        "partial" => {
            let mut item = failure.clone();
            item["item"] = json!(2);
            json!({"data": [1, 2], "errors": [item]})
        }
        "degraded" => json!({"degradation_reason": "answer_not_kept"}),
        "error" => json!({"outcome": "unresolved", "error": failure}),
        _ => json!({"error": {
            "kind": "stale_state", "class": "ToolTerminal", "code": "EvidenceStale", "requested": "issue_refund",
            "message": "the order has changed", "certainty": "not_sent", "retryable": false, "safe_to_repeat": true,
            "who_must_act": "agent", "changed": [{"reference": "get_order", "was": "ab", "is": "cd"}],
            "details": [{"field": "amount", "expected": "a number", "got": "text", "nearest": ["5"]}],
            "recovery": {
                "call": {"tool": "get_order", "args": {"id": 1}}, "fuzzy_matches": ["get_order"],
                "template": {"tool": "issue_refund", "args": {"order": 1}, "missing": ["amount"]},
                "suggested_rewrite": {"amount": 5}, "widening_hint": "refunds:write",
            },
        }}),
    };
    let more = more.as_object().expect("it is an object").clone();
    envelope.as_object_mut().expect("it is an object").extend(more);
    envelope
}

fn remove(envelope: &mut Value, path: &str, field: &str) {
    let object = envelope.pointer_mut(path).and_then(Value::as_object_mut).expect("there is an object");
    object.remove(field);
}

/// Where everything in a value is, as JSON pointers.
fn paths(value: &Value) -> Vec<String> {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, member)| (name.clone(), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    let below = |(name, member): &(String, &Value)| {
        let deeper = paths(member).into_iter().map(|path| format!("/{name}{path}")).collect::<Vec<_>>();
        [vec![format!("/{name}")], deeper].concat()
    };
    members.iter().flat_map(below).collect()
}

pub(crate) fn compile(schema: &Value) -> Validator {
    assert!(jsonschema::draft202012::meta::is_valid(schema), "it is a schema of 2020-12");
    jsonschema::draft202012::new(schema).expect("the schema compiles")
}

pub(crate) fn assert_fits(validator: &Validator, envelope: &Value, at: &str) {
    let faults: Vec<String> =
        validator.iter_errors(envelope).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{at}: {faults:#?}\n{envelope:#}");
}
